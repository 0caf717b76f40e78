"""Fits: what is believed of a job before its runs are seen, and how much they must show."""

from __future__ import annotations

from headway.assumptions import Assumption

LEAST_BATCHES = Assumption(
    name="Minimum batches of a run",
    value=5,
    unit="batches",
    source="judgement: fewer tell neither a mean nor a spread",
    influences="which runs of a log are profiled, and whether a log can be",
)
LEAST_BATCHES_TO_CUT = Assumption(
    name="Minimum batches for a warm-up cut",
    value=10,
    unit="batches",
    source="judgement: below, the rule cuts noise as often as warm-up",
    influences="which batches of a short run are left out as warm-up (E1), and whether its "
    "autocorrelation is estimated (E7)",
)
LATEST_CUT_RATIO = Assumption(
    name="Maximum share of a run that the warm-up cut removes",
    value=0.5,
    unit="-",
    source="White (1997), MSER: a minimum beyond shows a run without a steady part",
    influences="which batches of a run are left out as warm-up (E1)",
)
FRESH_JVM_S = Assumption(
    name="Maximum age of an application whose first query has a fresh JVM",
    value=30.0,
    unit="s",
    source="judgement: a query that starts later runs in a JVM that has done other things",
    influences="whether the latency after a restart can be predicted (E30, P20)",
)
WARM_UP_BINS_PER_DOUBLING = Assumption(
    name="Steps per doubling of age in the warm-up of a JVM",
    value=2,
    unit="steps",
    source="judgement: compilation slows batches smoothly in the logarithm of age",
    influences="latencies after a restart (E30)",
)
USUAL_DRIFT = Assumption(
    name="Prior for the exponent by which durations fall with JVM age",
    value=0.2,
    unit="-",
    source="judgement: a larger drift needs evidence",
    influences="durations at the age asked for (E6)",
)
USUAL_DRIVER_DRIFT = Assumption(
    name="Prior for the exponent by which times of the driver fall with JVM age",
    value=0.1,
    unit="-",
    source="13 of 14 workloads, JVMs of 60 s to 50 min: 0.04 to 0.22, median 0.1; docs/accuracy.md",
    influences="times of the driver at the age asked for (E35)",
)
USUAL_DRIVER_DRIFT_SD = Assumption(
    name="Prior standard deviation of that exponent",
    value=0.1,
    unit="-",
    source="judgement: from none to what the youngest of those JVMs showed",
    influences="times of the driver at the age asked for (E35)",
)
STEEPEST_DRIFT = Assumption(
    name="Maximum exponent by which durations fall with JVM age",
    value=0.5,
    unit="-",
    source="judgement: beyond, something else than compilation changed",
    influences="durations at the age asked for (E6)",
)
LEAST_RUNS_TO_COMPARE = Assumption(
    name="Minimum runs to estimate a drift between runs",
    value=5,
    unit="runs",
    source="judgement: fewer differ by chance",
    influences="durations at the age asked for (E6)",
)
LEAST_SPREAD_RATIO = Assumption(
    name="Minimum coefficient of variation to fit a slope",
    value=0.25,
    unit="-",
    source="judgement: two loads of ratio 5/3 have as much",
    influences="whether time per row, per partition and per row of state are fitted (E2)",
)
HUBER_SCORE = Assumption(
    name="Huber threshold of robust regression",
    value=1.345,
    unit="standard deviations",
    source="Huber (1964): 95% efficient under normal noise; doi:10.1214/aoms/1177703732",
    influences="every fitted cost (E3)",
)
RUN_NOISE_RATIO = Assumption(
    name="Noise between runs assumed when task times are fitted",
    value=0.1,
    unit="-",
    source="judgement: about the usual run-to-run spread",
    influences="how much each run weighs in the costs of tasks (E3)",
)
FEW_ROWS_RATIO = Assumption(
    name="Maximum rows of a first batch, over the usual ones, that reads next to nothing",
    value=0.1,
    unit="-",
    source="judgement: their time can be taken off by what rows usually take",
    influences="whether a first batch tells the fixed time of tasks (E32)",
)
EMPTY_BATCH_SD_RATIO = Assumption(
    name="Prior standard deviation of a task's fixed time, from batches without rows",
    value=0.3,
    unit="-",
    source="judgement: the first batch of a query sets up what later ones reuse",
    influences="the fixed time of tasks where a batch without rows is on record (E32)",
)
USUAL_PARTS_SD_S = Assumption(
    name="Prior standard deviation of a task's fixed time",
    value=0.015,
    unit="s",
    source="judgement: what Spark reports of launch, deserialization and commit leaves out",
    influences="the fixed time of tasks of profiles of few runs (E3)",
)
USUAL_PARTS_SD_WITH_PYTHON_S = Assumption(
    name="Prior standard deviation of a task's fixed time, with Python workers",
    value=0.030,
    unit="s",
    source="judgement: the hand-over to a Python worker adds as much again",
    influences="the fixed time of tasks of profiles of few runs (E3)",
)
USUAL_PARTITION_S = Assumption(
    name="Prior for the time of a task per shuffle partition that it writes",
    value=0.0005,
    unit="s",
    source="judgement: without it one odd run made a partition cost 12 ms (E3)",
    influences="how predictions follow the number of shuffle partitions (T2, E3)",
)
LEAST_GROWTH_RATIO = Assumption(
    name="Minimum growth of the state in the later half of a run for one that goes on growing",
    value=0.2,
    unit="-",
    source="judgement: a steady growth from nothing adds a half; one that levels off adds little",
    influences="whether the state follows the rate that is asked for (E36)",
)
STATE_GROWN_RATIO = Assumption(
    name="Minimum growth of the state to fit a cost per state row",
    value=2.0,
    unit="-",
    source="judgement: less growth cannot be distinguished from noise",
    influences="whether a cost per row of state is fitted (E29)",
)
LEAST_HOT_RATIO = Assumption(
    name="Minimum share of rows in one task for a hot key",
    value=0.1,
    unit="-",
    source="judgement: below, tasks differ as much by chance",
    influences="makespans of stages with skewed keys (T2)",
)
MOST_HOT_RATIO = Assumption(
    name="Maximum share of rows in one task",
    value=0.99,
    unit="-",
    source="judgement: with all rows in one task the others would cost nothing",
    influences="makespans of stages with skewed keys (T2)",
)
TELLING_SPREAD_RATIO = Assumption(
    name="Minimum variation of updated rows to fit a commit cost per row",
    value=0.2,
    unit="-",
    source="judgement: a narrower range determines a slope badly",
    influences="what advice says of the state store (P14)",
)
LEAST_WAVES = Assumption(
    name="Minimum waves of tasks to fit the hand-over of slots",
    value=1.5,
    unit="waves",
    source="judgement: with fewer, few slots are handed over",
    influences="the time of a task that its slot is free (E28)",
)
LEAST_BATCHES_WITH_SLOW = Assumption(
    name="Minimum batches to look for a slow mode",
    value=40,
    unit="batches",
    source="judgement: of fewer, four slow ones are a chance",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_SLOW_BATCHES = Assumption(
    name="Minimum slow batches for a mode of their own",
    value=4,
    unit="batches",
    source="judgement: fewer tell no ratio",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_GAIN_OF_MODES = Assumption(
    name="Minimum gain of Bayes' information criterion for a second mode",
    value=10.0,
    unit="-",
    source="Kass and Raftery (1995): odds of 150 to 1; doi:10.1080/01621459.1995.10476572",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_SEPARATION_SD = Assumption(
    name="Minimum distance between two modes",
    value=2.0,
    unit="standard deviations",
    source="two normal densities have two peaks from there on",
    influences="whether slow batches are a mode of their own (E8)",
)
