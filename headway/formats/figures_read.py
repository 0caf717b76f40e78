"""Results whose JSON is read only to be shown: a headline, figures, and lists as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headway.units import counted

Scalar: TypeAlias = str | int | float | bool | None
_MOST_LISTED = 8
_MOST_ROWS = 500
_MOST_LEVELS = 12
#: What a page calls a result, by the schema of its JSON.
KINDS = {
    "headway.prediction/v1": "Headway prediction",
    "headway.dstreams-prediction/v1": "Headway prediction of a DStreams application",
    "headway.dstreams-plan/v1": "Headway plan of a DStreams application",
    "headway.real-time-prediction/v1": "Headway prediction in Real-Time Mode",
    "headway.real-time-plan/v1": "Headway plan in Real-Time Mode",
    "headway.pipeline-prediction/v1": "Headway prediction of a pipeline",
    "headway.pipeline-plan/v1": "Headway plan of a pipeline",
    "headway.pipeline-simulation/v1": "Headway simulation of a pipeline",
    "headway.ordered-prediction/v1": "Headway prediction of ordered operators",
    "headway.ordered-plan/v1": "Headway plan of ordered operators",
    "headway.ordered-simulation/v1": "Headway simulation of ordered operators",
    "headway.policies/v1": "Headway simulation of policies",
    "headway.schedule/v1": "Headway verdict on a schedule",
    "headway.explored/v1": "Headway exploration",
    "headway.windows/v1": "Headway verdict on shared windows",
    "headway.keys/v1": "Headway plan of keys",
    "headway.diff/v1": "Headway comparison",
    "headway.watch/v1": "Headway look at a running query",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """A list of a result: the name of each column as its path of keys, `a/b`, then the rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresRead:
    """A result as its command printed it with ``--json``, in the order of its keys."""

    kind: str
    headline: str
    verdict: bool | None
    figures: tuple[tuple[str, Scalar], ...]
    tables: tuple[TableRead, ...]


def figures_read(data: Mapping[str, Any], kind: str) -> FiguresRead:
    """The headline, the figures and the tables of a result.

    Examples
    --------
    >>> plan = figures_read(
    ...     {"schema": "x", "feasible": True, "rounds": [{"nodes": 2, "proof": {"gap": 0}}]}, "Plan"
    ... )
    >>> plan.headline, plan.verdict, plan.figures
    ('Plan', True, (('feasible', True),))
    >>> plan.tables
    (TableRead(name='rounds', columns=('nodes', 'proof/gap'), rows=((2, 0),)),)
    """
    headline = data.get("headline")
    verdicts = (data.get(key) for key in ("feasible", "pays", "stable", "keeps_up"))
    content = {key: value for key, value in data.items() if key not in ("schema", "headline")}
    return FiguresRead(
        kind=kind,
        headline=headline if isinstance(headline, str) and headline else kind,
        verdict=next((verdict for verdict in verdicts if isinstance(verdict, bool)), None),
        figures=tuple(_figures(content)),
        tables=tuple(_tables(content)),
    )


def _figures(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Scalar]]:
    """Single values with the path of their keys; lists that make a table are left out."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            if not _is_table(value) and before.count("/") < _MOST_LEVELS:
                yield from _figures(value, f"{before}{key}/")
        elif isinstance(value, list):
            if value and not any(isinstance(element, Mapping | list) for element in value):
                yield f"{before}{key}", _listed(value)
        else:
            yield f"{before}{key}", value


def _listed(values: Sequence[Scalar]) -> str:
    shown = ", ".join(
        f"{scalar:.4g}" if isinstance(scalar, float) else str(scalar)
        for scalar in values[:_MOST_LISTED]
    )
    num_more = len(values) - _MOST_LISTED
    return shown if num_more <= 0 else f"{shown} and {counted(num_more, 'more', 'more')}"


def _tables(data: Mapping[str, Any], before: str = "") -> Iterator[TableRead]:
    for key, value in data.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and _is_table(value):
            yield _table(name, [{"": row_name, **columns} for row_name, columns in value.items()])
        elif isinstance(value, Mapping) and before.count("/") < _MOST_LEVELS:
            yield from _tables(value, f"{name}/")
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            yield _table(name, value)


def _is_table(value: Mapping[str, Any]) -> bool:
    """Whether a mapping has a row for each name, all of the same keys."""
    rows = list(value.values())
    return (
        len(rows) > 1
        and all(isinstance(row, Mapping) for row in rows)
        and len({tuple(row) for row in rows}) == 1
    )


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> TableRead:
    flat = [dict(_figures(row)) for row in rows[:_MOST_ROWS]]
    columns = tuple(dict.fromkeys(column for row in flat for column in row))
    return TableRead(
        name=name,
        columns=columns,
        rows=tuple(tuple(row.get(column) for column in columns) for row in flat),
    )
