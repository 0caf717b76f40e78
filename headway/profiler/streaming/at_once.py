"""How many batches of an application ran at the same time as those of a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.models.arrays import Array
from headway.profiler.rows import Record
from headway.profiler.streaming.batch_samples import is_timed
from headway.profiler.streaming.samples import BatchSample

_ALONE = 1.005


class BatchesOfApplication:
    """When the batches of all queries of an application ran.

    Batches of the same query follow each other, so of a query alone one runs at a time.

    Parameters
    ----------
    reports : sequence of Record
        Progress of all queries of the application, of which that without times is left out. What
        is reported twice counts once.

    Examples
    --------
    >>> phases_s = {"triggerExecution": 2.0}
    >>> reports = [
    ...     {"run_id": f"r{run}", "batch_id": 0, "started_s": float(run), "phases_s": phases_s}
    ...     for run in (0, 1)
    ... ]
    >>> float(BatchesOfApplication(reports)._until(np.array(2.0)))
    3.0
    """

    def __init__(self, reports: Sequence[Record]) -> None:
        by_batch = {
            (report["run_id"], report["batch_id"]): report for report in reports if is_timed(report)
        }
        timed = list(by_batch.values())
        starts_s = np.array([report["started_s"] for report in timed], dtype=np.float64)
        durations_s = [report["phases_s"]["triggerExecution"] for report in timed]
        ends_s = starts_s + np.array(durations_s, dtype=np.float64)
        instants_s = np.concatenate([starts_s, ends_s])
        changes = np.concatenate([np.ones_like(starts_s), -np.ones_like(ends_s)])
        order = np.argsort(instants_s, kind="stable")
        self._instants_s = instants_s[order]
        num_running = np.cumsum(changes[order])
        passed_s = np.diff(self._instants_s)
        self._batch_s = np.concatenate([[0.0], np.cumsum(num_running[:-1] * passed_s)])

    def mean_at_once(self, batches: Sequence[BatchSample]) -> float | None:
        """Batches that ran at once while those of a query ran; None if no other query's did.

        The mean over the time of the batches of the query, which are among those that are counted.
        """
        starts_s = np.array([batch.started_s for batch in batches])
        durations_s = np.array([batch.duration_s for batch in batches])
        if not len(self._instants_s):
            return None
        batch_s = self._until(starts_s + durations_s) - self._until(starts_s)
        mean = float(batch_s.sum() / durations_s.sum())
        return mean if mean > _ALONE else None

    def _until(self, at_s: Array) -> Array:
        """Total time of all batches until some instants [s]; linear between starts and ends."""
        return np.asarray(np.interp(at_s, self._instants_s, self._batch_s))
