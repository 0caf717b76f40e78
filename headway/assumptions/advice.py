"""Advice: thresholds for mentioning something, and the choice of the runs to record next."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

AVAILABLE_NOW_START_S = seconds(
    name="Time to start an application with Trigger.AvailableNow, nodes included",
    value=180.0,
    source="judgement: clouds take minutes to start nodes, Spark takes seconds",
    influences="advice to run a query at intervals (P14)",
)
AVAILABLE_NOW_USED_RATIO = Assumption(
    name="Share of the time in use below which running a query at intervals is advised",
    value=0.5,
    source="judgement: freeing the nodes for half of the time justifies a schedule",
    influences="advice to run a query at intervals (P14)",
)
SHOWN_CHANGE_RATIO = Assumption(
    name="Minimum change that a comparison lists: of a cost, or of a part over the whole",
    value=0.01,
    source="judgement: repeats of one run differ by more",
    influences="which stages and phases headway diff lists",
)
MUCH_RATIO = Assumption(
    name="Threshold for bookkeeping or garbage collection, as a share of a batch",
    value=0.1,
    source="judgement: a smaller share does not justify a change of storage or heap",
    influences="advice on checkpoints and on garbage collection (P14)",
)
SKEWED_RATIO = Assumption(
    name="Skew threshold: largest task or source partition over an even share",
    value=1.5,
    source="judgement: a smaller ratio is normal variation between tasks",
    influences="advice on skew (P14)",
)
LONGEST_TASK_RATIO = Assumption(
    name="Skew threshold of batch stages: longest task over the mean task",
    value=3.0,
    source="judgement: the usual spread of tasks does not explain a larger ratio",
    influences="the finding that a stage of a batch job is skewed (P16)",
)
SLOW_COMMIT_S = seconds(
    name="Threshold for a slow state commit of one partition",
    value=0.01,
    source="judgement: a dozen such commits in a row take a visible part of a batch",
    influences="advice on the state store (P14)",
)
BURSTY_RATIO = Assumption(
    name="Burst threshold: highest rate over median rate",
    value=2.0,
    source="judgement: a plan for the mean rate does not cover such a peak",
    influences="advice to plan for bursts (P14)",
)
YOUNG_JVM_S = seconds(
    name="JVM age at which the slowdown of a young JVM is reported",
    value=30.0,
    source="judgement: by then, a restarted query has run its first batches",
    influences="advice on warm-up (P14)",
)
SLOWER_WHEN_YOUNG_RATIO = Assumption(
    name="Minimum slowdown of a young JVM that is reported",
    value=0.1,
    source="judgement: a smaller slowdown is within the spread between runs",
    influences="advice on warm-up (P14)",
)
FAR_OFF_RATIO = Assumption(
    name="Minimum ratio between profiled and modelled run time that is reported",
    value=1.5,
    source="judgement: beyond it, the graph of stages does not explain the run",
    influences="a warning in plans of batch jobs (P16)",
)
OVERRUNS_SHOWN_RATIO = Assumption(
    name="Minimum share of overruns that is reported",
    value=0.05,
    source="judgement: one batch in twenty",
    influences="whether a prediction mentions overruns",
)
SAVING_SHOWN_PER_DAY = Assumption(
    name="Minimum saving that is reported",
    value=0.005,
    unit="money/day",
    source="judgement: smaller amounts round to zero at two decimals",
    influences="which savings a capacity plan lists",
)
WHOLE_SAVING_RATIO = Assumption(
    name="Proved share of a saving from which 'at least' is omitted",
    value=0.99,
    source="judgement: the bounds of two plans never agree to the last cent",
    influences="whether a capacity plan says 'saves' or 'saves at least'",
)
LOOSER_RATIOS = Assumption(
    name="Factors by which targets are relaxed if queries of an application miss them at every "
    "size",
    value=(1.25, 1.5, 2.0, 3.0, 5.0, 10.0),
    source="judgement: steps that a person would choose, up to an entirely different target",
    influences="which targets a capacity plan proposes instead of those of a QuerySchedule",
)
PRICED_TARGETS = Assumption(
    name="Maximum number of targets that a capacity plan prices",
    value=8,
    unit="targets",
    source="judgement: those of the most expensive jobs; each requires another plan of the fleet",
    influences="which savings by looser targets a capacity plan lists",
)
JUDGED_JOBS = Assumption(
    name="Maximum number of jobs of a capacity plan with a probability of meeting their targets",
    value=50,
    unit="jobs",
    source="judgement: the most expensive ones; each takes some milliseconds",
    influences="which jobs of a capacity plan show this probability (P23)",
)
ADVISED_ROWS_RATIO = Assumption(
    name="Ratio of rows per batch between advised runs",
    value=3.0,
    source="judgement: fixed time and time per row can then be separated",
    influences="headway profile --advise",
)
MOST_ADVISED_ROWS_RATIO = Assumption(
    name="Maximum rows per batch of an advised run, over the largest profiled batch",
    value=50.0,
    source="judgement: no source has many more rows to give, however little a row costs",
    influences="headway profile --advise, and the next run of plans and predictions",
)
ADVISED_PARTITIONS_RATIO = Assumption(
    name="Ratio of shuffle partitions between advised runs",
    value=4,
    source="judgement: two doublings, the limit of a calibrated prediction",
    influences="headway profile --advise",
)
MANY_PARTITIONS = Assumption(
    name="Shuffle partitions from which an advised run has fewer instead of more",
    value=64,
    unit="partitions",
    source="judgement: four times as many tasks would be too many for a test cluster",
    influences="headway profile --advise",
)
FEWEST_ADVISED_BATCHES = batches(
    name="Minimum batches of an advised run",
    value=24,
    source="measured: a query of a shop in a fresh JVM needed ten batches of 380,000 rows until it "
    "took 0.8 instead of 1.8 s; as many again are needed to see that",
    influences="headway profile --advise",
)
MOST_ADVISED_BATCHES = batches(
    name="Maximum batches of an advised run",
    value=60,
    source="judgement: differences between runs outweigh further batches",
    influences="headway profile --advise",
)
ADVISED_RUN_S = seconds(
    name="Duration of an advised run",
    value=120.0,
    source="judgement: a warm-up and a few dozen batches",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ADVISED_SHARES = Assumption(
    name="Loads of advised runs, as shares of the sustainable rate",
    value=(0.3, 0.6),
    source="measured: of all fourth runs, one as fast as possible at 0.3 helped most",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ADVISED_REPEATS = Assumption(
    name="Repeats of an advised run",
    value=2,
    unit="runs",
    source="judgement: a whole run may be off by a tenth; the mean of two is closer",
    influences="headway profile --advise (E42)",
)
MOST_ADVISED_RUNS = Assumption(
    name="Maximum number of advised settings",
    value=5,
    unit="settings",
    source="judgement: twenty minutes of runs; further runs are better chosen after them",
    influences="headway profile --advise (E42)",
)
LEAST_NARROWING_RATIO = Assumption(
    name="Minimum reduction of an answer's spread for a run to be advised",
    value=0.02,
    source="judgement: a smaller reduction is not worth two runs",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ENOUGH_WIDTH_RATIO = Assumption(
    name="Half width of the 90% interval at which an exploration stops, over its middle",
    value=0.1,
    source="judgement: about the difference between two runs of one setting",
    influences="when headway explore stops",
)
EXPLORED_RUN_SHARE = Assumption(
    name="Share of an exploration's budget that one run takes",
    value=0.125,
    source="judgement: two settings twice at first, then two more settings twice",
    influences="how long the runs of headway explore are",
)
SHORTEST_EXPLORED_RUN_S = seconds(
    name="Minimum duration of a run in an exploration",
    value=20.0,
    source="judgement: the start of a query and ten batches of one second",
    influences="how long the runs of headway explore are",
)
LONGEST_EXPLORED_RUN_S = seconds(
    name="Maximum duration of a run in an exploration",
    value=120.0,
    source="judgement: more batches of one run help less than another run",
    influences="how long the runs of headway explore are",
)
PILOT_SHARES = Assumption(
    name="Input rates of the first runs of an exploration, over the requested rate",
    value=(0.1, 0.3),
    source="judgement: nothing is known about the query yet, and it should keep up",
    influences="the first runs of headway explore",
)
PILOT_TRIGGER_S = seconds(
    name="Trigger interval of one of the first runs of an exploration",
    value=1.0,
    source="judgement: a common choice",
    influences="the first runs of headway explore",
)
ALIKE_LESSONS_RATIO = Assumption(
    name="Difference in remaining variance up to which runs count as equally informative",
    value=0.02,
    source="judgement: of equally informative runs, the one that changes least is advised",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
IGNORED_LIMIT_RATIO = Assumption(
    name="Excess of a batch over its rate limit from which the query ignores the limit",
    value=0.05,
    source="judgement: sources round the limit to their partitions",
    influences="when headway explore refuses a query that ignores its setting",
)
SURELY_PAUSED_RATIO = Assumption(
    name="Batch duration below which a query has paused, as a share of its trigger interval",
    value=0.7,
    source="judgement: longer batches overrun now and then, and do not show the trigger",
    influences="when headway explore refuses a query that ignores its setting",
)
ADVISED_TRIGGERS_S = seconds(
    name="Trigger intervals of advised runs",
    value=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0),
    source="judgement: round values, close enough to each other",
    influences="headway profile --advise",
)
WARM_UP_BATCHES = batches(
    name="Batches that warm the JVM up before the first run of an exploration",
    value=60,
    source="judgement: as in the demonstration; compiled is what has run often",
    influences="what headway explore runs before its first run; at most as long as a run takes",
)
BATCHES_OF_A_RUN = batches(
    name="Batches after which a run of headway explore is long enough",
    value=8,
    source="judgement: a profile needs five, and the first batches of a query are warm-up",
    influences="how long headway explore runs slow queries",
)
LONGEST_RUN_RATIO = Assumption(
    name="Maximum extension of a run of headway explore with slow batches, over its length",
    value=4.0,
    source="judgement: with slow batches, a run may take up to five times its length",
    influences="how long headway explore runs slow queries",
)
FIRST_BATCH_WITHIN_S = seconds(
    name="Maximum time for the first batch of a run of headway explore",
    value=60.0,
    source="judgement: a session on a busy machine starts in half that time",
    influences="when headway explore reports an empty source",
)
MOST_AGE_GROWTH_RATIO = Assumption(
    name="Growth of the oldest row's age per unit of time from which a run falls behind",
    value=0.05,
    source="judgement: noise of 10% in the duration of ten batches causes much less",
    influences="which measured runs of the demo and of benchmarks count as keeping up",
)
