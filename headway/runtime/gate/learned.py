"""Batches of a query by its progress; their durations, learned or predicted and corrected."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from headway.assumptions.turns import (
    COMPILED_BATCHES,
    FEWEST_FOR_A_LINE,
    FEWEST_TO_CORRECT,
    FIRST_SPREAD_RATIO,
    KNOWN_BATCHES,
)
from headway.domain import Z90
from headway.units import ms_to_s

_MOST_BATCHES = 200
_KNOTS = 1.1
_SCORE_OF = {0.95: Z90, 0.999: 3.09}


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


class BatchDurations:
    """Durations by rows: the prediction of a profile times the observed ratio, or a line.

    >>> durations = BatchDurations()
    >>> for rows in (0, 1000, 2000, 3000) * 5:
    ...     durations.observe(rows, 0.1 + 1e-5 * rows)
    >>> round(durations.mean_s(5000.0), 3), round(durations.quantile_s(5000.0, 0.95), 3)
    (0.15, 0.15)
    """

    def __init__(self, predicted_s: Callable[[float], float] | None = None) -> None:
        self._predicted_s = None if predicted_s is None else _tabulated(predicted_s)
        self._seen: deque[tuple[float, float]] = deque(maxlen=_MOST_BATCHES)
        self._left_out = 0
        self._fixed_s, self._per_row_s = 0.5, 0.0
        self._ratio, self._spread = 1.0, FIRST_SPREAD_RATIO.value

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def are_known(self) -> bool:
        """Whether enough batches are known for a choice: for a mean, or for a line."""
        if self._predicted_s is not None:
            return len(self._seen) >= KNOWN_BATCHES.value
        return len(self._seen) >= FEWEST_FOR_A_LINE.value

    @property
    def extent(self) -> tuple[int, float]:
        """Number of batches that are known, and the rows of the largest of them."""
        return len(self._seen), max((rows for rows, _ in self._seen), default=0.0)

    @property
    def line(self) -> tuple[float, float]:
        """Time of a batch without rows, and of a row. [s, s/row]"""
        if self._predicted_s is None:
            return self._fixed_s, self._per_row_s
        at_0_s = self._predicted_s(0.0) * self._ratio
        rows = max((rows for rows, _ in self._seen), default=0.0) or 1000.0
        return at_0_s, max(self._predicted_s(rows) * self._ratio - at_0_s, 0.0) / rows

    def observe(self, rows: float, duration_s: float) -> None:
        if self._left_out < COMPILED_BATCHES.value:
            self._left_out += 1
            return
        self._seen.append((rows, max(duration_s, 1e-3)))
        batches = np.array(self._seen)
        if self._predicted_s is None:
            self._fit_line(batches)
            self._ratio = 1.0
            model_s = np.maximum(self._fixed_s + self._per_row_s * batches[:, 0], 1e-3)
        else:
            model_s = np.array(
                [self._predicted_s(float(batch_rows)) for batch_rows in batches[-50:, 0]]
            )
            if len(batches) >= FEWEST_TO_CORRECT.value:
                self._ratio = float(np.median(batches[-50:, 1] / model_s))
        if len(batches) >= FEWEST_FOR_A_LINE.value:
            log_ratios = np.log(batches[-len(model_s) :, 1] / (model_s * self._ratio))
            self._spread = float(np.sqrt(np.mean(log_ratios**2)))

    def mean_s(self, rows: float) -> float:
        """Mean duration of a batch with a number of rows. [s]"""
        if self._predicted_s is None:
            model_s = self._fixed_s + self._per_row_s * rows
        else:
            model_s = self._predicted_s(rows)
        return self._ratio * max(model_s, 1e-3)

    def quantile_s(self, rows: float, quantile: float) -> float:
        """Quantile of the duration, 0.95 or 0.999. [s]"""
        return self.mean_s(rows) * math.exp(_SCORE_OF[quantile] * self._spread)

    def _fit_line(self, batches: np.ndarray) -> None:
        rows, durations_s = batches[:, 0], batches[:, 1]
        self._per_row_s = 0.0
        if len(batches) >= FEWEST_FOR_A_LINE.value and (spread := float(rows.var())) > 0.0:
            slope = float(np.mean((rows - rows.mean()) * (durations_s - durations_s.mean())))
            self._per_row_s = max(slope / spread, 0.0)
        self._fixed_s = max(float(durations_s.mean() - self._per_row_s * rows.mean()), 1e-3)


def _tabulated(predicted_s: Callable[[float], float]) -> Callable[[float], float]:
    """A prediction by rows, computed once at each of some counts, linear in between.

    A profile's model takes longer than a decision may, and is nearly linear over a tenth more rows.

    >>> table = _tabulated(lambda rows: 0.1 + 1e-5 * rows)
    >>> [round(table(rows), 6) for rows in (0.0, 0.5, 1000.0, 123456.0)]
    [0.1, 0.100005, 0.11, 1.33456]
    """

    @functools.cache
    def at_knot_s(number: int) -> float:
        return predicted_s(_knot(number))

    def interpolated_s(rows: float) -> float:
        below = -1 if rows < 1.0 else math.floor(math.log(rows, _KNOTS))
        low, high = _knot(below), _knot(below + 1)
        part = (rows - low) / (high - low)
        return (1.0 - part) * at_knot_s(below) + part * at_knot_s(below + 1)

    return interpolated_s


def _knot(number: int) -> float:
    return 0.0 if number < 0 else _KNOTS**number
