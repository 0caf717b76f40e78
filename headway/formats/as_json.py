"""Predictions and plans as JSON for other programs.

The keys are a contract: keys may be added, but none is renamed or removed within a schema version.
Keys that mean the same are the same for each kind of job; ``trigger_s`` is also the batch interval
of DStreams and the batch length of Real-Time Mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headway.domain import AnyPromise, Prediction, StreamAnswer
from headway.domain.kept_promise import KeptPromise
from headway.formats.codec import EXACT, data_of
from headway.words import all_words

if TYPE_CHECKING:
    from headway.domain import AnyAnswer, BatchAnswer
    from headway.domain.dstreams import DStreamsPlan, DStreamsPrediction
    from headway.domain.real_time import RealTimePlan, RealTimePrediction

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
    if not prediction.is_quotable:
        prediction = replace(
            prediction, batch_duration=None, tuple_latency=None, window_latency=None
        )
    return {"schema": PREDICTION_SCHEMA, **data_of(prediction)}


def plan_json(plan: AnyAnswer) -> dict[str, object]:
    """A plan of any job as data for :func:`json_text`."""
    return deadline_json(plan) if plan.ends else stream_json(plan)


def stream_json(plan: StreamAnswer) -> dict[str, object]:
    """A plan with its prediction as data for :func:`json_text`.

    Numbers are rounded as in a prediction, except for requested ones: targets, rate, confidence.
    """
    return {
        "schema": PLAN_SCHEMA,
        "feasible": plan.feasible,
        **data_of(_OWN_PARTS),
        **data_of(plan),
        "target": {"text": str(plan.target), **data_of(plan.target, EXACT)},
        "rate_per_s": plan.rate_per_s,
        "warnings": list(all_words(plan.findings)),
        "prediction": prediction_json(plan.prediction),
        "also": [str(promise) for promise in plan.also],
        "promises": promises_json(plan.promises),
        "bill_per_hour": data_of(plan.cost),
        "verdict": data_of(plan.verdict),
    }


def deadline_json(plan: BatchAnswer) -> dict[str, object]:
    """A plan as data for :func:`json_text`."""
    return {
        "schema": DEADLINE_SCHEMA,
        "target": str(plan.deadline),
        "feasible": plan.feasible,
        "promises": promises_json(plan.promises),
        **data_of(plan),
        "verdict": data_of(plan.verdict),
        "warnings": list(all_words(plan.findings)),
    }


def dstreams_prediction_json(prediction: DStreamsPrediction) -> dict[str, object]:
    """A prediction as data for :func:`json_text`."""
    return {"schema": "headway.dstreams-prediction/v1", **data_of(prediction)}


def dstreams_plan_json(plan: DStreamsPlan) -> dict[str, object]:
    """A plan with its prediction as data for :func:`json_text`."""
    return {
        "schema": "headway.dstreams-plan/v1",
        "feasible": plan.feasible,
        "target": str(plan.target),
        "promises": promises_json(plan.promises),
        **data_of(plan),
        "prediction": dstreams_prediction_json(plan.expected),
    }


def real_time_prediction_json(prediction: RealTimePrediction) -> dict[str, object]:
    """A prediction as data for :func:`json_text`."""
    return {"schema": "headway.real-time-prediction/v1", "mode": "real-time", **data_of(prediction)}


def real_time_plan_json(plan: RealTimePlan) -> dict[str, object]:
    """A plan with its prediction as data for :func:`json_text`."""
    return {
        "schema": "headway.real-time-plan/v1",
        "mode": "real-time",
        "feasible": plan.feasible,
        "target": str(plan.target),
        "promises": promises_json(plan.promises),
        **data_of(plan),
        "prediction": real_time_prediction_json(plan.expected),
    }


def promises_json(promises: Iterable[AnyPromise]) -> object:
    """Targets as data: exact numbers, and words for people.

    >>> from headway.domain import Deadline
    >>> promises_json([Deadline(limit_s=600.0)])[0]["text"]
    'deadline <= 10 min'
    """
    return data_of([KeptPromise.of(promise) for promise in promises])


def json_text(obj: object) -> str:
    """JSON for files and pipes, without an end of line.

    Raises ValueError if a number is infinite or not a number, which JSON cannot represent.

    >>> print(json_text({"nodes": 2}))
    {
      "nodes": 2
    }
    """
    return json.dumps(obj, indent=2, allow_nan=False, ensure_ascii=False)
