"""A function with state over the rows of each key in order, by buckets of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from headway.domain.argument_values import Choice
from headway.errors import InputError, MissingPackagesError, require_packages
from headway.formats.key_counts import read_shares
from headway.runtime.given import F, column_name, folder_text, is_collated, require_no_connect
from headway.runtime.ordered import arrow_types
from headway.runtime.ordered.layout import BucketLayout, partition_ids, placed_keys
from headway.runtime.sharing.aggregates import PREFIX, quoted
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.panes import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from headway.runtime.ordered.bucket import Step
    from headway.runtime.ordered.kept_state import Clock, OnTimer

Wait: TypeAlias = Literal["batch", "watermark"]
_FIRST_WITH_NEWER = (4, 3)
# Versions that 3.5.9 and 4.0.1 work with; of PyArrow, 18.1 was tested, and 26 fails.
_TOO_NEW = {"pandas": 3, "pyarrow": 19}
_KEY_TYPES = (
    "byte", "short", "integer", "long", "string", "binary", "boolean", "date", "timestamp",
    "timestamp_ntz", "decimal",
)  # fmt: skip
_NESTED = ("array", "struct", "map")
_STORE = "spark.sql.streaming.stateStore.providerClass"


def ordered(
    df: DataFrame,
    *,
    key: str | Column | Sequence[str | Column],
    by: str | Column | Sequence[str | Column],
    step: Step,
    state: str,
    output: str,
    wait: Wait = "batch",
    timer: str | None = None,
    on_timer: OnTimer | None = None,
    forget_after: str | None = None,
    clock: Clock = "event",
    place: str | Path | None = None,
    checkpoint: str | Path | None = None,
    counted_as: str = "ordered",
) -> DataFrame:
    """Call a function with the rows of each key in order, and with the state that it returned last.

    Keys share buckets, one for each shuffle partition, so Python's cost per group is paid per
    bucket and batch, not per key. State is in Spark's checkpoint. Output rows do not depend on
    partitions, placed keys, or interruptions of a run. For a table, which is one batch, the same
    call gives a result for comparison in your own tests.

    Parameters
    ----------
    df : DataFrame
        A stream without an aggregation of its own, or a table.
    key : str, Column, or sequence of them
        Columns that identify the key whose rows are kept in order; no doubles, which have no exact
        equality.
    by : str, Column, or sequence of them
        Columns of the order, ascending, nulls last. Ties are broken by all other columns. For Kafka
        rows in the order of arrival: ``["partition", "offset"]``, of a topic with that key.
    step : callable
        ``step(row, state)`` returns the state of the key after the row, and a list of output rows.
        Row and state have their columns as attributes, ``state`` is None for a new key, and a
        returned state of None removes the key. Timestamps are in UTC. Results may depend on these
        two only.
    state, output : str
        Columns as a Spark schema, e.g. ``"last double, n long"``.
    wait : {"batch", "watermark"}
        ``batch`` orders the rows of each batch. ``watermark`` holds rows until the watermark is
        past the first column of ``by``, so that rows that are late by less than its delay are put
        in order; a row that the watermark of its batch has passed is left out.
    timer : str, optional
        A timestamp column of ``state``: the time for which ``on_timer`` is to be called. Null is no
        timer. A step sets, moves or removes it by the state that it returns.
    on_timer : callable, optional
        ``on_timer(key, state)`` returns what ``step`` returns, once the timer of a key has passed.
        The key has its columns as attributes.
    forget_after : str, optional
        Time to live, e.g. ``"30 minutes"``: a key without rows for so long loses its state.
    clock : {"event", "processing"}
        Of timers and ``forget_after``. ``event``: a time has passed when the watermark is later;
        with ``wait="watermark"``, also before a row of the key with a later time. ``processing``:
        when a batch starts later. Both happen in batches without rows, too.
    place : str or Path, optional
        CSV file or JSON lines with ``key`` and ``share`` of all rows, or ``count`` if it contains
        all keys; for one key column. These keys, heaviest first, each go to the least loaded
        partition.
    checkpoint : str or Path, optional
        The folder with which the query will be started; required for streams. The buckets of keys
        are stored there.
    counted_as : str, optional
        For a stream: name in ``observedMetrics`` of each progress for how many rows of the batch
        were ``tied`` (an earlier row of the same key and batch has equal columns of ``by``),
        ``late`` and ``untimed`` (left out, since the watermark had passed them, or they have no
        time). Spark allows one ordered stream in a query: order a union, or run two queries.

    Returns
    -------
    DataFrame
        To be started in append mode if it is a stream.

    Raises
    ------
    InputError
        If the rows cannot be ordered as requested; the message states why. While the query runs, if
        a column of ``state`` or ``output`` would change a value, e.g. 1.5 in a column of longs.
    HeadwayError
        If the checkpoint was created with other keys, order, state or placed keys.
    """
    _require_packages(streaming=df.isStreaming)
    if df.isStreaming:
        require_no_connect(
            df,
            "gives no access to the checkpoint, in which the buckets of a stream's keys are stored",
            "order the stream in its driver; tables and ordered_map work here, too",
        )
    keys, order = _names("key", key), _names("by", by)
    _require_columns(df, keys, order)
    Choice(get_args(Wait)).read(wait, "wait")
    shares = dict[str, float]() if place is None else read_shares(place)
    if shares and len(keys) > 1:
        raise InputError("place is for one key column; join the columns of the key to one")
    if df.isStreaming:
        _require_orderable(df, order[0], wait, checkpoint)
    elif arrow_types.in_foreach_batch(df):
        raise InputError(
            "inside foreachBatch each batch would begin without state; call ordered on the stream "
            "itself, and foreachBatch on its result"
        )
    columns = arrow_types.spark_schema(df, state)
    output_schema = arrow_types.spark_schema(df, output)

    from headway.runtime.ordered.bucket import BUCKET, ROWS, OrderedStep, packed, unpacked
    from headway.runtime.ordered.groups import BucketCall, on_stream, on_table
    from headway.runtime.ordered.kept_state import StateForm
    from headway.runtime.ordered.plain_rows import arrive_plain, arriving, leave_plain
    from headway.runtime.ordered.time_options import key_times

    by_row = wait == "watermark"
    times = key_times(
        df,
        columns,
        order[0],
        by_row=by_row,
        timer=timer,
        on_timer=on_timer,
        forget_after=forget_after,
        clock=clock,
    )
    state_schema = arrow_types.arrow_schema(columns)
    arrow_output = arrow_types.arrow_schema(output_schema)
    StateForm(state_schema)
    as_keys = _as_keys(shares, df.schema, keys[0])
    layout = _layout(
        df,
        shares,
        checkpoint,
        key=keys,
        by=order,
        wait=wait,
        state=columns.simpleString(),
        columns=df.schema.simpleString() if by_row else None,
        clock=None if times is None else clock,
        forgets=forget_after is not None,
    )
    ordered_step = OrderedStep(
        key=keys,
        by=order,
        step=step,
        state=state_schema,
        output=arrow_output,
        held=by_row and df.isStreaming,
        logged=layout.logged,
        times=times,
    )
    placed = {as_keys[text]: bucket for text, bucket in layout.bucket_of.items()}
    by_bucket = _with_buckets(df, keys, layout.ids)
    # Packing and unpacking need a Python worker each, in every task of every batch.
    plain = df.isStreaming and not placed and not layout.logged and arrive_plain(df.schema)
    if plain:
        by_bucket = arriving(by_bucket, BUCKET)
    else:
        by_bucket = by_bucket.mapInArrow(
            partial(packed, key=keys[0], bucket_of=placed), f"{BUCKET} int, {ROWS} binary"
        )
    if not df.isStreaming:
        return on_table(by_bucket, ordered_step).mapInArrow(unpacked, output_schema)
    leaves_plain = leave_plain(output_schema)
    call = BucketCall(
        ordered_step=ordered_step,
        fingerprint=layout.fingerprint,
        clock="event" if by_row else None if times is None else clock,
        arriving=arrow_types.arrow_schema(df.schema) if plain else None,
        leaving=output_schema if leaves_plain else None,
    )
    results = on_stream(by_bucket, call, counted_as)
    return results if leaves_plain else results.mapInArrow(unpacked, output_schema)


def _require_packages(*, streaming: bool) -> None:
    """Require pandas and PyArrow; for a stream, versions with which Spark can pass state."""
    require_packages("spark", "ordered", "pandas", "pyarrow")
    if not streaming or _spark_release() >= _FIRST_WITH_NEWER:
        return
    needed = [f"{name}<{first}" for name, first in _TOO_NEW.items()]
    if any(int(version(name).split(".")[0]) >= first for name, first in _TOO_NEW.items()):
        installed = " and ".join(f"{name} {version(name)}" for name in _TOO_NEW)
        raise MissingPackagesError(
            f"a stream cannot be ordered by PySpark {version('pyspark')} with {installed}: its "
            f"applyInPandasWithState fails. Expected {' and '.join(needed)}, or PySpark 4.3. "
            "Tables and ordered_map work"
        )


def _spark_release() -> tuple[int, ...]:
    return tuple(map(int, version("pyspark").split(".")[:2]))


def _names(parameter: str, columns: str | Column | Sequence[str | Column]) -> tuple[str, ...]:
    if isinstance(columns, Sequence) and not isinstance(columns, str):
        return tuple(column_name(parameter, column) for column in columns)
    return (column_name(parameter, columns),)


def _require_columns(df: DataFrame, keys: tuple[str, ...], order: tuple[str, ...]) -> None:
    if not keys or not order:
        raise InputError(
            f"{'by' if keys else 'key'} names no column; rows are kept in order for a key, and by "
            "at least one column"
        )
    missing = [name for name in (*keys, *order) if name not in df.columns]
    if missing:
        raise InputError(
            f"no column {', '.join(missing)}; the DataFrame has {', '.join(df.columns)}"
        )
    twice = sorted({name for name in df.columns if df.columns.count(name) > 1})
    reserved = [name for name in df.columns if name.startswith(PREFIX)]
    if twice or reserved:
        raise InputError(
            f"{', '.join(twice or reserved)}: expected columns of different names, none beginning "
            f"with {PREFIX}"
        )
    for name in keys:
        kind = df.schema[name].dataType
        if kind.typeName() not in _KEY_TYPES or is_collated(kind):
            raise InputError(
                f"the key {name} is of type {kind.simpleString()}, of which equal values cannot be "
                f"found exactly; expected one of {', '.join(_KEY_TYPES)}"
            )
    collated = [name for name in order if is_collated(df.schema[name].dataType)]
    if collated:
        raise InputError(
            f"by: {', '.join(collated)} has an order of its own, by its collation; expected a "
            f"column ordered by its values: add e.g. collation_key({collated[0]}), and order by it"
        )
    nested = [name for name in order if df.schema[name].dataType.typeName() in _NESTED]
    if nested:
        raise InputError(f"by: {', '.join(nested)} has parts; expected columns of single values")


def _require_orderable(df: DataFrame, time: str, wait: Wait, checkpoint: str | Path | None) -> None:
    """Check a stream's requirements, which Spark reports less clearly when the query starts."""
    stateful = sorted(arrow_types.streaming_operators(df))
    if stateful:
        raise InputError(
            f"the stream has {', '.join(stateful)} before: its rows come in no order, and in "
            "update mode again and again; write them to a topic or table, and order that"
        )
    if checkpoint is None:
        raise InputError(
            "a stream needs checkpoint=..., the folder that the query will be started with: the "
            "buckets of the keys are stored there"
        )
    if wait != "watermark":
        return
    field = df.schema[time]
    if field.dataType.typeName() not in ("timestamp", "timestamp_ntz"):
        raise InputError(
            f"wait='watermark' holds rows by the first column of by, and {time} is of type "
            f"{field.dataType.simpleString()}; expected a timestamp"
        )
    if WATERMARK not in field.metadata:
        raise InputError(
            f"{time} has no watermark, so no row would ever leave; call "
            f"withWatermark({time!r}, '10 seconds') on the stream first"
        )


