"""Pipelines of mini-batches in words and as data: predicted, simulated, planned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.digits import signed_percent
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import EXACT, data_of
from headway.planner.kinds.pipelines import busy_ratios, statistic_s
from headway.report.wording import latency_text, nodes_meet
from headway.units import counted, exact_duration, format_duration, format_rate, listed

if TYPE_CHECKING:
    from headway.models.pipeline.latency import PipelineLatency
    from headway.models.pipeline.parameters import PipelineSetting
    from headway.planner.kinds.pipeline_search import PipelinePlan, PipelineRule, RoundsPlan
    from headway.planner.kinds.pipelines import PipelinePrediction, PipelineRuns

_LEVELS = (0.5, 0.95, 0.99, 0.999)
_NO_VALUE = "-"
_SHORTEST_SHOWN_S = 1e-7


def pipeline_prediction_sheet(prediction: PipelinePrediction) -> Sheet:
    """The latency first, then how busy each part is, the phases, and the quantiles."""
    subject = "windows" if prediction.is_windowed else "rows"
    rate = format_rate(float(prediction.rounds[0].rate_per_s))
    if prediction.overloaded:
        overloaded = "; ".join(prediction.overloaded)
        headline = f"saturated at {rate}: latency grows without bound; too busy: {overloaded}"
        tables: tuple[Section, ...] = ()
    else:
        headline = f"latency of {subject} at {rate}: {_mean_and_p99(prediction.latency)}"
        tables = (_phases(prediction), _quantiles(prediction))
    return Sheet(
        about="Headway prediction of a pipeline",
        headline=headline,
        verdict=not prediction.overloaded,
        sections=(*_target(prediction), *_settings(prediction), *tables),
    )


def _mean_and_p99(latency: PipelineLatency) -> str:
    mean_s, p99_s = float(latency.mean_s), float(latency.quantile_s(0.99))
    return f"mean {format_duration(mean_s)}, p99 {format_duration(p99_s)}"


def _target(prediction: PipelinePrediction) -> Iterator[Section]:
    target = prediction.target
    if target is not None and not prediction.overloaded:
        predicted_s = float(statistic_s(prediction.latency, target))
        verdict = "met" if predicted_s <= target.limit_s else "missed"
        text = f"target {target}: {verdict}, {format_duration(predicted_s)}"
        yield Section(texts=(text,), close=True)


def _settings(prediction: PipelinePrediction) -> Iterator[Section]:
    """The setting of each round, and how busy its parts are."""
    for number, pipeline in enumerate(prediction.rounds, start=1):
        prefix = f"round {number}: " if len(prediction.rounds) > 1 else ""
        busy = ", ".join(f"{name} {ratio:.0%}" for name, ratio in busy_ratios(pipeline).items())
        setting = setting_text(pipeline.setting)
        yield Section(lead="setting", texts=(f"{prefix}{setting}",), close=True)
        yield Section(lead="busy", texts=(f"{prefix}{busy}",), close=True)


def _phases(prediction: PipelinePrediction) -> Section:
    latency, published = prediction.latency, prediction.published
    parts = zip(latency.parts, published.parts, strict=True)
    rows = [
        (part.name, float(part.mean_s), math.sqrt(float(part.variance_s2)), float(paper.mean_s))
        for part, paper in parts
    ]
    total = "all, not independent of each other"
    rows.append((total, float(latency.mean_s), float(latency.sd_s), float(published.mean_s)))
    return Section(
        head=("phase", "mean", "deviation", "as published"),
        rows=tuple((name, *map(_time, times_s)) for name, *times_s in rows),
        right=(1, 2, 3),
    )


def _quantiles(prediction: PipelinePrediction) -> Section:
    latency, published = prediction.latency, prediction.published
    independent = latency.with_independent_phases()
    columns = {
        "latency": latency.quantile_s,
        "independent phases": independent.quantile_s,
        "as published": published.quantile_s,
        "Cantelli's bound": latency.cantelli_bound_s,
    }
    rows = tuple(
        (_level(level), *(_time(float(value_s(level))) for value_s in columns.values()))
        for level in _LEVELS
    )
    return Section(head=("quantile", *columns), rows=rows, right=(1, 2, 3, 4))


def pipeline_prediction_json(prediction: PipelinePrediction) -> dict[str, object]:
    """A prediction as data for :func:`headway.formats.as_json.json_text`."""
    return {
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


def pipeline_runs_sheet(runs: PipelineRuns) -> Sheet:
    """Simulated and predicted: the latency, its quantiles, its phases."""
    subject = "rows" if runs.pipeline.finalizing is None else "windows"
    rate = format_rate(float(runs.pipeline.rate_per_s))
    length = f"{counted(runs.num_runs, 'run')} of {format_duration(runs.length_s)}"
    headline = f"latency of {subject} at {rate}, {length}: mean {format_duration(runs.mean_s)}"
    if runs.is_saturated:
        reason = "its parts are too busy, not simulated"
        if runs.num_runs:
            reason = "latencies grow from the first half of a run to the second"
        headline = f"saturated at {rate}: {reason}"
    head = ("", "simulated", "predicted", "error")
    rows = () if runs.is_saturated else tuple(_compared_rows(runs))
    return Sheet(
        about="Headway simulation of a pipeline",
        headline=headline,
        verdict=not runs.is_saturated,
        sections=(
            Section(lead="setting", texts=(setting_text(runs.pipeline.setting),), close=True),
            Section(head=head, rows=rows, right=(1, 2, 3)),
        ),
    )


def _compared_rows(runs: PipelineRuns) -> Iterator[tuple[str, ...]]:
    yield _compared("mean", runs.mean_s, float(runs.predicted.mean_s))
    yield _compared("deviation", runs.sd_s, float(runs.predicted.sd_s))
    for level in _LEVELS:
        predicted_s = float(runs.predicted.quantile_s(level))
        yield _compared(_level(level), runs.quantile_s(level), predicted_s)
    if runs.pipeline.finalizing is None:
        predicted = {part.name: float(part.mean_s) for part in runs.predicted.parts}
        for name, mean_s in runs.phase_means_s.items():
            yield _compared(name, mean_s, predicted[name])


def _compared(name: str, simulated_s: float, predicted_s: float) -> tuple[str, ...]:
    error = _NO_VALUE
    if 1e-4 < simulated_s < math.inf and predicted_s < math.inf:
        error = signed_percent(predicted_s / simulated_s - 1.0, 1)
    return (name, _time(simulated_s), _time(predicted_s), error)


def pipeline_runs_json(runs: PipelineRuns) -> dict[str, object]:
    """Simulated runs as data."""
    return {
        "saturated": runs.is_saturated,
        "runs": runs.num_runs,
        "length_s": runs.length_s,
        "rate_per_s": float(runs.pipeline.rate_per_s),
        "setting": setting_json(runs.pipeline.setting),
        "simulated_s": {
            "mean": runs.mean_s,
            "sd": runs.sd_s,
            **{_level(level): runs.quantile_s(level) for level in _LEVELS},
        },
        "phase_means_s": runs.phase_means_s,
        "predicted_s": _latency_json(runs.predicted),
    }


def rounds_plan_sheet(plan: RoundsPlan) -> Sheet:
    """The answer of each round, then its proof and the rules of thumb for comparison."""
    answers = [_answer(round_plan) for round_plan in plan.rounds]
    sections: list[Section] = []
    for number, (answer, round_plan) in enumerate(zip(answers, plan.rounds, strict=True), start=1):
        sections += [Section(texts=(f"round {number}: {answer}",))] if len(answers) > 1 else []
        sections += _details(round_plan)
    return Sheet(
        about="Headway plan of a pipeline",
        headline=_sum_of_rounds(plan) if len(answers) > 1 else answers[0],
        verdict=plan.feasible,
        sections=tuple(sections),
    )


def rounds_plan_json(plan: RoundsPlan) -> dict[str, object]:
    """A plan as data."""
    return {
        "feasible": plan.feasible,
        "nodes": _num_nodes(plan) if plan.feasible else None,
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


def _num_nodes(plan: RoundsPlan) -> int:
    return sum(round_plan.num_nodes or 0 for round_plan in plan.rounds)


def _sum_of_rounds(plan: RoundsPlan) -> str:
    if not plan.feasible or plan.latency is None:
        return "infeasible: not every round can meet its part of the limit"
    nodes = f"{counted(_num_nodes(plan), 'node')} in {len(plan.rounds)} rounds"
    return f"{nodes}: {_mean_and_p99(plan.latency)} through all of them"


def _answer(plan: PipelinePlan) -> str:
    target, rate = plan.question.target, format_rate(plan.question.rate_per_s)
    if plan.setting is None:
        return f"infeasible: no setting meets {target} at {rate}"
    return f"{nodes_meet(int(plan.setting.num_nodes), target)} at {rate}"


def _details(plan: PipelinePlan) -> Iterator[Section]:
    """The setting with its proof, or what comes nearest."""
    statistic, setting = plan.question.target.statistic, plan.setting
    if setting is None:
        for lead, text in _reasons(plan):
            yield Section(lead=lead, texts=(text,), close=True)
        return
    planned, max_rate = format_duration(plan.planned_s), format_rate(plan.highest_rate_per_s)
    planned_text = f"{planned}; max rate within target: {max_rate}"
    yield Section(lead="setting", texts=(setting_text(setting),), close=True)
    yield Section(lead=f"predicted {statistic}", texts=(planned_text,), close=True)
    yield Section(lead="proved", texts=(_proof(plan),), close=True)
    cores = int(plan.question.round.nodes.num_cores)
    nodes = counted(int(setting.num_nodes), "node")
    yield Section(
        title=f"rules of thumb, {cores} mappers and {cores} reducers on each node:",
        head=("shuffle", "poll", "nodes", f"{statistic} with {nodes}", "max rate"),
        rows=tuple(map(_rule_row, plan.rules)),
        right=(0, 1, 2, 3, 4),
    )


def _reasons(plan: PipelinePlan) -> Iterator[tuple[str, str]]:
    max_nodes = counted(plan.question.space.max_nodes, "node")
    if plan.lowest is None:
        yield "saturated", f"up to {max_nodes}, no setting that was tried can keep up"
    else:
        lowest_text = f"{format_duration(plan.planned_s)} with {setting_text(plan.lowest)}"
        yield f"lowest {plan.question.target.statistic} found", lowest_text
    if plan.proved_nodes > plan.question.space.max_nodes:
        yield "proved", f"up to {max_nodes}, none meets it; over {_all_periods(plan)}"


def _proof(plan: PipelinePlan) -> str:
    nodes, fewest, bound_per_s = plan.num_nodes or 0, plan.proved_nodes, plan.most_rate_per_s
    proof = "fewer nodes miss it" if nodes > 1 else "one node is the minimum"
    if fewest != nodes:
        gap = counted(nodes - fewest, "node")
        proof = f"fewer than {counted(fewest, 'node')} miss it, gap {gap}"
    if not math.isinf(bound_per_s):
        gap_ratio = bound_per_s / plan.highest_rate_per_s - 1.0
        bound = f"{format_rate(bound_per_s)}, gap {gap_ratio:.1%}"
        proof += f"; with {counted(nodes, 'node')} none carries more than {bound}"
    return f"{proof}; over {_all_periods(plan)}"


def _all_periods(plan: PipelinePlan) -> str:
    space, parts = plan.question.space, []
    for name, periods_s in (("shuffle", space.shuffle_periods_s), ("poll", space.poll_periods_s)):
        low, high = exact_duration(periods_s[0]), exact_duration(periods_s[-1])
        parts.append(f"{name} periods {f'of {low}' if low == high else f'from {low} to {high}'}")
    prefix = "all " if len(space.shuffle_periods_s) > 1 else ""
    return f"{prefix}{listed(parts)}"


def _rule_row(rule: PipelineRule) -> tuple[str, ...]:
    return (
        exact_duration(rule.shuffle_period_s),
        exact_duration(rule.poll_period_s),
        _NO_VALUE if rule.num_nodes is None else str(rule.num_nodes),
        latency_text(rule.statistic_s),
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
        "planned_latency_s": plan.planned_s,
        "sustainable_rate_per_s": plan.highest_rate_per_s,
        "latency_s": None if plan.latency is None else _latency_json(plan.latency),
        "lowest_latency_setting": None if lowest is None else setting_json(lowest),
        "proof": {
            "min_nodes": plan.proved_nodes,
            "gap_nodes": None if plan.num_nodes is None else plan.num_nodes - plan.proved_nodes,
            "max_rate_per_s": plan.most_rate_per_s,
        },
        "rules": data_of(plan.rules, EXACT),
    }


def _latency_json(latency: PipelineLatency) -> dict[str, object]:
    return {
        "mean": float(latency.mean_s),
        "variance_s2": float(latency.variance_s2),
        **{_level(level): float(latency.quantile_s(level)) for level in _LEVELS},
        "phases": [
            {"name": part.name, "mean": float(part.mean_s), "variance_s2": float(part.variance_s2)}
            for part in latency.parts
        ],
    }


def _level(level: float) -> str:
    return f"p{100.0 * level:.12g}"


def _time(seconds: float) -> str:
    return latency_text(seconds if seconds >= _SHORTEST_SHOWN_S else 0.0)


KINDS = {
    "pipeline-prediction": Kind(
        sheet=pipeline_prediction_sheet, data=pipeline_prediction_json, main="latency_s.phases"
    ),
    "pipeline-simulation": Kind(sheet=pipeline_runs_sheet, data=pipeline_runs_json),
    "pipeline-plan": Kind(sheet=rounds_plan_sheet, data=rounds_plan_json, main="rounds"),
}
