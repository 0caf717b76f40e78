"""What pages say of promises that were planned and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from campaign.figures import Row

FLOOR_RATIO = 0.05
"""Two runs of one setting lie this far apart: missed by less is not missed for sure."""

KEPT_HEADER = ("| | kept | kept within 5% | missed |", "|---|---|---|---|")


def measured_s(row: Row) -> float:
    """The promised statistic as it was measured [s]."""
    return float(row["truth"]["latency"][row["statistic"]])


def of_limit(row: Row) -> float:
    """The same as a share of the limit."""
    return measured_s(row) / float(row["limit_s"])


def kept_row(name: str, rows: Iterable[Row]) -> str:
    """How many promises were kept, nearly, and missed."""
    ratios = [of_limit(row) for row in rows]
    kept = sum(ratio <= 1 for ratio in ratios)
    nearly = sum(1 < ratio <= 1 + FLOOR_RATIO for ratio in ratios)
    return f"| {name} | {kept} | {nearly} | {len(ratios) - kept - nearly} |"


def planned_text(seconds: float | None) -> str:
    """A planned latency; None where the setting is over capacity."""
    return "over capacity" if seconds is None else f"{seconds:.2f} s"


def answer_text(seconds: float | None, *, feasible: bool) -> str:
    """The planned latency of a plan, which may not be feasible."""
    return f"{'' if feasible else 'infeasible, '}{planned_text(seconds)}"


def setting_text(setting: Mapping[str, Any]) -> str:
    """Trigger and partitions."""
    trigger = f"{setting['trigger_s']:g} s" if setting["trigger_s"] else "as fast as possible"
    return f"{trigger}, {setting['partitions']} partitions"
