"""Many windows over one stream as one DataFrame: counted directly, from panes, or fused."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

from headway.domain.argument_values import Choice
from headway.errors import HeadwayError, InputError
from headway.formats.own_files import parse_json
from headway.runtime.given import F, folder_text, on_connect, options_set, require_no_connect
from headway.runtime.sharing import panes
from headway.runtime.sharing.aggregates import quoted
from headway.runtime.sharing.by_columns import (
    Aggregates,
    ColumnOrText,
    WindowedRows,
    either,
    window_query,
)
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.panes import WindowQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

How: TypeAlias = Literal["direct", "panes", "fused"]
GUARD_FILE = "headway-windows.json"
_CHECKPOINT = "checkpointLocation"
STRICT_KEY = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_EXCHANGE = re.compile(
    r"Exchange (\w+(?:\(.*\))?),? (?=REQUIRED_BY|REPARTITION_BY|ENSURE_REQ|\[plan_id)"
)


@overload
def shared_windows(
    df: DataFrame,
    *,
    time: ColumnOrText | None = None,
    key: Sequence[ColumnOrText] = (),
    windows: Sequence[ColumnOrText],
    aggregates: Aggregates,
    how: How = "panes",
    checkpoint: str | None = None,
) -> DataFrame: ...


@overload
def shared_windows(
    df: DataFrame,
    *window: Column,
    keys: Sequence[ColumnOrText] = (),
    how: How = "panes",
    checkpoint: str | None = None,
) -> WindowedRows[DataFrame]: ...


def shared_windows(
    df: DataFrame,
    *window: Column,
    keys: Sequence[ColumnOrText] = (),
    time: ColumnOrText | None = None,
    key: Sequence[ColumnOrText] = (),
    windows: Sequence[ColumnOrText] = (),
    aggregates: Aggregates | None = None,
    how: How = "panes",
    checkpoint: str | None = None,
) -> DataFrame | WindowedRows[DataFrame]:
    """Aggregates of overlapping windows, with each row counted once if they are shared.

    Either in the manner of ``groupBy``, with windows and keys as columns, then ``agg``::

        windows = F.window("ts", "1 hour", "5 minutes"), F.window("ts", "10 minutes")
        counted = headway.shared_windows(clicks, *windows, keys=["area"]).agg(
            F.count("*").alias("n"), (F.sum("price") / F.count("*")).alias("mean_price")
        )

    or with ``time``, ``key``, ``windows`` and ``aggregates``, each as text or as columns.

    Every way gives the same columns (the keys, ``window`` with ``start`` and ``end``, and the
    aggregates), and the same result rows for input rows that are on time; for a stream in append
    mode, in the same batches. So your own tests can compare with ``how="direct"``. A row that
    arrives after the watermark has passed the end of its pane is dropped from all windows, while
    ``direct`` and :func:`headway.window_log` still count it in those that are open.

    Parameters
    ----------
    df : DataFrame
        Rows; for a stream, with a watermark on its time.
    window : Column
        Windows as ``F.window`` makes them, each with a different size, all of one time.
    keys : sequence of Column or str
        Columns to group by, beside windows that are given as columns.
    time : Column or str, optional
        Column with the event time, a timestamp; required if all ``windows`` are texts.
    key : sequence of Column or str
        Columns to group by.
    windows : sequence of str or Column
        E.g. ``["1 hour every 5 minutes", "10 minutes"]``, each with a different size.
    aggregates : mapping of str to str or Column, or sequence of Column
        Name to Spark SQL, e.g. ``{"n": "count(*)", "spent": "sum(price)"}``, or columns such as
        ``F.sum("price").alias("spent")``. An expression around aggregates is calculated from
        merged aggregates. Without them, the call returns an object with ``agg(*columns)``.
    how : {"panes", "fused", "direct"}
        ``panes`` counts each row in one pane and merges panes, with two exchanges. ``fused`` does
        so with one exchange, of rows: it sets the internal Spark option
        ``spark.sql.streaming.statefulOperator.useStrictDistribution`` to false, so the query's plan
        is compared with that of its first start. ``direct`` is Spark's own window for each size.
    checkpoint : str, optional
        The folder with which the query will be started. By default that of the writer of the
        stream that is returned: ``counted.writeStream.option("checkpointLocation", FOLDER)``. Give
        it if you write a stream that is made from this one. Other windows, keys or aggregates than
        at the first start are refused.

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
    Choice(get_args(How)).read(how, "how")
    if how == "fused" and df.isStreaming:
        require_no_connect(
            df,
            "gives no access to Spark's plan, which fused windows depend on",
            "start the query in its driver, or use how='panes'",
        )
    all_windows, all_keys = either("windows", window, windows), either("keys", keys, key)

    def counted(of: Aggregates) -> DataFrame:
        rows, query = window_query(df, time=time, key=all_keys, windows=all_windows, aggregates=of)
        return _counted(rows, query, how, checkpoint)

    return WindowedRows(counted) if aggregates is None else counted(aggregates)


