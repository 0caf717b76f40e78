"""Fits: prior knowledge about a job, and how much evidence its runs must provide."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

LEAST_BATCHES = batches(
    name="Minimum batches of a run",
    value=5,
    source="judgement: fewer determine neither a mean nor a spread",
    influences="which runs of a log are profiled, and whether a log can be",
)
LEAST_BATCHES_TO_CUT = batches(
    name="Minimum batches to remove a warm-up",
    value=10,
    source="judgement: with fewer, the rule removes noise as often as warm-up",
    influences="which batches of a short run are left out as warm-up (E1), and whether its "
    "autocorrelation is estimated (E7)",
)
LATEST_CUT_RATIO = Assumption(
    name="Maximum share of a run that is removed as warm-up",
    value=0.5,
    source="White (1997), MSER: a later minimum indicates a run without a steady part",
    influences="which batches of a run are left out as warm-up (E1)",
)
FRESH_JVM_S = seconds(
    name="Maximum age of an application whose first query still has a fresh JVM",
    value=30.0,
    source="judgement: a query that starts later runs in a JVM that has done other work",
    influences="which runs show how durations fall with JVM age (E6), and whether the latency "
    "after a restart can be predicted (E30, P20)",
)
WARM_UP_BINS_PER_DOUBLING = Assumption(
    name="Steps per doubling of age in the warm-up of a JVM",
    value=2,
    unit="steps",
    source="judgement: the effect of compilation is smooth in the logarithm of age",
    influences="latencies after a restart (E30)",
)
USUAL_DRIFT = Assumption(
    name="Prior for the exponent by which durations fall with JVM age",
    value=0.2,
    source="judgement: a larger drift needs evidence",
    influences="durations at the requested JVM age (E6)",
)
USUAL_DRIVER_DRIFT = Assumption(
    name="Prior for the exponent by which driver times fall with JVM age",
    value=0.1,
    source="13 of 14 workloads, JVM ages of 60 s to 50 min: 0.04 to 0.22, median 0.1; "
    "docs/accuracy.md",
    influences="driver times at the requested JVM age (E35)",
)
USUAL_DRIVER_DRIFT_SD = Assumption(
    name="Prior standard deviation of the exponent of driver times",
    value=0.1,
    source="judgement: from no drift to that of the youngest of those JVMs",
    influences="driver times at the requested JVM age (E35)",
)
STEEPEST_DRIFT = Assumption(
    name="Maximum exponent by which durations fall with JVM age",
    value=0.5,
    source="judgement: beyond it, something other than compilation changed",
    influences="durations at the requested JVM age (E6)",
)
LEAST_RUNS_TO_COMPARE = Assumption(
    name="Minimum runs to estimate a drift between runs",
    value=5,
    unit="runs",
    source="judgement: fewer may differ by chance",
    influences="durations at the requested JVM age (E6)",
)
LEAST_SPREAD_RATIO = Assumption(
    name="Minimum coefficient of variation to fit a slope",
    value=0.25,
    source="judgement: that of two loads with a ratio of 5/3",
    influences="whether time per row, per partition and per state row are fitted (E2)",
)
MOST_FEEDBACK_RATIO = Assumption(
    name="Maximum coefficient of variation of batches that only follow the durations before them",
    value=0.5,
    source="20 recorded queries on no trigger at one rate, whose state does not grow: 0.2 to 0.44",
    influences="whether time per row is fitted to batches on no trigger (E47)",
)
MOST_EXPONENT_ERROR = Assumption(
    name="Maximum standard error of an exponent from batches of nearly one size",
    value=0.1,
    source="judgement: at ten times the rate, rows are then off by a quarter",
    influences="how the rows that a stage reads grow with those of the batch (E4)",
)
SHORT_BATCH_NOISE_S = seconds(
    name="Duration of a batch at which half of its variance is that of any batch, however short",
    value=0.25,
    source="9,538 batches of 288 runs: 0.23 to 0.27 s whichever workload is left out",
    influences="how much short batches vary (E48)",
)
USUAL_BATCH_NOISE_RATIO = Assumption(
    name="Usual coefficient of variation of long batches",
    value=0.092,
    source="9,538 batches of 288 runs of 15 workloads",
    influences="how much batches vary in profiles of few batches (E48)",
)
USUAL_BATCH_NOISE_BATCHES = batches(
    name="Weight of the usual coefficient of variation of batches",
    value=40,
    source="288 runs, each predicted from others of its workload",
    influences="how much batches vary in profiles of few batches (E48)",
)
HUBER_SCORE = Assumption(
    name="Huber threshold of robust regression",
    value=1.345,
    unit="standard deviations",
    source="Huber (1964): 95% efficient under normal noise; doi:10.1214/aoms/1177703732",
    influences="every fitted cost (E3)",
)
RUN_NOISE_RATIO = Assumption(
    name="Noise between runs that the fit of task times assumes",
    value=0.1,
    source="judgement: about the usual run-to-run spread",
    influences="the weight of each run in the costs of tasks (E3)",
)
FEW_ROWS_RATIO = Assumption(
    name="Maximum rows of a first batch that counts as nearly empty, over the usual rows",
    value=0.1,
    source="judgement: the usual time of so few rows can be subtracted",
    influences="whether a first batch determines the fixed time of tasks (E32)",
)
EMPTY_BATCH_SD_RATIO = Assumption(
    name="Prior standard deviation of a task's fixed time, from batches without rows",
    value=0.3,
    source="judgement: the first batch of a query sets up what later ones reuse",
    influences="the fixed time of tasks if the log has a batch without rows (E32)",
)
USUAL_PARTS_SD_S = seconds(
    name="Prior standard deviation of a task's fixed time",
    value=0.015,
    source="judgement: what Spark's times of launch, deserialization and commit leave out",
    influences="the fixed time of tasks in profiles of few runs (E3)",
)
USUAL_PARTS_SD_WITH_PYTHON_S = seconds(
    name="Prior standard deviation of a task's fixed time, with Python workers",
    value=0.030,
    source="judgement: the hand-over to a Python worker adds as much again",
    influences="the fixed time of tasks in profiles of few runs (E3)",
)
SET_UP_AT_SOURCE_S = seconds(
    name="Usual set-up of a task that reads a source, beyond what Spark reports",
    value=0.010,
    source="14 recorded workloads of many sizes: -6 to 56 ms, mean 10 ms, deviation 19 ms",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
SET_UP_BEHIND_EXCHANGE_S = seconds(
    name="Usual set-up of a task behind an exchange, beyond what Spark reports",
    value=0.025,
    source="12 recorded workloads of many sizes: 5 to 62 ms, mean 25 ms, deviation 16 ms",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
SET_UP_SD_S = seconds(
    name="Standard deviation of the set-up of a task beyond what Spark reports",
    value=0.020,
    source="14 recorded workloads of many sizes: 19 ms at sources, 16 ms behind exchanges",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
SET_UP_CPU_S = seconds(
    name="CPU time of a task that is not for its rows",
    value=0.006,
    source="14 recorded workloads of many sizes: mean 5 ms at sources, 8 ms behind exchanges",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
TIME_PER_CPU_RATIO = Assumption(
    name="Time for rows over their CPU time, by Spark's own operators",
    value=1.15,
    source="14 recorded workloads of many sizes: 1.03 to 1.56, mean 1.15",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
TIME_PER_CPU_SD_RATIO = Assumption(
    name="Standard deviation of the time for rows over their CPU time",
    value=0.2,
    source="14 recorded workloads of many sizes: 0.16",
    influences="the fixed time of tasks in profiles of few runs (E46)",
)
MOST_WAITING_RATIO = Assumption(
    name="Maximum share of waiting in the tasks of a source whose rows need the CPU",
    value=0.5,
    source="13 recorded sources that compute their rows: 2 to 34%; a topic on a broker: 63%",
    influences="whether CPU time shows the fixed time of tasks (E46)",
)
USUAL_ROWS_SHARE = Assumption(
    name="Usual share of rows in the time of a task that may be for rows",
    value=0.75,
    source="14 recorded workloads, each run predicted from each other one: with 0.5, batches of a "
    "tenth to a quarter of the rows are 117% too long, with 1 those of 4 to 10 times are 28% off; "
    "chosen on 13 of them and judged on the other, it is 0.75 to 1, and no more right",
    influences="the cost per row if all batches have one size (E43)",
)
MOST_SHUFFLED_ROW_S = seconds(
    name="Maximum time for a row behind an exchange, by Spark's own operators",
    value=0.01,
    source="20 recorded workloads: at most 0.07 ms; the state commit of tasks with one or two rows "
    "looked like 735 ms for each",
    influences="the fixed time of tasks that read few rows, if all batches have one size (E43)",
)
USUAL_PARTITION_S = seconds(
    name="Prior for the time of a task per shuffle partition that it writes",
    value=0.0005,
    source="judgement: without it, one odd run led to a cost of 12 ms per partition (E3)",
    influences="how predictions depend on the number of shuffle partitions (T2, E3)",
)
USUAL_STATE_ROW_S = seconds(
    name="Prior for the time of a batch per row of state that a join keeps",
    value=0.9e-6,
    source="ten runs of a growing state in Spark's default store: 0.2 to 1.6 us, median 0.9; "
    "docs/accuracy.md",
    influences="how durations of a join depend on its rate and trigger (E29)",
)
LEAST_GROWTH_RATIO = Assumption(
    name="Minimum growth in the later half of a run for a state that keeps growing",
    value=0.2,
    source="judgement: steady growth from zero adds a half; a state that levels off adds little",
    influences="whether the state depends on the requested rate (E36)",
)
LEAST_BATCH_GROWTH_RATIO = Assumption(
    name="Minimum growth of batches in a run",
    value=0.2,
    source="judgement: twice the usual run-to-run spread",
    influences="whether a plan is refused because batches grow (E45), and what counts as warm-up "
    "(E1)",
)
TREND_BLOCKS = Assumption(
    name="Maximum blocks of batches that the test for growth compares",
    value=20,
    unit="blocks",
    source="judgement: long enough that neighbouring blocks have little noise in common",
    influences="whether a plan is refused because batches grow (E45)",
)
LEAST_TREND_SCORE = Assumption(
    name="Minimum score of the sign test for growth",
    value=3.1,
    unit="standard deviations",
    source="judgement: one steady run in a thousand; a false alarm refuses a plan",
    influences="whether a plan is refused because batches grow (E45), and what counts as warm-up "
    "(E1)",
)
LEAST_GROWTH_SPAN_S = seconds(
    name="Minimum time over which batches grow before a plan is refused",
    value=120.0,
    source="judgement: other load on a machine may rise for tens of seconds; of 341 recorded runs "
    "of 25 s whose state does not grow, one looked like growth (docs/theory.md)",
    influences="whether a plan is refused because batches grow (E45)",
)
LEAST_GC_SHARE = Assumption(
    name="Minimum share of garbage collection in the growth of tasks that is called a likely cause",
    value=0.1,
    source="judgement: less of it does not explain the growth",
    influences="which cause of growing batches is named",
)
LEAST_LATER_SHARE = Assumption(
    name="Minimum share of the growth of batches in the later half of a run",
    value=1 / 3,
    source="judgement: constant growth has a half of it there, and what levels off little",
    influences="whether a plan is refused because batches grow (E45), and what counts as warm-up "
    "(E1)",
)
MOST_RISE_ERROR_RATIO = Assumption(
    name="Maximum half-width of the interval of a growth that is extrapolated, over the growth",
    value=0.25,
    source="judgement: the time until a target is missed is then known to about a quarter",
    influences="whether a plan holds until a date while batches grow (P31)",
)
LEAST_GROWN_PART_RATIO = Assumption(
    name="Minimum share of the growth of batches in one part, to extrapolate it",
    value=0.8,
    source="judgement: what grows elsewhere has no cause that is known",
    influences="whether a plan holds until a date while batches grow (P31)",
)
STATE_GROWN_RATIO = Assumption(
    name="Minimum growth factor of the state to fit a cost per state row",
    value=2.0,
    source="judgement: less growth cannot be distinguished from noise",
    influences="whether a cost per state row is fitted (E29)",
)
LEAST_HOT_RATIO = Assumption(
    name="Minimum share of rows in one task for a hot key",
    value=0.1,
    source="judgement: smaller shares occur by chance",
    influences="makespans of stages with skewed keys (T2)",
)
MOST_HOT_RATIO = Assumption(
    name="Maximum share of rows in one task",
    value=0.99,
    source="judgement: with all rows in one task, the others would cost nothing",
    influences="makespans of stages with skewed keys (T2)",
)
TELLING_SPREAD_RATIO = Assumption(
    name="Minimum variation of updated rows to fit a commit cost per row",
    value=0.2,
    source="judgement: a narrower range determines a slope poorly",
    influences="advice on the state store (P14)",
)
LEAST_WAVES = Assumption(
    name="Minimum waves of tasks to fit the hand-over of slots",
    value=1.5,
    unit="waves",
    source="judgement: with fewer, few slots are handed over",
    influences="the time that a task counts as running after its slot is free (E28)",
)
LEAST_BATCHES_WITH_SLOW = batches(
    name="Minimum batches to look for a slow mode",
    value=40,
    source="judgement: among fewer, four slow ones may be chance",
    influences="whether slow batches are modelled as a separate mode (E8)",
)
LEAST_SLOW_BATCHES = batches(
    name="Minimum slow batches for a separate mode",
    value=4,
    source="judgement: fewer do not determine a ratio",
    influences="whether slow batches are modelled as a separate mode (E8)",
)
LEAST_GAIN_OF_MODES = Assumption(
    name="Minimum gain of the Bayesian information criterion for a second mode",
    value=10.0,
    source="Kass and Raftery (1995): odds of 150 to 1; doi:10.1080/01621459.1995.10476572",
    influences="whether slow batches are modelled as a separate mode (E8)",
)
LEAST_SEPARATION_SD = Assumption(
    name="Minimum distance between two modes",
    value=2.0,
    unit="standard deviations",
    source="from this distance on, two normal densities have two peaks",
    influences="whether slow batches are modelled as a separate mode (E8)",
)
LEAST_SLOW_SPAN_S = seconds(
    name="Minimum length of a run that shows slow growth",
    value=172_800.0,
    source="judgement: two days, for a part of one is a part of the daily cycle",
    influences="growth of phases and of the state by the day (E52)",
)
LEAST_SLOW_RISE_RATIO = Assumption(
    name="Minimum rise of slow growth, over the first value",
    value=0.02,
    source="judgement: times are recorded in whole milliseconds",
    influences="growth of phases and of the state by the day (E52)",
)
LEAST_COMPACTION_SCORE = Assumption(
    name="Minimum score of the rank test for compaction",
    value=4.0,
    unit="standard deviations",
    source="judgement: the longest of ten remainders is compared, so 3.1 would be too few",
    influences="whether a log is seen to be compacted (E52)",
)
FULL_JOIN_RATIO = Assumption(
    name="Share of its full state from which a join counts as full",
    value=0.9,
    source="judgement: rates and event times of a log are not even",
    influences="state of a join that is not full in the log (Z3)",
)
