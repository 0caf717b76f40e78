"""Maps of feasible configurations: which of them meet the target, as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from headway.domain import JobProfile, Prediction
from headway.report.charts import Chart
from headway.report.what_if import Grid, Question, is_over, predicted_at, upper_s
from headway.report.wording import setting_text, trigger_text
from headway.units import format_duration, format_rate

_PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 200)
_CORES = (1, 2, 4, 8, 16)
_MOST_ROWS = 7
_place_of = attrgetter("num_slots", "cores_per_executor", "shuffle_partitions", "trigger_s")


def trigger_map(question: Question, grid: Grid) -> Chart:
    """Trigger interval by nodes at the requested rate."""
    rate_index = grid.rates_per_s.index(question.rate_per_s)
    rows = [
        (trigger_text(trigger_s), [grid.at(count, trigger_s)[rate_index] for count in grid.nodes])
        for trigger_s in grid.triggers_s
    ]
    return _setting_map(question, "trigger interval", rows, "nodes", grid.nodes)


def partitions_map(question: Question, profile: JobProfile) -> Chart:
    """Shuffle partitions by cores per executor at the requested rate."""
    base = replace(question.configuration, max_offsets_per_trigger=None)
    cores = [count for count in _around(_CORES, base.cores_per_executor) if count >= base.task_cpus]
    rows = []
    for parts in _around(_PARTITIONS, base.shuffle_partitions):
        settings = [
            replace(base, shuffle_partitions=parts, cores_per_executor=count) for count in cores
        ]
        row = [predicted_at(profile, setting, question.rate_per_s) for setting in settings]
        rows.append((f"{parts:,}", row))
    return _setting_map(question, "shuffle partitions", rows, "cores per executor", cores)


def _around(values: Sequence[int], center: int) -> list[int]:
    """The values nearest to a given one, which is included."""
    nearest_first = sorted({*values, center}, key=lambda value: abs(math.log2(value / center)))
    return sorted(nearest_first[:_MOST_ROWS])


def _setting_map(
    question: Question,
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


def _cell(question: Question, prediction: Prediction) -> tuple[str, str, bool, str]:
    """Text, whether it meets the target, whether it is the one in question, and tooltip."""
    setting = prediction.configuration
    is_here = _place_of(setting) == _place_of(question.configuration)
    latency, tooltip = question.latency(prediction), setting_text(setting)
    if latency is None:
        text = "✗ over capacity" if is_over(prediction) else "✗ saturated"
        return text, "no", is_here, tooltip
    high_s = upper_s(latency, question.statistic)
    meets = high_s <= question.target.limit_s
    return (
        f"{'✓' if meets else '✗'} {format_duration(high_s)}",
        "yes" if meets else "no",
        is_here,
        tooltip if prediction.calibrated else f"{tooltip} (extrapolated)",
    )
