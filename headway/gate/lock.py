"""Locks: plans written down, so that a later build can be held against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headway.domain.kept_promise import KeptPromise
from headway.errors import InfeasibleError, InputError
from headway.gate.nouns import LOCK_SCHEMA, AnyLocked, Lock, Locked, LockedBatch
from headway.version import __version__

if TYPE_CHECKING:
    from headway.api.specs import Planned, PlannedBatch

_EXPECTED = "a lock as 'headway lock' writes it"
_HEADING = (
    "# What was planned, to hold later plans against:  headway check SPEC --baseline FILE\n"
    "# Written by 'headway lock'; commit it beside the specs.\n"
)


def lock(specs: Sequence[str | Path]) -> Lock:
    """Plan jobs and lock what comes out.

    Parameters
    ----------
    specs : sequence of paths
        Files of the kinds StreamingJob and BatchJob.

    Raises
    ------
    InputError
        If a file is not what it should be, or two jobs have one name.
    InfeasibleError
        If a target cannot be met: what is infeasible is no baseline.
    """
    from headway.api.specs import plan_spec

    jobs: list[AnyLocked] = []
    missed: list[str] = []
    for path in specs:
        planned = plan_spec(path)
        if not planned.plan.feasible:
            missed.append(
                f"{planned.file.place(planned.promise_key)}: {planned.name}: not feasible, "
                f"{'; '.join(planned.plan.binding)}; a lock holds plans that keep their targets"
            )
        if any(job.name == planned.name for job in jobs):
            raise InputError(f"{path}: the job {planned.name!r} is there twice; expected one file")
        jobs.append(locked_of(planned))
    if missed:
        raise InfeasibleError("\n".join(missed))
    return Lock(
        headway_version=__version__,
        jobs=tuple(job for job in jobs if isinstance(job, Locked)),
        batch_jobs=tuple(job for job in jobs if isinstance(job, LockedBatch)),
    )


def locked_of(planned: Planned) -> AnyLocked:
    """What a lock keeps of a plan."""
    from headway.api.specs import PlannedBatch

    if isinstance(planned, PlannedBatch):
        return _locked_batch(planned)
    plan = planned.plan
    setting, duration = plan.configuration, plan.prediction.batch_duration
    return Locked(
        name=planned.name,
        file=Path(planned.file.path).as_posix(),
        targets=tuple(map(str, (plan.target, *plan.also))),
        promises=tuple(map(KeptPromise.of, (plan.target, *plan.also))),
        rate_per_s=plan.arrivals.rate_per_s,
        nodes=plan.nodes,
        cost_per_hour=plan.cost_per_hour,
        planned_latency_s=plan.planned_latency_s if plan.feasible else None,
        batch_duration_s=None if duration is None else duration.mean_s,
        executors=setting.executors,
        cores_per_executor=setting.cores_per_executor,
        shuffle_partitions=setting.shuffle_partitions,
        trigger_s=setting.trigger_s,
        max_offsets_per_trigger=setting.max_offsets_per_trigger,
        spark_conf=dict(plan.spark_conf),
        query_options=dict(plan.query_options),
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
        planned_run_time_s=plan.run.planned_s if plan.feasible else None,
        run_time_s=plan.run.mean_s,
        core_speed_ratio=1.0 if node_type is None else node_type.relative_core_speed,
        executors=plan.executors,
        cores_per_executor=plan.cores_per_executor,
        spark_conf=dict(plan.spark_conf),
    )


def save_lock(found: Lock, path: str | Path) -> None:
    """Write a lock in one step: whoever reads sees the old one or the whole new one.

    Raises
    ------
    HeadwayError
        If the file cannot be written.
    """
    from headway.formats.text_file import write_text
    from headway.formats.yaml_text import yaml_text

    write_text(path, _HEADING + yaml_text(found), what="the lock")


def load_lock(path: str | Path) -> Lock:
    """Read a lock.

    Raises
    ------
    InputError
        If it cannot be read, is no lock, or not one of this version; every fault with its place.

    Examples
    --------
    >>> load_lock("no/such.lock")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.lock: no such file; expected a lock as 'headway lock'...
    """
    from headway.formats.validation import validate
    from headway.formats.yaml_document import parse_document, read_text, shown

    text = read_text(Path(path), expected=_EXPECTED)
    document = parse_document(text, name=str(path))
    schema = document.root.get("schema") if isinstance(document.root, dict) else None
    if schema != LOCK_SCHEMA:
        raise InputError(
            f"{path}:1:1: schema: got {shown(schema)}; expected {LOCK_SCHEMA}: "
            "write it anew with 'headway lock'"
        )
    return validate(document, Lock)
