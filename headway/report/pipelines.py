"""Pipelines of mini-batches for people and for programs: predicted, simulated, planned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.formats.codec import EXACT, data_of
from headway.planner.pipelines import busy_ratios, statistic_s
from headway.report.columns import aligned, headline_of, paragraph
from headway.units import counted, exact_duration, format_duration, format_rate

if TYPE_CHECKING:
    from headway.models.pipeline.latency import PipelineLatency
    from headway.models.pipeline.parameters import PipelineSetting
    from headway.planner.pipeline_runs import PipelineRuns
    from headway.planner.pipeline_search import PipelinePlan, PipelineRule, RoundsPlan
    from headway.planner.pipelines import PipelinePrediction

PREDICTION_SCHEMA = "headway.pipeline-prediction/v1"
RUNS_SCHEMA = "headway.pipeline-simulation/v1"
PLAN_SCHEMA = "headway.pipeline-plan/v1"
_LEVELS = (0.5, 0.95, 0.99, 0.999)
_NO_VALUE = "-"
_SHORTEST_SHOWN_S = 1e-7


def pipeline_prediction_text(prediction: PipelinePrediction) -> str:
    """The latency first, then its phases, its quantiles, and how busy each part is."""

    latency, subject = prediction.latency, "windows" if prediction.is_windowed else "rows"
    rate = format_rate(float(prediction.rounds[0].rate_per_s))
    lines = []
    if prediction.overloaded:
        overloaded = "; ".join(prediction.overloaded)
        lines += paragraph(
            f"saturated at {rate}: latency grows without bound; too busy: {overloaded}"
        )
    else:
        mean, p99 = float(latency.mean_s), float(latency.quantile_s(0.99))
        head = f"latency of {subject} at {rate}: mean {format_duration(mean)}"
        lines += paragraph(f"{head}, p99 {format_duration(p99)}")
        if (target := prediction.target) is not None:
            predicted_s = float(statistic_s(latency, target))
            verdict = "met" if predicted_s <= target.limit_s else "missed"
            lines += paragraph(f"target {target}: {verdict}, {format_duration(predicted_s)}")
    for number, pipeline in enumerate(prediction.rounds, start=1):
        prefix = f"round {number}: " if len(prediction.rounds) > 1 else ""
        lines += paragraph(f"setting: {prefix}{setting_text(pipeline.setting)}")
        busy = ", ".join(f"{name} {ratio:.0%}" for name, ratio in busy_ratios(pipeline).items())
        lines += paragraph(f"busy: {prefix}{busy}")
    if prediction.overloaded:
        return "\n".join(lines)
    rows: list[tuple[str, ...]] = [("phase", "mean", "deviation", "as published")]
    for part, published_part in zip(latency.parts, prediction.published.parts, strict=True):
        times = (
            float(part.mean_s),
            math.sqrt(float(part.variance_s2)),
            float(published_part.mean_s),
        )
        rows.append((part.name, *(_time(time_s) for time_s in times)))
    rows.append(
        (
            "all, not independent of each other",
            format_duration(float(latency.mean_s)),
            format_duration(float(latency.sd_s)),
            _time(float(prediction.published.mean_s)),
        )
    )
    lines += ["", *aligned(rows, right=range(1, 4), indent=0), ""]
    names = ("quantile", "latency", "independent phases", "as published", "Cantelli's bound")
    independent = latency.with_independent_phases()
    quantiles: list[tuple[str, ...]] = [names]
    for level in _LEVELS:
        quantiles_s = (
            latency.quantile_s(level), independent.quantile_s(level),
            prediction.published.quantile_s(level), latency.cantelli_bound_s(level),
        )  # fmt: skip
        quantiles.append((_level(level), *(_time(float(quantile_s)) for quantile_s in quantiles_s)))
    lines += aligned(quantiles, right=range(1, 5), indent=0)
    return "\n".join(lines)


def pipeline_prediction_json(prediction: PipelinePrediction) -> dict[str, object]:
    """A prediction as data for :func:`headway.formats.as_json.json_text`."""

    return {
        "schema": PREDICTION_SCHEMA,
        "headline": headline_of(pipeline_prediction_text, prediction),
        "saturated": bool(prediction.overloaded),
        "overloaded": list(prediction.overloaded),
        "rate_per_s": float(prediction.rounds[0].rate_per_s),
        "metric": "window" if prediction.is_windowed else "tuple",
        "latency_s": _latency_json(prediction.latency),
        "published_latency_s": _latency_json(prediction.published),
        "rounds": [
            {
                "rate_per_s": float(pipeline.rate_per_s),
                "setting": setting_json(pipeline.setting),
                "busy_ratio": busy_ratios(pipeline),
            }
            for pipeline in prediction.rounds
        ],
    }


def pipeline_runs_text(runs: PipelineRuns) -> str:
    """Simulated and predicted: the latency, its quantiles, its phases."""
    subject = "rows" if runs.pipeline.finalizing is None else "windows"
    rate = format_rate(float(runs.pipeline.rate_per_s))
    if runs.is_saturated:
        reason = "its parts are too busy, not simulated"
        if runs.num_runs:
            reason = "latencies grow from the first half of a run to the second"
        return "\n".join(
            [
                *paragraph(f"saturated at {rate}: {reason}"),
                *paragraph(f"setting: {setting_text(runs.pipeline.setting)}"),
            ]
        )
    length = f"{counted(runs.num_runs, 'run')} of {format_duration(runs.length_s)}"
    lines = [
        *paragraph(
            f"latency of {subject} at {rate}, {length}: mean {format_duration(runs.mean_s)}"
        ),
        *paragraph(f"setting: {setting_text(runs.pipeline.setting)}"),
        "",
    ]
    rows: list[tuple[str, ...]] = [("", "simulated", "predicted", "error")]
    rows.append(_compared("mean", runs.mean_s, float(runs.predicted.mean_s)))
    rows.append(_compared("deviation", runs.sd_s, float(runs.predicted.sd_s)))
    for level in _LEVELS:
        predicted_s = float(runs.predicted.quantile_s(level))
        rows.append(_compared(_level(level), runs.quantile_s(level), predicted_s))
    if runs.pipeline.finalizing is None:
        predicted = {part.name: float(part.mean_s) for part in runs.predicted.parts}
        for name, mean_s in runs.phase_means_s.items():
            rows.append(_compared(name, mean_s, predicted[name]))
    return "\n".join([*lines, *aligned(rows, right=range(1, 4), indent=0)])


def pipeline_runs_json(runs: PipelineRuns) -> dict[str, object]:
    """Simulated runs as data."""
    return {
        "schema": RUNS_SCHEMA,
        "headline": headline_of(pipeline_runs_text, runs),
        "saturated": runs.is_saturated,
        "runs": runs.num_runs,
        "length_s": runs.length_s,
        "rate_per_s": float(runs.pipeline.rate_per_s),
        "setting": setting_json(runs.pipeline.setting),
        "simulated_s": {
            "mean": _finite(runs.mean_s),
            "sd": _finite(runs.sd_s),
            **{_level(level): _finite(runs.quantile_s(level)) for level in _LEVELS},
        },
        "phase_means_s": {name: _finite(mean) for name, mean in runs.phase_means_s.items()},
        "predicted_s": _latency_json(runs.predicted),
    }


def rounds_plan_text(plan: RoundsPlan) -> str:
    """The answer of each round, then its proof and the rules of thumb for comparison."""
    has_several_rounds = len(plan.rounds) > 1
    lines = []
    if has_several_rounds:
        lines += _sum_of_rounds(plan)
    for number, round_plan in enumerate(plan.rounds, start=1):
        if lines:
            lines.append("")
        lines += _plan_lines(round_plan, f"round {number}: " if has_several_rounds else "")
    return "\n".join(lines)


def rounds_plan_json(plan: RoundsPlan) -> dict[str, object]:
    """A plan as data."""
    return {
        "schema": PLAN_SCHEMA,
        "headline": headline_of(rounds_plan_text, plan),
        "feasible": plan.feasible,
        "nodes": sum(round_plan.num_nodes or 0 for round_plan in plan.rounds)
        if plan.feasible
        else None,
        "latency_s": None if plan.latency is None else _latency_json(plan.latency),
        "rounds": [_plan_json(round_plan) for round_plan in plan.rounds],
    }


def setting_text(setting: PipelineSetting) -> str:
    """A setting in words."""
    return (
        f"{counted(int(setting.num_nodes), 'node')}, "
        f"{counted(int(setting.mappers_per_node), 'mapper')} and "
        f"{counted(int(setting.reducers_per_node), 'reducer')} on each; input batches every "
        f"{exact_duration(float(setting.input_period_s))}, shuffle batches every "
        f"{exact_duration(float(setting.shuffle_period_s))}, polls every "
        f"{exact_duration(float(setting.poll_period_s))}"
    )


def setting_json(setting: PipelineSetting) -> dict[str, object]:
    """A setting as data."""
    return {
        "nodes": int(setting.num_nodes),
        "mappers": int(setting.mappers_per_node),
        "reducers": int(setting.reducers_per_node),
        "distributors": int(setting.num_distributors),
        "input_period_s": float(setting.input_period_s),
        "shuffle_period_s": float(setting.shuffle_period_s),
        "poll_period_s": float(setting.poll_period_s),
    }


def _sum_of_rounds(plan: RoundsPlan) -> list[str]:
    if not plan.feasible or plan.latency is None:
        return ["infeasible: not every round can meet its part of the limit"]
    nodes = sum(round_plan.num_nodes or 0 for round_plan in plan.rounds)
    mean, p99 = float(plan.latency.mean_s), float(plan.latency.quantile_s(0.99))
    return paragraph(
        f"{counted(nodes, 'node')} in {len(plan.rounds)} rounds: mean {format_duration(mean)}, p99 "
        f"{format_duration(p99)} through all of them"
    )


def _plan_lines(plan: PipelinePlan, prefix: str) -> Iterator[str]:
    target, rate = plan.question.target, format_rate(plan.question.rate_per_s)
    setting = plan.setting
    if setting is None:
        yield from paragraph(f"{prefix}infeasible: no setting meets {target} at {rate}")
        max_nodes = counted(plan.question.space.max_nodes, "node")
        if plan.lowest is None:
            yield from paragraph(
                f"saturated: up to {max_nodes}, no setting that was tried can keep up"
            )
        else:
            lowest_text = format_duration(plan.planned_s)
            yield from paragraph(
                f"lowest {target.statistic} found: {lowest_text} with {setting_text(plan.lowest)}"
            )
        if plan.proved_nodes > plan.question.space.max_nodes:
            yield from paragraph(
                f"proved: up to {max_nodes}, none meets it; over {_all_periods(plan)}"
            )
        return
    verb = "meets" if setting.num_nodes == 1 else "meet"
    nodes = counted(int(setting.num_nodes), "node")
    yield from paragraph(f"{prefix}{nodes} {verb} {target} at {rate}")
    yield from paragraph(f"setting: {setting_text(setting)}")
    yield from paragraph(
        f"predicted {target.statistic}: {format_duration(plan.planned_s)}; max rate within target: "
        f"{format_rate(plan.highest_rate_per_s)}"
    )
    yield from paragraph(f"proved: {_proof(plan)}")
    if plan.rules:
        yield ""
        cores = int(plan.question.round.nodes.num_cores)
        yield f"rules of thumb, {cores} mappers and {cores} reducers on each node:"
        head = ("shuffle", "poll", "nodes", f"{target.statistic} with {nodes}", "max rate")
        rows = [head, *(_rule_row(rule) for rule in plan.rules)]
        yield from aligned(rows, right=range(5))


def _proof(plan: PipelinePlan) -> str:
    nodes, fewest = plan.num_nodes or 0, plan.proved_nodes
    rate_bound_per_s = plan.most_rate_per_s
    if fewest == nodes:
        nodes_proof = "fewer nodes miss it" if nodes > 1 else "one node is the minimum"
    else:
        gap = counted(nodes - fewest, "node")
        nodes_proof = f"fewer than {counted(fewest, 'node')} miss it, gap {gap}"
    rate_proof = ""
    if not math.isinf(rate_bound_per_s):
        gap_ratio = rate_bound_per_s / plan.highest_rate_per_s - 1.0
        rate_proof = f"; with {counted(nodes, 'node')} none carries more than "
        rate_proof += f"{format_rate(rate_bound_per_s)}, gap {gap_ratio:.1%}"
    return f"{nodes_proof}{rate_proof}; over {_all_periods(plan)}"


def _all_periods(plan: PipelinePlan) -> str:
    space = plan.question.space
    shuffle, poll = space.shuffle_periods_s, space.poll_periods_s
    return (
        f"all shuffle periods from {exact_duration(shuffle[0])} to {exact_duration(shuffle[-1])} "
        f"and poll periods from {exact_duration(poll[0])} to {exact_duration(poll[-1])}"
    )


def _rule_row(rule: PipelineRule) -> tuple[str, ...]:
    return (
        exact_duration(rule.shuffle_period_s),
        exact_duration(rule.poll_period_s),
        _NO_VALUE if rule.num_nodes is None else str(rule.num_nodes),
        "saturated" if math.isinf(rule.statistic_s) else format_duration(rule.statistic_s),
        _NO_VALUE if rule.highest_rate_per_s == 0.0 else format_rate(rule.highest_rate_per_s),
    )


def _plan_json(plan: PipelinePlan) -> dict[str, object]:
    setting, lowest = plan.setting, plan.lowest
    return {
        "feasible": plan.feasible,
        "saturated": plan.is_saturated,
        "target": str(plan.question.target),
        "rate_per_s": plan.question.rate_per_s,
        "nodes": plan.num_nodes,
        "setting": None if setting is None else setting_json(setting),
        "planned_latency_s": _finite(plan.planned_s),
        "sustainable_rate_per_s": plan.highest_rate_per_s,
        "latency_s": None if plan.latency is None else _latency_json(plan.latency),
        "lowest_latency_setting": None if lowest is None else setting_json(lowest),
        "proof": {
            "min_nodes": plan.proved_nodes,
            "gap_nodes": None if plan.num_nodes is None else plan.num_nodes - plan.proved_nodes,
            "max_rate_per_s": _finite(plan.most_rate_per_s),
        },
        "rules": data_of(plan.rules, EXACT),
    }


def _latency_json(latency: PipelineLatency) -> dict[str, object]:
    return {
        "mean": _finite(float(latency.mean_s)),
        "variance_s2": _finite(float(latency.variance_s2)),
        **{_level(level): _finite(float(latency.quantile_s(level))) for level in _LEVELS},
        "phases": [
            {
                "name": part.name,
                "mean": _finite(float(part.mean_s)),
                "variance_s2": _finite(float(part.variance_s2)),
            }
            for part in latency.parts
        ],
    }


def _compared(name: str, simulated_s: float, predicted_s: float) -> tuple[str, ...]:
    error = _NO_VALUE
    if 1e-4 < simulated_s < math.inf and predicted_s < math.inf:
        error = f"{predicted_s / simulated_s - 1.0:+.1%}"
    return (name, _time(simulated_s), _time(predicted_s), error)


def _level(level: float) -> str:
    return f"p{100.0 * level:.12g}"


def _time(seconds: float) -> str:
    if math.isinf(seconds):
        return "saturated"
    return format_duration(seconds if seconds >= _SHORTEST_SHOWN_S else 0.0)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
