"""A stream as a log of partial windows, from which windows are computed for readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, get_args

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError
from headway.runtime.given import options_set, require_no_connect
from headway.runtime.sharing.aggregates import PREFIX, columns_of, quoted
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_batches import Emit, WindowLog, window_path
from headway.runtime.sharing.log_checkpoint import (
    marked,
    query_id_of,
    require_matching,
    watermark_of,
)
from headway.runtime.sharing.log_state import Contents
from headway.runtime.sharing.panes import (
    END,
    SIZE,
    WindowQuery,
    finished,
    merge_columns,
    partials,
    windows_of_pane,
)
from headway.runtime.sharing.stored import OLD_DATES_AS_THEY_ARE, stored_names, stored_schema
from headway.units import US_PER_MS, parse_duration_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

Sink = Callable[["DataFrame", int], object]
"""Receives the windows of a batch and its number; a repeated batch must overwrite the first."""
_PANE, _NEWEST, _CHANGED = f"{PREFIX}pane", f"{PREFIX}newest", f"{PREFIX}changed"


def window_log(
    df: DataFrame,
    *,
    time: str,
    key: Sequence[str],
    windows: Sequence[str],
    aggregates: Mapping[str, str],
    store: str,
    emit: Emit = "exact",
    delay: str | None = None,
    rollups: Sequence[str] = (),
) -> SharedLog:
    """A log of partial windows in a store, from which windows are computed batch by batch.

    Windows are those of Spark's own direct query, including late rows. ``emit="exact"`` emits them
    in the same batch as Spark without no-data batches; ``"early"`` one trigger sooner, in the batch
    that moves the watermark past their end, like Spark with no-data batches. ``"update"`` is
    Spark's update mode: each batch emits the current state of the keys and open windows for which
    it has rows. Several readers share the log (:meth:`SharedLog.add`).

    Parameters
    ----------
    df : DataFrame
        A stream, without an aggregation of its own.
    time, key, windows, aggregates
        As in :func:`headway.shared_windows`. The panes of the log permanently divide these windows.
    store : str
        A folder for the log only, on any file system that Spark writes to.
    emit : {"exact", "early", "update"}
        When windows are emitted; with ``"update"``, the sink must overwrite by key and window.
    delay : str, optional
        Delay of the watermark for a stream without ``withWatermark``, e.g. ``"10 seconds"``. The
        watermark is always Spark's own: of a union of streams with watermarks, it follows
        ``spark.sql.streaming.multipleWatermarkPolicy``.
    rollups : sequence of str, optional
        Additional windows from which larger ones are merged, if ``headway windows`` names some. By
        default none, since each kept size needs a job of its own, for which few streams save enough
        merges.

    Raises
    ------
    InputError
        If the windows cannot be shared as requested, or the store was filled with another time
        column, other keys or other aggregates; the message states why.
    """
    require_no_connect(
        df,
        "gives no access to the store, which foreachBatch fills in the driver",
        "start the log in the driver, or use shared_windows with how='panes'",
    )
    if emit not in get_args(Emit):
        raise InputError(f"emit is {emit!r}; expected one of {', '.join(get_args(Emit))}")
    query = WindowQuery.of(
        df, time=time, key=key, windows=windows, aggregates=aggregates, watermarked=False
    )
    if not df.isStreaming:
        raise InputError("a log of windows needs a stream; use shared_windows for other rows")
    delay_ms = None if delay is None else s_to_ms(parse_duration_s(delay))
    df, delay_ms = marked(df, time, delay_ms, is_early=emit == "early")
    rollup_specs = tuple(map(WindowSpec.parse, rollups))
    return SharedLog(df, query, store.rstrip("/"), emit, delay_ms, rollup_specs)


class SharedLog:
    """The log of :func:`window_log`: start it with a sink; add readers before or while it runs."""

    def __init__(
        self,
        df: DataFrame,
        query: WindowQuery,
        store: str,
        emit: Emit,
        delay_ms: int,
        rollups: tuple[WindowSpec, ...] = (),
    ) -> None:
        self._df, self._query, self._store = df, query, store
        self._files = SparkFiles(df.sparkSession)
        self._stored = stored_schema(df, query)
        self._log = WindowLog(
            self._files,
            store,
            query.windows,
            contents=_contents(query, self._stored),
            delay_ms=delay_ms,
            emit=emit,
            rollups=rollups,
        )
        self._sinks = dict[str, Sink]()
        self._checkpoint = ""
        self._query_id = ""

    def add(self, *, windows: Sequence[str], sink: Sink, name: str | None = None) -> None:
        """Pass windows to another reader, from the next batch on.

        If it is added to a log that has run, it gets the windows that begin from then on. After a
        restart, each reader must be added again, with the same name.

        Parameters
        ----------
        windows : sequence of str
            Windows that the panes of the log divide.
        sink : callable
            Called with the windows of a batch and its number; must overwrite on a repeat.
        name : str, optional
            Name of the reader; by default the text of its windows.

        Raises
        ------
        InputError
            If the log cannot compute those windows.
        """
        specs = WindowSet.parse(windows).windows
        self._add(name or ", ".join(map(str, specs)), specs, sink)

    def start(
        self,
        *,
        sink: Sink | None = None,
        checkpoint: str,
        trigger: Mapping[str, str | bool] | None = None,
        name: str | None = None,
    ) -> StreamingQuery:
        """Start the stream; ``sink`` receives the windows that the log was created with.

        Parameters
        ----------
        sink : callable, optional
            Called with the windows of a batch and its number; must overwrite on a repeat. Required
            unless readers were added.
        checkpoint : str
            The stream's own checkpoint. Store and checkpoint belong together.
        trigger : mapping, optional
            Arguments of Spark's ``trigger``, e.g. ``{"processingTime": "1 second"}``.
        name : str, optional
            Name of the Spark query.

        Raises
        ------
        InputError
            If there is neither a sink nor a reader.
        HeadwayError
            If store and checkpoint do not belong together, or one of them is an older copy.
        """
        if sink is None and not self._sinks:
            raise InputError("nothing receives the windows; name a sink, or add readers first")
        self._checkpoint, self._query_id = checkpoint.rstrip("/"), ""
        require_matching(self._files, self._checkpoint, self._store, self._log.state)
        if sink is not None:
            self._add("windows of the log", self._query.windows.windows, sink)
        writer = self._df.writeStream.foreachBatch(self._run_batch).option(
            "checkpointLocation", checkpoint
        )
        if trigger is not None:
            writer = writer.trigger(**trigger)  # type: ignore[arg-type]
        return (writer if name is None else writer.queryName(name)).start()

    def _add(self, name: str, specs: Sequence[WindowSpec], sink: Sink) -> None:
        self._log.add(name, specs)
        self._sinks[name] = sink

    def _run_batch(self, batch: DataFrame, number: int) -> None:
        store = _SparkStore(
            batch=batch,
            number=number,
            query=self._query,
            pane_ms=self._log.pane_ms,
            stored=self._stored,
            root=self._store,
            files=self._files,
            sinks=self._sinks,
        )
        # Written before the first batch, and the same for all.
        self._query_id = self._query_id or query_id_of(self._files, self._checkpoint)
        self._log.run_batch(
            number,
            store,
            watermark_ms=watermark_of(self._files, self._checkpoint, number),
            query_id=self._query_id,
        )


@dataclass(kw_only=True)
class _SparkStore:
    """Operations of the log on the rows of one batch."""

    batch: DataFrame
    number: int
    query: WindowQuery
    pane_ms: int
    stored: StructType
    root: str
    files: SparkFiles
    sinks: Mapping[str, Sink]

    def __post_init__(self) -> None:
        self._made: dict[tuple[int, int], DataFrame] = {}
        self._changed: dict[int, DataFrame] = {}

    def read_again(self) -> None:
        """Read the rows of a batch that is committed: Spark moves its watermark by rows read."""
        self.batch.write.format("noop").mode("overwrite").save()

    def write_batch(self, folder: str) -> tuple[list[int], int | None]:
        """Write partial results by pane; returns the panes, and the largest event time [ms]."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812

        # In the same pass as the rows are written.
        observation = Observation()
        newest = F.max(F.expr(f"unix_micros({quoted(self.query.time)})")).alias(_NEWEST)
        rows = partials(self.batch.observe(observation, newest), self.query, self.pane_ms)
        pane_ms = F.expr(f"unix_micros(window.start) div {US_PER_MS}")
        self._write(rows.withColumn(_PANE, pane_ms).drop("window"), folder, "pane")
        names = self.files.names(f"{self.root}/{folder}")
        panes = [int(name.removeprefix("pane=")) for name in names if name.startswith("pane=")]
        # For a batch without rows, Spark observes nothing.
        return panes, observation.get[_NEWEST] // US_PER_MS if panes else None

    def write_compacted(self, folder: str, panes: Mapping[int, Sequence[str]]) -> None:
        """Write one part for each pane."""
        paths = [path for parts in panes.values() for path in parts]
        merged = self._merged(self._read(paths, with_pane=True), _PANE)
        self._write(merged, folder, "pane")

    def make_windows(
        self, folder: str, size_ms: int, ends: Mapping[int, Sequence[str]], keep: Sequence[int]
    ) -> None:
        """One job for all due windows of a size; kept ones are read back."""
        from pyspark.sql import functions as F  # noqa: N812

        windows = {end: self._merged(self._read(paths)) for end, paths in ends.items() if paths}
        kept_windows = [
            windows[end].withColumn(_PANE, F.lit(f"{size_ms}-{end}"))
            for end in keep
            if end in windows
        ]
        if kept_windows:
            self._write(_union(kept_windows), folder, "window")
        for end, rows in windows.items():
            if end in keep:
                rows = self._read([window_path(folder, size_ms, end)])
            self._made[size_ms, end] = rows

    def make_changed(
        self, spec: WindowSpec, ends: Sequence[int], before: Sequence[str], now: Sequence[str]
    ) -> None:
        """One job for all open windows of a size, without keys that have no rows in the batch."""
        from pyspark.sql import functions as F  # noqa: N812

        rows = self._read(now, with_pane=True).withColumn(_CHANGED, F.lit(True))
        if before:
            earlier = self._read(before, with_pane=True).withColumn(_CHANGED, F.lit(False))
            rows = rows.unionByName(earlier)
        copies = windows_of_pane(f"{_PANE} * {US_PER_MS}L", [spec], self.pane_ms)
        column_names = (
            *self.query.key,
            *columns_of(a.partials for a in self.query.aggregates),
            _CHANGED,
        )
        self._changed[spec.size_ms] = (
            rows.selectExpr(*map(quoted, column_names), f"inline({copies})")
            .where(_ends_in(ends))
            .groupBy(SIZE, END, *map(quoted, self.query.key))
            .agg(*merge_columns(self.query), F.max(_CHANGED).alias(_CHANGED))
            .where(_CHANGED)
            .drop(_CHANGED)
        )

    def deliver(self, reader: str, made: Sequence[tuple[int, int]]) -> None:
        """Pass the finished columns of the windows, together, to the reader's sink."""
        from pyspark.sql import functions as F  # noqa: N812

        windows = [
            self._made[size, end]
            .withColumn(SIZE, F.lit(size).cast("bigint"))
            .withColumn(END, F.timestamp_micros(F.lit(end * US_PER_MS)))
            for size, end in made
            if (size, end) in self._made
        ]
        windows += [
            rows.where(_ends_in([end for size, end in made if size == size_ms]))
            for size_ms, rows in self._changed.items()
            if size_ms in {size for size, _ in made}
        ]
        if windows and reader in self.sinks:
            self.sinks[reader](finished(_union(windows), self.query, self.batch), self.number)

    def _read(self, paths: Sequence[str], *, with_pane: bool = False) -> DataFrame:
        """Partial results with their written schema, since looking it up would need a job."""
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.types import LongType, StructField, StructType

        panes = [StructField(_PANE, LongType())] if with_pane else []
        names = stored_names(self.query)
        fields = zip(names, self.stored.fields, strict=True)
        schema = StructType([*(StructField(n, field.dataType) for n, field in fields), *panes])
        spark = self.batch.sparkSession
        rows = spark.read.schema(schema).parquet(*(f"{self.root}/{path}" for path in paths))
        keys = zip(names, self.query.key, strict=False)
        value_names = schema.names[len(self.query.key) :]
        return rows.select(*(F.col(n).alias(key) for n, key in keys), *value_names)

    def _merged(self, parts: DataFrame, *further_keys: str) -> DataFrame:
        keys = [*further_keys, *map(quoted, self.query.key)]
        return parts.groupBy(*keys).agg(*merge_columns(self.query))

    def _write(self, rows: DataFrame, folder: str, name: str) -> None:
        """Write Parquet partitioned by pane, under a name; panes are also kept in the files.

        No column of the files has a name that a user chose, so none has that of the partitions.
        """
        from pyspark.sql import functions as F  # noqa: N812

        fields = zip(self.stored.names, stored_names(self.query), strict=True)
        by_folder = rows.select(
            *(F.col(quoted(column_name)).alias(stored) for column_name, stored in fields),
            _PANE,
            F.col(_PANE).alias(name),
        )
        with options_set(rows.sparkSession, OLD_DATES_AS_THEY_ARE):
            by_folder.write.mode("overwrite").partitionBy(name).parquet(f"{self.root}/{folder}")


def _contents(query: WindowQuery, stored: StructType) -> Contents:
    types = [(field.name, field.dataType.simpleString()) for field in stored.fields]
    num_keys = len(query.key)
    return Contents(
        time=query.time,
        key=tuple(types[:num_keys]),
        aggregates=tuple((aggregate.name, aggregate.direct) for aggregate in query.aggregates),
        columns=tuple(types[num_keys:]),
    )


def _ends_in(ends: Sequence[int]) -> str:
    return f"unix_millis({END}) IN ({', '.join(map(str, ends))})"


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda union, part: union.unionByName(part), parts)
