"""Predictions: their intervals, their limits, and the noise assumed if none is declared."""

from __future__ import annotations

from headway.assumptions import Assumption, seconds

SPREAD_PER_DOUBLING_RATIO = Assumption(
    name="Growth of uncertainty per doubling of slots or rows outside the profiled range",
    value=0.12,
    source="fitted to half of 1,229 errors of recorded runs, validated on the other half; "
    "docs/scaling-accuracy.md",
    influences="intervals and the margin of plans outside the profiled range (P2)",
)
SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO = Assumption(
    name="Growth of uncertainty per doubling of shuffle partitions outside the profiled range",
    value=0.03,
    source="fitted to half of 1,229 errors of recorded runs, validated on the other half; "
    "docs/scaling-accuracy.md",
    influences="intervals and the margin of plans outside the profiled range (P2)",
)
CALIBRATED_DOUBLINGS = Assumption(
    name="Maximum doublings outside the profiled range for a calibrated prediction",
    value=2.0,
    unit="doublings",
    source="the runs of docs/scaling-accuracy.md reach up to four times the profiled range",
    influences="whether a prediction is calibrated, and which settings a plan prefers (P2, P6)",
)
USUAL_RUN_TO_RUN_RATIO = Assumption(
    name="Prior for the run-to-run spread",
    value=0.08,
    source="repeats of one setting in one warmed JVM; docs/accuracy.md",
    influences="intervals and margins of profiles of few runs, and of batch jobs (E5, P2, P16)",
)
POOLED_SPREAD_RATIO = Assumption(
    name="Usual run-to-run spread of fits of few runs",
    value=0.12,
    source="root mean square of 14 workloads fitted on six runs each, 0.08 to 0.17; "
    "docs/accuracy.md",
    influences="intervals and margins: the spread of a profile of few runs is drawn towards it "
    "(E5)",
)
POOLED_RUNS = Assumption(
    name="Number of runs as which the spread of other jobs counts",
    value=4,
    unit="runs",
    source="log score of the errors of 14 workloads, each with the pool of the others: equal "
    "weights are best at six runs, which leave four for the spread",
    influences="how fast the run-to-run spread of a profile follows its own runs (E5)",
)
PRIOR_RUNS = Assumption(
    name="Weight of the prior for the run-to-run spread",
    value=3,
    unit="runs",
    source="judgement: two or three runs of a log must not outweigh the evidence of all logs",
    influences="how fast the run-to-run spread of a profile follows its own runs (E5)",
)
USUAL_PERSISTENCE_RATIO = Assumption(
    name="Prior for the share of lasting noise that remains from one batch to the next",
    value=0.95,
    source="127 identical batches of one run: correlations of .72, .63, .54, .50, .49 and .25 at "
    "1, 2, 3, 5, 8 and 12 batches apart",
    influences="how far slow moments of the machine accumulate if batches overrun (T4), and "
    "simulated runs of a rate trace (S6)",
)
NUM_LEARNED = Assumption(
    name="Parameters fitted to runs of several settings",
    value=2,
    unit="parameters",
    source="the linear model has two: fixed time and time per row",
    influences="the contribution of the fit to the uncertainty of a prediction (P2)",
)
HIGHEST_QUOTED_UTILIZATION_RATIO = Assumption(
    name="Utilisation above which no latency is quoted",
    value=0.9,
    source="event simulation: above it, with noise of 0.3, the predicted p99 is 40% low (B6)",
    influences="the sustainable rate, and settings too close to saturation to plan (P3)",
)
FULLEST_PARTITION_RATIO = Assumption(
    name="Load of the fullest partition above which no latency is quoted",
    value=0.97,
    source="judgement: above it, another placement of keys would change the latency by its own "
    "size",
    influences="latencies of operators whose partitions are queues (O1)-(O10)",
)
BUSIEST_PARTITIONS_RATIO = Assumption(
    name="Share of busy partitions up to which hybrid queues follow a formula",
    value=0.04,
    source="simulations of 4 to 32 workers: beyond it, tuples that are left to a busy partition "
    "wait for each other, and the formula's p99 is 5 to 65% too low",
    influences="whether the latency of an operator with hybrid queues is that of (O7) or simulated",
)
FEWEST_BUSY_WORKERS = Assumption(
    name="Busy workers from which hybrid queues follow a formula",
    value=4.0,
    unit="workers",
    source="simulations of 4 to 32 workers: with fewer, the number of busy workers varies, and the "
    "formula's mean is up to 25% too low",
    influences="whether the latency of an operator with hybrid queues is that of (O7) or simulated",
)
HIGHEST_QUOTED_OVERRUN_RATIO = Assumption(
    name="Maximum share of overruns for a calibrated prediction",
    value=0.5,
    source="judgement: when most batches overrun, the trigger no longer sets the pace",
    influences="whether a prediction is calibrated, and which settings a plan prefers (P2, P6)",
)
ALIKE_STAGES_RATIO = Assumption(
    name="Maximum variance between pooled stages, over that of their tasks",
    value=0.1,
    source="adds 5% to the coefficient of variation of a task",
    influences="makespans of stages of a batch job that run in parallel (J3)",
)
LEAST_CERTIFIED_OVERRUN_RATIO = Assumption(
    name="Share of overruns from which the chain of batches computes a latency",
    value=0.02,
    source="below it, overruns do not accumulate: moments and chain agree to one part in a hundred",
    influences="which of the printed latencies are computed by (T4)",
)
POLLING_DELAY_S = seconds(
    name="Pause between polls of a query without new rows",
    value=0.01,
    source="Spark: spark.sql.streaming.pollingDelay",
    influences="simulated runs of queries without a trigger interval (S6); batches that waited for "
    "one without rows (Y9)",
)
DECLARED_BATCH_NOISE_RATIO = Assumption(
    name="Coefficient of variation of batch durations, declared query",
    value=0.15,
    source="judgement: nobody declares it, and zero would be too little",
    influences="latencies of queries that were declared, not profiled (P19)",
)
DECLARED_TASK_NOISE_RATIO = Assumption(
    name="Coefficient of variation of task times, declared query",
    value=0.3,
    source="judgement: nobody declares it, and zero would be too little",
    influences="makespans of queries that were declared, not profiled (P19)",
)
DECLARED_BATCH_JOB_TASK_CV = Assumption(
    name="Coefficient of variation of task times, declared batch job",
    value=0.5,
    source="judgement: nobody declares it; splits of a batch job differ by more than those of a "
    "stream",
    influences="run times of batch jobs that were declared, not profiled (P19)",
)
DECLARED_TRIGGER_S = seconds(
    name="Current trigger interval of a declared query",
    value=1.0,
    source="judgement: a common choice",
    influences="only the setting that a plan of a declared query is compared with",
)
DECLARED_RANGE_RATIO = Assumption(
    name="Range factor of a declared cost without a range",
    value=1.5,
    source="judgement: nine of ten guessed costs are right within a factor of 1.5",
    influences="intervals and margins of figures declared without a range (P19)",
)
