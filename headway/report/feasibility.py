"""Maps of feasible configurations: which of them meet the target, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headway.report.what_if import MapOf, Outlook, Question, upper_s
from headway.report.wording import setting_text
from headway.units import format_duration, format_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """One configuration of a map."""

    text: str
    kind: str
    is_here: bool
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingMap:
    """A table of configurations: which of them meet the target."""

    form: ClassVar[str] = "setting_map"
    caption: str
    row_name: str
    column_name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MapCell, ...]], ...]


def setting_map(question: Question, outlook_map: MapOf) -> SettingMap:
    """A map in words, with the configuration in question marked."""
    rows = tuple(
        (label, tuple(_cell(question, outlook) for outlook in row))
        for label, row in zip(outlook_map.rows, outlook_map.outlooks, strict=True)
    )
    return SettingMap(
        caption=(
            f"{outlook_map.row_name.capitalize()} by {outlook_map.column_name} at "
            f"{format_rate(question.rate_per_s)}"
        ),
        row_name=outlook_map.row_name,
        column_name=outlook_map.column_name,
        columns=outlook_map.columns,
        rows=rows,
    )


def _cell(question: Question, outlook: Outlook) -> MapCell:
    setting, requested = outlook.prediction.configuration, question.configuration
    is_here = (
        setting.num_slots,
        setting.cores_per_executor,
        setting.shuffle_partitions,
        setting.trigger_s,
    ) == (
        requested.num_slots,
        requested.cores_per_executor,
        requested.shuffle_partitions,
        requested.trigger_s,
    )
    latency, tooltip = question.latency(outlook), setting_text(setting)
    if latency is None:
        text = "✗ over capacity" if outlook.state == "over" else "✗ saturated"
        return MapCell(text=text, kind="no", is_here=is_here, tooltip=tooltip)
    high_s = upper_s(latency, question.statistic)
    meets = high_s <= question.target.limit_s
    return MapCell(
        text=f"{'✓' if meets else '✗'} {format_duration(high_s)}",
        kind="yes" if meets else "no",
        is_here=is_here,
        tooltip=tooltip if outlook.prediction.calibrated else f"{tooltip} (extrapolated)",
    )
