"""Batch durations of a query, learned while it runs, or predicted and corrected."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable

import numpy as np

from headway.assumptions import turns
from headway.domain import Z90

_MOST_BATCHES = 200
_KNOTS = 1.1
_SCORE_OF = {0.95: Z90, 0.999: 3.09}


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
        self._ratio, self._spread = 1.0, turns.FIRST_SPREAD_RATIO.value

    @property
    def are_known(self) -> bool:
        """Whether enough batches are known for a choice: for a mean, or for a line."""
        if self._predicted_s is None:
            return len(self._seen) >= turns.FEWEST_FOR_A_LINE.value
        return len(self._seen) >= turns.KNOWN_BATCHES.value

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
        rows = self.extent[1] or 1000.0
        return at_0_s, max(self._predicted_s(rows) * self._ratio - at_0_s, 0.0) / rows

    def observe(self, rows: float, duration_s: float) -> None:
        if self._left_out < turns.COMPILED_BATCHES.value:
            self._left_out += 1
            return
        self._seen.append((rows, max(duration_s, 1e-3)))
        batches = np.array(self._seen)
        if self._predicted_s is None:
            self._fit_line(batches)
            self._ratio = 1.0
            model_s = np.maximum(self._fixed_s + self._per_row_s * batches[:, 0], 1e-3)
        else:
            model_s = np.array([self._predicted_s(float(rows)) for rows in batches[-50:, 0]])
            if len(batches) >= turns.FEWEST_TO_CORRECT.value:
                self._ratio = float(np.median(batches[-50:, 1] / model_s))
        if len(batches) >= turns.FEWEST_FOR_A_LINE.value:
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
        if len(batches) >= turns.FEWEST_FOR_A_LINE.value and (spread := float(rows.var())) > 0.0:
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
