"""Predictions and plans of DStreams applications as JSON.

Keys that mean the same are those of a streaming job's; ``trigger_s`` is the batch interval.
"""

from __future__ import annotations

from headway.domain.dstreams import (
    DStreamsAnswer,
    DStreamsPoint,
    DStreamsPrediction,
    DStreamsSetting,
)
from headway.formats.as_json import fields_json, latency_json, promises_json
from headway.words import all_words

DSTREAMS_PREDICTION_SCHEMA = "headway.dstreams-prediction/v1"
DSTREAMS_PLAN_SCHEMA = "headway.dstreams-plan/v1"


def dstreams_prediction_json(prediction: DStreamsPrediction) -> dict[str, object]:
    """A prediction as data for `headway.formats.as_json.json_text`."""
    return {
        "schema": DSTREAMS_PREDICTION_SCHEMA,
        "stable": prediction.stable,
        "utilization": fields_json(prediction.utilization_ratio),
        "offered_load": fields_json(prediction.offered_load_ratio),
        "overrun_probability": fields_json(prediction.overrun_probability),
        "calibrated": prediction.calibrated,
        "provenance": str(prediction.provenance),
        "warnings": list(all_words(prediction.findings)),
        "findings": fields_json(prediction.findings),
        "rate_per_s": fields_json(prediction.rate_per_s),
        "sustainable_rate_per_s": fields_json(prediction.sustainable_rate_per_s),
        "batch_duration_s": latency_json(prediction.processing_time),
        "scheduling_delay_s": latency_json(prediction.scheduling_delay),
        "tuple_latency_s": latency_json(prediction.tuple_latency),
        "phases_s": {name: fields_json(phase_s) for name, phase_s in prediction.phases_s.items()},
        "configuration": _setting(prediction.setting),
    }


def dstreams_plan_json(plan: DStreamsAnswer) -> dict[str, object]:
    """A plan with its prediction as data for `headway.formats.as_json.json_text`."""
    return {
        "schema": DSTREAMS_PLAN_SCHEMA,
        "feasible": plan.feasible,
        "target": str(plan.target),
        "promises": promises_json([plan.target]),
        "rate_per_s": plan.rate_per_s,
        "nodes": plan.nodes,
        "planned_latency_s": fields_json(plan.planned_s),
        "max_rate_per_s": fields_json(plan.max_rate_per_s),
        "cost_per_hour": fields_json(plan.cost_per_hour),
        "configuration": _setting(plan.setting),
        "spark_conf": dict(plan.spark_conf),
        "binding": list(plan.binding),
        "frontier": [_point(point) for point in plan.frontier],
        "changes": fields_json(plan.changes),
        "settings": fields_json(plan.settings),
        "warnings": list(all_words(plan.findings)),
        "findings": fields_json(plan.findings),
        "confidence": plan.confidence,
        "node_type": fields_json(plan.node_type),
        "spark_version": plan.spark_version,
        "prediction": dstreams_prediction_json(plan.expected),
    }


def _setting(setting: DStreamsSetting) -> dict[str, object]:
    return {
        "executors": setting.executors,
        "cores_per_executor": setting.cores_per_executor,
        "trigger_s": fields_json(setting.batch_interval_s),
        "concurrent_jobs": setting.concurrent_jobs,
        "task_cpus": setting.task_cpus,
        "receivers": setting.num_receivers,
    }


def _point(point: DStreamsPoint) -> dict[str, object]:
    return {
        "nodes": point.nodes,
        "trigger_s": fields_json(point.batch_interval_s),
        "expected_s": fields_json(point.expected_s),
        "planned_s": fields_json(point.planned_s),
    }
