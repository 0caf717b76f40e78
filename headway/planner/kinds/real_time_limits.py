"""What Spark does not run in Real-Time Mode, reported before anything is planned."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.assumptions.real_time import SHORTEST_BATCH_S
from headway.domain import CatchUp, JobProfile, Metric, Promise, Target
from headway.errors import InputError, argument
from headway.units import format_duration

_FIRST_SPARK, _FIRST_SPARK_WITH_STATE = (4, 1), (4, 3)
# Spark 4.3.0, RealTimeModeAllowlist, as progress and plans name them.
_STATE_OPERATORS = frozenset({"statestoresave", "dedupe", "transformwithstateexec"})
_SINKS = re.compile(r"kafka|foreachwriter|console|memory", re.IGNORECASE)
_MODE = "STREAMING_REAL_TIME_MODE"


def require_real_time(profile: JobProfile, target: Target | None = None) -> None:
    """Reject a query that Spark rejects in Real-Time Mode, or that is not modelled there."""
    why = next(iter((*_of_target(target), *_of_profile(profile), *_of_query(profile))), None)
    if why is not None:
        raise InputError(why)


def require_batch_length(batch_length_s: float) -> None:
    """Reject a batch length that is too short for Spark."""
    least_s = SHORTEST_BATCH_S.value
    if batch_length_s < least_s:
        raise InputError(
            f"a batch length of {format_duration(batch_length_s)} is too short in Real-Time Mode; "
            f"expected {argument('trigger')} of {format_duration(least_s)} or more (Spark: "
            "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL)"
        )


def require_promises(promises: list[Promise]) -> list[CatchUp]:
    """The further targets, of which those about the time after an outage can be planned for."""
    catch_ups = []
    for promise in promises:
        if not isinstance(promise, CatchUp) or promise.outage_s is None:
            raise InputError(
                f"target '{promise}': in Real-Time Mode one latency of rows is planned, e.g. "
                "'p99 <= 300ms', and at most 'catch_up <= 5m after 1m' beside it"
            )
        catch_ups.append(promise)
    return catch_ups


def _of_target(target: Target | None) -> Iterator[str]:
    if target is not None and target.metric is not Metric.TUPLE:
        yield (
            f"target '{target}': in Real-Time Mode the latency of rows is planned, e.g. "
            "'p99 <= 300ms'"
        )


def _of_profile(profile: JobProfile) -> Iterator[str]:
    if profile.declared is not None:
        yield (
            "the costs of this job were declared; for Real-Time Mode profile a log of it in "
            "micro-batches"
        )
    levels = [stage.level for stage in profile.stages]
    if len(set(levels)) < len(levels):
        yield (
            "queries whose stages run side by side, as with several sources, are not modelled in "
            "Real-Time Mode"
        )
    if profile.stages[0].num_source_tasks is None:
        yield (
            "the first stage of the profile does not read a source, as Real-Time Mode needs; "
            "profile the query anew"
        )


def _of_query(profile: JobProfile) -> Iterator[str]:
    shape, spark = profile.shape, profile.application.spark_version
    version = tuple(int(part) for part in re.findall(r"\d+", spark)[:2])
    if version < _FIRST_SPARK:
        yield (
            f"Real-Time Mode needs Spark 4.1 or later, and the profile is of {spark}; profile the "
            "query there"
        )
    if shape.stateful_operators and version < _FIRST_SPARK_WITH_STATE:
        yield (
            f"state needs Spark 4.3 or later in Real-Time Mode, and the profile is of {spark}; "
            "profile it there"
        )
    for source in shape.sources:
        if "kafka" not in source.lower():
            yield (
                f"source {source}: expected Kafka in Real-Time Mode "
                f"(Spark: {_MODE}.INPUT_STREAM_NOT_SUPPORTED)"
            )
    if not _SINKS.search(shape.sink):
        yield (
            f"sink {shape.sink}: expected Kafka, foreach, console or memory in Real-Time Mode "
            f"(Spark: {_MODE}.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST)"
        )
    if shape.output_mode not in (None, "update"):
        yield (
            f"output mode {shape.output_mode}: expected update in Real-Time Mode "
            f"(Spark: {_MODE}.OUTPUT_MODE_NOT_SUPPORTED)"
        )
    refused = [
        *(
            operator
            for operator in shape.stateful_operators
            if operator.lower() not in _STATE_OPERATORS
        ),
        *(join for join in shape.joins if not join.startswith("BroadcastHashJoin")),
        *shape.python_operators,
    ]
    for name in refused:
        yield (
            f"operator {name}: expected only projections, filters, aggregates, dropDuplicates, "
            "transformWithState and joins with a broadcast table in Real-Time Mode "
            f"(Spark: {_MODE}.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST)"
        )
