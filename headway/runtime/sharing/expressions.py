"""Spark's expressions of PySpark's columns, and columns of expressions, of a classic session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.domain.window_set import WindowSpec
from headway.errors import InputError, first_line
from headway.runtime.given import F, require_no_connect
from headway.runtime.sharing.aggregates import knows_aggregate
from headway.units import US_PER_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_NO_CONNECT = (
    "does not show what a column is made of",
    "call it in the driver, or give time, key, windows and aggregates as texts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a function in an expression; its arguments and condition are expressions."""

    name: str
    arguments: Sequence[Any]
    is_distinct: bool = False
    condition: Any = None


class Expressions:
    """The expressions behind the columns of a session, which only its JVM shows."""

    def __init__(self, spark: SparkSession) -> None:
        require_no_connect(spark, *_NO_CONNECT)
        session: Any = spark
        self._session, self._jvm = session._jsparkSession, session._jvm
        # Before Spark 4 a column contains its expression.
        self._has_nodes = int(spark.version.partition(".")[0]) >= 4

    def of(self, column: object) -> Any:
        java_column = getattr(column, "_jc", None)
        if java_column is None:
            raise InputError(
                f"got {column!r}; expected a column of PySpark, e.g. F.col('area'), or a text"
            )
        return self._session.expression(java_column) if self._has_nodes else java_column.expr()

    def column(self, expression: Any) -> Column:
        """The column of an expression, for which PySpark has no call."""
        sql = self._jvm.org.apache.spark.sql
        to_java = sql.classic.ExpressionUtils.column if self._has_nodes else sql.Column
        kind: Any = type(F.lit(0))
        column: Column = kind(to_java(expression))
        return column

    def with_children(self, expression: Any, children: Sequence[Any]) -> Any:
        """The same expression of other operands."""
        return expression.withNewChildren(self._jvm.PythonUtils.toSeq(list(children)))

    def decimal_quotient(self, total: Column, count: Column, precision: int, scale: int) -> Column:
        """The division with which Spark ends the average of decimals.

        SQL has no expression for it: the type of ``total / count`` leaves room for integer digits
        that no average has, and is cut to fewer decimal places for it.
        """
        sql = self._jvm.org.apache.spark.sql
        is_ansi = str(self._session.conf().get("spark.sql.ansi.enabled")).lower() == "true"
        divide = sql.catalyst.expressions.DecimalDivideWithOverflowCheck
        kind = sql.types.DecimalType(precision, scale)
        dividend, divisor = self.of(total), self.of(count.cast("decimal(20,0)"))
        return self.column(divide(dividend, divisor, kind, None, not is_ansi))

    def aggregate(self, expression: Any) -> Call | None:
        """The call of an aggregate that an expression is; None if it is something else."""
        match kind_of(expression):
            case "UnresolvedFunction":
                call = _call_of(expression)
                return call if self._is_aggregate(call.name) else None
            case "AggregateExpression":
                function = expression.aggregateFunction()
                return Call(
                    name=str(function.prettyName()).lower(),
                    arguments=children_of(function),
                    is_distinct=bool(expression.isDistinct()),
                    condition=_value_of(expression.filter()),
                )
            case "PythonUDAF":
                return Call(name=str(expression.name()), arguments=children_of(expression))
        return None

    def window(self, column: object) -> tuple[Any, WindowSpec]:
        """The time and the windows of a column that ``F.window`` made.

        Raises InputError if it is another one, or its windows are not in whole milliseconds.
        """
        expression = without_alias(self.of(column))
        if kind_of(expression) == "UnresolvedFunction":
            call = _call_of(expression)
            if call.name == "window" and 2 <= len(call.arguments) <= 4:
                expression = self._time_window(column, call.arguments)
        if kind_of(expression) != "TimeWindow":
            raise InputError(
                f"got {column!r}; expected windows, e.g. F.window('ts', '1 hour', '5 minutes')"
            )
        lengths_us = expression.windowDuration(), expression.slideDuration(), expression.startTime()
        if any(int(length_us) % US_PER_MS for length_us in lengths_us):
            raise InputError(f"{column!r}: not in whole milliseconds")
        size_ms, slide_ms, start_ms = (int(length_us) // US_PER_MS for length_us in lengths_us)
        try:
            offset_ms = start_ms % slide_ms if slide_ms > 0 else 0
            windows = WindowSpec(size_ms=size_ms, slide_ms=slide_ms, offset_ms=offset_ms)
        except ValueError as error:
            raise InputError(f"{column!r}: {error}") from None
        return expression.timeColumn(), windows

    def _time_window(self, column: object, arguments: Sequence[Any]) -> Any:
        """Spark's own windows, which it makes of the texts when it analyses a query."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return self._jvm.org.apache.spark.sql.catalyst.expressions.TimeWindow(*arguments)
        except Py4JError as error:
            reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else ""
            raise InputError(
                f"{column!r}: {first_line(reason or error)}; expected windows, e.g. "
                "F.window('ts', '1 hour', '5 minutes')"
            ) from None

    def _is_aggregate(self, name: str) -> bool:
        """Whether a function of Spark aggregates rows, mergeable or not."""
        if knows_aggregate(name):
            return True
        entry = _value_of(self._session.sessionState().catalog().lookupBuiltinOrTempFunction(name))
        return entry is not None and str(entry.getGroup()) == "agg_funcs"


def kind_of(expression: Any) -> str:
    """The name of an expression's class."""
    return str(expression.getClass().getSimpleName())


def children_of(expression: Any) -> list[Any]:
    """The operands of an expression."""
    return _items_of(expression.children())


def without_alias(expression: Any) -> Any:
    """What an expression is called by its name."""
    while kind_of(expression) == "Alias":
        expression = expression.child()
    return expression


def _call_of(expression: Any) -> Call:
    """The call that Spark has not looked up yet."""
    return Call(
        name=str(_items_of(expression.nameParts())[-1]).lower(),
        arguments=_items_of(expression.arguments()),
        is_distinct=bool(expression.isDistinct()),
        condition=_value_of(expression.filter()),
    )


def _items_of(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _value_of(option: Any) -> Any:
    return option.get() if option.isDefined() else None