def _counted(df: DataFrame, query: WindowQuery, how: How, checkpoint: str | None) -> DataFrame:
    if how == "direct":
        return direct(df, query)
    is_fused = how == "fused"
    rows = _by_key(df, query, checkpoint) if is_fused else df
    windows = panes.finished(panes.merged(panes.partials(rows, query), query), query, df)
    if not df.isStreaming or (checkpoint is None and on_connect(df)):
        return windows

    def check(folder: str) -> None:
        exchanges = _one_exchange(windows) if is_fused else []
        _hold_against_first_start(df, query, how, folder, exchanges)

    if checkpoint is None:
        # A fused one is planned anew when it starts, with the option that is set then.
        options = {STRICT_KEY: "false"} if is_fused else {}
        return checked_at_start(windows, check, options=options, needs_checkpoint=is_fused)
    check(checkpoint)
    return windows


def direct(df: DataFrame, query: WindowQuery) -> DataFrame:
    """Each size by Spark's own window: the query with which sharing is compared."""
    aggregates = [F.expr(aggregate.direct).alias(aggregate.name) for aggregate in query.aggregates]
    names = [*map(quoted, query.key), "window", *(quoted(a.name) for a in query.aggregates)]
    parts = [
        df.groupBy(panes.window_of(query.time, spec), *map(quoted, query.key))
        .agg(*aggregates)
        .select(names)
        for spec in query.windows.windows
    ]
    union = functools.reduce(lambda union, part: union.unionByName(part), parts)
    return panes.with_outputs(union, query)


def _by_key(df: DataFrame, query: WindowQuery, checkpoint: str | None) -> DataFrame:
    """Rows partitioned by key once; panes and windows are then counted in the same tasks.

    A stream that is made from the result, without a checkpoint given here, is planned by Spark with
    its own exchanges.
    """
    if not query.key:
        raise InputError("how='fused' distributes rows by key; expected at least one key column")
    spark = df.sparkSession
    if df.isStreaming and checkpoint is not None:
        spark.conf.set(STRICT_KEY, "false")
    shuffle_partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or "200")
    return df.repartition(shuffle_partitions, *map(quoted, query.key))


def _one_exchange(windows: DataFrame) -> list[str]:
    """The exchange of a fused query; other numbers are refused, since state would not be found."""
    exchanges = exchanges_of(windows)
    if len(exchanges) != 1:
        raise HeadwayError(
            f"how='fused': Spark plans {len(exchanges)} exchanges ({'; '.join(exchanges)}) "
            "where one was expected; use how='panes'"
        )
    return exchanges


def exchanges_of(df: DataFrame) -> list[str]:
    """Shuffles of a query's plan, with their partitioning columns, without column numbers."""
    jvm: Any = df.sparkSession._jvm
    python_utils = jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    # A plan of its own: that of the DataFrame is kept as it was when it was first asked for.
    execution = df.select("*")._jdf.queryExecution()
    return _exchanges_in(str(python_utils.explainString(execution, "simple")))


def _exchanges_in(plan: str) -> list[str]:
    """Shuffles in the text of a physical plan.

    >>> _exchanges_in("+- Exchange hashpartitioning(area#12, 4), REPARTITION_BY_NUM, [plan_id=1]")
    ['hashpartitioning(area, 4)']
    >>> _exchanges_in("+- Exchange SinglePartition, REPARTITION_BY_NUM, [plan_id=1]")
    ['SinglePartition']
    """
    return [re.sub(r"#\d+L?|-T\d+ms", "", exchange) for exchange in _EXCHANGE.findall(plan)]


