"""Predictions and plans as JSON for other programs.

The keys are a contract: keys may be added, but none is renamed or removed within a schema version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headway.domain import (
    AnyPromise,
    Arrivals,
    Interval,
    LatencyDistribution,
    Prediction,
    StreamAnswer,
    Target,
)
from headway.domain.kept_promise import KeptPromise
from headway.words import all_words

if TYPE_CHECKING:
    from headway.domain import AnyAnswer, BatchAnswer

PREDICTION_SCHEMA = "headway.prediction/v1"
PLAN_SCHEMA = "headway.plan/v1"
DEADLINE_SCHEMA = "headway.deadline-plan/v1"
# What only plans have, or only infeasible ones: every file has it all, empty where absent.
_OWN_PARTS: Mapping[str, object] = {
    "rejected": (), "rules": (), "after_start": None,
    "floor_s": None, "physical_floor_s": None, "nearest": (), "needs": (),
}  # fmt: skip


def prediction_json(prediction: Prediction) -> dict[str, object]:
    """A prediction as data for :func:`json_text`.

    Numbers have six significant digits. The latencies are None if the setting is not stable, or too
    close to saturation to predict them, which ``findings`` then say; so is every single number that
    is unbounded, for instance the upper end of an interval.
    """
    quotable = prediction.is_quotable
    return {
        "schema": PREDICTION_SCHEMA,
        "stable": prediction.stable,
        "utilization": _number(prediction.utilization_ratio),
        "offered_load": fields_json(prediction.offered_load_ratio),
        "overrun_probability": _number(prediction.overrun_probability),
        "gain_ratio": fields_json(prediction.gain_ratio),
        "calibrated": prediction.calibrated,
        "provenance": str(prediction.provenance),
        "warnings": list(all_words(prediction.findings)),
        "findings": fields_json(prediction.findings),
        "arrivals": _arrivals(prediction.arrivals),
        "sustainable_rate_per_s": _number(prediction.sustainable_rate_per_s),
        "batch_duration_s": latency_json(prediction.batch_duration if quotable else None),
        "tuple_latency_s": latency_json(prediction.tuple_latency if quotable else None),
        "window_latency_s": latency_json(prediction.window_latency if quotable else None),
        "phases_s": {name: _number(value_s) for name, value_s in prediction.phases_s.items()},
        "stage_work": dict(prediction.stage_work),
        "configuration": fields_json(prediction.configuration),
        "next_run": fields_json(prediction.next_run),
    }


def plan_json(plan: AnyAnswer) -> dict[str, object]:
    """A plan of any job as data for :func:`json_text`."""
    return deadline_json(plan) if plan.ends else stream_json(plan)


def stream_json(plan: StreamAnswer) -> dict[str, object]:
    """A plan with its prediction as data for :func:`json_text`.

    Numbers are rounded as in a prediction, except for requested ones: targets, rate, confidence.
    """
    plan_fields = {field.name: fields_json(getattr(plan, field.name)) for field in fields(plan)}
    absent = {name: fields_json(value) for name, value in _OWN_PARTS.items()}
    return {
        "schema": PLAN_SCHEMA,
        "feasible": plan.feasible,
        **absent,
        **plan_fields,
        "target": _target(plan.target),
        "rate_per_s": plan.rate_per_s,
        "arrivals": _arrivals(plan.arrivals),
        "warnings": list(all_words(plan.findings)),
        "prediction": prediction_json(plan.prediction),
        "confidence": plan.confidence,
        "also": [str(promise) for promise in plan.also],
        "promises": promises_json(plan.promises),
        "verdict": fields_json(plan.verdict),
    }


def deadline_json(plan: BatchAnswer) -> dict[str, object]:
    """A plan as data for :func:`json_text`."""
    plan_fields = fields_json(plan)
    assert isinstance(plan_fields, dict)
    return {
        "schema": DEADLINE_SCHEMA,
        "target": str(plan.deadline),
        "feasible": plan.feasible,
        "promises": promises_json(plan.promises),
        **plan_fields,
        "verdict": fields_json(plan.verdict),
        "warnings": list(all_words(plan.findings)),
    }


def fields_json(value: object) -> object:
    """Nouns of a plan as data: fields by their names or keys, numbers as in a prediction.

    Examples
    --------
    >>> from headway.domain import NearestTarget
    >>> fields_json((NearestTarget(gives_way="rate", text="20k/s"),))
    [{'gives_way': 'rate', 'text': '20k/s', 'numbers': {}}]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.metadata.get("key", field.name): _field_json(field, getattr(value, field.name))
            for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): fields_json(member) for key, member in value.items()}
    if isinstance(value, tuple | list):
        return [fields_json(element) for element in value]
    if isinstance(value, StrEnum):
        return str(value)
    return _number(value) if isinstance(value, float) else value


def _field_json(field: Field[Any], value: object) -> object:
    """The value of a field: rounded, unless it was requested and not computed."""
    is_exact = field.metadata.get("exact") and isinstance(value, float) and math.isfinite(value)
    return value if is_exact else fields_json(value)


def promises_json(promises: Iterable[AnyPromise]) -> object:
    """Targets as data: exact numbers, and words for people.

    Examples
    --------
    >>> from headway.domain import Deadline
    >>> promises_json([Deadline(limit_s=600.0)])[0]["text"]
    'deadline <= 10 min'
    """
    return fields_json([KeptPromise.of(promise) for promise in promises])


def json_text(obj: object) -> str:
    """JSON for files and pipes, without an end of line.

    Raises
    ------
    ValueError
        If a number is infinite or not a number, which JSON cannot represent.

    Examples
    --------
    >>> print(json_text({"nodes": 2}))
    {
      "nodes": 2
    }
    """
    return json.dumps(obj, indent=2, allow_nan=False, ensure_ascii=False)


def _number(value: float) -> float | None:
    # Not a number is a fault of ours: it passes here and is refused by json_text.
    return None if math.isinf(value) else float(f"{value:.6g}")


def _target(target: Target) -> dict[str, object]:
    return {
        "text": str(target),
        "metric": str(target.metric),
        "quantile": target.quantile,
        "limit_s": target.limit_s,
    }


def _arrivals(arrivals: Arrivals) -> dict[str, object]:
    return {"rate_per_s": arrivals.rate_per_s, "dispersion_ratio": arrivals.dispersion_ratio}


def latency_json(distribution: LatencyDistribution | None) -> dict[str, object] | None:
    """A predicted latency with the intervals of the statistics that targets use most."""
    if distribution is None:
        return None
    return measured_json(distribution) | {
        "interval90": {
            "mean": _interval(distribution.interval90_mean_s),
            "p99": _interval(distribution.interval90_p99_s),
        }
    }


def measured_json(distribution: LatencyDistribution) -> dict[str, object]:
    """A measured value, as data for :func:`json_text`; numbers as in a prediction."""
    return {name: _number(value_s) for name, value_s in distribution.statistics_s.items()}


def _interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_number(interval.low), _number(interval.high)]
