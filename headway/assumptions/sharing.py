"""Shared windows: costs that the profile of a query without sharing does not contain."""

from __future__ import annotations

from headway.assumptions import Assumption, seconds

COPIES_SHARE_RATIO = Assumption(
    name="Share of the time per row that copies for windows take",
    value=(0.85, 0.5, 1.0),
    source="0.80 and 0.95 fitted to two series of runs with 12 windows per row; used, lowest, "
    "highest",
    influences="the saving per row by shared windows",
)
HELD_ROW_RATIO = Assumption(
    name="Time of a state row that a batch does not write, over that of one it writes",
    value=0.25,
    source="the search for rows to remove took 13% to 18% as long as writing, Spark 4.3, 2026; the "
    "store also copies its rows for the next version",
    influences="batch time of panes and fused windows",
)
RAW_SHUFFLE_S = seconds(
    name="Slot time to shuffle a row that was not combined",
    value=3e-7,
    source="16 fused runs of 10k to 400k rows per batch on two cores, 2026: 0.15 to 0.45 us",
    influences="batch time of fused windows",
)
LOG_BATCH_S = seconds(
    name="Time to write the partial windows of a batch and its log entry",
    value=0.1,
    source="runs of a log with 100 to 10,000 keys on two cores and a local disk, 2026",
    influences="batch time of windows from a log",
)
LOG_READ_S = seconds(
    name="Time of the job that makes due windows from the log, and of merging the ending panes",
    value=0.3,
    source="runs of a log with 100 to 10,000 keys on two cores and a local disk, 2026",
    influences="batch time of windows from a log",
)
LOG_ROW_S = seconds(
    name="Slot time to write or read a row of partial windows",
    value=5e-7,
    source="batches of a log with 1,000 and with 10,000 keys on two cores and a local disk, 2026",
    influences="batch time of windows from a log",
)
LEAST_SAVED_RATIO = Assumption(
    name="Minimum saving for which another way to count windows is recommended",
    value=0.03,
    source="judgement: a smaller saving is lost in repeat-to-repeat noise",
    influences="the way and trigger that headway windows recommends",
)
EITHER_WAY_RATIO = Assumption(
    name="Factor by which costs of sharing may be smaller or larger than assumed",
    value=2.0,
    source="judgement: each was measured once, on one machine",
    influences="the interval of the saving by shared windows",
)
TRIGGER_RATIOS = Assumption(
    name="Trigger intervals that are tried for shared windows, over the profiled one",
    value=(0.25, 0.5, 1.0, 2.0, 4.0),
    source="judgement: beyond these, the profile is extrapolated far",
    influences="the trigger that headway windows recommends",
)
UNEVEN_DEAL_RATIO = Assumption(
    name="Skew threshold of key groups: busiest task over the mean",
    value=1.2,
    source="judgement: a smaller ratio is normal variation between tasks",
    influences="advice of headway share on key groups",
)
