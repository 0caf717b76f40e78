"""Blocking calls, many at the same time, with results in the order of the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from headway.domain.argument_values import Count
from headway.errors import require_packages
from headway.limits import MOST_INT
from headway.runtime.ordered.arrow_types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_BUFFERED_PER_CALL = 4
_ROWS_PER_BATCH = 1000


def ordered_map(
    df: DataFrame,
    call: Callable[[Any], tuple[Any, ...]],
    *,
    output: str,
    at_once: int = 16,
    buffer: int | None = None,
    retries: int = 0,
) -> DataFrame:
    """Apply a blocking function, such as a lookup over the network, to rows, keeping their order.

    Each task calls the function for ``at_once`` rows at the same time. Results are returned in the
    order of the rows, which also keeps the order within a key; a slow call delays at most
    ``buffer`` results.

    Parameters
    ----------
    df : DataFrame
        A stream or a table.
    call : callable
        Takes a row (columns by name) and returns a tuple of the columns of ``output``; a value that
        its column would change, e.g. 1.5 in a column of longs, ends the query. It runs in threads
        and must be safe to call again, since Spark repeats a failed task.
    output : str
        Columns of the result as a Spark schema, e.g. ``"card string, score double"``.
    at_once : int
        Calls at the same time in each task.
    buffer : int, optional
        Maximum number of rows that were called but not returned; by default four times ``at_once``.
    retries : int
        How often a call that raised an error is repeated. If it still raises, the task fails.

    Returns
    -------
    DataFrame
        One row for each row of ``df``, without a watermark.

    Raises
    ------
    InputError
        If a number is out of range, or a column of ``output`` cannot be created from Python values.
    """
    require_packages("spark", "ordered_map", "pandas", "pyarrow")
    at_once = Count(maximum=MOST_INT).read(at_once, "at_once")
    buffer_rows = _BUFFERED_PER_CALL * at_once
    if buffer is not None:
        buffer_rows = Count(minimum=at_once, maximum=MOST_INT).read(buffer, "buffer")
    retries = Count(minimum=0, maximum=MOST_INT).read(retries, "retries")
    schema = spark_schema(df, output)
    output_schema = arrow_schema(schema)

    def mapped(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from headway.runtime.ordered.bucket import as_kept, named_rows
        from headway.runtime.ordered.kept_values import output_table

        tables = (as_kept(pa.Table.from_batches([batch])) for batch in batches)
        rows = (row for table in tables for row in named_rows(table))
        results = in_order(rows, call, at_once=at_once, buffer=buffer_rows, retries=retries)
        while portion := list(islice(results, _ROWS_PER_BATCH)):
            yield from output_table(portion, output_schema, "call").to_batches()

    return df.mapInArrow(mapped, schema)


def in_order(
    arguments: Iterable[_Argument],
    call: Callable[[_Argument], _Result],
    *,
    at_once: int,
    buffer: int,
    retries: int = 0,
) -> Iterator[_Result]:
    """Results of calls in the order of their arguments.

    At most ``buffer`` calls are made but not returned. The first permanent failure is raised at its
    position, and no call is started after that.

    >>> list(in_order([3, 1, 2], lambda number: 10 * number, at_once=2, buffer=2))
    [30, 10, 20]
    """

    def tried(argument: _Argument) -> _Result:
        for _ in range(retries):
            try:
                return call(argument)
            except Exception:
                continue
        return call(argument)

    calls = deque[Future[_Result]]()
    pool = ThreadPoolExecutor(at_once, "headway-ordered-map")
    try:
        for argument in arguments:
            if len(calls) == buffer:
                yield calls.popleft().result()
            calls.append(pool.submit(tried, argument))
        while calls:
            yield calls.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
