"""A streaming job against its lock: settings that change, and a profile that drifted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.formats.lock_file import Locked
from headway.gate.finding import drift, finding
from headway.gate.nouns import Finding, Level, Limits, Rule
from headway.units import format_rate, spark_trigger_text

if TYPE_CHECKING:
    from headway.api.specs import PlannedJob
    from headway.domain import Prediction
    from headway.sparkconf import Knob


def changes(
    planned: PlannedJob, now: Locked, then: Locked, predicted: Prediction | None, limits: Limits
) -> Iterator[Finding]:
    """What is not as it was locked, cost and latency aside.

    ``predicted`` is what the profile of today says of the locked setting.
    """
    if planned.plan.feasible:
        yield from _other_settings(planned, now, then)
    yield from _drifted(planned, then, predicted, limits)


def _other_settings(planned: PlannedJob, now: Locked, then: Locked) -> Iterator[Finding]:
    """Each setting that changes, and what it takes for the change to reach the query."""
    from headway.sparkconf import KNOBS, applies_when

    # A version that is not known pins as the oldest does.
    version = planned.spark_version if planned.spark_version[:1].isdigit() else "2.0"
    for name, knob in KNOBS.items():
        before, after = _locked_value(then, knob), _locked_value(now, knob)
        if before == after:
            continue
        applies = applies_when(
            knob, stateful=bool(planned.profile.shape.stateful_operators), spark_version=version
        )
        text = f"{knob.label} {_shown(name, before)} -> {_shown(name, after)}: {applies}"
        yield finding(planned, Rule.SETTINGS, Level.NOTE, planned.promise_key, text)


def _drifted(
    planned: PlannedJob, then: Locked, prediction: Prediction | None, limits: Limits
) -> Iterator[Finding]:
    """Whether the profile of today says something else of the setting that was locked."""
    if prediction is None or not then.batch_duration_s:
        return
    if prediction.batch_duration is None:
        state = "over capacity" if not prediction.stable else "too close to saturation to tell"
        text = (
            f"the locked setting is {state} at {format_rate(then.rate_per_s)} "
            "by the profile of today"
        )
        yield finding(planned, Rule.DRIFT, Level.ERROR, "profile", text)
        return
    found = drift(
        planned, then.batch_duration_s, prediction.batch_duration.mean_s, limits.drift_ratio,
        "batches of the locked setting take",
    )  # fmt: skip
    if found is not None:
        yield found


def _locked_value(locked: Locked, knob: Knob) -> object:
    """A setting of a lock: a field of its own, or what the Spark configuration says."""
    return getattr(locked, knob.setting, locked.spark_conf.get(knob.key))


def _shown(name: str, value: object) -> str:
    if value is None:
        return "none"
    return spark_trigger_text(float(str(value))) if name == "trigger_s" else str(value)
