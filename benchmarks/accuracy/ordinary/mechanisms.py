"""What the large errors of 2026-11-29 were traced to, and what was looked for and excluded.

All 13 means that were off by more than 15% were decomposed; numbers are from the recorded runs, and
priors from those of the campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pages import headed


class Mechanism(NamedTuple):
    """What happens, in which jobs it was seen, what shows it, and what follows from it."""

    happens: str
    jobs: str
    shown_by: str
    consequence: str


MECHANISMS = (
    Mechanism(
        "runs of an earlier day were fitted, too",
        "shop-kafka, shop-two-sinks",
        "seven runs in the fit instead of four; the earlier ones were advised after another run in "
        "production, on a day on which fixed work took a quarter longer; the comparison of five "
        "runs and more (E6) took the difference for the age of the JVM",
        "only runs that the advice names are fitted",
    ),
    Mechanism(
        "the state grows with the rate, and garbage collection with it",
        "nexmark-q5",
        "CPU time per row and per row of state, from three runs, predicts that of four others "
        "within 3 to 12%, and is 14 to 21% low without state; at twice the rate, 23% of the time "
        "of the tasks that read the stream is garbage collection instead of 15%",
        "not modelled: (E29) fits a state that grows within runs; fitted between runs, and in the "
        "first of two stages with state, durations 18% too short are 15%, and others 17% are 21%",
    ),
    Mechanism(
        "close to saturation was counted as not stable",
        "nexmark-q0, nexmark-q5, shop-enrich on one core",
        "predicted loads of 93 to 98% of what can be carried; beyond 100%, the same settings were "
        "not known",
        "too close to saturation is no verdict",
    ),
    Mechanism(
        "a backlog of a topic has no producer beside it",
        "shop-kafka on one core",
        "a live stream takes 10 us of the one slot per row, so that it carries 100,000 rows/s; the "
        "probe says 144,000, more than on two cores",
        "none: the verdict at 117,000 is that of the live runs",
    ),
    Mechanism(
        "a stage whose rows are as many in every batch",
        "nexmark-q15 from one run",
        "it merges two rows in any batch, and made the cost of a row look known to 38%, where the "
        "stage that reads the stream leaves half of it open",
        "the range weighs stages by how their rows grow (E43)",
    ),
    Mechanism(
        "code is generated anew for each batch",
        "nexmark-q15 from one run",
        "635 classes in 634 batches; 45 of the 61 ms of a task are fixed, with 50 ms of CPU time",
        "not modelled: a run of another size shows it",
    ),
    Mechanism(
        "the gain close to saturation",
        "shop-enrich, nexmark-q5",
        "-7% at the rows that the batches really had are -31% at an offered load of 80%",
        "predictions say how many times errors count",
    ),
    Mechanism(
        "batches of other queries begin at the same instant",
        "shop-together",
        "the driver takes 196 to 262 ms in a batch as fast as possible, 360 to 645 ms on a "
        "trigger, and 360 ms where the neighbours have 16 partitions, too",
        "not modelled: of one job only",
    ),
    Mechanism(
        "files land at a phase that each run has by chance",
        "shop-files on a trigger of 1 s",
        "a file each half second: rows wait 0.25 s more or less; with the measured duration the "
        "mean is still off by 19%",
        "noise",
    ),
    Mechanism(
        "the machine is faster or slower",
        "nexmark-q12, nexmark-q21, shop-points",
        "errors of durations go with the loop beside the runs (correlation 0.41, slope 1.1)",
        "noise, see the floor",
    ),
    Mechanism(
        "the driver is faster without a pause before the batch",
        "nexmark-q22, shop-together",
        "11% with a deviation of 13% in 15 workloads of the campaign; most on the machine of the "
        "third block, where a copy in memory takes 2.8 ms beside runs as fast as possible and 4 to "
        "9 ms beside runs that pause",
        "not modelled: it moves no mean across 15%",
    ),
    Mechanism(
        "the age of the JVM",
        "first runs of a JVM",
        "repeats of one setting in the campaign: the driver falls with the power 0.12 of the age, "
        "which is (E35), stages on a trigger with 0.03",
        "excluded as a common cause",
    ),
    Mechanism(
        "the number of tasks that adaptive execution leaves",
        "all",
        "in none of the 13 runs did a stage have other numbers of tasks than predicted",
        "excluded",
    ),
)


def mechanisms_table() -> Iterator[str]:
    """A row for each."""
    yield from headed("| what happens | seen in | shown by | what follows |")
    for mechanism in MECHANISMS:
        yield f"| {' | '.join(mechanism)} |"
    yield ""