def _layout(
    df: DataFrame, shares: Mapping[str, float], checkpoint: str | Path | None, **recorded: Any
) -> BucketLayout:
    """The bucket of each key: as in the checkpoint, or by the current shuffle partitions."""
    spark = df.sparkSession
    first, folder = None, folder_text(checkpoint) if checkpoint else ""
    files = SparkFiles(spark) if df.isStreaming else None
    if files is not None:
        first = BucketLayout.of_checkpoint(files, folder)
    if first is None:
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or "200")
        ids = partition_ids(partitions)
        in_rocksdb = str(spark.conf.get(_STORE, "")).endswith("RocksDBStateStoreProvider")
        logged = files is not None and in_rocksdb and not _missing_for_pieces()
    else:
        partitions, ids, logged = first.shuffle_partitions, first.ids, first.logged
        if logged and (missing := _missing_for_pieces()):
            raise MissingPackagesError(
                f"{folder}: this checkpoint has its state in pieces, through Spark's "
                f"transformWithState; expected {missing}"
            )
    layout = BucketLayout(
        shuffle_partitions=partitions,
        ids=ids,
        bucket_of=placed_keys(shares, ids),
        logged=logged,
        **recorded,
    )
    if first is not None:
        layout.require_same(first, folder)
    elif files is not None:
        layout.keep(files, folder)
    return layout


