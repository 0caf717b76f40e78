"""Parts of a page that need a profile: charts of the latency, maps, and the what-if."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from headway.domain import (
    JobProfile,
    Metric,
)
from headway.domain.sheet import Section
from headway.report.charts import place_percent
from headway.report.feasibility import setting_map
from headway.report.line_charts import Axes, LineChart, finite, lines_of
from headway.report.what_if import (
    SHARES,
    Grid,
    Outlook,
    Question,
    Shares,
    grid_of,
    partitions_map,
    shares_of,
    trigger_map,
    upper_s,
)
from headway.report.wording import percent, setting_text, trigger_words
from headway.units import HOURS_PER_MONTH, format_duration, format_rate

_SAME_WITHIN = 0.01
_TOP_OF_TARGET = 2.5  # the rate chart shows this many times the limit
_TARGET_STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """One slider: its stops in words, and its start."""

    name: str
    label: str
    stops: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPanel:
    """The sliders, the figures before they are moved, and the grid as JSON."""

    form: ClassVar[str] = "what_if"
    about: str
    sliders: tuple[Slider, ...]
    verdict: str
    figures: tuple[tuple[str, str, str, str], ...]
    command: str
    data_json: Markup


def evidence_of(
    profile: JobProfile, question: Question, *, tell: Callable[[str, float], None] = lambda *_: None
) -> tuple[Section, ...]:
    """The charts for a configuration of a profiled job; takes seconds, reported to ``tell``."""
    grid = grid_of(
        profile,
        question.configuration,
        nodes=question.nodes,
        rate_per_s=question.rate_per_s,
        highest_rate_per_s=question.highest_rate_per_s,
        tell=tell,
    )
    rate_outlooks = grid.at(question.nodes, question.configuration.trigger_s)
    maps = (
        trigger_map(grid, question.rate_per_s, _trigger_text),
        partitions_map(
            profile, question.configuration, nodes=question.nodes, rate_per_s=question.rate_per_s
        ),
    )
    setting = setting_text(grid.base)
    meaning = (
        "✓ meets the target, ✗ misses it, outlined: this configuration. Each cell shows the figure "
        "that is compared with the target."
    )
    return (
        Section(charts=(_panel(question, grid),)),
        Section(
            title=f"{question.name} against the rate",
            texts=(f"{setting}, no rate limit; the line ends where no latency can be quoted.",),
            charts=(_rate_chart(question, rate_outlooks),),
        ),
        Section(
            title="distribution of the latency",
            charts=tuple(
                _share_chart(question, shares) for shares in shares_of(profile, question.prediction)
            ),
        ),
        Section(
            title="feasible configurations",
            texts=(meaning,),
            charts=tuple(setting_map(question, outlook_map) for outlook_map in maps),
        ),
    )


def _rate_chart(question: Question, outlooks: Sequence[Outlook]) -> LineChart:
    rates = [outlook.rate_per_s for outlook in outlooks]
    latencies = [question.latency(outlook) for outlook in outlooks]
    values = [
        None if latency is None else latency.statistics_s[question.statistic]
        for latency in latencies
    ]
    intervals = [
        None if latency is None else latency.intervals90_s.get(question.statistic)
        for latency in latencies
    ]
    limit_s = question.target.limit_s
    highest_s = min(max(finite(values), default=limit_s), _TOP_OF_TARGET * limit_s)
    axes = Axes.of(rates, [highest_s, limit_s], format_rate, format_duration)
    return LineChart(
        name="rate-chart",
        title=question.name,
        x_title="input rate",
        ticks=axes.ticks,
        x_ticks=axes.x_ticks,
        top=axes.top,
        right=axes.right,
        lines=lines_of(axes, rates, {f"predicted {question.statistic}": values}),
        band=axes.band(
            rates,
            [None if interval is None else interval.low for interval in intervals],
            [None if interval is None else interval.high for interval in intervals],
        ),
        limit_percent=place_percent(limit_s, axes.top),
        limit_name=f"target, {question.target}",
        here_percent=place_percent(question.rate_per_s, axes.right),
        here_name=f"{format_rate(question.rate_per_s)}",
    )


def _share_chart(question: Question, shares: Shares) -> LineChart:
    is_target_metric = (question.target.metric is Metric.WINDOW) == (shares.name == "windows")
    is_target_metric = is_target_metric and question.target.metric is not Metric.BATCH
    limit_s = question.target.limit_s
    latency = (
        question.prediction.window_latency
        if shares.name == "windows"
        else question.prediction.tuple_latency
    )
    interval = None if latency is None else latency.interval90_p99_s
    beyond = [interval.high] if interval is not None and math.isfinite(interval.high) else []
    reached = [*shares.latencies_s, *([limit_s] if is_target_metric else []), *beyond]
    axes = Axes.of(reached, [1.0 / 1.08], format_duration, percent)
    kind = "tuple" if shares.name == "rows" else "window"
    return LineChart(
        name="",
        title=f"share of {shares.name} within a latency",
        x_title=f"{kind} latency",
        ticks=axes.ticks,
        x_ticks=axes.x_ticks,
        top=axes.top,
        right=axes.right,
        lines=lines_of(axes, shares.latencies_s, {shares.name: SHARES}),
        here_percent=place_percent(limit_s, axes.right) if is_target_metric else None,
        here_name=f"target, {question.target}",
        shades=(_shade(interval.low, interval.high, axes.right),) if interval is not None else (),
        shade_name="90% interval of the p99",
        shade_kind="band",
    )


def _shade(low: float, high: float, right: float) -> tuple[float, float]:
    start = place_percent(low, right)
    return start, place_percent(high, right) - start


def _panel(question: Question, grid: Grid) -> WhatIfPanel:

    targets_s = sorted({float(f"{question.target.limit_s * step:.3g}") for step in _TARGET_STEPS})
    targets_s = sorted({*targets_s, question.target.limit_s})
    rates = (
        f"below {format_rate(grid.rates_per_s[0])}",
        *map(format_rate, grid.rates_per_s),
        f"above {format_rate(grid.rates_per_s[-1])}",
    )
    nodes = (
        f"fewer than {grid.nodes[0]}",
        *(f"{count:,}" for count in grid.nodes),
        f"more than {grid.nodes[-1]:,}",
    )
    sliders = (
        Slider(
            name="rate",
            label="input rate",
            stops=rates,
            start=1 + grid.rates_per_s.index(question.rate_per_s),
        ),
        Slider(
            name="target",
            label=f"target for the {question.statistic}",
            stops=tuple(map(format_duration, targets_s)),
            start=targets_s.index(question.target.limit_s),
        ),
        Slider(
            name="nodes", label="nodes", stops=nodes, start=1 + grid.nodes.index(question.nodes)
        ),
        Slider(
            name="trigger",
            label="trigger interval",
            stops=tuple(map(_trigger_text, grid.triggers_s)),
            start=grid.triggers_s.index(question.configuration.trigger_s),
        ),
    )
    cost = question.cost_per_node_hour
    per_month = None if cost is None else cost * HOURS_PER_MONTH
    base = grid.base
    command = (
        f"headway predict {shlex.quote(question.profile_file)} --rate {{rate}}/s "
        f"--trigger {{trigger}}s --executors {{executors}} --cores {base.cores_per_executor} "
        f"--partitions {base.shuffle_partitions}"
    )
    if base.task_cpus > 1:
        command += f" --task-cpus {base.task_cpus}"
    data = {
        "rates": grid.rates_per_s,
        "nodes": grid.nodes,
        "triggers": grid.triggers_s,
        "targets": targets_s,
        "stops": {slider.name: slider.stops for slider in sliders},
        "statistic": 1 + ("mean", "p50", "p95", "p99").index(question.statistic),
        "statistic_name": question.statistic,
        "executors_per_node": grid.executors_per_node,
        "cost_per_node_month": per_month,
        "command": command,
        "cells": [_numbers(question, outlook) for outlook in grid.outlooks],
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return WhatIfPanel(
        about=(
            f"Predicted beforehand for {base.cores_per_executor} cores per executor, "
            f"{base.shuffle_partitions} shuffle partitions and no rate limit; other values are not "
            f"computed.{_difference_text(question, grid)}"
        ),
        sliders=sliders,
        verdict="",
        figures=_figures(question, per_month),
        command="",
        data_json=Markup(text.replace("<", "\\u003c")),
    )


def _difference_text(question: Question, grid: Grid) -> str:
    """A note, if the plan assumes other durations than its profile contains."""
    row = grid.at(question.nodes, question.configuration.trigger_s)
    grid_latency = row[grid.rates_per_s.index(question.rate_per_s)].prediction.latency(
        question.target.metric
    )
    planned = question.prediction.latency(question.target.metric)
    if grid_latency is None or planned is None:
        return ""
    if math.isclose(grid_latency.p99_s, planned.p99_s, rel_tol=_SAME_WITHIN):
        return ""
    return (
        " Like 'headway predict', it assumes the profiled cores; the plan assumes others, so its "
        "own figures differ."
    )


def _figures(question: Question, per_month: float | None) -> tuple[tuple[str, str, str, str], ...]:
    """Name, label, value and text of the figures that sliders change; the script fills them in."""
    names = [("high", f"{question.statistic} up to"), *((name, name) for name in _STATISTICS)]
    names += [("load", "utilisation"), ("stable", "stable up to")]
    if per_month is not None:
        names.append(("cost", "cost per month"))
    return tuple((name, label, "", "-") for name, label in names)


_STATISTICS = ("mean", "p50", "p95", "p99")


def _numbers(question: Question, outlook: Outlook) -> list[object]:
    """A cell for the page: state, statistics, low and high, utilisation, bound, calibrated."""
    prediction = outlook.prediction
    latency = question.latency(outlook)
    load, max_rate_per_s = prediction.utilization_ratio, prediction.sustainable_rate_per_s
    tail = [_short(100 * load), _short(max_rate_per_s), int(prediction.calibrated)]
    if latency is None:
        state = outlook.state if outlook.state != "ok" else "close"
        return [state, None, None, None, None, None, None, *tail]
    interval = latency.intervals90_s.get(question.statistic)
    low = None if interval is None else _short(interval.low)
    values = [_short(value) for value in latency.statistics_s.values()]
    return ["ok", *values, low, _short(upper_s(latency, question.statistic)), *tail]


def _short(value: float) -> float | None:
    """Four digits: far more precise than the one per cent that a reader may rely on."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _trigger_text(trigger_s: float) -> str:
    return trigger_words(trigger_s).removeprefix("every ")
