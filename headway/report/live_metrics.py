"""Metrics of what runs beside queries: gate, tuner, recorder, shedding; docs/metrics.md has them.

A metric keeps its name, its labels and its unit: dashboards and alerts depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.domain import QueryReport, ScheduleReport
from headway.domain.recorded import ShedCount
from headway.domain.tuner import Phase
from headway.formats.open_metrics import Kind, Labels, Metric
from headway.profiler.recording.recorder import Recorder
from headway.tuner.tuner import Tuner

ABOUT: dict[str, tuple[Kind, str]] = {
    "headway_gate_open": ("gauge", "1 if every query goes by its own trigger, 0 in turns."),
    "headway_gate_queries": ("gauge", "Queries under the gate."),
    "headway_gate_policy": ("gauge", "1 for the policy in force."),
    "headway_gate_at_once": ("gauge", "Batches that may run at the same time."),
    "headway_gate_decisions": ("counter", "Decisions about turns."),
    "headway_gate_grants_ahead": ("counter", "Turns handed out by the order left in the JVM."),
    "headway_gate_memory_reliefs": ("counter", "Times that memory for state became short."),
    "headway_gate_decision_seconds": ("gauge", "Time that a waiting query waits for a decision."),
    "headway_gate_grants": ("counter", "Batches that a query was let begin."),
    "headway_gate_batches": ("counter", "Batches that a query has ended."),
    "headway_gate_rows": ("counter", "Rows that a query has read."),
    "headway_gate_wait_mean_seconds": ("gauge", "Mean wait for a turn."),
    "headway_gate_wait_max_seconds": ("gauge", "Longest wait for a turn."),
    "headway_gate_batch_seconds": ("gauge", "Mean batch duration, predicted and measured."),
    "headway_gate_windows": ("counter", "Windows that a query has emitted."),
    "headway_gate_windows_late": ("counter", "Windows emitted after their target."),
    "headway_gate_lease_ends": ("counter", "Batches that others no longer waited for."),
    "headway_tuner_phase": ("gauge", "1 for the phase of the tuner, 0 for the others."),
    "headway_tuner_changes": ("counter", "Changes that were begun."),
    "headway_tuner_executors": ("gauge", "Executors of the setting that runs."),
    "headway_tuner_executors_recommended": ("gauge", "Executors that the tuner would have now."),
    "headway_tuner_trigger_seconds": ("gauge", "Trigger interval of the setting that runs."),
    "headway_tuner_shuffle_partitions": ("gauge", "Shuffle partitions of that setting."),
    "headway_tuner_rate_limit_rows": ("gauge", "Rate limit of that setting, rows per batch."),
    "headway_tuner_busy_seconds": ("counter", "Processor time that the tuner has used."),
    "headway_tuner_warnings": ("gauge", "Warnings in force."),
    "headway_recorder_events": ("counter", "Events written to the recording."),
    "headway_recorder_lost_events": ("counter", "Events that are not in the recording."),
    "headway_recorder_passed_over_batches": ("counter", "Batches recorded without tasks."),
    "headway_recorder_ended": ("gauge", "1 if the recording ended by itself."),
    "headway_shedding_rows": ("counter", "Rows that the rule of shedding has judged."),
    "headway_shedding_shed_rows": ("counter", "Rows that were shed."),
}
"""Kind and meaning of each metric; the samples of a counter are called ``NAME_total``."""
_OF_QUERIES = {
    "headway_gate_grants": "num_grants",
    "headway_gate_batches": "num_batches",
    "headway_gate_rows": "num_rows",
    "headway_gate_wait_mean_seconds": "wait_mean_s",
    "headway_gate_wait_max_seconds": "wait_max_s",
    "headway_gate_windows": "num_windows",
    "headway_gate_windows_late": "num_windows_late",
    "headway_gate_lease_ends": "num_lease_ends",
}


def gate_metrics(report: ScheduleReport) -> Iterator[Metric]:
    """What a gate does, and for how long its queries wait."""
    queries: dict[str, QueryReport] = {}
    for query in report.queries:
        # One that joined again stands before what it was until it left.
        queries.setdefault(query.name, query)
    yield _single("headway_gate_open", float(report.opened_because is not None))
    yield _single("headway_gate_queries", report.num_queries)
    yield _metric("headway_gate_policy", [((("policy", str(report.policy)),), 1.0)])
    yield _single("headway_gate_at_once", report.at_once)
    yield _single("headway_gate_decisions", report.num_decisions)
    yield _single("headway_gate_grants_ahead", report.num_ahead)
    yield _single("headway_gate_memory_reliefs", report.num_reliefs)
    quantiles = (("0.5", report.decision_p50_s), ("0.99", report.decision_p99_s))
    samples = [((("quantile", name),), value_s) for name, value_s in quantiles]
    yield _metric("headway_gate_decision_seconds", samples)
    for name, field in _OF_QUERIES.items():
        values = {query.name: float(getattr(query, field)) for query in queries.values()}
        yield _metric(name, [((("query", query),), value) for query, value in values.items()])
    yield _metric(
        "headway_gate_batch_seconds",
        [
            ((("query", name), ("source", source)), mean_s)
            for name, query in queries.items()
            for source, mean_s in (
                ("predicted", query.predicted_duration_mean_s),
                ("measured", query.observed_duration_mean_s),
            )
            if mean_s is not None
        ],
    )


def tuner_metrics(tuner: Tuner) -> Iterator[Metric]:
    """What a tuner is doing, and the setting that runs."""
    status, change = tuner.status, tuner.recommendation
    setting = status.configuration
    query = ("query", status.query)
    yield _metric(
        "headway_tuner_phase",
        [((query, ("phase", str(phase))), float(phase is status.phase)) for phase in Phase],
    )
    recommended = setting if change is None else change.then
    values = {
        "headway_tuner_changes": status.num_changes,
        "headway_tuner_executors": setting.executors,
        "headway_tuner_executors_recommended": recommended.executors,
        "headway_tuner_trigger_seconds": setting.trigger_s,
        "headway_tuner_shuffle_partitions": setting.shuffle_partitions,
        "headway_tuner_rate_limit_rows": setting.max_offsets_per_trigger,
        "headway_tuner_busy_seconds": status.busy_s,
        "headway_tuner_warnings": len(status.cautions),
    }
    for name, value in values.items():
        if value is not None:
            yield _metric(name, [((query,), value)])


def recorder_metrics(recorder: Recorder) -> Iterator[Metric]:
    """Whether a recording is complete."""
    labels = (("file", recorder.path.name),)
    values = {
        "headway_recorder_events": recorder.num_events,
        "headway_recorder_lost_events": recorder.num_lost,
        "headway_recorder_passed_over_batches": recorder.num_passed_over,
        "headway_recorder_ended": recorder.ended_because is not None,
    }
    for name, value in values.items():
        yield _metric(name, [(labels, float(value))])


def shedding_metrics(counts: Iterable[ShedCount]) -> Iterator[Metric]:
    """Rows that were shed, by query and by the name of the rule."""
    samples = [((("query", count.query), ("rule", count.rule)), count) for count in counts]
    yield _metric("headway_shedding_rows", [(labels, count.num_rows) for labels, count in samples])
    yield _metric(
        "headway_shedding_shed_rows", [(labels, count.num_shed) for labels, count in samples]
    )


def _single(name: str, value: float) -> Metric:
    return _metric(name, [((), value)])


def _metric(name: str, samples: Iterable[tuple[Labels, float]]) -> Metric:
    kind, about = ABOUT[name]
    return Metric(name=name, kind=kind, about=about, samples=tuple(samples))
