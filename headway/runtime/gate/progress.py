"""The progress of a query, as far as the gate uses it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


class _Operator(msgspec.Struct, rename="camel"):
    num_rows_removed: int = 0
    memory_used_bytes: int = 0
    custom_metrics: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)

    @property
    def on_heap_bytes(self) -> int:
        """State on the heap; RocksDB keeps its state outside the heap."""
        is_rocksdb = any(name.startswith("rocksdb") for name in self.custom_metrics)
        return 0 if is_rocksdb else self.memory_used_bytes


class _Source(msgspec.Struct, rename="camel"):
    end_offset: msgspec.Raw = msgspec.Raw()
    metrics: dict[str, str] | None = None

    @property
    def behind_rows(self) -> float:
        """Rows in the source that the batch did not read, as Kafka reports; 0 for other sources."""
        behind = float((self.metrics or {}).get("avgOffsetsBehindLatest", 0.0))
        if not behind > 0.0:
            return 0.0
        topics = msgspec.json.decode(self.end_offset, type=dict[str, dict[str, int]])
        return behind * sum(map(len, topics.values()))


class _Progress(msgspec.Struct, rename="camel"):
    batch_id: int
    timestamp: str
    num_input_rows: int = 0
    duration_ms: dict[str, float] = msgspec.field(default_factory=dict)
    event_time: dict[str, str | None] = msgspec.field(default_factory=dict)
    state_operators: list[_Operator] = msgspec.field(default_factory=list)
    sources: list[_Source] = msgspec.field(default_factory=list)


_PROGRESS = msgspec.json.Decoder(_Progress)


def batch_seen(progress: str) -> BatchSeen:
    """A batch, from the JSON of Spark's progress."""
    batch_progress = _PROGRESS.decode(progress)
    durations_ms, operators = batch_progress.duration_ms, batch_progress.state_operators
    event = batch_progress.event_time
    watermark, newest = event.get("watermark"), event.get("max")
    return BatchSeen(
        batch_id=batch_progress.batch_id,
        start_s=_epoch_s(batch_progress.timestamp),
        rows=batch_progress.num_input_rows,
        duration_s=ms_to_s(durations_ms.get("triggerExecution", 0)),
        add_batch_s=ms_to_s(durations_ms.get("addBatch", 0)),
        commit_s=ms_to_s(durations_ms.get("commitOffsets", 0)),
        watermark_s=None if watermark is None else _epoch_s(watermark),
        newest_event_s=None if newest is None else _epoch_s(newest),
        removed_rows=float(sum(operator.num_rows_removed for operator in operators)),
        heap_state_bytes=float(sum(operator.on_heap_bytes for operator in operators)),
        behind_rows=sum(source.behind_rows for source in batch_progress.sources),
    )


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
