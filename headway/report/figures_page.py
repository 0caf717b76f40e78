"""The page of a result without a special page: its headline, its figures, its lists as tables."""

from __future__ import annotations

import re
from decimal import Decimal

from headway.formats.figures_read import FiguresRead, Scalar, TableRead
from headway.report.page import Origin, shortened
from headway.report.result_pages import tables_page
from headway.report.wording import percent
from headway.units import format_duration, format_rate

_UNIT = re.compile(r"_(per_s|s|ratio)(?=_|$)")
_SHARES = ("probability", "share", "utilization")
_NOT_SHOWN = "variance"  # a square of seconds says nothing to a reader
_MISSING = "-"


def figures_page(document: FiguresRead, *, origin: Origin | None = None) -> str:
    """The page of a result as its command printed it."""
    headline = shortened(document.headline)
    return tables_page(
        kind=document.kind,
        headline=headline[:1].upper() + headline[1:],
        verdict=document.verdict,
        facts=[
            (shortened(name_of(path)), figure(path, value))
            for path, value in document.figures
            if _NOT_SHOWN not in path
        ],
        tables=[_table(table) for table in document.tables],
        origin=origin,
    )


def _table(table: TableRead) -> tuple[str, list[tuple[str, ...]], list[int]]:
    """The title, the rows under a heading, and which columns are numbers."""
    shown_columns = [index for index, name in enumerate(table.columns) if _NOT_SHOWN not in name]
    rows = [tuple(shortened(name_of(table.columns[index])) for index in shown_columns)]
    rows += [
        tuple(figure(f"{table.name}/{table.columns[index]}", row[index]) for index in shown_columns)
        for row in table.rows
    ]
    numbers = [
        column
        for column, index in enumerate(shown_columns)
        if any(_is_number(row[index]) for row in table.rows)
    ]
    title = shortened(name_of(table.name))
    return title[:1].upper() + title[1:], rows, numbers


def name_of(path: str) -> str:
    """The keys of a value as words, without its unit.

    Examples
    --------
    >>> name_of("latency_s/mean"), name_of("rate_per_s"), name_of("busy_ratio/mapper")
    ('latency mean', 'rate', 'busy mapper')
    >>> name_of("mean_s_if_spread"), name_of("latency_s/p99.9")
    ('mean if spread', 'latency p99.9')
    """
    keys = (_UNIT.sub("", key).replace("_", " ") for key in path.split("/"))
    return " ".join(keys).strip()


def figure(path: str, value: Scalar) -> str:
    """A value with its unit, which is in the keys of its path.

    Examples
    --------
    >>> figure("latency_s/mean", 0.34), figure("rate_per_s", 5e4), figure("gain_ratio", 0.5)
    ('340 ms', '50k/s', '50%')
    >>> figure("feasible", True), figure("nodes", 12000), figure("reason", None)
    ('yes', '12,000', '-')
    >>> figure("rows", 1364.2), figure("executors", 2.25), figure("skew", 0.0000123)
    ('1,364', '2.25', '0.0000123')
    """
    if value is None or value == "":
        return _MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shortened(value)
    units = [match[1] for key in path.split("/") for match in _UNIT.finditer(key)]
    if "per_s" in units:
        return format_rate(float(value)) if value > 0 else "0/s"
    if "s" in units:
        return f"{'-' if value < 0 else ''}{format_duration(abs(float(value)))}"
    if "ratio" in units or any(key.endswith(_SHARES) for key in path.split("/")):
        return percent(float(value))
    if isinstance(value, int) or abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.3g}'):f}"


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
