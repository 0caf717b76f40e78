"""A batch job against its lock: sizes that change, and a profile that drifted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.domain.configuration import task_slots
from headway.formats.lock_file import AnyLocked, LockedBatch
from headway.gate.finding import drift, finding
from headway.gate.nouns import Finding, Level, Limits, Rule

if TYPE_CHECKING:
    from headway.api.specs import PlannedBatch


def changes(
    planned: PlannedBatch, now: AnyLocked, then: LockedBatch, limits: Limits
) -> Iterator[Finding]:
    """What is not as it was locked, cost and run time aside."""
    from headway.planner.batch_run_time import expected_run_time_s
    from headway.sparkconf import KNOBS, task_cpus_of

    if planned.plan.feasible:
        for knob in KNOBS.values():
            before, after = then.spark_conf.get(knob.key), now.spark_conf.get(knob.key)
            if before != after:
                text = f"{knob.label} {before or 'none'} -> {after or 'none'}: {knob.applies}"
                yield finding(planned, Rule.SETTINGS, Level.NOTE, planned.promise_key, text)
    slots = task_slots(then.executors, then.cores_per_executor, task_cpus_of(then.spark_conf))
    now_s = expected_run_time_s(planned.profile, slots, then.core_speed_ratio)
    what = "a run of the locked size takes"
    found = drift(planned, then.run_time_s, now_s, limits.drift_ratio, what)
    if found is not None:
        yield found
