"""Logs: when what is in them is believed, and how the trigger interval is read off them."""

from __future__ import annotations

from headway.assumptions import Assumption

LEAST_TASKS_RATIO = Assumption(
    name="Minimum share of a stage's tasks in the log",
    value=0.5,
    unit="-",
    source="judgement: with fewer, those that are missing decide what the stage cost",
    influences="which batches of an incomplete log are used",
)
LEAST_BELIEVED_RATIO = Assumption(
    name="Minimum share of a range of ids for the range to be believed",
    value=0.001,
    unit="-",
    source="judgement: ids further apart are damage, not gaps",
    influences="how much of a log is said to be missing",
)
LEAST_USUAL_RATIO = Assumption(
    name="Share of events below which a log is called incomplete",
    value=0.99,
    unit="-",
    source="judgement: a few are always missing, of queries that were stopped for instance",
    influences="a warning of a profile",
)
LEAST_BATCHES_WITH_OFFSETS = Assumption(
    name="Minimum batches to compare offsets with rows",
    value=3,
    unit="batches",
    source="judgement: fewer agree by chance",
    influences="whether arrivals are read off the offsets of a source",
)
AGREEING_RATIO = Assumption(
    name="Minimum share of batches whose offsets match their rows",
    value=0.95,
    unit="-",
    source="judgement: transaction markers and compaction leave gaps in few batches",
    influences="whether arrivals are read off the offsets of a source",
)
MOST_EXCESS_RATIO = Assumption(
    name="Maximum excess of offsets over rows that still matches",
    value=0.02,
    unit="-",
    source="judgement: transaction markers take offsets, and are no rows",
    influences="whether arrivals are read off the offsets of a source",
)
SAME_RATE_RATIO = Assumption(
    name="Maximum ratio of rates between runs of one setting",
    value=1.1,
    unit="-",
    source="judgement: a source that is held at a rate keeps it within a tenth",
    influences="which runs a backtest predicts from which",
)
ON_TIME_RATIO = Assumption(
    name="Maximum delay of a start, as a share of the trigger interval",
    value=0.1,
    unit="-",
    source="judgement: later, it waited for the batch before, not for its trigger",
    influences="the delay of a start that window latencies hold",
)
LATE_MS = Assumption(
    name="Mean time from a trigger to the start of its batch",
    value=4.0,
    unit="ms",
    source="judgement: of any driver, before a log is seen",
    influences="the trigger interval read off a log (E31)",
)
AT_ONCE_MS = Assumption(
    name="Maximum pause between batches that follow each other at once",
    value=30.0,
    unit="ms",
    source="above Spark's polling delay of 10 ms and the rounding of two timestamps",
    influences="the trigger interval read off a log (E31)",
)
LATE_START_RATIO = Assumption(
    name="Share of batches that start any time after their trigger",
    value=0.05,
    unit="-",
    source="judgement: on a busy driver",
    influences="the trigger interval read off a log (E31)",
)
EARLY_START_RATIO = Assumption(
    name="Share of batches that start before their trigger",
    value=0.001,
    unit="-",
    source="judgement: none should",
    influences="the trigger interval read off a log (E31)",
)
TIMES_LIKELIER = Assumption(
    name="Odds required to read a trigger interval, or to contradict a stated one",
    value=1000.0,
    unit="-",
    source="judgement: of 1,500 random runs without a trigger three are then read as having one",
    influences="the trigger interval read off a log (E31)",
)
LEAST_PAIRS = Assumption(
    name="Minimum pairs of batches to read a trigger interval",
    value=3,
    unit="pairs",
    source="judgement: fewer starts lie on a grid by chance",
    influences="the trigger interval read off a log (E31)",
)
ROUND_INTERVALS_MS = Assumption(
    name="Trigger intervals that count as round; rounder ones are likelier",
    value=(1, 5, 10, 50, 100, 250, 500, 1000),
    unit="ms",
    source="judgement: people write 5 seconds rather than 4.97",
    influences="the trigger interval read off a log (E31)",
)
