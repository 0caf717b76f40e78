"""Batches and stages of a query as Spark reported them -> measurements of all batches of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headway.assumptions.fits import LEAST_BATCHES
from headway.domain.configuration import task_slots
from headway.lazy_classes import dataclass
from headway.profiler import schema
from headway.profiler.contents import ApplicationFacts
from headway.profiler.plan_text import PlanShape
from headway.profiler.recorded_queries import query_label
from headway.profiler.rows import Record
from headway.profiler.streaming import batch_samples, rows_at_source, slots
from headway.profiler.streaming.batch_samples import is_timed, is_usable, known_rows
from headway.profiler.streaming.samples import BatchSample
from headway.profiler.streaming.stage_kinds import StageKind
from headway.sparkconf import task_cpus_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run of a query from its first batch on, with notes on what is wrong with its log.

    ``reports`` are its progress, one per batch, with rows counted once; ``samples`` are the batches
    that can be used. ``where`` names log and query, ``number_text`` says which run of the query it
    is, if the log has several.
    """

    facts: ApplicationFacts
    plan: PlanShape
    label: str
    number_text: str
    where: str
    jvm_started_s: float
    all_reports: Sequence[Record]
    reports: Sequence[Record]
    stages: Mapping[int, Sequence[Record]]
    intervals_s: Mapping[int, float]
    levels: Mapping[StageKind, int]
    samples: Sequence[BatchSample]
    notes: Sequence[str]

    @property
    def executor_wait_s(self) -> float:
        """From the start of the application until its first executor was there [s]."""
        return max(self.jvm_started_s - (self.facts.started_s or self.jvm_started_s), 0.0)

    def is_measured(self, report: Record) -> bool:
        """Whether a batch, used or not, has its times and stages."""
        return is_measured(report, self.stages)

    def sample_of(self, report: Record) -> BatchSample:
        """Measurements of a batch that is not among the samples."""
        of_batch = self.stages[report["batch_id"]]
        return batch_samples.batch_sample(report, of_batch, self.jvm_started_s, None, self.levels)

    def labelled(self, notes: Sequence[str]) -> list[str]:
        """Notes that say which query they are about."""
        return [f"{self.label}: {note}" for note in notes]


def measured_run(
    all_reports: Sequence[Record],
    stage_runs: Sequence[Record],
    facts: ApplicationFacts,
    plan: PlanShape,
    log_name: str,
    number_text: str = "",
) -> MeasuredRun | str:
    """Measurements of one run of a query, or the reason why too few of its batches can be used.

    ``all_reports`` are its progress, ``stage_runs`` the stages of its batches. EventLogError if no
    executor is recorded.
    """
    reports = batch_samples.one_per_batch(all_reports)
    label = f"query {query_label(reports[-1]['query_id'], reports[-1]['query_name'])}{number_text}"
    where = f"{log_name}: {label}"
    jvm_started_s = slots.first_executor_s(facts.executors, where) or reports[0]["started_s"]
    notes = []
    stages: Mapping[int, Sequence[Record]] = batch_samples.stages_by_batch(stage_runs)
    if not stage_runs and facts.num_lines(schema.RECORDER_START) > 0:
        pools = slots.executor_pools(facts.executors, np.inf, where)
        num_executors, cores = slots.pool_for(pools, slots.USUAL_PROFILE)
        num_slots = task_slots(num_executors, cores, min(task_cpus_of(facts.properties), cores))
        stages = {
            report["batch_id"]: [batch_samples.whole_batch(report, num_slots)] for report in reports
        }
        notes.append(
            "no tasks were recorded, only progress: the cost with other cores or "
            "partitions is unknown; record a classic session, or an event log"
        )
    reports = rows_at_source.each_source_once(reports)
    num_times = rows_at_source.times_read(reports, stages)
    if num_times > 1:
        reports = [rows_at_source.counted_once(report, num_times) for report in reports]
        notes.append(
            f"each batch reads its rows {num_times} times, and Spark counts them each "
            "time; rates and rows are those at the source, each counted once"
        )
    else:
        notes += rows_at_source.contradictions(reports)
        notes += rows_at_source.filter_notes(reports, stages, plan)
    # The first batch has no interval in which its rows arrived, and includes planning and class
    # loading.
    filled = [report for report in reports[1:] if known_rows(report) != 0]
    usable = [report for report in filled if known_rows(report) > 0 and is_measured(report, stages)]
    if len(usable) < LEAST_BATCHES.value:
        return (
            f"{label}: left out, {len(usable)} of {len(reports)} batches usable (with "
            f"rows, durations and most of their tasks), at least {LEAST_BATCHES.value} needed"
        )
    if len(usable) < len(filled):
        notes.append(
            f"{len(filled) - len(usable)} of {len(filled)} batches left out: stages "
            "failed, too many tasks are missing, or numbers make no sense"
        )
    intervals_s = batch_samples.intervals_between(reports)
    levels = batch_samples.levels_of_batches(stages[report["batch_id"]] for report in usable)
    samples = [
        batch_samples.batch_sample(
            report,
            stages[report["batch_id"]],
            jvm_started_s,
            intervals_s.get(report["batch_id"]),
            levels,
        )
        for report in usable
    ]
    return MeasuredRun(
        facts=facts,
        plan=plan,
        label=label,
        number_text=number_text,
        where=where,
        jvm_started_s=jvm_started_s,
        all_reports=all_reports,
        reports=reports,
        stages=stages,
        intervals_s=intervals_s,
        levels=levels,
        samples=list(map(batch_samples.unpacked, samples)) if plan.packs_rows else samples,
        notes=notes,
    )


def is_measured(report: Record, stages: Mapping[int, Sequence[Record]]) -> bool:
    """Whether the times of a batch are complete, and its stages recorded."""
    return is_timed(report) and is_usable(stages.get(report["batch_id"], ()))
