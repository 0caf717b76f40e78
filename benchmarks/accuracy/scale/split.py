"""Which evidence the spread outside the profiled range is fitted on, and which it is judged on.

Written before any error was computed for this purpose; errors of single pages were known. Every
kind of evidence is divided by its subject and never by its result:

* recorded runs: fitted on one run, the others of its log predicted. The log of two cores is fitted,
  that of one core is judged, and so are predictions from one log to the other;
* the campaign: predictions from one core to two are fitted; executors of one core, 4 and 16 slots,
  and other shuffle partitions on two cores are judged;
* tasks on one machine: predictions for an even number of tasks are fitted, those for an odd number
  judged; never more tasks than the machine works off at a time, since slots are cores;
* graph jobs by hosts: PageRank is fitted, ConnectedComponents judged;
* streams on clusters, fitted on up to 12 cores: 4 x 6 is fitted, 6 x 4 and 6 x 6 judged.

The rules, written at the same time:

* the spread per doubling is the smallest hundredth with which the 90% intervals of the fitted
  evidence outside its profiles hold at least nine times in ten, with equal weight for every source;
* doublings of slots, partitions and rows are combined as a sum or as independent errors, whichever
  needs less spread in total over the fitted evidence to cover as much;
* a prediction is called calibrated up to the largest doubling, of each kind, that the judged
  evidence reaches with at least ten errors, of which the intervals hold at least 85%.

Changed after the fitted half had been seen, but not the judged half: an error is the factor on all
durations that would have made the prediction right, since intervals consist of such factors.
Before, it was the quotient of the durations themselves, which batches back to back amplify.

Changed after both had been seen: there is one bound for all kinds, the smallest of theirs, while
the rule above gives each its own; and distances of rows are counted from the profiled range, while
two thirds to one and a half times of it were free before. Neither changed the spread per doubling.

Changed after both had been seen: shuffle partitions have a spread of their own, the likeliest one
for the fitted half. The bands of the page had shown that intervals of settings with other
partitions held 95 to 100% of the time, at any distance.

Left out: errors of settings that are over capacity or close to it by the prediction's own warning;
in the campaign, runs that others disturbed; `enel-experiments` among the published runs (iterative
jobs at 4 to 36 executors): jobs of one name take the same time on 4 and on 36, or differ tenfold on
one number, so other things than the number decided.
"""

from __future__ import annotations

from typing import NamedTuple

FIT, JUDGE = "fit", "judge"
COVERED_SHARE = 0.9
LEAST_COVERED_SHARE = 0.85
LEAST_ERRORS = 10


class Kind(NamedTuple):
    """A source of errors, and the part of it that an error belongs to."""

    source: str
    part: str


SPLIT = {
    Kind("recorded", "sha_agg_local2"): FIT,
    Kind("recorded", "sha_agg_local1"): JUDGE,
    Kind("recorded", "sha_agg_local1 to sha_agg_local2"): JUDGE,
    Kind("recorded", "sha_agg_local2 to sha_agg_local1"): JUDGE,
    Kind("campaign", "one-core to two-cores"): FIT,
    Kind("campaign", "one-executor to two-executors"): JUDGE,
    Kind("campaign", "four-slots to sixteen-slots"): JUDGE,
    Kind("campaign", "two-cores"): JUDGE,
    Kind("tasks", "even"): FIT,
    Kind("tasks", "odd"): JUDGE,
    Kind("hosts", "PageRank"): FIT,
    Kind("hosts", "ConnectedComponents"): JUDGE,
    Kind("clusters", "4 x 6"): FIT,
    Kind("clusters", "6 x 4"): JUDGE,
    Kind("clusters", "6 x 6"): JUDGE,
}


def is_fitted(kind: Kind) -> bool:
    """Whether the spread is fitted on errors of a kind."""
    return SPLIT[kind] == FIT
