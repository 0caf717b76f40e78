"""Changes of a running query: when a stop is safe, and how long to wait for each step."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

LEAST_GAP_S = seconds(
    name="Minimum time to the next trigger at which a query is stopped",
    value=0.5,
    source="judgement: a stop takes a tenth of it; by the status alone, 3 of 21 stops interrupted "
    "a batch",
    influences="clean stops of a running query, and which pauses count as idle",
)
LEAST_GAP_SHARE = Assumption(
    name="Minimum time to the next trigger for a stop, as a share of the trigger interval",
    value=0.2,
    source="judgement: the clocks of driver and tuner differ by less",
    influences="clean stops of a running query",
)
MOST_BATCHES_WITHOUT_GAP = batches(
    name="Batches without a gap after which a clean stop is given up",
    value=10,
    source="judgement: a query that overruns ten times in a row goes on to do so",
    influences="clean stops of a running query",
)
EXECUTORS_WITHIN_S = seconds(
    name="Maximum time to wait for requested executors",
    value=300.0,
    source="judgement: starting a node takes two or three minutes",
    influences="when adding executors counts as failed",
)
LEAVES_WITHIN_S = seconds(
    name="Maximum time for an executor to leave that Spark does not remove twice",
    value=10.0,
    source="measured, Spark 4.3: about a second; ten times that",
    influences="when removing executors counts as refused",
)
LOST_AFTER_S = seconds(
    name="Age of a heartbeat at which a tuner counts as gone",
    value=60.0,
    source="judgement: it is renewed every few seconds",
    influences="when another tuner may take over a state file",
)
BLOCKED_S = seconds(
    name="Time for which a change that was undone is not made again",
    value=86_400.0,
    source="judgement: a change that was wrong today may be right with another profile",
    influences="changes of a running query",
)
LEARNING_BATCHES = batches(
    name="Batches before the first change",
    value=10,
    source="judgement: as many as a change takes to settle",
    influences="changes of a running query",
)
OVERDUE_RATIO = Assumption(
    name="Maximum time that a change may take, over the expected time",
    value=3.0,
    source="judgement: a third as long again is noise, three times as long is a fault",
    influences="when a change is undone",
)
WATCHED_S = seconds(
    name="Time over which a watched latency is measured",
    value=300.0,
    source="judgement: enough batches for a p99, few enough to follow a change",
    influences="headway watch",
)
LOG_ENDED_S = seconds(
    name="Time without a new line after which a log counts as ended",
    value=600.0,
    source="judgement: an idle query reports every ten seconds",
    influences="whether headway watch reports a query as silent, and when a clock was set back",
)
TRIGGER_RATIOS = Assumption(
    name="Trigger intervals to choose from in tuning, over the profiled one",
    value=(0.5, 2.0),
    source="judgement: a setting that differs by a factor of four is better planned anew",
    influences="changes of the trigger interval",
)
IDLE_REPORTS_S = seconds(
    name="Time between two reports of an idle query",
    value=10.0,
    source="Spark's default (spark.sql.streaming.noDataProgressEventInterval)",
    influences="when headway watch reports a query as silent",
)
SILENT_RATIO = Assumption(
    name="Time without a batch from which a query is silent, over its limit or trigger interval",
    value=3.0,
    source="judgement: a batch that takes three times as long missed the target long before",
    influences="headway watch, and when a tuner is blind",
)
FOUND_DRIFT_RATIO = Assumption(
    name="Drift of durations whose detection delay is stated",
    value=1.2,
    source="judgement: a query that is a fifth slower is worth a new profile",
    influences="headway watch",
)
RETRY_AFTER_S = seconds(
    name="Time for which a change that failed without harm is not made again",
    value=600.0,
    source="judgement: by then, the cause (a full cluster or a batch) has gone",
    influences="changes of a running query",
)
SHORTEST_CHANGE_S = seconds(
    name="Minimum time that is allowed for a change",
    value=60.0,
    source="judgement: a session starts in less, and so does a pod on a running node",
    influences="when a change is undone",
)
MOST_STARTS = Assumption(
    name="Maximum starts at a setting during whose change the tuner died",
    value=2,
    unit="starts",
    source="judgement: one failure may be due to the machine, two are due to the setting",
    influences="the setting with which a query starts after a crash",
)
SILENT_STOP_S = seconds(
    name="Time without a report of a query after which a clean stop is given up",
    value=60.0,
    source="judgement: an idle query reports every ten seconds",
    influences="clean stops of a running query",
)
DRAINED_WITHIN_S = seconds(
    name="Maximum time for an interrupted batch to run again before a repartitioning",
    value=600.0,
    source="judgement: longer than a batch of any query that meets a target",
    influences="repartitioning of a checkpoint",
)
STOPS_WITHIN_S = seconds(
    name="Maximum time for a query to stop if Spark sets no limit",
    value=60.0,
    source="judgement: some stops hang forever; none that ends takes a minute (Spark 4.3)",
    influences="spark.sql.streaming.stopTimeout of tuned queries",
)
ANSWERED_WITHIN_S = seconds(
    name="Maximum time for a supervised application to answer, plus two trigger intervals",
    value=60.0,
    source="judgement: twice the time that a session takes to start on a busy machine",
    influences="when a change of a supervised application counts as failed",
)
ENDS_WITHIN_S = seconds(
    name="Maximum time for a supervised application to end on its own",
    value=120.0,
    source="judgement: twice Spark's own limit of a minute",
    influences="when a supervised application is killed",
)
ALIVE_WITHIN_S = seconds(
    name="Age of the sign of life at which a supervised application counts as gone",
    value=5.0,
    source="judgement: it is renewed four times a second",
    influences="whether another tuner takes over an application that was left running",
)
WATCHED_SIZES_RATIO = Assumption(
    name="Maximum executors assumed for a watched query, over those that it has",
    value=2,
    source="judgement: a query that needs more than twice as many is planned anew",
    influences="what headway watch recommends if no bounds are given",
)
REVERSAL_S = seconds(
    name="Time within which a step back counts as a reversal",
    value=1800.0,
    source="judgement: a change that is undone within half an hour should not have been made",
    influences="figures of headway simulate --policy",
)
MOST_POLICY_EXECUTORS = Assumption(
    name="Maximum executors of simulated policies",
    value=64,
    unit="executors",
    source="judgement: a table of more sizes takes too long to compute",
    influences="headway simulate --policy without --executors",
)
USUAL_CPU_TARGET_RATIO = Assumption(
    name="CPU utilisation at which simulated autoscalers aim",
    value=0.6,
    source="the example of Flink's Kubernetes operator; usual for pods",
    influences="headway simulate --policy hpa and flink without a stated utilisation",
)
