"""Pipelines of ordered operators for people and for programs: predicted, simulated, planned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headway.report.columns import aligned, headline_of, paragraph
from headway.units import counted, format_duration, format_rate

if TYPE_CHECKING:
    from headway.models.simulation.ordered_schedulers import SchedulerRun
    from headway.planner.operators import OperatorsPlan, OperatorsPrediction, OperatorsRuns

OPERATORS_SCHEMA = "headway.ordered-prediction/v1"
OPERATORS_RUNS_SCHEMA = "headway.ordered-simulation/v1"
OPERATORS_PLAN_SCHEMA = "headway.ordered-plan/v1"


def operators_text(prediction: OperatorsPrediction) -> str:
    """The rate that the pipeline carries and what limits it, then its operators, then Spark."""
    lines = [*_headline(prediction), ""]
    head = ("operator", "type", "workers", "mean", "p99")
    rows = [head]
    for operator, busy, latency in zip(
        prediction.pipeline.operators, prediction.workers, prediction.latencies, strict=True
    ):
        times = (_time(latency.mean_s), _time(latency.p99_s))
        rows.append((operator.name, str(operator.type), f"{busy:.2f}", *times))
    lines += aligned(rows, right=range(2, 5), indent=0)
    lines += ["", *paragraph("times are from the start at an operator to the exit in order")]
    simulated = [
        operator.name
        for operator, latency in zip(
            prediction.pipeline.operators, prediction.latencies, strict=True
        )
        if latency.is_simulated
    ]
    if simulated:
        names = ", ".join(simulated)
        lines += paragraph(f"simulated (S11), since no formula holds for the queues: {names}")
    return "\n".join([*lines, *paragraph(_on_spark(prediction))])


def operators_json(prediction: OperatorsPrediction) -> dict[str, object]:
    """A prediction as data for :func:`headway.formats.as_json.json_text`."""
    spark = prediction.spark
    return {
        "schema": OPERATORS_SCHEMA,
        "headline": headline_of(operators_text, prediction),
        "saturated": prediction.is_saturated,
        "rate_per_s": prediction.pipeline.rate_per_s,
        "max_rate_per_s": prediction.allocation.throughput_per_s,
        "max_rate_without_order_per_s": prediction.unordered.throughput_per_s,
        "limiting": prediction.limiting,
        "operators": [
            {
                "name": operator.name,
                "type": str(operator.type),
                "workers": busy,
                "latency_s": {"mean": _finite(latency.mean_s), "p99": _finite(latency.p99_s)},
                "simulated": latency.is_simulated,
            }
            for operator, busy, latency in zip(
                prediction.pipeline.operators,
                prediction.workers,
                prediction.latencies,
                strict=True,
            )
        ],
        "on_spark": {
            "micro_batch_rate_per_s": spark.micro_batch_per_s,
            "real_time_tasks": None if spark.real_time is None else list(spark.real_time.num_tasks),
            "real_time_rate_per_s": None
            if spark.real_time is None
            else spark.real_time.throughput_per_s,
        },
    }


def operators_runs_text(runs: OperatorsRuns) -> str:
    """The schedulers side by side, compared with the formula."""
    best = runs.predicted.allocation.throughput_per_s
    rows = [("scheduler", "rate carried", "of the formula", "mean", "p50", "p99")]
    for scheduler, run in runs.runs.items():
        carried_per_s = run.throughput_per_s
        times = (_time(run.mean_s), _time(run.p50_s), _time(run.p99_s))
        rows.append(
            (str(scheduler), format_rate(carried_per_s), f"{carried_per_s / best:.1%}", *times)
        )
    slice_text = format_duration(runs.predicted.pipeline.slice_s)
    precision = (
        f"times are from the start at the first operator to the exit, within a slice of "
        f"{slice_text}; costs do not vary in this simulation"
    )
    table = aligned(rows, right=range(1, 6), indent=0)
    return "\n".join([*_headline(runs.predicted), "", *table, "", *paragraph(precision)])


def operators_runs_json(runs: OperatorsRuns) -> dict[str, object]:
    """Simulated schedulers as data."""
    return {
        "schema": OPERATORS_RUNS_SCHEMA,
        "headline": headline_of(operators_runs_text, runs),
        "predicted": operators_json(runs.predicted),
        "schedulers": {str(scheduler): _run_json(run) for scheduler, run in runs.runs.items()},
    }


def operators_plan_text(plan: OperatorsPlan) -> str:
    """The answer first, then its proof."""
    pipeline, target = plan.pipeline, plan.target
    rate = format_rate(pipeline.rate_per_s or 0.0)
    scheduler, workers = pipeline.compare[0], counted(pipeline.num_workers, "worker")
    if plan.is_saturated:
        return "\n".join(
            paragraph(f"infeasible: saturated, {workers} cannot carry {rate} in order")
        )
    verb = "meets" if pipeline.num_workers == 1 else "meet"
    simulated = f"simulated {target.statistic} under {scheduler}: {_time(plan.planned_s)}"
    if plan.feasible:
        lines = paragraph(f"{workers} {verb} {target} at {rate}")
    else:
        lines = paragraph(f"infeasible: up to {workers}, none meet {target} at {rate}")
    lines += paragraph(simulated)
    proof = f"proved: fewer than {counted(plan.proved_workers, 'worker')} cannot carry the rate"
    return "\n".join([*lines, *paragraph(proof)])


def operators_plan_json(plan: OperatorsPlan) -> dict[str, object]:
    """A plan as data."""
    return {
        "schema": OPERATORS_PLAN_SCHEMA,
        "headline": headline_of(operators_plan_text, plan),
        "feasible": plan.feasible,
        "saturated": plan.is_saturated,
        "target": str(plan.target),
        "rate_per_s": plan.pipeline.rate_per_s,
        "workers": plan.pipeline.num_workers if plan.feasible else None,
        "scheduler": str(plan.pipeline.compare[0]),
        "planned_latency_s": _finite(plan.planned_s),
        "simulated": None if plan.run is None else _run_json(plan.run),
        "proof": {"min_workers": plan.proved_workers},
    }


def _headline(prediction: OperatorsPrediction) -> list[str]:
    max_rate = format_rate(prediction.allocation.throughput_per_s)
    workers = counted(prediction.pipeline.num_workers, "worker")
    limit = f"limited by {prediction.limiting}"
    unordered = prediction.unordered.throughput_per_s
    free = f"{format_rate(unordered)} if order cost nothing"
    carries = f"{workers} carry up to {max_rate} in order, {limit}; {free}"
    rate_per_s = prediction.pipeline.rate_per_s
    if rate_per_s is None:
        return paragraph(f"{carries}; simulated at saturation")
    rate = format_rate(rate_per_s)
    if prediction.is_saturated:
        return paragraph(f"saturated at {rate}: {carries}")
    share = rate_per_s / prediction.allocation.throughput_per_s
    return paragraph(f"keeps up at {rate}, {share:.0%} of its maximum: {carries}")


def _on_spark(prediction: OperatorsPrediction) -> str:
    spark = prediction.spark
    slots = counted(prediction.pipeline.num_workers, "slot")
    batches = f"on Spark, {slots}: micro-batches {format_rate(spark.micro_batch_per_s)}"
    if spark.real_time is None:
        return f"{batches}; too few slots for Real-Time Mode"
    tasks = ", ".join(str(count) for count in spark.real_time.num_tasks)
    rate = format_rate(spark.real_time.throughput_per_s)
    return f"{batches}; Real-Time Mode {rate} with {tasks} tasks, fixed times left out"


def _run_json(run: SchedulerRun) -> dict[str, object]:
    return {
        "rate_per_s": run.throughput_per_s,
        "latency_s": {
            "mean": _finite(run.mean_s), "p50": _finite(run.p50_s), "p99": _finite(run.p99_s),
        },
        "busy_workers": [float(num_busy) for num_busy in run.busy_workers],
    }  # fmt: skip


def _time(seconds: float) -> str:
    return "saturated" if math.isinf(seconds) else format_duration(seconds)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
