"""Fits: what is believed of a job before its runs are seen, and how much they must show."""

from __future__ import annotations

from headway.assumptions import Assumption

LEAST_BATCHES = Assumption(
    name="Batches that a run needs to count",
    value=5,
    unit="batches",
    source="judgement: fewer tell neither a mean nor a spread",
    influences="which runs of a log are profiled, and whether a log can be",
)
LEAST_BATCHES_TO_CUT = Assumption(
    name="Batches from which on a warm-up is looked for",
    value=10,
    unit="batches",
    source="judgement: below, the rule cuts noise as often as warm-up",
    influences="which batches of a short run are left out as warm-up (E1), and whether its "
    "autocorrelation is estimated (E7)",
)
LATEST_CUT_RATIO = Assumption(
    name="Share of a run that a warm-up cut may leave out",
    value=0.5,
    unit="-",
    source="White (1997), MSER: a minimum beyond shows a run without a steady part",
    influences="which batches of a run are left out as warm-up (E1)",
)
FRESH_JVM_S = Assumption(
    name="Age of an application up to which its first query finds a fresh JVM",
    value=30.0,
    unit="s",
    source="judgement: a query that starts later runs in a JVM that has done other things",
    influences="whether the latency after a restart can be told (E30, P20)",
)
WARM_UP_BINS_PER_DOUBLING = Assumption(
    name="Steps per doubling of age in the warm-up of a JVM",
    value=2,
    unit="steps",
    source="judgement: compilation slows batches smoothly in the logarithm of age",
    influences="latencies after a restart (E30)",
)
USUAL_DRIFT = Assumption(
    name="Usual power by which durations fall as the JVM ages",
    value=0.2,
    unit="-",
    source="judgement: a larger drift needs evidence",
    influences="durations at the age asked for (E6)",
)
STEEPEST_DRIFT = Assumption(
    name="Steepest power by which durations fall as the JVM ages",
    value=0.5,
    unit="-",
    source="judgement: beyond, something else than compilation changed",
    influences="durations at the age asked for (E6)",
)
LEAST_RUNS_TO_COMPARE = Assumption(
    name="Runs from which on differences between them speak for a drift",
    value=5,
    unit="runs",
    source="judgement: fewer differ by chance",
    influences="durations at the age asked for (E6)",
)
LEAST_SPREAD_RATIO = Assumption(
    name="Variation of a quantity between runs that determines its cost",
    value=0.25,
    unit="-",
    source="judgement: two loads of ratio 5/3 have as much",
    influences="whether time per row, per partition and per row of state are fitted (E2)",
)
HUBER_SCORE = Assumption(
    name="Standard deviations from which on a residual loses weight",
    value=1.345,
    unit="standard deviations",
    source="Huber (1964): 95 % efficient under normal noise; doi:10.1214/aoms/1177703732",
    influences="every fitted cost (E3)",
)
RUN_NOISE_RATIO = Assumption(
    name="Noise between runs that a fit of task times expects",
    value=0.1,
    unit="-",
    source="judgement: about the usual run-to-run spread",
    influences="how much each run weighs in the costs of tasks (E3)",
)
USUAL_PARTS_SD_S = Assumption(
    name="Doubt about the measured parts of a task's fixed time",
    value=0.015,
    unit="s",
    source="judgement: what Spark reports of launch, deserialization and commit leaves out",
    influences="the fixed time of tasks of profiles of few runs (E3)",
)
USUAL_PARTS_SD_WITH_PYTHON_S = Assumption(
    name="The same of tasks that run Python",
    value=0.030,
    unit="s",
    source="judgement: the hand-over to a Python worker adds as much again",
    influences="the fixed time of tasks of profiles of few runs (E3)",
)
USUAL_PARTITION_S = Assumption(
    name="Usual time of a task per shuffle partition that it writes for",
    value=0.0005,
    unit="s",
    source="judgement: without it one odd run made a partition cost 12 ms (E3)",
    influences="how predictions follow the number of shuffle partitions (T2, E3)",
)
STATE_GROWN_RATIO = Assumption(
    name="Growth of the state within a run that determines the cost of its rows",
    value=2.0,
    unit="-",
    source="judgement: less growth cannot be told from noise",
    influences="whether a cost per row of state is fitted (E29)",
)
LEAST_HOT_RATIO = Assumption(
    name="Share of the rows in one task from which on a stage has a hot key",
    value=0.1,
    unit="-",
    source="judgement: below, tasks differ as much by chance",
    influences="makespans of stages with skewed keys (T2)",
)
MOST_HOT_RATIO = Assumption(
    name="Largest share of the rows that one task is taken to have",
    value=0.99,
    unit="-",
    source="judgement: with all rows in one task the others would cost nothing",
    influences="makespans of stages with skewed keys (T2)",
)
TELLING_SPREAD_RATIO = Assumption(
    name="Variation of updated rows that tells the cost of a commit by rows",
    value=0.2,
    unit="-",
    source="judgement: a narrower range determines a slope badly",
    influences="what advice says of the state store (P14)",
)
LEAST_WAVES = Assumption(
    name="Waves of tasks from which on the hand-over of slots is fitted",
    value=1.5,
    unit="waves",
    source="judgement: with fewer, few slots are handed over",
    influences="the time of a task that its slot is free (E28)",
)
LEAST_BATCHES_WITH_SLOW = Assumption(
    name="Batches from which on slow ones are looked for",
    value=40,
    unit="batches",
    source="judgement: of fewer, four slow ones are a chance",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_SLOW_BATCHES = Assumption(
    name="Slow batches that make a mode",
    value=4,
    unit="batches",
    source="judgement: fewer tell no ratio",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_GAIN_OF_MODES = Assumption(
    name="Gain of Bayes' information criterion that shows a second mode",
    value=10.0,
    unit="-",
    source="Kass and Raftery (1995): odds of 150 to 1; doi:10.1080/01621459.1995.10476572",
    influences="whether slow batches are a mode of their own (E8)",
)
LEAST_SEPARATION_SD = Assumption(
    name="Distance of two modes",
    value=2.0,
    unit="standard deviations",
    source="two normal densities have two peaks from there on",
    influences="whether slow batches are a mode of their own (E8)",
)