def _missing_for_pieces() -> str:
    """What state in pieces needs and is not installed; empty if nothing is missing."""
    if _spark_release() < _FIRST_WITH_NEWER:
        return "PySpark 4.3"
    has_protobuf = find_spec("google") is not None and find_spec("google.protobuf") is not None
    return "" if has_protobuf else "the package protobuf, which PySpark needs for it"


def _as_keys(texts: Iterable[str], schema: StructType, key: str) -> dict[str, Any]:
    """Keys of a file, which are text there, as values of the column."""
    import pyarrow as pa

    texts = list(texts)
    kind = arrow_types.arrow_type(schema[key].dataType)
    try:
        values = pa.array(texts, pa.string()).cast(kind).to_pylist() if texts else []
    except pa.ArrowException as error:
        raise InputError(
            f"place: the keys cannot be read as {kind}, the type of {key}: {error}"
        ) from None
    return dict(zip(texts, values, strict=True))


def _with_buckets(df: DataFrame, keys: tuple[str, ...], ids: tuple[int, ...]) -> DataFrame:
    """Rows with the bucket of their key's hash, and text forms of nested columns to break ties."""
    from headway.runtime.ordered.bucket import BUCKET, TIE

    hashed = F.pmod(F.xxhash64(*map(quoted, keys)), F.lit(len(ids)))
    bucket = F.array(*map(F.lit, ids))[hashed.cast("int")].alias(BUCKET)
    ties = [
        F.to_json(F.struct(quoted(field.name))).alias(f"{TIE}{at}")
        for at, field in enumerate(df.schema.fields)
        if field.dataType.typeName() in _NESTED
    ]
    return df.select("*", *ties, bucket)
