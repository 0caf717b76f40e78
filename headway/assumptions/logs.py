"""Logs: which of their contents are trusted, and how the trigger interval is estimated."""

from __future__ import annotations

from headway.assumptions import Assumption, batches

LEAST_TASKS_RATIO = Assumption(
    name="Minimum share of a stage's tasks in the log",
    value=0.5,
    source="judgement: with fewer, the missing tasks determine the cost of the stage",
    influences="which batches of an incomplete log are used, and whether a batch job is planned "
    "with one (P16)",
)
LEAST_BELIEVED_RATIO = Assumption(
    name="Minimum share of ids present in a range of ids that is trusted",
    value=0.001,
    source="judgement: ids further apart are damage, not gaps",
    influences="how much of a log is reported as missing",
)
LEAST_USUAL_RATIO = Assumption(
    name="Share of events below which a log is called incomplete",
    value=0.99,
    source="judgement: a few events are always missing, for instance of stopped queries",
    influences="a warning in a profile; whether the plan of a batch job is scaled to its run and "
    "calibrated (P16)",
)
LEAST_BATCHES_WITH_OFFSETS = batches(
    name="Minimum batches to compare offsets with rows",
    value=3,
    source="judgement: fewer may agree by chance",
    influences="whether arrivals are derived from the offsets of a source",
)
AGREEING_RATIO = Assumption(
    name="Minimum share of batches whose offsets match their rows",
    value=0.95,
    source="judgement: transaction markers and compaction leave gaps in a few batches only",
    influences="whether arrivals are derived from the offsets of a source",
)
MOST_EXCESS_RATIO = Assumption(
    name="Maximum excess of offsets over rows that still matches",
    value=0.02,
    source="judgement: transaction markers take offsets but are not rows",
    influences="whether arrivals are derived from the offsets of a source",
)
SAME_ROWS_RATIO = Assumption(
    name="Maximum difference of two counts of rows that are called equal",
    value=0.01,
    source="judgement: rows of a static table or a second scan repeat exactly, but for a late task",
    influences="which stages read a static table, and how often a batch reads its rows",
)
SAME_READ_RATIO = Assumption(
    name="Maximum distance of the offsets of two reads of one source, as a share of a batch",
    value=0.1,
    source="judgement: a batch asks one read after the other, within milliseconds",
    influences="whether sources with one description are one that is read several times",
)
COALESCED_TASKS_RATIO = Assumption(
    name="Maximum difference of tasks from Spark's rule of coalescing",
    value=0.2,
    source="judgement: partitions of unequal size make one task more or less of five",
    influences="which stages are taken as coalesced by adaptive execution (T7)",
)
SOURCE_TASKS_RATIO = Assumption(
    name="Maximum difference of tasks from Spark's rule for files",
    value=0.2,
    source="judgement: files of unequal size make one task more or less of five",
    influences="which sources are taken to read files by Spark's rule (T9)",
)
FEWEST_WAITING_STAGES = Assumption(
    name="Fewest stages with waiting tasks that show the slots of an executor",
    value=3,
    unit="stages",
    source="judgement: one stage may end before the driver has launched all of its tasks",
    influences="whether the tasks that ran at once count as slots, in place of the cores",
)
LIMITED_STAGES_RATIO = Assumption(
    name="Least share of stages with as many tasks at once as any",
    value=0.75,
    source="judgement: a limit is reached in nearly every stage; numbers that differ are chance",
    influences="whether the tasks that ran at once count as slots, in place of the cores",
)
SAME_RATE_RATIO = Assumption(
    name="Maximum ratio of rates between runs of one setting",
    value=1.1,
    source="judgement: a source with a fixed rate keeps it within a tenth",
    influences="which runs a backtest uses to predict which others",
)
ON_TIME_RATIO = Assumption(
    name="Maximum delay of a batch start, as a share of the trigger interval",
    value=0.1,
    source="judgement: a later start waited for the batch before, not for its trigger",
    influences="the start delay that window latencies contain",
)
LATE_MS = Assumption(
    name="Mean time from a trigger to the start of its batch",
    value=4.0,
    unit="ms",
    source="judgement: of any driver, before its log is read",
    influences="the estimated trigger interval (E31)",
)
AT_ONCE_MS = Assumption(
    name="Maximum pause between batches that run back to back",
    value=30.0,
    unit="ms",
    source="above Spark's polling delay of 10 ms and the rounding of two timestamps",
    influences="the estimated trigger interval (E31)",
)
EQUAL_BATCHES_RATIO = Assumption(
    name="Maximum variation of the rows of batches in a drain, over that of rows per second",
    value=0.5,
    source="judgement: rows that arrive vary with the time since the last batch; those of a "
    "backlog that is read in portions do not",
    influences="whether the rate of a query that ended by itself is unknown",
)
SHORT_PAUSE_RATIO = Assumption(
    name="Maximum pause between batches of a drain, over their duration",
    value=0.05,
    source="judgement: a busy driver takes longer to start the next batch",
    influences="whether the rate of a query that ended by itself is unknown",
)
LATE_START_RATIO = Assumption(
    name="Share of batches that start at any time after their trigger",
    value=0.05,
    source="judgement: of a busy driver",
    influences="the estimated trigger interval (E31)",
)
EARLY_START_RATIO = Assumption(
    name="Share of batches that start before their trigger",
    value=0.001,
    source="judgement: none should",
    influences="the estimated trigger interval (E31)",
)
TIMES_LIKELIER = Assumption(
    name="Odds required to accept a trigger interval, or to contradict a stated one",
    value=1000.0,
    source="judgement: of 1,500 random runs without a trigger, three are then assigned one",
    influences="the estimated trigger interval (E31)",
)
LEAST_PAIRS = Assumption(
    name="Minimum pairs of batches to estimate a trigger interval",
    value=3,
    unit="pairs",
    source="judgement: fewer starts may fit a grid by chance",
    influences="the estimated trigger interval (E31)",
)
ROUND_INTERVALS_MS = Assumption(
    name="Trigger intervals that count as round; rounder ones are more likely",
    value=(1, 5, 10, 50, 100, 250, 500, 1000),
    unit="ms",
    source="judgement: people write 5 seconds rather than 4.97",
    influences="the estimated trigger interval (E31)",
)
