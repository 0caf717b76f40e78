"""Plans: which settings are preferred, what is kept in reserve, and how far a search goes."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

CONFIDENCE = Assumption(
    name="Default confidence level",
    value=0.95,
    source="judgement: due to the predicted spread, one plan in twenty may miss its target",
    influences="the factor on durations that a plan includes (P4)",
)
MOST_NODES_OF_PLAN = Assumption(
    name="Default maximum number of nodes",
    value=50,
    unit="nodes",
    source="judgement: a larger maximum can be stated",
    influences="whether a target that needs more nodes is called infeasible",
)
RATES_SHOWN = Assumption(
    name="Rates of the table that a plan shows if no rate was given, over the profiled one",
    value=(0.5, 1.0, 1.5, 2.0, 3.0),
    source="judgement: from half of the traffic to three times as much",
    influences="the table of rates of headway plan",
)
TRIGGERS_S = seconds(
    name="Trigger intervals from which a plan chooses",
    value=(0.0, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0),
    source="judgement: common values; most divide the usual windows",
    influences="every plan whose trigger is not fixed",
)
PARTITIONS_PER_SLOT = Assumption(
    name="Shuffle partitions per slot from which a plan chooses",
    value=(1, 2, 3, 4),
    unit="partitions",
    source="Spark tuning guide: two to three tasks per core",
    influences="every plan whose shuffle partitions are not fixed",
)
MOST_PARTITIONS_OF_PLAN = Assumption(
    name="Maximum shuffle partitions of a plan",
    value=4096,
    unit="partitions",
    source="judgement: beyond it, the driver spends the batch on launching tasks",
    influences="plans with many slots",
)
CALM_TRIGGER_S = seconds(
    name="Shortest preferred trigger interval",
    value=0.5,
    source="judgement: with a shorter one, checkpoints and idle cores between batches cost more "
    "than the lower latency is worth",
    influences="the trigger of a plan whose target leaves a choice (P6)",
)
SELDOM_RATIO = Assumption(
    name="Maximum share of overruns of a preferred setting",
    value=0.1,
    source="judgement: if one batch in ten overruns, the next one catches up",
    influences="the trigger of a plan whose target leaves a choice (P6)",
)
ROOM_RATIO = Assumption(
    name="Rate at which a preferred setting meets the target, over the planned rate",
    value=1.25,
    source="judgement: traffic grows between two plans",
    influences="which setting with the fewest nodes is chosen (P6)",
)
WORTHWHILE_LATENCY_RATIO = Assumption(
    name="Maximum latency after a change worth mentioning, over the planned latency",
    value=0.97,
    source="judgement: runs of one setting differ by more than 3%",
    influences="advice, and the note on running without a trigger (P6, P14)",
)
WORTHWHILE_CHECKPOINT_RATIO = Assumption(
    name="Maximum latency with a new checkpoint worth mentioning, over the planned latency",
    value=0.95,
    source="judgement: a new checkpoint costs a restart and the state",
    influences="the note on the effect of a new checkpoint",
)
BOUND_MARGIN_RATIO = Assumption(
    name="Safety margin on the bound without noise",
    value=1.01,
    source="judgement: a bound slightly too high only costs time, one too low misses a plan",
    influences="which settings are examined closely; only time, as enumeration shows (P5)",
)
MANY_NODES_MARGIN_RATIO = Assumption(
    name="Safety margin on the lower bound from work alone",
    value=1.1,
    source="judgement: the approximate makespan may be slightly below its bound, and the gain by "
    "noise is computed for the largest batch only",
    influences="which numbers of nodes are excluded without a search (P9)",
)
NODE_COUNTS_TRIED = Assumption(
    name="Maximum number of node counts that are tried one by one",
    value=64,
    unit="numbers",
    source="judgement: takes seconds; of more, a sample or a bisection is tried",
    influences="whether a plan with many nodes is proved the fewest, and the steps of tables (P9)",
)
NODE_COUNTS_TRIED_BELOW = Assumption(
    name="Node counts tried below the result of a bisection",
    value=12,
    unit="numbers",
    source="judgement: capacity is not quite monotone in the number of nodes",
    influences="the gap of plans with many nodes (P9)",
)
LEAST_LIMIT_RATIO = Assumption(
    name="Minimum rate limit, over the rows of a usual batch",
    value=1.5,
    source="judgement: batches vary at a steady rate, and none should reach the limit",
    influences="whether a plan sets a rate limit (P6)",
)
LEAST_CATCH_UP_RATIO = Assumption(
    name="Minimum rate that a rate limit allows, over the planned rate",
    value=1.2,
    source="judgement: with less, a backlog of ten minutes takes more than fifty minutes to work "
    "off",
    influences="whether a plan sets a rate limit, and a warning in a prediction (P6)",
)
FARTHEST_LIMIT_RATIO = Assumption(
    name="Maximum rate limit, over the rows of the largest profiled batch",
    value=10.0,
    source="judgement: no profile shows what a larger batch costs",
    influences="the highest rate limit of a plan (P6)",
)
USUAL_BATCH_RATIO = Assumption(
    name="Batch size at which a query has recovered, over the usual one",
    value=1.1,
    source="judgement: within the variation of usual batches",
    influences="the planned time to recover from an outage or a burst (P8, P17)",
)
MOST_BATCHES_TO_RECOVER = batches(
    name="Batches after which a backlog or a burst counts as permanent",
    value=200,
    source="judgement: anything longer is not transient",
    influences="very long recoveries, reported as never; long bursts (P8, P17)",
)
MINUTES_AFTER_START = Assumption(
    name="Time after a restart that is predicted",
    value=10,
    unit="minutes",
    source="judgement: by then, a JVM has compiled the code that it runs often",
    influences="the predicted latency after a restart (P20)",
)
SAME_AFTER_START_RATIO = Assumption(
    name="Latency in a minute after a restart that counts as steady, over the planned latency",
    value=1.01,
    source="judgement: smaller differences cannot be distinguished from the steady state",
    influences="from which minute after a restart a plan's target is met (P20)",
)
LONGEST_GROWTH_S = seconds(
    name="Period for which a growing state is predicted",
    value=365 * 86400.0,
    source="judgement: nobody plans a query a year ahead",
    influences="whether a plan says when a growing state will miss its target (P21)",
)
MOST_GROWTH_SPANS = Assumption(
    name="Time for which growing batches are extrapolated, over that for which they were measured",
    value=4.0,
    source="judgement: as far as a prediction is quoted beyond other ranges of a profile",
    influences="the latest date until which a plan holds while batches grow (P31)",
)
CLOSE_TO_FLOOR_RATIO = Assumption(
    name="Lowest latency, over that of a setting with fewer nodes that is proposed instead",
    value=0.98,
    source="judgement: the last 2% may take many more nodes",
    influences="the nearest setting of an infeasible plan (P6)",
)
TIMES_THE_NODES = Assumption(
    name="Maximum node count searched for an alternative, over the allowed maximum",
    value=8,
    source="judgement: nobody buys eight times as many nodes for one target",
    influences="the nearest target of an infeasible plan (P13)",
)
MOST_NODES_BEYOND = Assumption(
    name="Maximum nodes searched for an alternative",
    value=1024,
    unit="nodes",
    source="judgement: an absolute limit, for the same reason",
    influences="the nearest target of an infeasible plan (P13)",
)
LEAST_CONFIDENCE_PERCENT = Assumption(
    name="Lowest confidence level proposed as an alternative",
    value=50,
    unit="%",
    source="judgement: with less, a plan is expected to miss its target",
    influences="the nearest target of an infeasible plan (P13)",
)
NEAREST_QUANTILES = Assumption(
    name="Quantiles proposed as alternatives",
    value=(0.99, 0.95, 0.9, 0.75, 0.5),
    source="judgement: those that dashboards show",
    influences="the nearest target of an infeasible plan (P13)",
)
SAME_FIGURE_RATIO = Assumption(
    name="Maximum ratio of two figures that count as equal",
    value=1.001,
    source="judgement: less is rounding",
    influences="which rows of tables are left out, and what is said to rise or fall",
)
SENSITIVITY_RATIO = Assumption(
    name="Factor by which a sensitivity raises an input",
    value=1.1,
    source="judgement: ten per cent more",
    influences="the table of sensitivities",
)
RULE_TRIGGERS_S = seconds(
    name="Trigger intervals of the rules of thumb",
    value=(1.0, 5.0, 10.0),
    source="judgement: common in examples and tutorials",
    influences="rules of thumb beside a plan (P12)",
)
LOOSER_TARGET_RATIO = Assumption(
    name="Factor by which a latency limit is relaxed to price it",
    value=1.25,
    source="judgement: a team may agree to a quarter more",
    influences="which savings by looser targets a capacity plan lists",
)
PIPELINE_PERIODS_S = seconds(
    name="Periods from which a plan of a mini-batch pipeline chooses",
    value=(0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
    source="VLDB'15, Table 4: 10 ms to 1 s",
    influences="shuffle and poll periods if the file does not list its own",
)
PIPELINE_RULE_PERIODS_S = seconds(
    name="Periods of the rules of thumb for a mini-batch pipeline",
    value=(0.01, 0.1, 1.0),
    source="VLDB'15, Table 4",
    influences="rules of thumb beside a plan of such a pipeline",
)
MOST_PLACED_KEYS = Assumption(
    name="Maximum number of keys that are placed on partitions one by one",
    value=1000,
    unit="keys",
    source="judgement: every row is looked up in the table; lighter keys even out",
    influences="the placement that headway ordered prints, and its p99",
)
MOST_PLACED_PER_SLOT = Assumption(
    name="Maximum shuffle partitions per slot that are tried with placed keys",
    value=2,
    source="judgement: placed keys need no further tasks to even out",
    influences="the placement that headway ordered prints",
)
TRIED_PER_SLOT = Assumption(
    name="Shuffle partitions per slot that are tried for a skewed stage",
    value=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 12.0),
    source="simulated: with Zipf keys, p99 falls up to six per slot; beyond, tasks cost more",
    influences="the number of shuffle partitions that headway ordered recommends",
)
SKEWED_BATCHES = batches(
    name="Batches that are simulated for each number of shuffle partitions",
    value=400,
    source="judgement: determines the p99 of a stage to about 2%",
    influences="mean and p99 that headway ordered prints",
)
SAME_P99_RATIO = Assumption(
    name="Maximum ratio of p99 at which fewer shuffle partitions are recommended",
    value=1.02,
    source="judgement: the accuracy of the simulated p99",
    influences="the number of shuffle partitions that headway ordered recommends",
)
WORTH_PLACING_RATIO = Assumption(
    name="Ratio of p99 without to p99 with placed keys from which placing is advised",
    value=1.05,
    source="judgement: a table of keys has to be maintained",
    influences="the answer of headway ordered",
)
SOLVED_WITHIN_RATIO = Assumption(
    name="Maximum ratio of a solved rate to the exact one",
    value=1.002,
    source="a thousandth for the solver, and as much for rounding",
    influences="which settings the chain of batches checks; only time (P24)",
)
BEYOND_MOMENTS_RATIO = Assumption(
    name="Rate that the chain of batches may allow beyond that by moments, per noise of batches",
    value=0.15,
    source="880 random settings with noise up to 0.6 and correlations up to 0.8: at most 1.030 "
    "times the rate by moments at a noise of 0.43, and 1.020 at 0.19",
    influences="which settings the chain of batches checks (P24)",
)
BEYOND_MOMENTS_LATENCY_RATIO = Assumption(
    name="Maximum excess of a latency by moments over its limit if the chain meets it, by noise",
    value=0.1,
    source="597 random settings at their max rate by the chain, noise up to 0.6: at most 0.083",
    influences="which settings a plan evaluates by the chain of batches (P24)",
)
CHOICES_CERTIFIED = Assumption(
    name="Maximum number of preferred settings that the chain of batches checks",
    value=12,
    unit="settings",
    source="judgement: a preference that twelve settings cannot satisfy is not useful",
    influences="the setting of a plan (P6, T4)",
)
MOST_WORKERS_OF_PLAN = Assumption(
    name="Default maximum number of workers of an ordered pipeline",
    value=256,
    unit="workers",
    source="judgement: twice the cores of a large machine",
    influences="headway plan for an OrderedPipeline without most_workers",
)
GROWING_RATIO = Assumption(
    name="Growth of the latency within a simulated run from which a pipeline is saturated",
    value=1.2,
    source="judgement: the halves of a steady run differ by less",
    influences="whether headway simulate reports a pipeline as saturated",
)
