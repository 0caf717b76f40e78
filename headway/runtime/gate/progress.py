"""The progress of a query, as far as the gate uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from headway.units import ms_to_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """Content of the progress of a batch."""

    batch_id: int
    start_s: float
    rows: int
    duration_s: float
    add_batch_s: float
    commit_s: float
    watermark_s: float | None
    newest_event_s: float | None
    removed_rows: float
    heap_state_bytes: float
    behind_rows: float


def batch_seen(progress: str) -> BatchSeen:
    """A batch, from the JSON of Spark's progress."""
    batch = msgspec.json.decode(progress)
    durations_ms, operators = batch.get("durationMs", {}), batch.get("stateOperators", ())
    event = batch.get("eventTime", {})
    watermark, newest = event.get("watermark"), event.get("max")
    return BatchSeen(
        batch_id=batch["batchId"],
        start_s=_epoch_s(batch["timestamp"]),
        rows=batch.get("numInputRows", 0),
        duration_s=ms_to_s(durations_ms.get("triggerExecution", 0)),
        add_batch_s=ms_to_s(durations_ms.get("addBatch", 0)),
        commit_s=ms_to_s(durations_ms.get("commitOffsets", 0)),
        watermark_s=None if watermark is None else _epoch_s(watermark),
        newest_event_s=None if newest is None else _epoch_s(newest),
        removed_rows=float(sum(operator.get("numRowsRemoved", 0) for operator in operators)),
        heap_state_bytes=float(sum(map(_on_heap_bytes, operators))),
        behind_rows=sum(map(_behind_rows, batch.get("sources", ()))),
    )


def _on_heap_bytes(operator: Mapping[str, Any]) -> int:
    """State on the heap; RocksDB keeps its state outside the heap."""
    is_rocksdb = any(name.startswith("rocksdb") for name in operator.get("customMetrics", ()))
    return 0 if is_rocksdb else int(operator.get("memoryUsedBytes", 0))


def _behind_rows(source: Mapping[str, Any]) -> float:
    """Rows in the source that the batch did not read, as Kafka reports; 0 for other sources."""
    behind = float((source.get("metrics") or {}).get("avgOffsetsBehindLatest", 0.0))
    if not behind > 0.0:
        return 0.0
    return behind * sum(map(len, source["endOffset"].values()))


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
