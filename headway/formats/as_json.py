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
from headway.domain.result import Result
from headway.formats.codec import EXACT, data_of
from headway.words import all_words

if TYPE_CHECKING:
    from headway.domain import AnyAnswer, BatchAnswer
    from headway.domain.dstreams import DStreamsPlan
    from headway.domain.real_time import RealTimePlan

PLAN_SCHEMA = "headway.plan/v1"
DEADLINE_SCHEMA = "headway.deadline-plan/v1"
# What only plans have, or only infeasible ones: every file has it all, empty where absent.
_OWN_PARTS: Mapping[str, object] = {
    "rejected": (), "rules": (), "after_start": None,
    "floor_s": None, "physical_floor_s": None, "nearest": (), "needs": (),
}  # fmt: skip


def result_json(result: Result, /, **first: object) -> dict[str, object]:
    """A result as data for :func:`json_text`: its schema, what comes first, and its fields.

    Numbers have six significant digits, except for requested ones: targets, rate, confidence.
    """
    mode = {"mode": "real-time"} if result.result_kind.startswith("real-time-") else {}
    schema = f"headway.{result.result_kind}/v1"
    return {"schema": schema, **mode, **first, **data_of(result)}


def prediction_json(prediction: Prediction) -> dict[str, object]:
    """A prediction as data for :func:`json_text`.

    Numbers have six significant digits. The latencies are None if the setting is not stable, or too
    close to saturation to predict them, which ``findings`` then say; so is every single number that
    is unbounded, for instance the upper end of an interval.
    """
    if prediction.is_quotable:
        return result_json(prediction)
    return result_json(
        replace(prediction, batch_duration=None, tuple_latency=None, window_latency=None)
    )


def plan_json(plan: AnyAnswer) -> dict[str, object]:
    """A plan of any job as data for :func:`json_text`."""
    return deadline_json(plan) if plan.ends else stream_json(plan)


def stream_json(plan: StreamAnswer) -> dict[str, object]:
    """A plan with its prediction as data for :func:`json_text`.

    Numbers are rounded as in a prediction, except for requested ones: targets, rate, confidence.
    """
    return {
        **result_json(plan, feasible=plan.feasible, **data_of(_OWN_PARTS)),
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
    target, promises = str(plan.deadline), promises_json(plan.promises)
    return {
        **result_json(plan, target=target, feasible=plan.feasible, promises=promises),
        "verdict": data_of(plan.verdict),
        "warnings": list(all_words(plan.findings)),
    }


def other_plan_json(plan: DStreamsPlan | RealTimePlan) -> dict[str, object]:
    """The plan of DStreams, or in Real-Time Mode, with its prediction, as `result_json`."""
    target, promises = str(plan.target), promises_json(plan.promises)
    return {
        **result_json(plan, feasible=plan.feasible, target=target, promises=promises),
        "prediction": result_json(plan.expected),
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
