"""Pipelines of ordered operators in words and as data: predicted, simulated, planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.digits import format_rate_down
from headway.domain.sheet import Kind, Section, Sheet
from headway.report.wording import latency_text
from headway.units import counted, format_duration, format_rate

if TYPE_CHECKING:
    from headway.models.simulation.ordered_schedulers import SchedulerRun
    from headway.planner.kinds.operators import OperatorsPlan, OperatorsPrediction, OperatorsRuns


def operators_sheet(prediction: OperatorsPrediction) -> Sheet:
    """The rate that the pipeline carries and what limits it, then its operators, then Spark."""
    operators, rows, simulated = prediction.pipeline.operators, [], []
    for operator, busy, latency in zip(
        operators, prediction.workers, prediction.latencies, strict=True
    ):
        times = map(latency_text, (latency.mean_s, latency.p99_s))
        rows.append((operator.name, str(operator.type), f"{busy:.2f}", *times))
        if latency.is_simulated:
            simulated.append(operator.name)
    texts = ["times are from the start at an operator to the exit in order"]
    if simulated:
        names = ", ".join(simulated)
        texts.append(f"simulated (S11), since no formula holds for the queues: {names}")
    return Sheet(
        about="Headway prediction of ordered operators",
        headline=_headline(prediction),
        verdict=not prediction.is_saturated,
        sections=(
            Section(
                head=("operator", "type", "workers", "mean", "p99"),
                rows=tuple(rows),
                right=(2, 3, 4),
            ),
            Section(texts=(*texts, _on_spark(prediction))),
        ),
    )


def operators_json(prediction: OperatorsPrediction) -> dict[str, object]:
    """A prediction as data for :func:`headway.formats.as_json.json_text`."""
    pipeline, real_time = prediction.pipeline, prediction.real_time
    operators = zip(pipeline.operators, prediction.workers, prediction.latencies, strict=True)
    return {
        "saturated": prediction.is_saturated,
        "rate_per_s": pipeline.rate_per_s,
        "max_rate_per_s": prediction.allocation.throughput_per_s,
        "max_rate_without_order_per_s": prediction.unordered.throughput_per_s,
        "limiting": prediction.limiting,
        "operators": [
            {
                "name": operator.name,
                "type": str(operator.type),
                "workers": busy,
                "latency_s": {"mean": latency.mean_s, "p99": latency.p99_s},
                "simulated": latency.is_simulated,
            }
            for operator, busy, latency in operators
        ],
        "on_spark": {
            "micro_batch_rate_per_s": prediction.micro_batch_per_s,
            "real_time_tasks": None if real_time is None else real_time.num_tasks,
            "real_time_rate_per_s": None if real_time is None else real_time.throughput_per_s,
        },
    }


def operators_runs_sheet(runs: OperatorsRuns) -> Sheet:
    """The schedulers side by side, compared with the formula."""
    best_per_s = runs.predicted.allocation.throughput_per_s
    rows = tuple(
        (
            str(scheduler),
            format_rate(run.throughput_per_s),
            f"{run.throughput_per_s / best_per_s:.1%}",
            *map(latency_text, (run.mean_s, run.p50_s, run.p99_s)),
        )
        for scheduler, run in runs.runs.items()
    )
    precision = (
        "times are from the start at the first operator to the exit, within a slice of "
        f"{format_duration(runs.predicted.pipeline.slice_s)}; costs do not vary in this simulation"
    )
    return Sheet(
        about="Headway simulation of ordered operators",
        headline=_headline(runs.predicted),
        verdict=not runs.predicted.is_saturated,
        sections=(
            Section(
                head=("scheduler", "rate carried", "of the formula", "mean", "p50", "p99"),
                rows=rows,
                right=(1, 2, 3, 4, 5),
            ),
            Section(texts=(precision,)),
        ),
    )


def operators_runs_json(runs: OperatorsRuns) -> dict[str, object]:
    """Simulated schedulers as data."""
    return {
        "predicted": {
            "schema": "headway.ordered-prediction/v1",
            "headline": _headline(runs.predicted),
            **operators_json(runs.predicted),
        },
        "schedulers": {str(scheduler): _run_json(run) for scheduler, run in runs.runs.items()},
    }


def operators_plan_sheet(plan: OperatorsPlan) -> Sheet:
    """The answer first, then its proof."""
    fewer = f"fewer than {counted(plan.proved_workers, 'worker')} cannot carry the rate"
    simulated = f"simulated {plan.target.statistic} under {plan.pipeline.compare[0]}"
    proof = (
        Section(lead=simulated, texts=(latency_text(plan.planned_s),), close=True),
        Section(lead="proved", texts=(fewer,) if plan.proved_workers > 1 else (), close=True),
    )
    return Sheet(
        about="Headway plan of ordered operators",
        headline=_answer(plan),
        verdict=plan.feasible,
        sections=() if plan.is_saturated else proof,
    )


def _answer(plan: OperatorsPlan) -> str:
    pipeline, target = plan.pipeline, plan.target
    workers, rate = counted(pipeline.num_workers, "worker"), format_rate(pipeline.rate_per_s or 0.0)
    if plan.is_saturated:
        return f"infeasible: saturated, {workers} cannot carry {rate} in order"
    if not plan.feasible:
        return f"infeasible: up to {workers}, none meet {target} at {rate}"
    verb = "meets" if pipeline.num_workers == 1 else "meet"
    return f"{workers} {verb} {target} at {rate}"


def operators_plan_json(plan: OperatorsPlan) -> dict[str, object]:
    """A plan as data."""
    return {
        "feasible": plan.feasible,
        "saturated": plan.is_saturated,
        "target": str(plan.target),
        "rate_per_s": plan.pipeline.rate_per_s,
        "workers": plan.pipeline.num_workers if plan.feasible else None,
        "scheduler": str(plan.pipeline.compare[0]),
        "planned_latency_s": plan.planned_s,
        "simulated": None if plan.run is None else _run_json(plan.run),
        "proof": {"min_workers": plan.proved_workers},
    }


def _headline(prediction: OperatorsPrediction) -> str:
    max_rate_per_s = prediction.allocation.throughput_per_s
    workers = counted(prediction.pipeline.num_workers, "worker")
    limit = f"{format_rate_down(max_rate_per_s)} in order, limited by {prediction.limiting}"
    unordered = format_rate(prediction.unordered.throughput_per_s)
    verb = "carries" if prediction.pipeline.num_workers == 1 else "carry"
    carries = f"{workers} {verb} up to {limit}; {unordered} if order cost nothing"
    rate_per_s = prediction.pipeline.rate_per_s
    if rate_per_s is None:
        return f"{carries}; simulated at saturation"
    rate = format_rate(rate_per_s)
    if prediction.is_saturated:
        return f"saturated at {rate}: {carries}"
    return f"keeps up at {rate}, {rate_per_s / max_rate_per_s:.0%} of its maximum: {carries}"


def _on_spark(prediction: OperatorsPrediction) -> str:
    real_time = prediction.real_time
    slots = counted(prediction.pipeline.num_workers, "slot")
    batches = f"on Spark, {slots}: micro-batches {format_rate(prediction.micro_batch_per_s)}"
    if real_time is None:
        return f"{batches}; too few slots for Real-Time Mode"
    tasks = ", ".join(str(count) for count in real_time.num_tasks)
    rate = format_rate(real_time.throughput_per_s)
    return f"{batches}; Real-Time Mode {rate} with {tasks} tasks, fixed times left out"


def _run_json(run: SchedulerRun) -> dict[str, object]:
    return {
        "rate_per_s": run.throughput_per_s,
        "latency_s": {"mean": run.mean_s, "p50": run.p50_s, "p99": run.p99_s},
        "busy_workers": [float(num_busy) for num_busy in run.busy_workers],
    }


KINDS = {
    "ordered-prediction": Kind(sheet=operators_sheet, data=operators_json, main="operators"),
    "ordered-simulation": Kind(
        sheet=operators_runs_sheet, data=operators_runs_json, main="schedulers"
    ),
    "ordered-plan": Kind(sheet=operators_plan_sheet, data=operators_plan_json),
}
