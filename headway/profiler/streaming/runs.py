"""Batches and stages of a query as Spark reported them -> its steady part as one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.assumptions.fits import FEW_ROWS_RATIO, FRESH_JVM_S
from headway.domain import QueryShape
from headway.lazy_classes import changed
from headway.models.estimation.regression import is_spread
from headway.models.estimation.warm_up import slow_start_length, warm_up_length
from headway.profiler import schema
from headway.profiler.contents import ApplicationFacts
from headway.profiler.offsets import num_source_partitions
from headway.profiler.plan_text import PlanShape
from headway.profiler.rows import Record
from headway.profiler.streaming import batch_samples, slots
from headway.profiler.streaming.adaptive import adaptive_settings, is_replanned
from headway.profiler.streaming.arrivals import arrivals_or_drain, rate_change
from headway.profiler.streaming.batch_samples import is_timed, jvm_age_s, known_rows
from headway.profiler.streaming.measured_runs import MeasuredRun
from headway.profiler.streaming.observations import empty_batches
from headway.profiler.streaming.samples import UNKNOWN_NAME, BatchSample, EarlyBatch, QueryRun
from headway.profiler.streaming.source_rules import source_facts
from headway.profiler.streaming.trigger import contradiction, read_trigger
from headway.sparkconf import reader_limit
from headway.units import format_duration

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def steady_part(
    measured: MeasuredRun,
    trigger_s: float | None = None,
    num_warm_up: Callable[[Sequence[BatchSample]], int] | None = None,
) -> tuple[QueryRun | None, list[str]]:
    """The steady part of a run, None if it is too short, and notes about both.

    ``trigger_s`` is stated by the user; else it is inferred from the log. ``num_warm_up`` counts
    the batches of the warm-up; by default by their durations (E1).
    """
    reports, stages, samples = measured.reports, measured.stages, measured.samples
    facts, plan, last = measured.facts, measured.plan, reports[-1]
    notes = list(measured.notes)
    has_changing_load = is_spread(np.array([float(sample.num_rows) for sample in samples]))
    if num_warm_up is None:
        durations_s = np.array([sample.duration_s for sample in samples])
        # A changing load is compared with a first fit later, and fewer rows are no growth.
        cut_length = warm_up_length if has_changing_load else slow_start_length
        num_cut = cut_length(durations_s)
    else:
        num_cut = num_warm_up(samples)
    if num_cut:
        notes.append(
            f"cut {num_cut} of {len(samples)} batches as warm-up "
            f"(the first {format_duration(samples[num_cut].started_s - samples[0].started_s)})"
        )
    steady = samples[num_cut:]
    observed = [report for report in reports if report["batch_id"] >= steady[0].batch_id]
    life = facts.queries.get(last["run_id"] or "")
    gated = _gated_triggers_s(steady, stages)
    read_s, why_trigger = _trigger_s(reports, trigger_s)
    idle_s = {} if gated or read_s is None else batch_samples.idle_times(reports, read_s)
    arrivals, drain = arrivals_or_drain(reports, observed, measured.intervals_s, idle_s, life)
    if drain is not None:
        notes.append(
            f"it read a backlog of {drain.backlog_rows:,.0f} rows in "
            f"{format_duration(drain.duration_s)} (Trigger.AvailableNow or Once): how fast it read "
            "is not the rate at which rows arrive, which is unknown; a deadline needs none"
        )
    rate_per_s = arrivals.rate_per_s
    if rate_per_s is None:
        notes.append("left out, the times of its batches give no rate")
        return None, measured.labelled(notes)
    if drain is None and (change := rate_change(arrivals)) is not None:
        notes.append(change)
    if gated:
        run_trigger_s = gated[-1] if trigger_s is None else trigger_s
        notes.append(
            f"{len(gated)} of {len(steady)} batches were started by a gate "
            f"(headway.schedule), not by its trigger of {format_duration(gated[-1])}: their "
            "durations are used, although fewer other batches ran at the same time than without "
            "the gate; their start times say nothing about the trigger"
        )
    else:
        run_trigger_s = read_s or 0.0
        notes += why_trigger
    # Not the last one, before which the clock may have been set back.
    latest_s = max(sample.started_s for sample in steady)
    pools = slots.executor_pools(facts.executors, latest_s, measured.where)
    ran = [stage for sample in steady for stage in stages[sample.batch_id]]
    configuration, resources, slot_notes = slots.setting_seen(
        facts.properties,
        pools,
        ran,
        facts.resource_profiles,
        shuffle_partitions=_shuffle_partitions(last, stages[steady[-1].batch_id]),
        trigger_s=run_trigger_s,
    )
    notes += slot_notes
    # The short name of its class, if the application chose one.
    store_class = facts.properties.get("spark.sql.streaming.stateStore.providerClass")
    state_store = store_class.rsplit(".", 1)[-1] if store_class else None
    has_first = known_rows(reports[0]) > 0 and measured.is_measured(reports[0])
    run = QueryRun(
        query_id=last["query_id"],
        query_name=last["query_name"],
        shape=_shape(last, plan),
        configuration=configuration,
        arrivals=arrivals,
        drain=drain,
        rate_per_s=rate_per_s,
        num_cut=len(reports) - len(steady),
        pinned_state_partitions=_state_partitions(last) or plan.state_partitions,
        source_partitions=sum(
            num_source_partitions(source.end) or 0 for source in batch_samples.source_samples(last)
        )
        or None,
        state_store=state_store if last["stateful_operators"] else None,
        mean_file=_mean_file(reports, facts),
        written_files=_mean_written(reports, facts),
        is_gated=2 * len(gated) > len(steady),
        adaptive=adaptive_settings(facts.properties, facts.spark_version, configuration.task_cpus)
        if plan.is_adaptive or is_replanned(steady)
        else None,
        resources=resources,
        source=source_facts(facts.properties, facts.application_id, configuration, observed),
        batches=tuple(
            changed(sample, idle_s=idle_s.get(sample.batch_id, 0.0)) for sample in steady
        ),
        empty=empty_batches(measured.all_reports, steady[0].started_s, run_trigger_s),
        early=tuple(_early(reports, steady[0].batch_id, measured.jvm_started_s)),
        without_rows=tuple(map(measured.sample_of, _without_rows(measured, steady))),
        first=measured.sample_of(reports[0]) if has_first else None,
        has_changing_load=has_changing_load,
        has_changelog=facts.properties.get(_CHANGELOG) == "true",
        executor_wait_s=measured.executor_wait_s,
        number_text=measured.number_text,
    )
    return run, measured.labelled(notes)


def _without_rows(measured: MeasuredRun, steady: Sequence[BatchSample]) -> Iterator[Record]:
    """Batches that ran their stages without rows, and a first batch with next to none.

    Not those of a fresh JVM, which loads classes, nor the first batch after a restart, which loads
    state.
    """
    few_rows = FEW_ROWS_RATIO.value * float(np.mean([sample.num_rows for sample in steady]))
    for report in measured.reports:
        is_first = report is measured.reports[0]
        most_rows = few_rows if is_first else 0.0
        restarts = is_first and report["batch_id"] > 0
        if (
            0 <= known_rows(report) <= most_rows
            and not restarts
            and measured.is_measured(report)
            and jvm_age_s(report["started_s"], measured.jvm_started_s) > FRESH_JVM_S.value
        ):
            yield report


def _early(reports: Sequence[Record], steady_id: int, jvm_started_s: float) -> Iterator[EarlyBatch]:
    """The batches before the steady part; none if the first of the log is not among them."""
    early_reports = [report for report in reports if report["batch_id"] < steady_id]
    if not early_reports or not (is_timed(early_reports[0]) and known_rows(early_reports[0]) > 0):
        return
    for report in early_reports:
        if is_timed(report) and known_rows(report) > 0:
            yield EarlyBatch(
                jvm_age_s=jvm_age_s(report["started_s"], jvm_started_s),
                duration_s=report["phases_s"]["triggerExecution"],
                num_rows=int(report["num_rows"]),
            )


def _gated_triggers_s(
    batches: Sequence[BatchSample], stages: Mapping[int, Sequence[Record]]
) -> list[float]:
    """For each batch started by a gate, the query's own trigger interval [s].

    The gate records it with the jobs of the batch.
    """
    marks = [
        next((mark for stage in stages[batch.batch_id] if (mark := stage["gated_trigger_s"])), None)
        for batch in batches
    ]
    return [mark for mark in marks if mark is not None]


def _trigger_s(reports: Sequence[Record], stated_s: float | None) -> tuple[float | None, list[str]]:
    """As stated, regardless of the log; else inferred from the starts of its batches. And notes.

    None if they do not tell.
    """
    # The interval is the same during warm-up, which adds more starts, and more after a pause.
    timed = [report for report in reports if is_timed(report)]
    started_s = np.array([report["started_s"] for report in timed])
    duration_s = np.array([report["phases_s"]["triggerExecution"] for report in timed])
    if stated_s is None:
        trigger_s, why_unknown = read_trigger(started_s, duration_s)
        if trigger_s is not None:
            return trigger_s, []
        why = (
            f"trigger interval unknown ({why_unknown}); taken as fast as possible; "
            "profile with the trigger stated"
        )
        return None, [why]
    against = contradiction(stated_s, started_s, duration_s)
    if against is None:
        return stated_s, []
    stated = format_duration(stated_s) if stated_s else "as fast as possible"
    why = f"the log contradicts the stated trigger ({stated}): {against}; taken as stated"
    return stated_s, [why]


def _mean_file(reports: Sequence[Record], facts: ApplicationFacts) -> tuple[float, float] | None:
    """Mean rows and bytes of a file, if the query has one file source and all of it is counted."""
    sources: Sequence[Any] = reports[-1]["sources"] or ()
    if len(sources) != 1 or not reader_limit(sources[0]["description"] or "").counts.of_files:
        return None
    num_rows, num_files, size_bytes = 0.0, 0, 0
    for report in reports:
        batch = schema.BatchOf(report["run_id"] or "", report["batch_id"])
        if batch in facts.files and known_rows(report) > 0:
            num_rows += known_rows(report)
            num_files += facts.files[batch][0]
            size_bytes += facts.files[batch][1]
    return (num_rows / num_files, size_bytes / num_files) if num_files else None


def _mean_written(reports: Sequence[Record], facts: ApplicationFacts) -> float | None:
    """Mean number of files that the actions of a batch wrote; None if the log shows no writer."""
    batches = (schema.BatchOf(report["run_id"] or "", report["batch_id"]) for report in reports)
    counts = [facts.written_files[batch] for batch in batches if batch in facts.written_files]
    return sum(counts) / len(counts) if counts else None


def _shuffle_partitions(report: Record, stages: Sequence[Record]) -> int:
    """Shuffle partitions of the state, fixed by the checkpoint; without state, of the session.

    If neither is recorded, the tasks of the last stage.
    """
    stated = _state_partitions(report)
    if not report["stateful_operators"]:
        stated = stages[-1]["shuffle_partitions"]
    return int(stated if stated and stated > 0 else stages[-1]["num_tasks"])


def _state_partitions(report: Record) -> int | None:
    stated = [operator["shuffle_partitions"] for operator in report["stateful_operators"] or ()]
    return next((int(number) for number in stated if number and number > 0), None)


def _shape(report: Record, plan: PlanShape) -> QueryShape:
    operators: Sequence[Any] = report["stateful_operators"] or ()
    return QueryShape(
        sources=tuple(source["description"] or UNKNOWN_NAME for source in report["sources"] or ()),
        sink=report["sink"] or UNKNOWN_NAME,
        output_mode=plan.output_mode,
        # Versions before 3.2 do not name them.
        stateful_operators=tuple(operator["name"] or UNKNOWN_NAME for operator in operators),
        state_rows=sum(max(operator["num_rows"] or 0, 0) for operator in operators),
        watermarked=bool(report["watermarked"]) or plan.watermark_delay_s is not None,
        watermark_delay_s=plan.watermark_delay_s,
        windows=plan.windows,
        chain=plan.chain,
        joins=plan.joins,
        python_operators=plan.python_operators,
        deals_out_buckets=plan.deals_out_buckets,
        checkpoint_store=plan.checkpoint_store,
    )
