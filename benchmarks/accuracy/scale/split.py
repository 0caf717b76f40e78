"""Which evidence the spread beyond a profile is fitted on, and which it is judged on.

Written before any of the errors was computed for it; errors of single pages were known. Every kind
of evidence is divided, by what it is about and never by how it came out:

* recorded runs: fitted on one run, the others of its log predicted. The log of two cores is fitted,
  that of one core judged, and so is whatever leads from one log to the other;
* the campaign: fitted on one core and judged on two is fitted; executors of one core, 4 and 16
  slots, and other partitions on two cores are judged;
* tasks on one machine: an even number of tasks that is asked about is fitted, an odd one judged;
  no more than the machine works off at a time, since slots are cores;
* graph jobs by hosts: PageRank is fitted, ConnectedComponents judged;
* streams on clusters, fitted on up to 12 cores: 4 x 6 is fitted, 6 x 4 and 6 x 6 judged.

The rules, written at the same time:

* the spread per doubling is the smallest hundredth with which the 90% intervals of the fitted
  evidence beyond its profiles hold at least nine times in ten, every source weighing the same;
* doublings of slots, partitions and rows are put together as a sum or as independent errors,
  whichever needs less spread in sum over the fitted evidence to cover as much;
* an answer is called calibrated up to the largest doubling, of each kind, to which the judged
  evidence reaches with ten errors and more, of which the intervals hold at least 85%.

Changed after the fitted half was seen, the judged half not: an error is the factor on all durations
that would have made the prediction right, since that is what an interval is made of, and no longer
the quotient of the durations themselves, of which batches that run back to back make more.

Changed after both were seen: one bound for all kinds, the least of theirs, where the rule above
gives each its own; and distances of rows are counted from what was profiled, where two thirds and
one and a half times of it were free before. Neither changed the spread per doubling.

Left out: errors of settings that are over capacity or close to it by the prediction's own warning;
runs that others disturbed, in the campaign; `enel-experiments` among the published runs (iterative
jobs at 4 to 36 executors), whose jobs of one name take the same time on 4 and on 36 or differ
tenfold on one number, so that other things than the number decided.
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
