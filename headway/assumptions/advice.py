"""Advice: from when on something is worth a sentence, and which runs would tell more."""

from __future__ import annotations

from headway.assumptions import Assumption

AVAILABLE_NOW_START_S = Assumption(
    name="Time to start an application that works off what is there, nodes included",
    value=180.0,
    unit="s",
    source="judgement: clouds take minutes to bring up nodes, Spark seconds to start",
    influences="advice to start a query at intervals (P14)",
)
AVAILABLE_NOW_USED_RATIO = Assumption(
    name="Share of the time below which a query is advised to start at intervals",
    value=0.5,
    unit="-",
    source="judgement: half the nodes' time is worth the trouble of a schedule",
    influences="advice to start a query at intervals (P14)",
)
SHOWN_CHANGE_RATIO = Assumption(
    name="Change that a comparison shows: of a cost, or of a part over the whole",
    value=0.01,
    unit="-",
    source="judgement: repeats of one run differ by more",
    influences="which stages and phases headway diff lists",
)
MUCH_RATIO = Assumption(
    name="Threshold for bookkeeping or garbage collection, as a share of a batch",
    value=0.1,
    unit="-",
    source="judgement: less is not worth a change of storage or heap",
    influences="advice on checkpoints and on garbage collection (P14)",
)
SKEWED_RATIO = Assumption(
    name="Skew threshold: largest task or source partition over an even share",
    value=1.5,
    unit="-",
    source="judgement: less is within what tasks vary by",
    influences="advice on skew (P14)",
)
LONGEST_TASK_RATIO = Assumption(
    name="Skew threshold of batch stages: longest task over the mean one",
    value=3.0,
    unit="-",
    source="judgement: longer than the spread of tasks explains",
    influences="the finding that a stage of a batch job is skewed (P16)",
)
SLOW_COMMIT_S = Assumption(
    name="Threshold for a slow state commit of one partition",
    value=0.01,
    unit="s",
    source="judgement: a dozen of them in a row are a visible part of a batch",
    influences="advice on the state store (P14)",
)
BURSTY_RATIO = Assumption(
    name="Burst threshold: highest rate over median rate",
    value=2.0,
    unit="-",
    source="judgement: a plan for the mean then says nothing of the peak",
    influences="advice to plan for bursts (P14)",
)
YOUNG_JVM_S = Assumption(
    name="JVM age at which the slowdown of a young JVM is reported",
    value=30.0,
    unit="s",
    source="judgement: a restarted query has run its first batches",
    influences="advice on warm-up (P14)",
)
SLOWER_WHEN_YOUNG_RATIO = Assumption(
    name="Slowdown of a young JVM that is reported",
    value=0.1,
    unit="-",
    source="judgement: less is within the spread between runs",
    influences="advice on warm-up (P14)",
)
FAR_OFF_RATIO = Assumption(
    name="Ratio of profiled to modelled run time that is reported",
    value=1.5,
    unit="-",
    source="judgement: beyond, the graph of stages does not explain the run",
    influences="a warning of plans of batch jobs (P16)",
)
OVERRUNS_SHOWN_RATIO = Assumption(
    name="Share of overruns that is reported",
    value=0.05,
    unit="-",
    source="judgement: less is one batch in twenty",
    influences="a sentence of a prediction",
)
SAVING_SHOWN_PER_DAY = Assumption(
    name="Minimum saving that is reported",
    value=0.005,
    unit="money/day",
    source="judgement: less is nothing in amounts of two decimals",
    influences="what a capacity plan says would save money",
)
WHOLE_SAVING_RATIO = Assumption(
    name="Proved share at which a saving counts as complete",
    value=0.99,
    unit="-",
    source="judgement: bounds of two plans never meet to the last cent",
    influences="whether a capacity plan says 'saves' or 'saves at least'",
)
LOOSER_RATIOS = Assumption(
    name="Looser targets tried where queries of an application meet theirs on no size",
    value=(1.25, 1.5, 2.0, 3.0, 5.0, 10.0),
    unit="-",
    source="judgement: steps that people would name, up to what is another target altogether",
    influences="what a capacity plan names instead of a QuerySchedule's targets",
)
PRICED_TARGETS = Assumption(
    name="Maximum number of targets that a capacity plan prices",
    value=8,
    unit="targets",
    source="judgement: the dearest; each takes a plan of the fleet",
    influences="what a capacity plan says looser targets would save",
)
JUDGED_JOBS = Assumption(
    name="Maximum number of jobs of a capacity plan whose probability to meet targets is computed",
    value=50,
    unit="jobs",
    source="judgement: the dearest; each takes some milliseconds",
    influences="which jobs of a capacity plan have a probability beside them (P23)",
)
ADVISED_ROWS_RATIO = Assumption(
    name="Ratio of rows per batch between advised runs",
    value=3.0,
    unit="-",
    source="judgement: fixed time and time per row are then separable",
    influences="headway profile --advise",
)
ADVISED_PARTITIONS_RATIO = Assumption(
    name="Ratio of shuffle partitions between advised runs",
    value=4,
    unit="-",
    source="judgement: two doublings, as far as a calibrated prediction may go",
    influences="headway profile --advise",
)
MANY_PARTITIONS = Assumption(
    name="Shuffle partitions above which an advised run has fewer, not more",
    value=64,
    unit="partitions",
    source="judgement: four times as many would be more than a test cluster launches",
    influences="headway profile --advise",
)
FEWEST_ADVISED_BATCHES = Assumption(
    name="Minimum batches of an advised run",
    value=10,
    unit="batches",
    source="judgement: from ten on a warm-up is cut",
    influences="headway profile --advise",
)
MOST_ADVISED_BATCHES = Assumption(
    name="Maximum batches of an advised run",
    value=60,
    unit="batches",
    source="judgement: beyond, runs differ by more than batches tell",
    influences="headway profile --advise",
)
ADVISED_RUN_S = Assumption(
    name="Duration of an advised run",
    value=120.0,
    unit="s",
    source="judgement: a warm-up and some dozens of batches",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ADVISED_SHARES = Assumption(
    name="Loads of advised runs, as shares of the sustainable rate",
    value=(0.3, 0.6),
    unit="-",
    source="measured: one run more as fast as possible at 0.3 helped most of all fourth runs",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ADVISED_REPEATS = Assumption(
    name="Repeats of an advised run",
    value=2,
    unit="runs",
    source="judgement: one run may be off by a tenth as a whole; of two the mean is closer",
    influences="headway profile --advise (E42)",
)
MOST_ADVISED_RUNS = Assumption(
    name="Maximum number of advised settings",
    value=5,
    unit="settings",
    source="judgement: twenty minutes of runs; what comes next is better asked after them",
    influences="headway profile --advise (E42)",
)
LEAST_NARROWING_RATIO = Assumption(
    name="Minimum narrowing of an answer's spread for a run to be advised",
    value=0.02,
    unit="-",
    source="judgement: less is not worth two runs",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
ENOUGH_WIDTH_RATIO = Assumption(
    name="Half width of the 90% interval at which an exploration stops, over its middle",
    value=0.1,
    unit="-",
    source="judgement: about what two runs of one setting differ by",
    influences="when headway explore stops",
)
EXPLORED_RUN_SHARE = Assumption(
    name="Share of the budget of an exploration that one run takes",
    value=0.125,
    unit="-",
    source="judgement: two settings twice at first, and two more after them",
    influences="how long the runs of headway explore are",
)
SHORTEST_EXPLORED_RUN_S = Assumption(
    name="Minimum duration of a run of an exploration",
    value=20.0,
    unit="s",
    source="judgement: the start of a query and ten batches of a second",
    influences="how long the runs of headway explore are",
)
LONGEST_EXPLORED_RUN_S = Assumption(
    name="Maximum duration of a run of an exploration",
    value=120.0,
    unit="s",
    source="judgement: more batches of one run tell less than another run",
    influences="how long the runs of headway explore are",
)
PILOT_SHARES = Assumption(
    name="Input rates of the first runs of an exploration, over the rate asked about",
    value=(0.1, 0.3),
    unit="-",
    source="judgement: nothing is known of the query yet, and it should keep up",
    influences="the first runs of headway explore",
)
PILOT_TRIGGER_S = Assumption(
    name="Trigger interval of one of the first runs of an exploration",
    value=1.0,
    unit="s",
    source="judgement: a common choice",
    influences="the first runs of headway explore",
)
ALIKE_LESSONS_RATIO = Assumption(
    name="Difference of what runs leave open below which they teach alike",
    value=0.02,
    unit="-",
    source="judgement: of such runs the one that changes least is advised",
    influences="headway profile --advise, and the run that would narrow an answer most (E42)",
)
IGNORED_LIMIT_RATIO = Assumption(
    name="Rows of a batch beyond its rate limit at which the query ignores it",
    value=0.05,
    unit="-",
    source="judgement: sources round the limit to their partitions",
    influences="when headway explore refuses a query that ignores its setting",
)
SURELY_PAUSED_RATIO = Assumption(
    name="Batch duration below which a query has paused, as a share of its trigger interval",
    value=0.7,
    unit="-",
    source="judgement: longer batches overrun now and then, and tell no trigger",
    influences="when headway explore refuses a query that ignores its setting",
)
ADVISED_TRIGGERS_S = Assumption(
    name="Trigger intervals of advised runs",
    value=(0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0),
    unit="s",
    source="judgement: round ones, close enough to each other",
    influences="headway profile --advise",
)
BATCHES_OF_A_RUN = Assumption(
    name="Batches that make a run of headway explore long enough",
    value=8,
    unit="batches",
    source="judgement: five make a profile, and the first of a query are warm-up",
    influences="how long slow queries run for headway explore",
)
LONGEST_RUN_RATIO = Assumption(
    name="Time that a run of headway explore may take on top, for slow batches, over its length",
    value=4.0,
    unit="-",
    source="judgement: a run of slow batches may take five times its length, and no more",
    influences="how long slow queries run for headway explore",
)
FIRST_BATCH_WITHIN_S = Assumption(
    name="Maximum time for the first batch of a run of headway explore",
    value=60.0,
    unit="s",
    source="judgement: a session on a busy machine starts in half of it",
    influences="when headway explore calls a source empty",
)
MOST_AGE_GROWTH_RATIO = Assumption(
    name="Growth of the age of the oldest row, over time, from which a run falls behind",
    value=0.05,
    unit="-",
    source="judgement: noise of 10% in the duration of ten batches stays well below",
    influences="which measured runs of the demo and of benchmarks count as keeping up",
)
