"""Many windows over one stream as one DataFrame: counted directly, from panes, or fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from headway.errors import InputError
from headway.runtime.given import require_no_connect
from headway.runtime.sharing.aggregates import quoted
from headway.runtime.sharing.first_start import hold_against_first_start
from headway.runtime.sharing.fused import fused
from headway.runtime.sharing.panes import WindowQuery, finished, merged, partials, window_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

How: TypeAlias = Literal["direct", "panes", "fused"]


def shared_windows(
    df: DataFrame,
    *,
    time: str,
    key: Sequence[str],
    windows: Sequence[str],
    aggregates: Mapping[str, str],
    how: How = "panes",
    checkpoint: str | None = None,
) -> DataFrame:
    """Aggregates of overlapping windows, with each row counted once if they are shared.

    Every way gives the same columns (the keys, ``window`` with ``start`` and ``end``, and the
    aggregates), and the same result rows for input rows that are on time; for a stream in append
    mode, in the same batches. So your own tests can compare with ``how="direct"``. A row that
    arrives after the watermark has passed the end of its pane is dropped from all windows, while
    ``direct`` and :func:`headway.window_log` still count it in those that are open.

    Parameters
    ----------
    df : DataFrame
        Rows; for a stream, with a watermark on ``time``.
    time : str
        Column with the event time, a timestamp.
    key : sequence of str
        Columns to group by.
    windows : sequence of str
        E.g. ``["1 hour every 5 minutes", "10 minutes"]``, each with a different size.
    aggregates : mapping of str to str
        Name to Spark SQL, e.g. ``{"n": "count(*)", "spent": "sum(price)"}``.
    how : {"panes", "fused", "direct"}
        ``panes`` counts each row in one pane and merges panes, with two exchanges. ``fused`` does
        so with one exchange, of rows: it sets the internal Spark option
        ``spark.sql.streaming.statefulOperator.useStrictDistribution`` to false, so the query's plan
        is compared with that of its first start. ``direct`` is Spark's own window for each size.
    checkpoint : str, optional
        The folder with which the query will be started; required for ``fused`` streams. With it,
        other windows, keys or aggregates than at the first start are refused for ``panes``, too.

    Returns
    -------
    DataFrame
        To be started in append mode if it is a stream.

    Raises
    ------
    InputError
        If the windows cannot be shared as requested; the message states why.
    HeadwayError
        If the query, or the plan of a fused one, differs from that of its first start.
    """
    if how == "fused" and df.isStreaming:
        require_no_connect(
            df,
            "gives no access to Spark's plan, which fused windows depend on",
            "start the query in its driver, or use how='panes'",
        )
    query = WindowQuery.of(df, time=time, key=key, windows=windows, aggregates=aggregates)
    if how not in get_args(How):
        raise InputError(f"how is {how!r}; expected one of {', '.join(get_args(How))}")
    if how == "direct":
        return direct(df, query)
    if how == "panes":
        if df.isStreaming and checkpoint is not None:
            hold_against_first_start(df, query, how, checkpoint)
        return finished(merged(partials(df, query), query), query, df)
    return fused(df, query, checkpoint)


def direct(df: DataFrame, query: WindowQuery) -> DataFrame:
    """Each size by Spark's own window: the query with which sharing is compared."""
    from pyspark.sql import functions as F  # noqa: N812

    aggregates = [F.expr(aggregate.direct).alias(aggregate.name) for aggregate in query.aggregates]
    names = [
        *map(quoted, query.key),
        "window",
        *(quoted(aggregate.name) for aggregate in query.aggregates),
    ]
    parts = [
        df.groupBy(window_of(query.time, spec), *map(quoted, query.key))
        .agg(*aggregates)
        .select(names)
        for spec in query.windows.windows
    ]
    return reduce(lambda union, part: union.unionByName(part), parts)