def _hold_against_first_start(
    df: DataFrame, query: WindowQuery, how: str, checkpoint: str, exchanges: Sequence[str]
) -> None:
    """Keep what the query is at its first start, and refuse another one at each later start.

    Spark compares the types of state only: state of other windows, or of another aggregate with the
    same type, would be read as if it were that of the query. ``df`` is the stream before its
    aggregation, and ``exchanges`` are the shuffles in Spark's plan, by which rows find their state.
    """
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    now = {
        "how": how,
        "time": query.time,
        "key": [f"{name} {types[name]}" for name in query.key],
        "windows": list(map(str, query.windows.windows)),
        "aggregates": [f"{name} = {text}" for name, text in query.descriptions],
        "exchanges": list(exchanges),
    }
    files, folder = SparkFiles(df.sparkSession), checkpoint.rstrip("/")
    guard_file = f"{folder}/{GUARD_FILE}"
    if files.exists(guard_file):
        first = parse_json(files.read(guard_file), name=guard_file, expected="the first start")
        for part_name, text in now.items():
            if first.get(part_name) != text:
                raise HeadwayError(
                    f"{folder}: {part_name} at the first start: {_in_words(first.get(part_name))}; "
                    f"now: {_in_words(text)}. Rows would not find their state, or that of "
                    "something else: start as before, or with a new checkpoint"
                )
        return
    if exchanges and files.exists(f"{folder}/offsets"):
        raise HeadwayError(
            f"{folder}: the checkpoint of a query that was not started as {how}; its state is "
            "elsewhere. Start the query with a new checkpoint"
        )
    files.write_new(guard_file, json.dumps(now))


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def checked_at_start(
    df: DataFrame,
    check: Callable[[str], object],
    *,
    options: Mapping[str, str] = MappingProxyType({}),
    needs_checkpoint: bool = False,
) -> DataFrame:
    """The same stream, whose writers call ``check`` with the checkpoint before they start.

    A writer of a stream that is made from this one does not. ``options`` of the session are set
    while the query starts, which keeps them from then on. With ``needs_checkpoint`` a writer
    without a checkpoint is refused; without it, there is nothing to check.
    """
    kind: Any = type(df)

    class CheckedStream(kind):  # type: ignore[misc]
        """A DataFrame of PySpark in all other respects."""

        @property
        def writeStream(self) -> Any:  # noqa: N802  # Spark's name
            return checked_writer(super().writeStream, self.sparkSession)

    def checked_writer(writer: Any, spark: SparkSession) -> Any:
        written: dict[str, object] = {}

        @contextmanager
        def noted(name: object, value: object) -> Iterator[None]:
            # Spark ignores the case of options.
            written[str(name).lower()] = value
            yield

        @contextmanager
        def all_noted(*_args: object, **named: object) -> Iterator[None]:
            written.update({name.lower(): value for name, value in named.items()})
            yield

        @contextmanager
        def checked(*_args: object, **named: object) -> Iterator[None]:
            with all_noted(**named), options_set(spark, options):
                checkpoint = written.get(_CHECKPOINT.lower())
                if checkpoint is not None:
                    check(folder_text(checkpoint))
                elif needs_checkpoint:
                    raise InputError(
                        "the writer has no checkpoint, beside which the query's plan is kept; "
                        "expected .option('checkpointLocation', FOLDER)"
                    )
                yield

        blocks: dict[str, Callable[..., AbstractContextManager[None]]] = {
            "option": noted,
            "options": all_noted,
            "start": checked,
            "toTable": checked,
        }
        for name, block in blocks.items():
            setattr(writer, name, _within(block, getattr(writer, name)))
        return writer

    # PySpark makes its DataFrames itself, so this one becomes one of the class above.
    df.__class__ = CheckedStream
    return df


def _within(
    block: Callable[..., AbstractContextManager[None]], method: Callable[..., Any]
) -> Callable[..., Any]:
    """A method of a writer, called within a block that gets its arguments."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with block(*args, **kwargs):
            return method(*args, **kwargs)

    return call
