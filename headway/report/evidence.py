"""Parts of a page that need a profile: charts of the latency, maps, and the what-if."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter

from markupsafe import Markup

from headway.digits import rounded_down
from headway.domain import Configuration, JobProfile, Metric, Prediction
from headway.domain.sheet import Section
from headway.domain.target import targets_text
from headway.models.job.predict import predict
from headway.planner.tasks import with_source_partitions
from headway.report.axes import (
    HEADROOM_RATIO,
    Axes,
    durations,
    labelled_steps,
    place_percent,
    rates,
    shares,
)
from headway.report.charts import Chart, LineChart
from headway.report.what_if import SHARES, Grid, WhatIf, grid_of, is_over, shares_of, upper_s
from headway.report.wording import setting_text, trigger_text
from headway.units import HOURS_PER_MONTH, counted, format_duration, format_rate

_STATISTICS = ("mean", "p50", "p95", "p99")
_SAME_WITHIN = 0.01
_TOP_OF_TARGET = 2.5  # the rate chart shows this many times the limit
_TOP_OF_LOWEST = 1.5  # or this many times the lowest latency, if all of them are far above it
_LINE_ENDS = {
    "rates": "the line ends at the last computed rate",
    "quoted": "the line ends where no latency can be quoted",
    "chart": "the line goes on above the chart",
    "never": "no latency can be quoted at any of these rates",
}
_TARGET_STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 200)
_CORES = (1, 2, 4, 8, 16)
_MOST_ROWS = 7
_place_of = attrgetter("num_slots", "cores_per_executor", "shuffle_partitions", "trigger_s")


def evidence_of(
    profile: JobProfile, question: WhatIf, *, tell: Callable[[str, float], None] = lambda *_: None
) -> tuple[Section, ...]:
    """The charts for a configuration of a profiled job; takes seconds, reported to ``tell``."""
    source_partitions = question.prediction.source_partitions
    profile = with_source_partitions(profile, source_partitions)
    grid = grid_of(profile, question, tell)
    maps = (_trigger_map(question, grid), _partitions_map(question, profile))
    distributions = tuple(
        _share_chart(question, name, latencies_s)
        for name, latencies_s in shares_of(profile, question.prediction).items()
    )
    rate_chart = _rate_chart(question, grid)
    return (
        Section(charts=(_panel(question, grid, profile.baseline.task_cpus),)),
        Section(title=f"{question.name} against the rate", charts=(rate_chart,)),
        Section(title="distribution of the latency", charts=distributions),
        Section(
            title="feasible configurations", texts=tuple(_about_maps(question, maps)), charts=maps
        ),
    )


def _about_maps(question: WhatIf, maps: Sequence[Chart]) -> Iterator[str]:
    """What the marks in the maps mean, and which target they are about."""
    target = question.target if question.also else "the target"
    outlined = ""
    if any(is_here for chart in maps for _, cells in chart["rows"] for _, _, is_here, _ in cells):
        outlined = f", outlined: {'this configuration' if question.is_met else 'the nearest plan'}"
    yield (
        f"✓ meets {target}, ✗ misses it{outlined}. Each cell shows the figure that is compared "
        "with the target."
    )
    if question.also:
        yield _alone_text(question)


def _alone_text(question: WhatIf) -> str:
    """That the other targets of a plan are not looked at here."""
    verb = "is" if len(question.also) == 1 else "are"
    return f"Only {question.target} is looked at here; {targets_text(question.also)} {verb} not."


def _rate_chart(question: WhatIf, grid: Grid) -> LineChart:
    """The latency against the rate, which the script of the page draws anew for other settings."""
    rates_per_s, statistic = grid.rates_per_s, question.statistic
    row = grid.at(question.nodes, question.configuration.trigger_s)
    latencies = [question.latency(prediction) for prediction in row]
    values_s = [
        None if latency is None else latency.statistics_s[statistic] for latency in latencies
    ]
    intervals = [
        None if latency is None else latency.intervals90_s.get(statistic) for latency in latencies
    ]
    limit_s = question.target.limit_s
    axes = Axes.of(rates_per_s, [limit_s, _highest_s(values_s, limit_s)], rates, durations)
    setting = setting_text(grid.base, question.prediction.source_partitions)
    return LineChart(
        name="rate-chart",
        caption=f"{setting}, no rate limit; {_end_text(values_s, axes.top)}.",
        title=question.name,
        x_title="input rate",
        axes=axes,
        lines={f"predicted {statistic}": axes.pieces(rates_per_s, values_s)},
        band=axes.band(rates_per_s, intervals),
        limit_percent=place_percent(limit_s, axes.top),
        limit_name=f"target, {question.target}",
        here_percent=place_percent(question.rate_per_s, axes.right),
        here_name=format_rate(question.rate_per_s),
    )


def _highest_s(values_s: Sequence[float | None], limit_s: float) -> float:
    """The latency up to which lines are drawn: they rise without end towards saturation."""
    finite_s = [value_s for value_s in values_s if value_s is not None and math.isfinite(value_s)]
    if not finite_s:
        return limit_s
    return min(max(finite_s), max(_TOP_OF_TARGET * limit_s, _TOP_OF_LOWEST * min(finite_s)))


def _end_text(values_s: Sequence[float | None], top_s: float) -> str:
    """Why a line over the rates ends."""
    drawn = [
        index for index, value_s in enumerate(values_s) if value_s is not None and value_s <= top_s
    ]
    if not drawn:
        return _LINE_ENDS["never"]
    if drawn[-1] == len(values_s) - 1:
        return _LINE_ENDS["rates"]
    behind_s = values_s[drawn[-1] + 1]
    is_quoted = behind_s is not None and math.isfinite(behind_s)
    return _LINE_ENDS["chart" if is_quoted else "quoted"]


def _share_chart(question: WhatIf, name: str, latencies_s: Sequence[float]) -> LineChart:
    """The distribution of the latency of ``rows`` or ``windows``."""
    target, prediction = question.target, question.prediction
    is_of_windows = name == "windows"
    is_target_metric = target.metric is (Metric.WINDOW if is_of_windows else Metric.TUPLE)
    latency = prediction.window_latency if is_of_windows else prediction.tuple_latency
    interval = None if latency is None else latency.interval90_p99_s
    beyond = [interval.high] if interval is not None and not interval.is_open else []
    reached = [*latencies_s, *([target.limit_s] if is_target_metric else []), *beyond]
    axes = Axes.of(reached, [1.0 / HEADROOM_RATIO], durations, shares)
    shades: tuple[tuple[float, float], ...] = ()
    if interval is not None:
        low, high = (place_percent(end, axes.right) for end in (interval.low, interval.high))
        shades = ((low, high - low),)
    return LineChart(
        title=f"share of {name} within a latency",
        x_title=f"{'window' if is_of_windows else 'tuple'} latency",
        axes=axes,
        lines={name: axes.pieces(latencies_s, SHARES)},
        here_percent=place_percent(target.limit_s, axes.right) if is_target_metric else None,
        here_name=f"target, {target}",
        shades=shades,
        shade_name="90% interval of the p99",
        shade_kind="band",
    )


def _panel(question: WhatIf, grid: Grid, profiled_task_cpus: float) -> Chart:
    """Sliders (name, label, stops in words, start), the figures that they change, and the grid."""
    base, limit_s = grid.base, question.target.limit_s
    targets_s = sorted({limit_s, *(float(f"{limit_s * step:.3g}") for step in _TARGET_STEPS)})
    rate_stops = tuple(map(format_rate, grid.rates_per_s))
    rate_stops = (f"below {rate_stops[0]}", *rate_stops, f"above {rate_stops[-1]}")
    nodes = tuple(f"{count:,}" for count in grid.nodes)
    nodes = (f"fewer than {grid.nodes[0]}", *nodes, f"more than {nodes[-1]}")
    targets, target = tuple(map(format_duration, targets_s)), f"target for the {question.statistic}"
    triggers, trigger_s = tuple(map(trigger_text, grid.triggers_s)), base.trigger_s
    sliders = (
        ("rate", "input rate", rate_stops, 1 + grid.rates_per_s.index(question.rate_per_s)),
        ("target", target, targets, targets_s.index(limit_s)),
        ("nodes", "nodes", nodes, 1 + grid.nodes.index(question.nodes)),
        ("trigger", "trigger interval", triggers, grid.triggers_s.index(trigger_s)),
    )
    cost, command = question.cost_per_node_hour, _command(question, base, profiled_task_cpus)
    data = {
        "rates": grid.rates_per_s,
        "nodes": grid.nodes,
        "triggers": grid.triggers_s,
        "targets": targets_s,
        "stops": {name: stops for name, _, stops, _ in sliders},
        "statistic": 1 + _STATISTICS.index(question.statistic),
        "statistic_name": question.statistic,
        "target_names": [str(replace(question.target, limit_s=limit_s)) for limit_s in targets_s],
        "alone": "; the other targets are not looked at" if question.also else "",
        **_drawn_anew(question, grid, targets_s),
        "executors_per_node": grid.executors_per_node,
        "cost_per_node_month": None if cost is None else cost * HOURS_PER_MONTH,
        "command": command,
        "cells": [_numbers(question, prediction) for prediction in grid.predictions],
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return {
        "form": "what_if",
        "about": (
            f"Predicted beforehand for {counted(base.cores_per_executor, 'core')} per executor, "
            f"{counted(base.shuffle_partitions, 'shuffle partition')} and no rate limit; other "
            f"values are not computed.{_difference_text(question, grid)}"
            + (f" {_alone_text(question)}" if question.also else "")
        ),
        "has_command": bool(command),
        "sliders": sliders,
        "figures": (
            ("high", f"{question.statistic} up to"),
            *((name, name) for name in _STATISTICS),
            *(("load", "utilisation"), ("stable", "stable up to")),
            *(() if cost is None else (("cost", f"{question.currency or 'cost'} per month"),)),
        ),
        "data_json": Markup(text.replace("<", "\\u003c")),
    }


def _command(question: WhatIf, base: Configuration, profiled_task_cpus: float) -> str:
    """What predicts a stop of the sliders; empty if no file contains the job."""
    if not question.profile_file:
        return ""
    command = (
        f"headway predict {shlex.quote(question.profile_file)} --rate {{rate}}/s "
        f"--trigger {{trigger}}s --executors {{executors}} --cores {base.cores_per_executor} "
        f"--partitions {base.shuffle_partitions}"
    )
    if base.task_cpus != profiled_task_cpus:
        command += f" --task-cpus {base.task_cpus}"
    if question.prediction.source_partitions is not None:
        command += f" --source-partitions {question.prediction.source_partitions}"
    return command


def _drawn_anew(question: WhatIf, grid: Grid, targets_s: Sequence[float]) -> dict[str, object]:
    """What the script of the page needs to draw the chart over the rates for another setting."""
    settings = [
        setting_text(
            replace(grid.base, executors=nodes * grid.executors_per_node, trigger_s=trigger_s),
            question.prediction.source_partitions,
        )
        for nodes, trigger_s in product(grid.nodes, grid.triggers_s)
    ]
    latencies = filter(None, map(question.latency, grid.predictions))
    values_s = (latency.statistics_s[question.statistic] for latency in latencies)
    finite_s = filter(math.isfinite, values_s)
    highest_s = max(_TOP_OF_TARGET * targets_s[-1], _TOP_OF_LOWEST * max(finite_s, default=0.0))
    return {
        "settings": settings,
        "line_ends": _LINE_ENDS,
        "top": {
            "of_target": _TOP_OF_TARGET,
            "of_lowest": _TOP_OF_LOWEST,
            "headroom": HEADROOM_RATIO,
        },
        "steps": list(labelled_steps(targets_s[0], HEADROOM_RATIO * highest_s, durations)),
    }


def _difference_text(question: WhatIf, grid: Grid) -> str:
    """A note, if the plan assumes other durations than its profile contains."""
    row = grid.at(question.nodes, question.configuration.trigger_s)
    grid_latency = row[grid.rates_per_s.index(question.rate_per_s)].latency(question.target.metric)
    planned = question.prediction.latency(question.target.metric)
    if grid_latency is None or planned is None:
        return ""
    if math.isclose(grid_latency.p99_s, planned.p99_s, rel_tol=_SAME_WITHIN):
        return ""
    return (
        " Like 'headway predict', it assumes the profiled cores; the plan assumes others, so its "
        "own figures differ."
    )


def _numbers(question: WhatIf, prediction: Prediction) -> list[object]:
    """A cell for the page: state, statistics, low and high, utilisation, bound, calibrated."""
    latency = question.latency(prediction)
    load, max_rate_per_s = prediction.utilization_ratio, prediction.sustainable_rate_per_s
    tail = [_short(100 * load), _rounded_down(max_rate_per_s), int(prediction.calibrated)]
    if latency is None:
        return ["over" if is_over(prediction) else "close", *[None] * 6, *tail]
    interval = latency.intervals90_s.get(question.statistic)
    low = None if interval is None else _short(interval.low)
    values = map(_short, latency.statistics_s.values())
    return ["ok", *values, low, _short(upper_s(latency, question.statistic)), *tail]


def _rounded_down(rate_per_s: float) -> float | None:
    """Three digits that still hold, as they are printed."""
    return rounded_down(rate_per_s) if math.isfinite(rate_per_s) else None


def _short(value: float) -> float | None:
    """Four digits: far more precise than the one per cent that a reader may rely on."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _trigger_map(question: WhatIf, grid: Grid) -> Chart:
    """Trigger interval by nodes at the requested rate."""
    rate_index = grid.rates_per_s.index(question.rate_per_s)
    rows = [
        (trigger_text(trigger_s), [grid.at(count, trigger_s)[rate_index] for count in grid.nodes])
        for trigger_s in grid.triggers_s
    ]
    return _setting_map(question, "trigger interval", rows, "nodes", grid.nodes)


