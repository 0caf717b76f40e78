"""Calls that wait, many at once, their results in the order of the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from headway.errors import InputError, require_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
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
    """Rows through a function that waits, such as a lookup over the network, in their order.

    Each task calls the function for ``at_once`` rows at a time. Results leave in the order of the
    rows, so that those of a key keep theirs; a slow call holds back at most ``buffer`` results.

    Parameters
    ----------
    df : DataFrame
        A stream or a table.
    call : callable
        Takes a row (columns by name), gives a tuple of the columns of ``output``. It runs in
        threads and must be safe to call again: Spark repeats a task that failed.
    output : str
        Columns of the result in Spark's words, e.g. ``"card string, score double"``.
    at_once : int
        Calls at a time in each task.
    buffer : int, optional
        Most rows that are called and have not left; four times ``at_once`` by default.
    retries : int
        How often a call that raised is made again. If it still raises, the task fails.

    Returns
    -------
    DataFrame
        One row for each row of ``df``, without a watermark.

    Raises
    ------
    InputError
        If a number is out of range or a column of ``output`` cannot be made of Python's values.
    """
    require_packages("logs", "ordered_map", "pandas", "pyarrow")
    most = _BUFFERED_PER_CALL * at_once if buffer is None else buffer
    if at_once < 1 or most < at_once or retries < 0:
        raise InputError(
            f"at_once={at_once}, buffer={most}, retries={retries}; expected at least one call at "
            "once, a buffer of at least as many rows, and 0 retries or more"
        )
    from headway.runtime.ordered.arrow_types import arrow_schema, spark_schema

    schema = spark_schema(df, output)
    made = arrow_schema(schema)

    def mapped(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from headway.runtime.ordered.bucket import as_kept, named_rows
        from headway.runtime.ordered.kept_state import table_of

        tables = (as_kept(pa.Table.from_batches([batch])) for batch in batches)
        rows = (row for table in tables for row in named_rows(table))
        results = in_order(rows, call, at_once=at_once, buffer=most, retries=retries)
        for some in _portions(results, _ROWS_PER_BATCH):
            for row in some:
                if not isinstance(row, tuple | list) or len(row) != len(made):
                    raise InputError(
                        f"call returned {row!r}; expected a tuple of {', '.join(made.names)}"
                    )
            yield from table_of(some, made, "output").to_batches()

    return df.mapInArrow(mapped, schema)


def in_order(
    given: Iterable[_Given],
    call: Callable[[_Given], _Found],
    *,
    at_once: int,
    buffer: int,
    retries: int = 0,
) -> Iterator[_Found]:
    """Results of calls in the order of what they were called with.

    At most ``buffer`` calls are made and not given out; the first that fails for good is raised in
    its place, and no call is begun after that.

    Examples
    --------
    >>> list(in_order([3, 1, 2], lambda number: 10 * number, at_once=2, buffer=2))
    [30, 10, 20]
    """

    def tried(one: _Given) -> _Found:
        for _ in range(retries):
            try:
                return call(one)
            except Exception:
                continue
        return call(one)

    calls = deque[Future[_Found]]()
    pool = ThreadPoolExecutor(at_once, "headway-ordered-map")
    try:
        for one in given:
            if len(calls) == buffer:
                yield calls.popleft().result()
            calls.append(pool.submit(tried, one))
        while calls:
            yield calls.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _portions(results: Iterable[_Found], size: int) -> Iterator[list[_Found]]:
    some = list[_Found]()
    for result in results:
        some.append(result)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some
