"""Plans: what is preferred, what is kept free, and how far a search looks."""

from __future__ import annotations

from headway.assumptions import Assumption

CONFIDENCE = Assumption(
    name="Default confidence level",
    value=0.95,
    unit="-",
    source="judgement: one plan in twenty may miss its target by the predicted spread",
    influences="the factor on durations that a plan counts on (P4)",
)
MOST_NODES_OF_PLAN = Assumption(
    name="Default maximum number of nodes",
    value=50,
    unit="nodes",
    source="judgement: who has more says so",
    influences="whether a target that takes more nodes is called infeasible",
)
TRIGGERS_S = Assumption(
    name="Trigger intervals that a plan chooses from",
    value=(0.0, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0),
    unit="s",
    source="judgement: those that people write; most divide the usual windows",
    influences="every plan whose trigger is not fixed",
)
PARTITIONS_PER_SLOT = Assumption(
    name="Shuffle partitions per slot that a plan chooses from",
    value=(1, 2, 3, 4),
    unit="partitions",
    source="Spark tuning guide: two to three tasks per core",
    influences="every plan whose shuffle partitions are not fixed",
)
MOST_PARTITIONS_OF_PLAN = Assumption(
    name="Maximum shuffle partitions of a plan",
    value=4096,
    unit="partitions",
    source="judgement: beyond, the driver spends the batch on launching tasks",
    influences="plans of many slots",
)
CALM_TRIGGER_S = Assumption(
    name="Shortest preferred trigger interval",
    value=0.5,
    unit="s",
    source="judgement: below, checkpoints and idle cores between batches cost more than the "
    "latency is worth",
    influences="the trigger of a plan whose target leaves a choice (P6)",
)
SELDOM_RATIO = Assumption(
    name="Maximum share of overruns of a preferred setting",
    value=0.1,
    unit="-",
    source="judgement: a batch in ten that overruns is caught up by the next",
    influences="the trigger of a plan whose target leaves a choice (P6)",
)
ROOM_RATIO = Assumption(
    name="Spare rate of a preferred setting, over the planned rate",
    value=1.25,
    unit="-",
    source="judgement: traffic grows between two plans",
    influences="which setting of the fewest nodes is chosen (P6)",
)
WORTHWHILE_LATENCY_RATIO = Assumption(
    name="Latency after a change, over the planned latency, that is worth mentioning",
    value=0.97,
    unit="-",
    source="judgement: runs of one setting differ by more than 3%",
    influences="advice, and the note what no trigger would give (P6, P14)",
)
WORTHWHILE_CHECKPOINT_RATIO = Assumption(
    name="Latency after a change of checkpoint, over the planned latency, that is worth mentioning",
    value=0.95,
    unit="-",
    source="judgement: a new checkpoint costs a restart and the state",
    influences="the note what a new checkpoint would give",
)
BOUND_MARGIN_RATIO = Assumption(
    name="Safety margin on the bound without noise",
    value=1.01,
    unit="-",
    source="judgement: a bound a little too high only costs time, one too low skips a plan",
    influences="which settings are looked at closely; only time, as enumeration shows (P5)",
)
MANY_NODES_MARGIN_RATIO = Assumption(
    name="Safety margin on the lower bound from work alone",
    value=1.1,
    unit="-",
    source="judgement: the approximate makespan may lie a little below its bound, and the gain by "
    "noise is taken at the largest batch only",
    influences="which numbers of nodes are ruled out unseen (P9)",
)
NODE_COUNTS_TRIED = Assumption(
    name="Maximum number of node counts that are tried one by one",
    value=64,
    unit="numbers",
    source="judgement: seconds of work; of more, a spread of them or a bisection",
    influences="whether a plan of many nodes is proved the fewest, and the steps of tables (P9)",
)
NODE_COUNTS_TRIED_BELOW = Assumption(
    name="Node counts tried below the result of a bisection",
    value=12,
    unit="numbers",
    source="judgement: what nodes can do is not quite monotone in their number",
    influences="the gap of plans of many nodes (P9)",
)
LEAST_LIMIT_RATIO = Assumption(
    name="Minimum rate limit, over the rows of a usual batch",
    value=1.5,
    unit="-",
    source="judgement: batches of a steady rate vary, and none of them should be cut",
    influences="whether a plan sets a rate limit (P6)",
)
LEAST_CATCH_UP_RATIO = Assumption(
    name="Minimum rate that a rate limit lets through, over the planned rate",
    value=1.2,
    unit="-",
    source="judgement: with less, a backlog of ten minutes takes more than fifty to work off",
    influences="whether a plan sets a rate limit, and a warning of a prediction (P6)",
)
FARTHEST_LIMIT_RATIO = Assumption(
    name="Maximum rate limit, over the rows of the largest profiled batch",
    value=10.0,
    unit="-",
    source="judgement: no profile tells what a batch beyond that costs",
    influences="the highest rate limit of a plan (P6)",
)
USUAL_BATCH_RATIO = Assumption(
    name="Batch size, over the usual one, at which a query has recovered",
    value=1.1,
    unit="-",
    source="judgement: within the variation of usual batches",
    influences="the time that an outage or a burst is promised to take to recover from (P8, P17)",
)
MOST_BATCHES_TO_RECOVER = Assumption(
    name="Batches after which a backlog or a burst counts as permanent",
    value=200,
    unit="batches",
    source="judgement: what takes more is no transient",
    influences="recoveries that take very long, called never; long bursts (P8, P17)",
)
MINUTES_AFTER_START = Assumption(
    name="Time after a restart that is predicted",
    value=10,
    unit="minutes",
    source="judgement: a JVM has compiled by then what it runs often",
    influences="what is said of the latency after a restart (P20)",
)
SAME_AFTER_START_RATIO = Assumption(
    name="Latency of a minute after a restart, over the planned latency, that counts as equal",
    value=1.01,
    unit="-",
    source="judgement: closer, no minute can be distinguished from the steady state",
    influences="from when on a plan's target holds after a restart (P20)",
)
LONGEST_GROWTH_S = Assumption(
    name="Period for which a growing state is predicted",
    value=365 * 86400.0,
    unit="s",
    source="judgement: nobody plans a query a year ahead",
    influences="whether a plan says when a growing state will break its target (P21)",
)
CLOSE_TO_FLOOR_RATIO = Assumption(
    name="Lowest latency, over that of the setting proposed with fewer nodes",
    value=0.98,
    unit="-",
    source="judgement: the last 2% may take many more nodes",
    influences="the nearest setting of an infeasible plan (P6)",
)
LONGEST_NEAREST_LIMIT_S = Assumption(
    name="Longest limit proposed where every latency is infinite",
    value=3600.0,
    unit="s",
    source="judgement: an hour is no latency of a stream any more",
    influences="the nearest target of an infeasible plan (P13)",
)
TIMES_THE_NODES = Assumption(
    name="Node counts searched for an alternative, over the maximum allowed",
    value=8,
    unit="-",
    source="judgement: nobody buys eight times as much for one target",
    influences="the nearest target of an infeasible plan (P13)",
)
MOST_NODES_BEYOND = Assumption(
    name="Maximum nodes searched for an alternative",
    value=1024,
    unit="nodes",
    source="judgement: as before, in all",
    influences="the nearest target of an infeasible plan (P13)",
)
LEAST_CONFIDENCE_PERCENT = Assumption(
    name="Lowest confidence level proposed as an alternative",
    value=50,
    unit="%",
    source="judgement: below, a plan expects to miss its target",
    influences="the nearest target of an infeasible plan (P13)",
)
NEAREST_QUANTILES = Assumption(
    name="Quantiles proposed as alternatives",
    value=(0.99, 0.95, 0.9, 0.75, 0.5),
    unit="-",
    source="judgement: those that dashboards show",
    influences="the nearest target of an infeasible plan (P13)",
)
SAME_FIGURE_RATIO = Assumption(
    name="Maximum ratio of two figures that count as equal",
    value=1.001,
    unit="-",
    source="judgement: less is rounding",
    influences="rows of tables that are left out, and what is said to rise or fall",
)
SENSITIVITY_RATIO = Assumption(
    name="Factor of a sensitivity",
    value=1.1,
    unit="-",
    source="judgement: ten percent more of it",
    influences="the table of sensitivities",
)
RULE_TRIGGERS_S = Assumption(
    name="Trigger intervals of the rules of thumb",
    value=(1.0, 5.0, 10.0),
    unit="s",
    source="judgement: what examples and tutorials use",
    influences="rules of thumb beside a plan (P12)",
)
BEHIND_RATIO = Assumption(
    name="Backlog at the end of a trace, over the rows of a batch, that counts as behind",
    value=1.5,
    unit="-",
    source="judgement: a backlog of less than half a batch is what batches vary by",
    influences="whether a simulated run is called behind at its end",
)
LOOSER_TARGET_RATIO = Assumption(
    name="Factor by which a latency limit is relaxed to price it",
    value=1.25,
    unit="-",
    source="judgement: a quarter more is what a team may agree to",
    influences="what a capacity plan says looser targets would save",
)
PIPELINE_PERIODS_S = Assumption(
    name="Periods that a plan of a pipeline of mini-batches chooses from",
    value=(0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
    unit="s",
    source="VLDB'15, Table 4: 10 ms to 1 s",
    influences="shuffle and poll periods where the file has no list of its own",
)
PIPELINE_RULE_PERIODS_S = Assumption(
    name="Periods of the rules of thumb for a pipeline of mini-batches",
    value=(0.01, 0.1, 1.0),
    unit="s",
    source="VLDB'15, Table 4",
    influences="rules of thumb beside a plan of such a pipeline",
)
MOST_PLACED_KEYS = Assumption(
    name="Most keys that are put on partitions one by one",
    value=1000,
    unit="keys",
    source="judgement: the table is looked up for every row; beyond, keys are light and even out",
    influences="the placement that headway ordered prints, and its p99",
)
MOST_PLACED_PER_SLOT = Assumption(
    name="Most shuffle partitions per slot with which placed keys are tried",
    value=2,
    unit="-",
    source="judgement: keys that are placed need no more tasks to even out",
    influences="the placement that headway ordered prints",
)
TRIED_PER_SLOT = Assumption(
    name="Shuffle partitions per slot that are tried for a skewed stage",
    value=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 12.0),
    unit="-",
    source="simulated: with Zipf keys p99 falls up to six per slot; beyond, tasks cost more",
    influences="the number of shuffle partitions that headway ordered names",
)
SKEWED_BATCHES = Assumption(
    name="Batches that are simulated at each number of shuffle partitions",
    value=400,
    unit="batches",
    source="judgement: the p99 of a stage is then known to about 2%",
    influences="mean and p99 that headway ordered prints",
)
SAME_P99_RATIO = Assumption(
    name="Ratio of p99 up to which fewer shuffle partitions are named",
    value=1.02,
    unit="-",
    source="judgement: what the simulated p99 is known to",
    influences="the number of shuffle partitions that headway ordered names",
)
WORTH_PLACING_RATIO = Assumption(
    name="Ratio of p99 without and with placed keys from which placing them is advised",
    value=1.05,
    unit="-",
    source="judgement: a table of keys has to be kept",
    influences="the answer of headway ordered",
)
SETTINGS_CERTIFIED = Assumption(
    name="Settings of a number of nodes that the chain of batches is asked about",
    value=6,
    unit="settings",
    source="judgement: those with most room first; where six of them fail, the others do",
    influences="the number of nodes of a plan (P5, T4)",
)
CHOICES_CERTIFIED = Assumption(
    name="Preferred settings that the chain of batches is asked about",
    value=12,
    unit="settings",
    source="judgement: a preference that twelve settings cannot keep is none",
    influences="the setting of a plan (P6, T4)",
)
MOST_WORKERS_OF_PLAN = Assumption(
    name="Default maximum number of workers of an ordered pipeline",
    value=256,
    unit="workers",
    source="judgement: twice the cores of a large machine",
    influences="headway plan of an OrderedPipeline without most_workers",
)
GROWING_RATIO = Assumption(
    name="Growth of the latency within a simulated run from which a pipeline is saturated",
    value=1.2,
    unit="-",
    source="judgement: halves of a steady run differ by less",
    influences="whether headway simulate calls a pipeline saturated",
)
