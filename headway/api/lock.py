"""Plans written to a file, so that a later build can be compared with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.api.arguments import SPECS
from headway.api.specs import plan_spec
from headway.domain.kept_promise import KeptPromise
from headway.domain.later import later
from headway.domain.node_type import currency_of
from headway.errors import InfeasibleError, InputError
from headway.formats.lock_file import AnyLocked, Lock, Locked, LockedBatch
from headway.spec.spec_file import Planned, PlannedBatch, PlannedJob
from headway.version import __version__
from headway.words import missed_text


def lock(specs: str | Path | Sequence[str | Path]) -> Lock:
    """Plan jobs and lock the plans.

    Parameters
    ----------
    specs : path or sequence of paths
        Files of the kinds StreamingJob and BatchJob.

    Raises
    ------
    InputError
        If a file is invalid, no file is given, or two jobs have the same name.
    InfeasibleError
        If a target cannot be met: an infeasible plan is no baseline.
    """
    jobs: list[AnyLocked] = []
    missed_targets: list[str] = []
    for path in SPECS.read(specs, "specs"):
        planned = plan_spec(path)
        if not planned.plan.feasible:
            missed_targets.append(
                f"{planned.file.place(planned.promise_key)}: {planned.name}: infeasible: "
                f"{missed_text(planned.plan)}: {'; '.join(planned.plan.binding)}; a lock file "
                "contains only plans that meet their targets"
            )
        refuse_twice(planned, path, [job.name for job in jobs])
        jobs.append(locked_of(planned))
    if missed_targets:
        raise InfeasibleError("\n".join(missed_targets))
    return Lock(
        headway_version=__version__,
        jobs=tuple(job for job in jobs if not job.ends),
        batch_jobs=tuple(job for job in jobs if job.ends),
    )


def refuse_twice(planned: Planned, path: str | Path, names: Sequence[str]) -> None:
    """Refuse a job of the same name as an earlier one: a lock has one plan for a name.

    Raises InputError, which names its file.
    """
    if planned.name in names:
        raise InputError(
            f"{path}: the job {planned.name!r} is given twice; expected each job in one file"
        )


def locked_of(planned: Planned) -> AnyLocked:
    """The part of a plan that a lock contains."""
    return _locked_batch(planned) if planned.plan.ends else _locked_stream(planned)


def _locked_stream(planned: PlannedJob) -> Locked:
    plan = planned.plan
    setting, duration = plan.configuration, plan.prediction.batch_duration
    speed = 1.0 if plan.node_type is None else plan.node_type.core_speed_ratio
    return Locked(
        name=planned.name,
        file=Path(planned.file.path).as_posix(),
        targets=tuple(map(str, plan.promises)),
        promises=tuple(map(KeptPromise.of, plan.promises)),
        rate_per_s=plan.arrivals.rate_per_s,
        nodes=plan.nodes,
        cost_per_hour=plan.cost_per_hour,
        requests_cost_per_hour=None if plan.writes is None else plan.writes.bill_per_hour or None,
        currency=currency_of(plan.node_type) or None,
        planned_latency_s=plan.planned_latency_s if plan.feasible else None,
        batch_duration_s=None if duration is None else duration.mean_s,
        kept_probability=later(lambda: plan.kept_probability),
        verdict=later(lambda: None if plan.verdict is None else str(plan.verdict)),
        executors=setting.executors,
        cores_per_executor=setting.cores_per_executor,
        shuffle_partitions=setting.shuffle_partitions,
        trigger_s=setting.trigger_s,
        max_offsets_per_trigger=setting.max_offsets_per_trigger,
        spark_conf=dict(plan.spark_conf),
        query_options=dict(plan.query_options),
        phases_s=dict(plan.prediction.phases_s),
        core_speed_ratio=None if speed == 1.0 else speed,
        from_start=planned.file.spec.from_start or None,
    )


def _locked_batch(planned: PlannedBatch) -> LockedBatch:
    plan = planned.plan
    node_type = plan.node_type
    return LockedBatch(
        name=planned.name,
        file=Path(planned.file.path).as_posix(),
        targets=(str(plan.deadline),),
        promises=(KeptPromise.of(plan.deadline),),
        nodes=plan.nodes,
        cost_per_run=plan.run.cost_per_run,
        currency=currency_of(node_type) or None,
        planned_run_time_s=plan.run.planned_s if plan.feasible else None,
        run_time_s=plan.run.mean_s,
        kept_probability=plan.kept_probability,
        verdict=None if plan.verdict is None else str(plan.verdict),
        core_speed_ratio=1.0 if node_type is None else node_type.core_speed_ratio,
        backlog_rows=None if plan.backlog is None else plan.backlog.backlog_rows,
        executors=plan.executors,
        cores_per_executor=plan.cores_per_executor,
        spark_conf=dict(plan.spark_conf),
    )
