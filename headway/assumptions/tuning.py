"""A running query is changed: when a stop is safe, and how long to wait for what was asked."""

from __future__ import annotations

from headway.assumptions import Assumption

LEAST_GAP_S = Assumption(
    name="Minimum time to the next trigger at which a query is stopped",
    value=0.5,
    unit="s",
    source="judgement: a stop takes a tenth of it; by the status alone 3 of 21 stops cut a batch",
    influences="clean stops of a running query",
)
LEAST_GAP_SHARE = Assumption(
    name="The same as a share of the trigger interval",
    value=0.2,
    unit="-",
    source="judgement: clocks of driver and tuner differ by less",
    influences="clean stops of a running query",
)
MOST_BATCHES_WITHOUT_GAP = Assumption(
    name="Batches without a gap after which a clean stop is given up",
    value=10,
    unit="batches",
    source="judgement: a query that overruns ten times in a row does so for longer",
    influences="clean stops of a running query",
)
EXECUTORS_WITHIN_S = Assumption(
    name="Maximum time to wait for executors that were asked for",
    value=300.0,
    unit="s",
    source="judgement: a node that has to be started takes two or three minutes",
    influences="when adding executors has failed",
)
LOST_AFTER_S = Assumption(
    name="Age of a heartbeat at which a tuner counts as gone",
    value=60.0,
    unit="s",
    source="judgement: it is renewed every few seconds",
    influences="when another tuner may take over a state file",
)
BLOCKED_S = Assumption(
    name="Time for which a change that was taken back is not made again",
    value=86_400.0,
    unit="s",
    source="judgement: what was wrong today may be right after another profile",
    influences="changes of a running query",
)
LEARNING_BATCHES = Assumption(
    name="Batches before the first change",
    value=10,
    unit="batches",
    source="judgement: as many as a change settles in",
    influences="changes of a running query",
)
OVERDUE_RATIO = Assumption(
    name="Time that a change may take, over what was expected",
    value=3.0,
    unit="-",
    source="judgement: a third as long again is noise, three times as long is a fault",
    influences="when a change is taken back",
)
WATCHED_S = Assumption(
    name="Time over which a watched latency is measured",
    value=300.0,
    unit="s",
    source="judgement: enough batches for a p99, few enough to follow a change",
    influences="headway watch",
)
LOG_ENDED_S = Assumption(
    name="Time without a line after which a log counts as ended",
    value=600.0,
    unit="s",
    source="judgement: an idle query reports every ten seconds",
    influences="whether headway watch calls a query silent",
)
TRIGGER_RATIOS = Assumption(
    name="Trigger intervals to choose from, over the profiled one",
    value=(0.5, 2.0),
    unit="-",
    source="judgement: a setting that is four times off is better planned anew",
    influences="changes of the trigger interval",
)
SILENT_RATIO = Assumption(
    name="Time without a batch at which a query is silent, over its limit or trigger interval",
    value=3.0,
    unit="-",
    source="judgement: a batch of three times that has missed the target long before",
    influences="headway watch, and when a tuner is blind",
)
FOUND_DRIFT_RATIO = Assumption(
    name="Drift of durations whose detection delay is stated",
    value=1.2,
    unit="-",
    source="judgement: a fifth slower is worth a new profile",
    influences="headway watch",
)
RETRY_AFTER_S = Assumption(
    name="Time for which a change that could not be made, and did no harm, is not made again",
    value=600.0,
    unit="s",
    source="judgement: what refused it, a cluster without room or a batch, has ended by then",
    influences="changes of a running query",
)
SHORTEST_CHANGE_S = Assumption(
    name="Minimum time that a change is given",
    value=60.0,
    unit="s",
    source="judgement: a session starts in less, and a pod on a node that is there",
    influences="when a change is taken back",
)
MOST_STARTS = Assumption(
    name="Starts at a setting in whose change the tuner died",
    value=2,
    unit="starts",
    source="judgement: once is the machine, twice is the setting",
    influences="the setting that a query is started at after a crash",
)
SILENT_STOP_S = Assumption(
    name="Time without any news of a query after which a clean stop is given up",
    value=60.0,
    unit="s",
    source="judgement: an idle query reports every ten seconds",
    influences="clean stops of a running query",
)
DRAINED_WITHIN_S = Assumption(
    name="Maximum time for a batch that was cut to run again before a repartitioning",
    value=600.0,
    unit="s",
    source="judgement: longer than a batch of any query that meets a target",
    influences="repartitioning of a checkpoint",
)
STOPS_WITHIN_S = Assumption(
    name="Maximum time for a query to stop, where Spark has no limit",
    value=60.0,
    unit="s",
    source="judgement: some stops hang for ever, none that ends takes a minute (Spark 4.3)",
    influences="spark.sql.streaming.stopTimeout of tuned queries",
)
ANSWERED_WITHIN_S = Assumption(
    name="Maximum time for a supervised application to answer, beside two trigger intervals",
    value=60.0,
    unit="s",
    source="judgement: as long as a session takes to start on a busy machine, and again as long",
    influences="when a change of a supervised application has failed",
)
ENDS_WITHIN_S = Assumption(
    name="Maximum time for a supervised application to end by itself",
    value=120.0,
    unit="s",
    source="judgement: two of Spark's own limits of a minute",
    influences="when a supervised application is killed",
)
ALIVE_WITHIN_S = Assumption(
    name="Age of the sign of life at which a supervised application counts as gone",
    value=5.0,
    unit="s",
    source="judgement: it is renewed four times a second",
    influences="whether another tuner takes over an application that was left behind",
)
WATCHED_SIZES_RATIO = Assumption(
    name="Executors that a watched query is taken to be allowed, over those it has",
    value=2,
    unit="-",
    source="judgement: a query that needs more than twice as many is planned anew",
    influences="what headway watch recommends without bounds",
)
REVERSAL_S = Assumption(
    name="Time within which a step back counts as a reversal",
    value=1800.0,
    unit="s",
    source="judgement: what is taken back within half an hour should not have been done",
    influences="figures of headway simulate --policy",
)
MOST_POLICY_EXECUTORS = Assumption(
    name="Maximum executors that policies may go to",
    value=64,
    unit="executors",
    source="judgement: a table of more sizes takes longer than a person waits",
    influences="headway simulate --policy without --executors",
)
USUAL_CPU_TARGET_RATIO = Assumption(
    name="CPU utilisation that autoscalers are simulated with",
    value=0.6,
    unit="-",
    source="the example of Flink's Kubernetes operator; usual for pods",
    influences="headway simulate --policy hpa and flink without a figure",
)
