"""Runs one setting of a user's query, and compares what ran with what was requested."""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headway.assumptions import advice
from headway.domain import Configuration, ObservedSetting, QuerySetting
from headway.domain.argument_values import require_running
from headway.errors import HeadwayError, InputError, first_line
from headway.runtime.given import options_set, require_built_query, require_no_connect
from headway.units import counted, format_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Build: TypeAlias = "Callable[[SparkSession, QuerySetting], StreamingQuery]"
_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_POLL_EVERY_S = 0.2


def session_slots(spark: SparkSession) -> Configuration:
    """The resources of a session, as a configuration; its trigger and partitions have no meaning.

    Raises InputError if it is a session of Spark Connect, in which jobs and tasks cannot be
    recorded.
    """
    require_no_connect(
        spark,
        "hides what tasks cost",
        "give one that runs in this process, e.g. "
        "SparkSession.builder.master('local[2]').getOrCreate()",
    )
    require_running(spark)
    context = spark.sparkContext
    cores = int(spark.conf.get("spark.executor.cores", None) or 0)
    executors = int(spark.conf.get("spark.executor.instances", None) or 0)
    if str(context.master).startswith("local") or not (cores and executors):
        executors, cores = 1, context.defaultParallelism
    return Configuration(
        executors=executors,
        cores_per_executor=cores,
        shuffle_partitions=int(spark.conf.get(_PARTITIONS_KEY) or 200),
        trigger_s=0.0,
    )


def run_setting(
    spark: SparkSession,
    build: Build,
    setting: QuerySetting,
    *,
    run_s: float,
    enough_batches: float = math.inf,
) -> str:
    """Run a query at a setting for a given time; returns the id of the query.

    ``build`` starts it with the setting; see :class:`headway.QuerySetting`. It ends earlier after
    ``enough_batches``, at most a hundred. The session's shuffle partitions are restored afterwards.

    Raises InputError if the function does not return a running query of this session, or ignores
    the checkpoint; HeadwayError if the query fails.
    """
    if setting.checkpoint is not None:
        shutil.rmtree(setting.checkpoint, ignore_errors=True)
    with options_set(spark, {_PARTITIONS_KEY: str(setting.shuffle_partitions)}):
        query = build(spark, setting)
        require_built_query(query)
        try:
            _wait(query, run_s, enough_batches)
        finally:
            with contextlib.suppress(Exception):
                query.stop()
        query_id = str(query.id)
    if setting.checkpoint is not None and not Path(setting.checkpoint).exists():
        raise InputError(
            f"the query does not use the checkpoint of its setting, {setting.checkpoint}; start it "
            "with .option('checkpointLocation', setting.checkpoint)"
        )
    return query_id


def require_followed(setting: QuerySetting, observed: ObservedSetting) -> None:
    """Refuse a run whose function ignored a part of its setting, and name the part."""
    requested, actual = setting.configuration, observed.configuration
    limit = requested.max_offsets_per_trigger
    if actual.shuffle_partitions != requested.shuffle_partitions:
        _ignored(
            counted(requested.shuffle_partitions, "shuffle partition"),
            f"{actual.shuffle_partitions}; leave spark.sql.shuffle.partitions alone",
        )
    allowed_ratio = 1.0 + advice.IGNORED_LIMIT_RATIO.value
    # A source that replays rows at the requested rate needs no limit.
    rate_per_s = setting.rate_per_s
    at_rate = rate_per_s is not None and observed.rate_per_s <= allowed_ratio * rate_per_s
    if limit is not None and not at_rate and observed.rows_per_batch_high > allowed_ratio * limit:
        _ignored(
            f"at most {limit:,} rows per batch",
            f"{observed.rows_per_batch_high:,.0f}; give the reader "
            ".options(**setting.reader_options), or take setting.rate_per_s for the rate of the "
            "source",
        )
    if requested.trigger_s == 0 and actual.trigger_s > 0:
        _ignored(
            "batches as fast as possible",
            f"one every {format_duration(actual.trigger_s)}; start it with "
            ".trigger(**setting.trigger), from a source that has rows at any moment",
        )
    pauses = observed.batch_duration_mean_s < advice.SURELY_PAUSED_RATIO.value * requested.trigger_s
    if requested.trigger_s != actual.trigger_s and pauses:
        _ignored(
            f"a trigger of {format_duration(requested.trigger_s)}",
            f"{format_duration(actual.trigger_s)}; start it with .trigger(**setting.trigger)",
        )


def _ignored(requested: str, actual: str) -> None:
    raise InputError(f"the query ignores its setting: asked for {requested}, it ran with {actual}")


def _wait(query: StreamingQuery, run_s: float, enough_batches: float) -> None:
    """Wait for a given time after its first batch, and longer if it has had few batches by then.

    The first batch may take as long as the start of a session. Enough batches end it at once.
    """
    ends_s = time.monotonic() + advice.FIRST_BATCH_WITHIN_S.value
    longest_s: float | None = None
    while time.monotonic() < ends_s or (
        longest_s is not None
        and time.monotonic() < longest_s
        and _num_batches(query) < advice.BATCHES_OF_A_RUN.value
    ):
        if not query.isActive:
            error = query.exception()
            why = "" if error is None else f": {first_line(error)}"
            raise HeadwayError(f"the query ended before its time{why}")
        if longest_s is None and query.lastProgress:
            ends_s = time.monotonic() + run_s
            longest_s = ends_s + advice.LONGEST_RUN_RATIO.value * run_s
        if enough_batches < math.inf and _num_batches(query) >= enough_batches:
            return
        time.sleep(_POLL_EVERY_S)
    if longest_s is None:
        raise HeadwayError(
            f"the query had no batch within {format_duration(advice.FIRST_BATCH_WITHIN_S.value)}; "
            "expected a source that has rows"
        )


def _num_batches(query: StreamingQuery) -> int:
    """Batches with rows among the last hundred."""
    return sum(1 for progress in query.recentProgress if progress["numInputRows"] > 0)
