"""Predictions and plans of Real-Time Mode as JSON.

Keys that mean the same are those of a micro-batch plan; ``trigger_s`` is the batch length.
"""

from __future__ import annotations

from headway.domain.real_time import RealTimePlan, RealTimePrediction, RealTimeSetting
from headway.formats.as_json import fields_json, latency_json, promises_json
from headway.units import spark_trigger_text

REAL_TIME_PREDICTION_SCHEMA = "headway.real-time-prediction/v1"
REAL_TIME_PLAN_SCHEMA = "headway.real-time-plan/v1"


def real_time_prediction_json(prediction: RealTimePrediction) -> dict[str, object]:
    """A prediction as data for `headway.formats.as_json.json_text`."""
    return {
        "schema": REAL_TIME_PREDICTION_SCHEMA,
        "mode": "real-time",
        "stable": prediction.stable,
        "calibrated": prediction.calibrated,
        "rate_per_s": fields_json(prediction.rate_per_s),
        "sustainable_rate_per_s": fields_json(prediction.sustainable_rate_per_s),
        "slots_needed": prediction.num_slots_needed,
        "tuple_latency_s": latency_json(prediction.tuple_latency),
        "path_s": fields_json(prediction.path_s),
        "stages_s": fields_json(dict(prediction.stage_mean_s)),
        "gaps_s": fields_json(prediction.gap_mean_s),
        "gap_s": fields_json(prediction.gap_s),
        "gap_share": fields_json(prediction.gap_share),
        "busy": fields_json(dict(prediction.busy_ratio)),
        "configuration": _setting(prediction.setting),
    }


def real_time_plan_json(plan: RealTimePlan) -> dict[str, object]:
    """A plan with its prediction as data for `headway.formats.as_json.json_text`."""
    return {
        "schema": REAL_TIME_PLAN_SCHEMA,
        "mode": "real-time",
        "feasible": plan.feasible,
        "target": str(plan.target),
        "promises": promises_json(plan.promises),
        "rate_per_s": plan.rate_per_s,
        "nodes": plan.nodes,
        "planned_latency_s": fields_json(plan.planned_s),
        "max_rate_per_s": fields_json(plan.max_rate_per_s),
        "cost_per_hour": fields_json(plan.cost),
        "node_type": fields_json(plan.node_type),
        "confidence": plan.confidence,
        "configuration": _setting(plan.setting),
        "spark_conf": dict(plan.spark_conf),
        "query_options": query_options(plan),
        "binding": list(plan.binding),
        "spark_version": plan.spark_version,
        "prediction": real_time_prediction_json(plan.expected),
    }


def query_options(plan: RealTimePlan) -> dict[str, str]:
    """Settings in the code of the query."""
    return {
        "outputMode": "update",
        "trigger.realTime": spark_trigger_text(plan.setting.batch_length_s),
    }


def _setting(setting: RealTimeSetting) -> dict[str, object]:
    return {
        "executors": setting.executors,
        "cores_per_executor": setting.cores_per_executor,
        "source_partitions": setting.source_partitions,
        "shuffle_partitions": setting.shuffle_partitions,
        "trigger_s": fields_json(setting.batch_length_s),
        "task_cpus": setting.task_cpus,
    }
