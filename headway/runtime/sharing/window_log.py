"""A stream as a log of partial windows, from which windows are computed for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, get_args, overload

from headway.domain.window_set import WindowSpec
from headway.errors import InputError
from headway.runtime.given import require_no_connect
from headway.runtime.sharing.by_columns import (
    Aggregates,
    ColumnOrText,
    WindowedRows,
    either,
    window_query,
    window_specs,
)
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.log_batches import Emit, WindowLog
from headway.runtime.sharing.log_state import (
    Contents,
    marked,
    query_id_of,
    require_matching,
    watermark_of,
)
from headway.runtime.sharing.log_store import Sink, SparkStore, stored_schema
from headway.runtime.sharing.panes import WindowQuery
from headway.units import parse_duration_s, s_to_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


@overload
def window_log(
    df: DataFrame,
    *,
    time: ColumnOrText | None = None,
    key: Sequence[ColumnOrText] = (),
    windows: Sequence[ColumnOrText],
    aggregates: Aggregates,
    store: str,
    emit: Emit = "exact",
    delay: str | None = None,
    rollups: Sequence[ColumnOrText] = (),
) -> SharedLog: ...


@overload
def window_log(
    df: DataFrame,
    *window: Column,
    keys: Sequence[ColumnOrText] = (),
    store: str,
    emit: Emit = "exact",
    delay: str | None = None,
    rollups: Sequence[ColumnOrText] = (),
) -> WindowedRows[SharedLog]: ...


def window_log(
    df: DataFrame,
    *window: Column,
    keys: Sequence[ColumnOrText] = (),
    time: ColumnOrText | None = None,
    key: Sequence[ColumnOrText] = (),
    windows: Sequence[ColumnOrText] = (),
    aggregates: Aggregates | None = None,
    store: str,
    emit: Emit = "exact",
    delay: str | None = None,
    rollups: Sequence[ColumnOrText] = (),
) -> SharedLog | WindowedRows[SharedLog]:
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
    window, keys, time, key, windows, aggregates
        As in :func:`headway.shared_windows`. The panes of the log permanently divide these windows.
    store : str
        A folder for the log only, on any file system that Spark writes to.
    emit : {"exact", "early", "update"}
        When windows are emitted; with ``"update"``, the sink must overwrite by key and window.
    delay : str, optional
        Delay of the watermark for a stream without ``withWatermark``, e.g. ``"10 seconds"``. The
        watermark is always Spark's own: of a union of streams with watermarks, it follows
        ``spark.sql.streaming.multipleWatermarkPolicy``.
    rollups : sequence of str or Column, optional
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
    all_windows, all_keys = either("windows", window, windows), either("keys", keys, key)

    def logged(of: Aggregates) -> SharedLog:
        rows, query = window_query(
            df, time=time, key=all_keys, windows=all_windows, aggregates=of, watermarked=False
        )
        if not df.isStreaming:
            raise InputError("a log of windows needs a stream; use shared_windows for other rows")
        delay_ms = None if delay is None else s_to_ms(parse_duration_s(delay))
        rows, delay_ms = marked(rows, query.time, delay_ms, is_early=emit == "early")
        sizes = window_specs(df, rollups).windows if rollups else ()
        return SharedLog(rows, query, store.rstrip("/"), emit, delay_ms, sizes)

    return WindowedRows(logged) if aggregates is None else logged(aggregates)


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

    def add(self, *, windows: Sequence[ColumnOrText], sink: Sink, name: str | None = None) -> None:
        """Pass windows to another reader, from the next batch on.

        If it is added to a log that has run, it gets the windows that begin from then on. After a
        restart, each reader must be added again, with the same name.

        Parameters
        ----------
        windows : sequence of str or Column
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
        specs = window_specs(self._df, windows).windows
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
        store = SparkStore(
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


def _contents(query: WindowQuery, stored: StructType) -> Contents:
    types = [(field.name, field.dataType.simpleString()) for field in stored.fields]
    num_keys = len(query.key)
    return Contents(
        time=query.time,
        key=tuple(types[:num_keys]),
        aggregates=query.descriptions,
        columns=tuple(types[num_keys:]),
    )
