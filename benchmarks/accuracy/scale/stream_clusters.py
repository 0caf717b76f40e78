"""Which cluster carries which rate, and at what latency: predicted from runs of smaller ones.

Thirty-four runs of half an hour: two Kafka topics, parsed, joined and put into windows by one
Structured Streaming query that runs as fast as possible, on 1 to 6 workers of 1 to 6 cores. No
batch duration was published, only rates, latencies from topic to topic, and how far the output
lagged at the end.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from headway.models.arrays import Array

FILE = (
    "measured/Klarrio+open-stream-processing-benchmark/result-analysis/"
    "structured_streaming_scalability_last_stage_3.csv"
)
MOST_FITTED_CORES = 12
LONGEST_CARRIED_S = 15.0
# Weight of a run that is predicted to be carried and was not, relative to errors of latencies.
_NO_EXCUSE = 30.0
_WORST_S = 1e3
_STARTS = tuple(
    np.array([per_row_s, 0.3, growth, wait_s, turn_s, 1.3])
    for per_row_s, growth in ((4e-5, 0.001), (5e-5, 0.03), (6e-5, 0.01))
    for wait_s, turn_s in ((0.3, 2.5), (1.5, 1.5), (2.5, 0.4))
)
# Maximum work per second of input that Headway calls sustainable: theory.md (P3). [s]
_MOST_OFFERED_LOAD = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run; latencies are None if the job did not finish."""

    workers: int
    cores_per_worker: int
    rate_per_s: float
    delay_s: float
    p50_s: float | None
    p99_s: float | None

    @property
    def cores(self) -> int:
        """Cores of the cluster."""
        return self.workers * self.cores_per_worker

    @property
    def is_unclear(self) -> bool:
        """The output kept up, but the job did not finish."""
        return self.p50_s is None and self.delay_s < LONGEST_CARRIED_S

    @property
    def is_carried(self) -> bool:
        """The latency and the lag at the end are of the same order as at low rates."""
        return self.delay_s < LONGEST_CARRIED_S and (self.p50_s or 0.0) < LONGEST_CARRIED_S

    @property
    def cluster(self) -> str:
        """Workers times cores."""
        return f"{self.workers} x {self.cores_per_worker}"


def read_runs(root: Path) -> list[Run]:
    """The runs as published, except for the unit."""
    with (root / FILE).open() as file:
        return [
            Run(
                workers=int(row["workers"]),
                cores_per_worker=int(row["cpu_per_worker"]),
                rate_per_s=float(row["throughput_msg_per_s"]),
                delay_s=float(row["delay_time_ms"]) / 1e3,
                p50_s=float(row["p50_latency_ms"]) / 1e3 if row["p50_latency_ms"] else None,
                p99_s=float(row["p99_latency_ms"]) / 1e3 if row["p99_latency_ms"] else None,
            )
            for row in csv.DictReader(file)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Batches back to back whose duration is linear in their rows: theory.md (B3).

    Without rows a batch takes ``1 + growth_per_core * cores`` units of time; the unit is unknown,
    so ``turn_s`` is the latency that one unit adds, in seconds. p50 is a wait that does not depend
    on batches plus a number of batch durations; p99 is p50 times a ratio, since in batches back to
    back the latency of every row is a share of the same durations.
    """

    core_per_row_s: float
    own_cores: float
    growth_per_core: float
    wait_s: float
    turn_s: float
    p99_ratio: float

    def offered_load(self, run: Run) -> float:
        """Seconds of work per second of input, on the cores that workers do not keep."""
        working = run.cores - self.own_cores * run.workers
        return self.core_per_row_s * run.rate_per_s / working

    def p50_s(self, run: Run) -> float:
        """Median latency; ``inf`` if the backlog grows."""
        left = 1.0 - self.offered_load(run)
        if left <= 0.0:
            return float("inf")
        return self.wait_s + self.turn_s * (1.0 + self.growth_per_core * run.cores) / left

    def p99_s(self, run: Run) -> float:
        """Latency that one row in a hundred exceeds."""
        return self.p99_ratio * self.p50_s(run)

    def capacity_per_s(self, run: Run) -> float:
        """The highest rate that the cluster of a run is predicted to carry."""
        return _MOST_OFFERED_LOAD / self.offered_load(run) * run.rate_per_s

    def carries(self, run: Run) -> bool:
        """Whether a run is predicted to be carried."""
        return self.offered_load(run) <= _MOST_OFFERED_LOAD


def fit(runs: Sequence[Run], *, grows: bool) -> Law:
    """Least squares on the logarithms of p50 and p99 of carried runs.

    A run that was carried must be predicted as carried, and one that was not as not carried.

    Parameters
    ----------
    runs : sequence of Run
        The runs to fit.
    grows : bool
        Whether the time without rows may grow with the cores of the cluster.
    """
    carried = [run for run in runs if run.is_carried and run.p50_s is not None]
    seen = np.log(np.array([[run.p50_s, run.p99_s] for run in carried], dtype=np.float64))

    def residuals(logs: Array) -> Array:
        law = _law(logs, grows=grows)
        predicted = np.array([[law.p50_s(run), law.p99_s(run)] for run in carried])
        misfit = np.log(np.minimum(predicted, _WORST_S)) - seen
        over = [np.log(law.offered_load(run) / _MOST_OFFERED_LOAD) for run in runs]
        wrong = [
            max(value if run.is_carried else -value, 0.0)
            for run, value in zip(runs, over, strict=True)
        ]
        return np.concatenate([misfit.ravel(), _NO_EXCUSE * np.array(wrong)])

    best = min(
        (least_squares(residuals, np.log(start), max_nfev=300) for start in _STARTS),
        key=lambda result: float(result.cost),
    )
    return _law(best.x, grows=grows)


def _law(logs: Array, *, grows: bool) -> Law:
    values = np.exp(np.clip(logs, -30.0, 30.0))
    return Law(
        core_per_row_s=float(values[0]),
        own_cores=min(float(values[1]), 0.9),
        growth_per_core=float(values[2]) if grows else 0.0,
        wait_s=float(values[3]),
        turn_s=float(values[4]),
        p99_ratio=float(values[5]),
    )