def _partitions_map(question: WhatIf, profile: JobProfile) -> Chart:
    """Shuffle partitions by cores per executor at the requested rate."""
    base = replace(question.configuration, max_offsets_per_trigger=None)
    arrivals = replace(profile.arrivals, rate_per_s=question.rate_per_s)
    cores = [count for count in _around(_CORES, base.cores_per_executor) if count >= base.task_cpus]
    rows = []
    for parts in _around(_PARTITIONS, base.shuffle_partitions):
        setting = replace(base, shuffle_partitions=parts)
        settings = [replace(setting, cores_per_executor=count) for count in cores]
        rows.append((f"{parts:,}", [predict(profile, size, arrivals) for size in settings]))
    return _setting_map(question, "shuffle partitions", rows, "cores per executor", cores)


def _around(values: Sequence[int], center: int) -> list[int]:
    """The values nearest to a given one, which is included."""
    nearest_first = sorted({*values, center}, key=lambda value: abs(math.log2(value / center)))
    return sorted(nearest_first[:_MOST_ROWS])


def _setting_map(
    question: WhatIf,
    row_name: str,
    rows: Sequence[tuple[str, Sequence[Prediction]]],
    column_name: str,
    columns: Sequence[int],
) -> Chart:
    """A table of configurations by two settings: which meet the target, and the one in question."""
    rate = format_rate(question.rate_per_s)
    return {
        "form": "setting_map",
        "caption": f"{row_name.capitalize()} by {column_name} at {rate}",
        "row_name": row_name,
        "column_name": column_name,
        "columns": [f"{count:,}" for count in columns],
        "rows": [
            (label, [_cell(question, prediction) for prediction in predictions])
            for label, predictions in rows
        ],
    }


def _cell(question: WhatIf, prediction: Prediction) -> tuple[str, str, bool, str]:
    """Text, whether it meets the target, whether it is the one in question, and tooltip."""
    setting = prediction.configuration
    is_here = _place_of(setting) == _place_of(question.configuration)
    latency, tooltip = question.latency(prediction), setting_text(setting)
    if latency is None:
        text = "✗ over capacity" if is_over(prediction) else "✗ saturated"
        return text, "no", is_here, tooltip
    high_s = upper_s(latency, question.statistic)
    is_met = high_s <= question.target.limit_s
    sign, kind = ("✓", "yes") if is_met else ("✗", "no")
    # A plan that misses its targets is not shown as one that meets them.
    is_here = is_here and (question.is_met or not is_met)
    certainty = "" if prediction.calibrated else " (extrapolated)"
    return f"{sign} {format_duration(high_s)}", kind, is_here, f"{tooltip}{certainty}"
