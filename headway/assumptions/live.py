"""A running query: how its rate is foreseen, when it is changed, and what a change costs."""

from __future__ import annotations

from headway.assumptions import Assumption

BIN_S = Assumption(
    name="Bin of arrivals",
    value=15.0,
    unit="s",
    source="judgement: longer than most trigger intervals, shorter than any change of a cluster",
    influences="how soon a jump of the rate is seen (A1)",
)
FORECAST_WINDOWS = Assumption(
    name="Bins that a level is the mean of",
    value=(8, 30, 120),
    unit="bins",
    source="judgement: two minutes, and where they foresee better seven and a half or thirty",
    influences="the forecast rate of a running query (A1)",
)
FORECAST_LEAD_BINS = Assumption(
    name="Bins that the means of a rate are judged ahead by",
    value=5,
    unit="bins",
    source="judgement: as far ahead as executors take to come",
    influences="which mean is the forecast rate of a running query (A1)",
)
FORECAST_ERRORS_KEPT = Assumption(
    name="Errors of the forecast that count",
    value=40,
    unit="bins",
    source="judgement: ten minutes; older ones are of another hour",
    influences="the forecast rate (A1), its jumps (A2), and the rate that is prepared for (A3)",
)
FEWEST_FORECAST_ERRORS = Assumption(
    name="Minimum number of errors that tell how good a forecast is",
    value=8,
    unit="bins",
    source="judgement: two minutes; a median of fewer jumps about",
    influences="the forecast rate (A1), its jumps (A2), and the rate that is prepared for (A3)",
)
JUMP_BINS = Assumption(
    name="Bins in a row beyond the band that are a jump",
    value=2,
    unit="bins",
    source="judgement: one is an outlier or a late count",
    influences="when older bins are dropped (A2)",
)
TREND_BINS = Assumption(
    name="Bins that a trend is fitted to",
    value=30,
    unit="bins",
    source="judgement: a trend of a day shows in seven minutes beside noise of a tenth",
    influences="the forecast rate of a running query (A1)",
)
TREND_ERRORS = Assumption(
    name="Minimum trend, in standard errors",
    value=3.0,
    unit="-",
    source="judgement: noise without a trend looks like one every fourth hundred bins",
    influences="whether a trend is continued (A1)",
)
JUMP_SPREADS = Assumption(
    name="Band around the forecast, in spreads of its errors",
    value=4.0,
    unit="-",
    source="judgement: two bins in a row beyond it are no noise",
    influences="when older bins are dropped (A2)",
)
LEAST_SPREAD_RATIO = Assumption(
    name="Minimum spread of forecast errors",
    value=0.02,
    unit="-",
    source="judgement: no stream is more even, and an even one must not alarm at each row",
    influences="jumps (A2), and the rate that is prepared for (A3)",
)
FIRST_ERRORS_RATIO = Assumption(
    name="Spread of forecast errors until eight are known",
    value=0.1,
    unit="-",
    source="judgement: two minutes of most streams",
    influences="the size that is kept after a start (A9)",
)
BETTER_FORECAST_RATIO = Assumption(
    name="Errors of a longer mean that is preferred, over those of the shortest",
    value=0.95,
    unit="-",
    source="judgement: a mean of few bins follows sooner, so a longer one must win clearly",
    influences="the forecast rate of a running query (A1)",
)
FACTOR_WEIGHT_RATIO = Assumption(
    name="Weight of the newest batch in the cost factor",
    value=0.03,
    unit="-",
    source="judgement: the last 30 batches tell it within a fifth of their noise",
    influences="the cost factor of a running query (A4)",
)
FALSE_ALARM_S = Assumption(
    name="Mean time between false alarms of a drift",
    value=30.0 * 86_400.0,
    unit="s",
    source="judgement: one a month is read, one a day is not",
    influences="when a drift of costs is reported (A5)",
)
SMALLEST_DRIFT_SPREADS = Assumption(
    name="Smallest shift of durations to be found soonest, in their spread",
    value=1.0,
    unit="-",
    source="judgement: a tenth slower, at the usual noise of a tenth",
    influences="when a drift of costs is reported (A5)",
)
FALSE_LEVEL_RATIO = Assumption(
    name="Maximum share of runs whose level raises a false alarm of a drift",
    value=0.01,
    unit="-",
    source="judgement: one that starts anew three times a day has one of them a month, too",
    influences="when a drift of costs is reported (A5)",
)
MOST_SCORE = Assumption(
    name="Maximum score of a batch in the sums that find a drift",
    value=3.0,
    unit="-",
    source="judgement: normal noise is beyond once in 370 batches, a pause of the machine often",
    influences="when a drift of costs is reported (E23, A5)",
)
SETTLING_S = Assumption(
    name="Settling time after a change",
    value=90.0,
    unit="s",
    source="measured: fresh executors are slower for their first batches, Spark 4.3",
    influences="which batches tell of costs, and when a change is judged",
)
SETTLING_BATCHES = Assumption(
    name="Settling batches after a change",
    value=10,
    unit="batches",
    source="judgement: fewer tell no mean",
    influences="which batches tell of costs, and when a change is judged",
)
LEAST_CARRIED_RATIO = Assumption(
    name="Rate that one more size must carry, over the next smaller one",
    value=1.06,
    unit="-",
    source="judgement: tasks come in waves, and a node that adds no wave adds cost only",
    influences="sizes that a running query is changed to (A9)",
)
BUDGET_S = Assumption(
    name="Time over which the late budget counts",
    value=6.0 * 3600.0,
    unit="s",
    source="judgement: a shift",
    influences="the margin over the forecast (A6)",
)
BUDGET_RAMP_S = Assumption(
    name="Time in which the late budget comes into force",
    value=3600.0,
    unit="s",
    source="judgement: the first late batch must not count as a share of nothing",
    influences="the margin over the forecast (A6)",
)
MARGIN_SPREADS = Assumption(
    name="Margin over the forecast: none of the late budget used, and more for all of it",
    value=(0.4, 1.3),
    unit="-",
    source="judgement: from a rate exceeded in a third of the bins to one in twenty-five",
    influences="the rate that is prepared for (A6)",
)
MOST_BUDGET_USED = Assumption(
    name="Used share of the late budget from which the margin grows no more",
    value=1.2,
    unit="-",
    source="judgement: what is lost is lost; more nodes do not bring it back",
    influences="the rate that is prepared for (A6)",
)
BETWEEN_THRESHOLDS_SPREADS = Assumption(
    name="Distance of the two margins, of a size to keep and of one to go to",
    value=0.7,
    unit="-",
    source="judgement: one threshold for both changes size with every other bin of noise",
    influences="steps up of a running query (A9)",
)
BUDGET_OF_CHANGES_RATIO = Assumption(
    name="Share of the late budget that changes may use",
    value=0.5,
    unit="-",
    source="judgement: the other half is for what nobody foresees",
    influences="how long idle nodes are kept (A8)",
)
CATCH_UP_RATIO = Assumption(
    name="Load that a backlog is worked off at",
    value=0.85,
    unit="-",
    source="judgement: of the rate at which large batches are processed",
    influences="steps up of a query that is behind (A9)",
)
CATCH_UP_S = Assumption(
    name="Default time to work off a backlog",
    value=300.0,
    unit="s",
    source="judgement: as long as executors take to come, and four minutes",
    influences="steps up of a query that is behind (A9)",
)
LEAST_BEHIND_RATIO = Assumption(
    name="Backlog from which a query is behind, over a usual batch",
    value=1.0,
    unit="-",
    source="judgement: what waits beside the usual batch is a batch of its own",
    influences="steps up and down of a query that is behind (A9)",
)
LEAST_IDLE_S = Assumption(
    name="Minimum time before a step down",
    value=120.0,
    unit="s",
    source="judgement: as long as a step up takes, and two bins",
    influences="steps down of a running query (A8)",
)
LEAST_KEPT_S = Assumption(
    name="Minimum time from a change to the next step down",
    value=1800.0,
    unit="s",
    source="judgement: what is taken back within half an hour was not worth a change",
    influences="steps down of a running query (A8)",
)
MOST_STEP_DOWN_RATIO = Assumption(
    name="Maximum share of the executors that one step down removes",
    value=0.5,
    unit="-",
    source="judgement: what turns out wrong is then half wrong",
    influences="steps down of a running query",
)
CHANGES_PER_HOUR = Assumption(
    name="Default maximum number of changes an hour",
    value=6,
    unit="changes",
    source="judgement: more is a fault, of the rule or of the job",
    influences="steps of a query that is not behind",
)
LONGEST_OUTLOOK_S = Assumption(
    name="Longest time that a change counts on",
    value=6.0 * 3600.0,
    unit="s",
    source="judgement: a load of an hour lasts another; of a week, not another week",
    influences="changes of the trigger interval (A10)",
)
UP_LATE_S = Assumption(
    name="Prior for late arrivals of a step up",
    value=5.0,
    unit="s",
    source="judgement: until one was seen",
    influences="how long idle nodes are kept (A8)",
)
PROVISIONING_S = Assumption(
    name="Prior for the time until an executor is there, 90th percentile",
    value=60.0,
    unit="s",
    source="judgement: a pod on a node that is there; learned from the first on",
    influences="how far ahead the rate is foreseen",
)
RESTART_PAUSE_S = Assumption(
    name="Prior for the pause of a restart of the query",
    value=2.2,
    unit="s",
    source="measured, Spark 4.3: 0.7 s, and the first batch 0.1 to 1.5 s longer",
    influences="changes of trigger interval and rate limit (A7)",
)
REMOVAL_PAUSE_S = Assumption(
    name="Prior for the pause of a removal of executors",
    value=5.9,
    unit="s",
    source="measured, Spark 4.3: one batch of 6.6 s where 0.7 s are usual",
    influences="steps down of a running query (A7)",
)
APPLICATION_PAUSE_S = Assumption(
    name="Prior for the pause of a new application",
    value=60.0,
    unit="s",
    source="measured, Spark 4.3 with images there; then a young JVM",
    influences="changes that need a new application (A7)",
)
REPARTITION_PAUSE_S = Assumption(
    name="Prior for the pause of an offline repartition",
    value=10.0,
    unit="s",
    source="measured, Spark 4.3: 2.5 s, a clean stop, a batch and a restart",
    influences="changes of the partitions of state (A7)",
)
FIRST_BATCHES = Assumption(
    name="Slower batches after executors were added",
    value=2,
    unit="batches",
    source="measured, Spark 4.3: two or three",
    influences="late arrivals of a step up (A7)",
)
FIRST_BATCHES_RATIO = Assumption(
    name="Duration of the first batches after executors were added, over the usual one",
    value=2.0,
    unit="-",
    source="measured, Spark 4.3: 1.5 to 3 times",
    influences="late arrivals of a step up (A7)",
)
COSTS_REMEMBERED = Assumption(
    name="Changes of a kind that its cost is learned from",
    value=10,
    unit="changes",
    source="judgement: older ones were of another state and another cluster",
    influences="what a change is expected to cost (A7)",
)
COST_LEVEL_RATIO = Assumption(
    name="Level of the learned costs of a change that counts",
    value=0.9,
    unit="-",
    source="judgement: the upper end, as of durations",
    influences="what a change is expected to cost (A7)",
)
SPARE_EXECUTORS_RATIO = Assumption(
    name="Executors that policies may go to, over those of the highest rate of a trace",
    value=1.5,
    unit="-",
    source="judgement: room to work off a backlog at that rate",
    influences="headway simulate --policy without --executors",
)
TABLE_FACTORS = Assumption(
    name="Cost factors that sustained rates are known at",
    value=(0.25, 0.35, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 2.0, 2.3),
    unit="-",
    source="judgement: beyond, the profile is of another job",
    influences="sizes that a running query is changed to",
)
MOST_LOADED_RATIO = Assumption(
    name="Load at which a backlog is taken to be worked off at the latest",
    value=0.98,
    unit="-",
    source="judgement: at full load it never is, and a change would cost without bound",
    influences="what changes of busy queries are taken to make late (A7)",
)
SILENT_LIMITS = Assumption(
    name="Time without a batch, over the latency limit or the trigger interval",
    value=3.0,
    unit="-",
    source="judgement: longer than any batch that meets a target, shorter than an outage",
    influences="when a query that says nothing is taken to be behind",
)
MOST_LATE_LEARNED_S = Assumption(
    name="Maximum time of late arrivals that is learned of one change",
    value=3600.0,
    unit="s",
    source="judgement: later ones are of something else than the change",
    influences="what the next change of the kind is taken to make late (A7)",
)
BUDGET_BIN_S = Assumption(
    name="Bin of the late budget",
    value=300.0,
    unit="s",
    source="judgement: a seventieth of the shift that it counts over",
    influences="the margin over the forecast (A6)",
)
LARGE_BATCHES_S = Assumption(
    name="Time of arrivals in a batch that works off a backlog",
    value=4.0,
    unit="s",
    source="judgement: fixed times of a batch are a small part of one so large",
    influences="how soon a backlog is taken to be worked off (A7, A9)",
)
LEAST_NOISE_RATIO = Assumption(
    name="Minimum noise of batch durations that a drift is judged by",
    value=0.01,
    unit="-",
    source="judgement: no batches are more even, and even ones must not alarm at each millisecond",
    influences="when a drift of costs is reported (A5)",
)
