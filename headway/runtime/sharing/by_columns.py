"""Windows, keys and aggregates as PySpark's columns: taken apart into what can be shared.

The arguments of aggregates become columns of their own, so that an argument may be anything that a
column may be, and the aggregates themselves are texts over these columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError, first_line
from headway.runtime.given import F, on_connect
from headway.runtime.sharing.aggregates import is_single_call, quoted, read_aggregates
from headway.runtime.sharing.expressions import (
    Call,
    Expressions,
    children_of,
    kind_of,
    without_alias,
)
from headway.runtime.sharing.panes import WindowQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ColumnOrText: TypeAlias = "Column | str"
Aggregates: TypeAlias = "Mapping[str, ColumnOrText] | Sequence[Column]"
"""By name, or columns that name themselves: ``F.sum("price").alias("spent")``."""
_ARGUMENT, _PART = "headway_argument_", "headway_part_"
Counted = TypeVar("Counted")


def window_query(
    df: DataFrame,
    *,
    time: ColumnOrText | None,
    key: Sequence[ColumnOrText],
    windows: Sequence[ColumnOrText],
    aggregates: Aggregates,
    watermarked: bool = True,
) -> tuple[DataFrame, WindowQuery]:
    """The query over windows of a DataFrame, and the rows that it counts.

    They are those of the DataFrame, with its columns if everything is given as text, else with the
    time, the keys and the arguments of the aggregates.
    """
    for parameter, listed in (("key", key), ("windows", windows)):
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise InputError(f"{parameter} is {listed!r}; expected a list, e.g. key=['area']")
    texts = _texts(aggregates)
    is_text = texts is not None and all(isinstance(part, str) for part in (time, *key, *windows))
    # What is made of several aggregates is taken apart by Spark, which Connect does not show.
    if is_text and (on_connect(df) or all(map(is_single_call, (texts or {}).values()))):
        assert texts is not None and isinstance(time, str)
        query = WindowQuery.of(
            df,
            time=time,
            key=[str(name) for name in key],
            windows=WindowSet.parse([str(window) for window in windows]),
            aggregates=texts,
            watermarked=watermarked,
        )
        return df, query
    return _by_columns(df, time, key, windows, aggregates, watermarked)


def window_specs(df: DataFrame, windows: Sequence[ColumnOrText]) -> WindowSet:
    """Windows as texts, or as columns that ``F.window`` made of any time."""
    if isinstance(windows, str):
        raise InputError("windows is a list, e.g. windows=['1 hour every 5 minutes']")
    if all(isinstance(window, str) for window in windows):
        return WindowSet.parse([str(window) for window in windows])
    expressions = Expressions(df.sparkSession)
    return _set_of(
        WindowSpec.parse(window) if isinstance(window, str) else expressions.window(window)[1]
        for window in windows
    )


def _texts(aggregates: Aggregates) -> dict[str, str] | None:
    """Aggregates as texts by name; None if one is a column."""
    if not isinstance(aggregates, Mapping):
        return None if aggregates else {}
    texts = {name: text for name, text in aggregates.items() if isinstance(text, str)}
    return texts if len(texts) == len(aggregates) else None


def _set_of(specs: Any) -> WindowSet:
    try:
        return WindowSet.of(specs)
    except ValueError as error:
        raise InputError(f"windows: {error}") from None


def _by_columns(
    df: DataFrame,
    time: ColumnOrText | None,
    key: Sequence[ColumnOrText],
    windows: Sequence[ColumnOrText],
    aggregates: Aggregates,
    watermarked: bool,
) -> tuple[DataFrame, WindowQuery]:
    expressions = Expressions(df.sparkSession)
    for part in (*key, *(aggregates.values() if isinstance(aggregates, Mapping) else aggregates)):
        if not isinstance(part, str):
            expressions.of(part)  # refuses what is no column
    time_column, window_set = _time_and_windows(expressions, time, windows)
    key_columns = [_plain(part) if isinstance(part, str) else part for part in key]
    time_name, names, columns = _analysed(df, time_column, key_columns, aggregates)
    key_names, aggregate_names = names[: len(key)], names[len(key) :]
    calls = AggregateCalls(expressions)
    for name, column in zip(aggregate_names, columns, strict=True):
        calls.add(name, column)
    selected = {**dict(zip(key_names, key_columns, strict=True)), **calls.arguments}
    if time_name not in key_names:
        selected[time_name] = time_column
    rows = df.select(*(column.alias(name) for name, column in selected.items()))
    query = WindowQuery.of(
        rows,
        time=time_name,
        key=key_names,
        windows=window_set,
        aggregates=calls.texts,
        watermarked=watermarked,
        results=aggregate_names,
    )
    made_keys = {
        name: _shown(part)
        for name, part in zip(key_names, key, strict=True)
        if not isinstance(part, str) and _shown(part) != name
    }
    described = made_keys | {
        # PySpark shows an aggregate without its DISTINCT.
        name: calls.shown(calls.texts[name]) if name in calls.texts else _shown(column)
        for name, column in zip(aggregate_names, columns, strict=True)
    }
    return rows, replace(
        query, outputs=tuple(calls.outputs.items()), described=tuple(described.items())
    )


def _time_and_windows(
    expressions: Expressions, time: ColumnOrText | None, windows: Sequence[ColumnOrText]
) -> tuple[Column, WindowSet]:
    """The column with the time, which all windows must have, and the windows."""
    specs, times = [], {}
    if time is not None:
        time_expression = expressions.of(_plain(time) if isinstance(time, str) else time)
        times[_time_text(time_expression)] = time_expression
    for window in windows:
        if isinstance(window, str):
            specs.append(WindowSpec.parse(window))
            continue
        time_expression, spec = expressions.window(window)
        times[_time_text(time_expression)] = time_expression
        specs.append(spec)
    if len(times) != 1:
        listed = ", ".join(times) or "none"
        raise InputError(f"windows of the times {listed}; expected windows of one column")
    if not specs:
        raise InputError("windows: expected at least one window")
    (time_expression,) = times.values()
    return expressions.column(time_expression), _set_of(specs)


def _time_text(expression: Any) -> str:
    """A time in words, whether Spark has looked its column up (``df.ts``) or not."""
    return re.sub(r"#\d+|^'", "", str(expression.toString()))


def _analysed(
    df: DataFrame, time: Column, key: Sequence[Column], aggregates: Aggregates
) -> tuple[str, list[str], list[Column]]:
    """The names of the time, and of keys and aggregates; the aggregates as columns.

    What Spark would refuse of the query without sharing is refused here, in its words.
    """
    from pyspark.errors import AnalysisException

    try:
        if isinstance(aggregates, Mapping):
            columns = [
                (F.expr(part) if isinstance(part, str) else part).alias(name)
                for name, part in aggregates.items()
            ]
        else:
            columns = list(aggregates)
        if not columns:
            raise InputError("aggregates: none given; expected e.g. F.sum('price').alias('spent')")
        # The type of the time is checked later, with the watermark.
        direct = df.groupBy(F.window(time.cast("timestamp"), "1 second"), *key).agg(*columns)
        return df.select(time).columns[0], direct.columns[1:], columns
    except AnalysisException as error:
        raise InputError(f"windows, keys or aggregates: {first_line(error)}") from None


def _plain(name: str) -> Column:
    return F.col(quoted(name))


def _shown(column: object) -> str:
    """A column as PySpark shows it, without the numbers of variables of lambda functions.

    >>> class Shown:
    ...     def __repr__(self) -> str:
    ...         return "Column<'sum(transform(a, lambdafunction(x_7, x_7))) AS s'>"
    >>> _shown(Shown())
    'sum(transform(a, lambdafunction(x, x))) AS s'
    """
    text = re.sub(r"^Column<'(.*)'>$", r"\1", repr(column), flags=re.DOTALL)
    return re.sub(r"\b([xyz])_\d+\b", r"\1", text)


class AggregateCalls:
    """Aggregates given as columns, as texts over columns with their arguments.

    ``texts`` are the aggregates that are shared, ``arguments`` the columns that they are of.
    ``outputs`` are the results by name: None is the aggregate of that name, a column is made of
    several aggregates after they were merged.
    """

    def __init__(self, expressions: Expressions) -> None:
        self.texts: dict[str, str] = {}
        self.arguments: dict[str, Column] = {}
        self.outputs: dict[str, Column | None] = {}
        self._expressions = expressions
        self._argument_names: dict[str, str] = {}

    def add(self, name: str, column: Column) -> None:
        """Take an aggregate apart, or an expression around some.

        Raises InputError if it contains none, or one that does not merge from partial results.
        """
        if name in self.outputs:
            raise InputError(f"{name}: two aggregates of this name; expected different names")
        expression = without_alias(self._expressions.of(column))
        call = self._expressions.aggregate(expression)
        if call is not None:
            self.texts[name] = self._text(name, call)
            self.outputs[name] = None
            return
        merged = self._around_parts(name, expression)
        if merged is expression:
            raise InputError(
                f"{name}: {_shown(column)} aggregates nothing; expected e.g. F.sum('price')"
            )
        self.outputs[name] = self._expressions.column(merged)

    def shown(self, text: str) -> str:
        """The text of an aggregate with its arguments as they were given."""
        for name, column in self.arguments.items():
            text = text.replace(quoted(name), _shown(column))
        return text

    def _around_parts(self, name: str, expression: Any) -> Any:
        """The expression with a column in place of each aggregate."""
        call = self._expressions.aggregate(expression)
        if call is not None:
            part = f"{_PART}{len(self.texts)}"
            self.texts[part] = self._text(name, call)
            return self._expressions.of(_plain(part))
        children = children_of(expression)
        merged = [self._around_parts(name, child) for child in children]
        if all(after is before for after, before in zip(merged, children, strict=True)):
            return expression
        return self._expressions.with_children(expression, merged)

    def _text(self, name: str, call: Call) -> str:
        arguments = ", ".join(map(self._argument, call.arguments))
        distinct = "DISTINCT " if call.is_distinct else ""
        text = f"{call.name}({distinct}{arguments})"
        if call.condition is not None:
            text += f" FILTER (WHERE {self._argument(call.condition)})"
        try:
            read_aggregates({name: text})
        except InputError as error:
            raise InputError(str(error).replace(repr(text), repr(self.shown(text)))) from None
        return text

    def _argument(self, expression: Any) -> str:
        """An argument as text: literals themselves, else the column that has it."""
        kind = kind_of(expression)
        if kind == "Literal":
            return str(expression.sql())
        if kind == "UnresolvedStar":
            return "*"
        is_plain = kind in ("UnresolvedAttribute", "AttributeReference")
        shown = str(expression.toString()) if is_plain else ""
        name = self._argument_names.get(shown)
        if name is None:
            name = f"{_ARGUMENT}{len(self.arguments)}"
            self.arguments[name] = self._expressions.column(expression)
            if is_plain:
                self._argument_names[shown] = name
        return quoted(name)


class WindowedRows(Generic[Counted]):
    """Rows grouped by windows and keys, as ``groupBy`` gives them; :meth:`agg` counts them."""

    def __init__(self, count: Callable[[Aggregates], Counted]) -> None:
        self._count = count

    def agg(self, *aggregates: Column) -> Counted:
        """Count the rows of each window and key.

        Parameters
        ----------
        aggregates : Column
            Such as ``F.sum("price").alias("spent")``; an expression around aggregates is calculated
            from merged aggregates.

        Raises
        ------
        InputError
            If there is none, or one does not merge from partial results.
        """
        return self._count(aggregates)


def either(
    parameter: str, columns: Sequence[ColumnOrText], listed: Sequence[ColumnOrText]
) -> Sequence[ColumnOrText]:
    """Windows or keys, which one of two arguments has."""
    if columns and listed:
        raise InputError(f"{parameter} are given twice; expected one of {columns!r} and {listed!r}")
    return columns or listed
