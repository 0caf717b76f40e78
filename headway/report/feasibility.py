"""Maps of feasible configurations: which of them meet the target, as tables."""

from __future__ import annotations

from dataclasses import dataclass

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

    caption: str
    row_name: str
    column_name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MapCell, ...]], ...]


def setting_map(asked: Question, found: MapOf) -> SettingMap:
    """A map in words, with the configuration in question marked."""
    rows = tuple(
        (label, tuple(_cell(asked, outlook) for outlook in row))
        for label, row in zip(found.rows, found.outlooks, strict=True)
    )
    return SettingMap(
        caption=(
            f"{found.row_name.capitalize()} by {found.column_name} at "
            f"{format_rate(asked.rate_per_s)}"
        ),
        row_name=found.row_name,
        column_name=found.column_name,
        columns=found.columns,
        rows=rows,
    )


def _cell(asked: Question, outlook: Outlook) -> MapCell:
    setting, here = outlook.prediction.configuration, asked.configuration
    is_here = (
        setting.num_slots,
        setting.cores_per_executor,
        setting.shuffle_partitions,
        setting.trigger_s,
    ) == (
        here.num_slots,
        here.cores_per_executor,
        here.shuffle_partitions,
        here.trigger_s,
    )
    latency, tooltip = asked.latency(outlook), setting_text(setting)
    if latency is None:
        text = "✗ over capacity" if outlook.state == "over" else "✗ saturated"
        return MapCell(text=text, kind="no", is_here=is_here, tooltip=tooltip)
    most_s = upper_s(latency, asked.statistic)
    meets = most_s <= asked.target.limit_s
    return MapCell(
        text=f"{'✓' if meets else '✗'} {format_duration(most_s)}",
        kind="yes" if meets else "no",
        is_here=is_here,
        tooltip=tooltip if outlook.prediction.calibrated else f"{tooltip} (extrapolated)",
    )
