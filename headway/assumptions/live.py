"""A running query: when it is changed, and what a change costs."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

BIN_S = seconds(
    name="Length of a bin of arrivals",
    value=15.0,
    source="judgement: longer than most trigger intervals, shorter than any change of a cluster",
    influences="how soon a jump of the rate is detected (A1)",
)
FACTOR_WEIGHT_RATIO = Assumption(
    name="Weight of the newest batch in the cost factor",
    value=0.03,
    source="judgement: the last 30 batches determine the factor within a fifth of their noise",
    influences="the cost factor of a running query (A4)",
)
FALSE_ALARM_S = seconds(
    name="Mean time between false alarms of a drift",
    value=30.0 * 86_400.0,
    source="judgement: people read one alarm a month, but not one a day",
    influences="when a drift of costs is reported (A5)",
)
SMALLEST_DRIFT_SPREADS = Assumption(
    name="Smallest shift of durations to be detected fastest, over their spread",
    value=1.0,
    source="judgement: a tenth slower, at the usual noise of a tenth",
    influences="when a drift of costs is reported (A5)",
)
FALSE_LEVEL_RATIO = Assumption(
    name="Maximum share of runs whose level raises a false drift alarm",
    value=0.01,
    source="judgement: a query that restarts three times a day has one such alarm a month, too",
    influences="when a drift of costs is reported (A5)",
)
MOST_SCORE = Assumption(
    name="Maximum score of a batch in the sums that detect a drift",
    value=3.0,
    source="judgement: normal noise exceeds it once in 370 batches, a pause of the machine often",
    influences="when a drift of costs is reported (E23, A5)",
)
SETTLING_S = seconds(
    name="Settling time after a change",
    value=90.0,
    source="measured: fresh executors are slower for their first batches, Spark 4.3",
    influences="which batches count for costs, and when a change is evaluated",
)
SETTLING_BATCHES = batches(
    name="Number of batches in which a change settles",
    value=10,
    source="judgement: fewer do not determine a mean",
    influences="which batches count for costs, and when a change is evaluated",
)
LEAST_GAIN_RATIO = Assumption(
    name="Minimum gain in rate per executor of a size, over the most of it and of larger ones",
    value=0.5,
    source="judgement: tasks run in waves; a size that hardly changes them costs two changes, to "
    "it and to the next one",
    influences="sizes to which a running query is changed (A9)",
)
LEAST_CARRIED_RATIO = Assumption(
    name="Minimum rate with a larger size or other shuffle partitions, over that with the current",
    value=1.06,
    source="judgement: less is not worth a restart",
    influences="changes of the size and the shuffle partitions of a running query (A9)",
)
BUDGET_S = seconds(
    name="Period over which the late budget counts",
    value=6.0 * 3600.0,
    source="judgement: a working shift",
    influences="the margin over the forecast (A6)",
)
BUDGET_RAMP_S = seconds(
    name="Time until the late budget is fully in force",
    value=3600.0,
    source="judgement: otherwise, the first late batch would be compared with almost no rows",
    influences="the margin over the forecast (A6)",
)
MARGIN_SPREADS = Assumption(
    name="Margin over the forecast with an unused late budget, and its increase at full use",
    value=(0.4, 1.3),
    source="judgement: from a rate exceeded in a third of the bins to one exceeded in one of "
    "twenty-five",
    influences="the rate to prepare for (A6)",
)
MOST_BUDGET_USED = Assumption(
    name="Used share of the late budget from which the margin no longer grows",
    value=1.2,
    source="judgement: rows that are late stay late; more nodes do not change that",
    influences="the rate to prepare for (A6)",
)
MOST_FORECAST_ERROR_RATIO = Assumption(
    name="Maximum spread of the forecast that counts when a size is chosen",
    value=0.25,
    source="judgement: larger errors are those of single bins; over the minutes in which rows "
    "become late they average out",
    influences="the rows to expect late at a size (A21)",
)
STEP_UP_RATIO = Assumption(
    name="Late rows to expect of a size until a step up, over those of a step up and a step down",
    value=0.5,
    source="judgement: it causes only half of them; with less, noise would change the size",
    influences="steps up of a running query (A9)",
)
BUDGET_OF_CHANGES_RATIO = Assumption(
    name="Share of the late budget that changes may use",
    value=0.25,
    source="judgement: a change makes its minutes miss the target, whatever the mean of hours "
    "says; the other three quarters are for unforeseen events",
    influences="how long idle nodes are kept (A8)",
)
CATCH_UP_RATIO = Assumption(
    name="Load at which a backlog is worked off",
    value=0.85,
    source="judgement: a share of the rate at which large batches are processed",
    influences="steps up of a query that is behind (A9)",
)
CATCH_UP_S = seconds(
    name="Default time to work off a backlog",
    value=300.0,
    source="judgement: the time until executors arrive, and four minutes",
    influences="steps up of a query that is behind (A9)",
)
LEAST_BEHIND_RATIO = Assumption(
    name="Minimum backlog of a query that is behind, over a usual batch",
    value=1.0,
    source="judgement: rows that wait in addition to the usual batch make another batch",
    influences="steps up and down of a query that is behind (A9)",
)
LEAST_IDLE_S = seconds(
    name="Minimum idle time before a step down",
    value=120.0,
    source="judgement: the time that a step up takes, and two bins",
    influences="steps down of a running query (A8)",
)
LEAST_KEPT_S = seconds(
    name="Minimum time from a change to the next step down",
    value=1800.0,
    source="judgement: a change that is undone within half an hour was not worth it",
    influences="steps down of a running query (A8)",
)
MOST_STEP_DOWN_RATIO = Assumption(
    name="Maximum share of the executors that one step down removes",
    value=0.67,
    source="judgement: limits the effect of a wrong step; each step down makes rows late, however "
    "many executors it removes",
    influences="steps down of a running query",
)
CHANGES_PER_HOUR = Assumption(
    name="Default maximum number of changes per hour",
    value=6,
    unit="changes",
    source="judgement: more indicate a fault of the rule or of the job",
    influences="steps of a query that is not behind",
)
LONGEST_OUTLOOK_S = seconds(
    name="Maximum time over which a change is expected to pay",
    value=6.0 * 3600.0,
    source="judgement: a load of one hour lasts another hour; a load of a week may not last "
    "another week",
    influences="changes of the trigger interval (A10)",
)
UP_LATE_S = seconds(
    name="Prior for the late arrivals that a step up causes",
    value=5.0,
    source="judgement: used until a step up has been observed",
    influences="how long idle nodes are kept (A8)",
)
PROVISIONING_S = seconds(
    name="Prior for the time until an executor is available, 90th percentile",
    value=60.0,
    source="judgement: a pod on a running node; learned from the first executor on",
    influences="how far ahead the rate is forecast",
)
RESTART_PAUSE_S = seconds(
    name="Prior for the pause when the query is restarted",
    value=2.2,
    source="measured, Spark 4.3: 0.7 s, and the first batch 0.1 to 1.5 s longer",
    influences="changes of trigger interval and rate limit (A7)",
)
USUAL_RESTART_PAUSE_S = seconds(
    name="Prior for the usual pause when the query is restarted",
    value=1.5,
    source="measured, Spark 4.3: 0.7 s, and the middle of 0.1 to 1.5 s for the first batch",
    influences="the pause and the late arrivals that a restart is expected to show (A18)",
)
REMOVAL_PAUSE_S = seconds(
    name="Prior for the pause when executors are removed",
    value=5.9,
    source="measured, Spark 4.3: one batch of 6.6 s instead of the usual 0.7 s",
    influences="steps down of a running query (A7)",
)
APPLICATION_PAUSE_S = seconds(
    name="Prior for the pause of a new application",
    value=60.0,
    source="measured, Spark 4.3, with images present; a young JVM follows",
    influences="changes that need a new application (A7)",
)
REPARTITION_PAUSE_S = seconds(
    name="Prior for the pause of an offline repartition",
    value=10.0,
    source="measured, Spark 4.3: 2.5 s, plus a clean stop, a batch and a restart",
    influences="changes of the shuffle partitions of stateful queries (A7)",
)
FIRST_BATCHES = batches(
    name="Number of slower batches after executors were added",
    value=2,
    source="measured, Spark 4.3: two or three",
    influences="late arrivals of a step up (A7)",
)
FIRST_BATCHES_RATIO = Assumption(
    name="Duration of the first batches after executors were added, over the usual one",
    value=2.0,
    source="measured, Spark 4.3: 1.5 to 3 times",
    influences="late arrivals of a step up (A7)",
)
COSTS_REMEMBERED = Assumption(
    name="Number of changes of a kind from which its cost is learned",
    value=10,
    unit="changes",
    source="judgement: older ones had another state and another cluster",
    influences="the expected cost of a change (A7)",
)
COST_LEVEL_RATIO = Assumption(
    name="Quantile of the learned costs of a change that is used",
    value=0.9,
    source="judgement: the upper end, as for durations",
    influences="the expected cost of a change (A7)",
)
SPARE_EXECUTORS_RATIO = Assumption(
    name="Maximum executors of policies, over those for the highest rate of a trace",
    value=1.5,
    source="judgement: enough to work off a backlog at that rate",
    influences="headway simulate --policy without --executors",
)
TABLE_FACTORS = Assumption(
    name="Cost factors for which sustained rates are computed",
    value=(0.25, 0.35, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 2.0, 2.3),
    source="judgement: beyond these, the profile is of another job",
    influences="sizes to which a running query is changed",
)
MOST_LOADED_RATIO = Assumption(
    name="Maximum load that is assumed when a backlog is worked off",
    value=0.98,
    source="judgement: at full load it would take forever, and a change would cost without bound",
    influences="the late arrivals expected of changes of busy queries (A7)",
)
SILENT_LIMITS = Assumption(
    name="Time without a batch from which a query counts as behind, over its limit or trigger",
    value=3.0,
    source="judgement: longer than any batch that meets a target, shorter than an outage",
    influences="when a query that reports nothing counts as behind",
)
MOST_LATE_LEARNED_S = seconds(
    name="Maximum time of late arrivals that is attributed to one change",
    value=3600.0,
    source="judgement: later ones have another cause than the change",
    influences="the late arrivals expected of the next change of the kind (A7)",
)
BUDGET_BIN_S = seconds(
    name="Length of a bin of the late budget",
    value=300.0,
    source="judgement: a seventieth of the period over which it counts",
    influences="the margin over the forecast (A6)",
)
LARGE_BATCHES_S = seconds(
    name="Seconds of arrivals in a batch that works off a backlog",
    value=4.0,
    source="judgement: the fixed times of a batch are a small part of such a large one",
    influences="how soon a backlog is expected to be worked off (A7, A9)",
)
LEAST_NOISE_RATIO = Assumption(
    name="Minimum noise of batch durations for detecting a drift",
    value=0.01,
    source="judgement: no batches are more regular, and regular ones must not raise an alarm at "
    "each millisecond",
    influences="when a drift of costs is reported (A5)",
)
