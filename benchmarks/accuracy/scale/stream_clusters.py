"""Which cluster carries which rate, and at what latency: told from the runs of smaller clusters.

Thirty-four runs of half an hour: two Kafka topics, parsed, joined and put into windows by one
Structured Streaming query that runs as fast as possible, on 1 to 6 workers of 1 to 6 cores. No
batch duration is on record, only rates, latencies from topic to topic, and how far the output
lagged at the end.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.optimize import least_squares

from headway.models.arrays import Array

FILE = (
    "measured/Klarrio+open-stream-processing-benchmark/result-analysis/"
    "structured_streaming_scalability_last_stage_3.csv"
)
MOST_FITTED_CORES = 12
_LONGEST_CARRIED_S = 15.0
_SEARCHED_RATES_PER_S = np.geomspace(1e3, 1e6, 4000)

Duration: TypeAlias = Callable[[Array, Array, "Sequence[Run]"], Array]
"""Mean batch duration [s] by parameters and rates; ``inf`` where the backlog grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run; latencies are None where the job did not finish."""

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
        """The output kept up, and still the job did not finish."""
        return self.p50_s is None and self.delay_s < _LONGEST_CARRIED_S

    @property
    def is_carried(self) -> bool:
        """Neither the latency nor the lag at the end is of another order than at low rates."""
        return self.delay_s < _LONGEST_CARRIED_S and (self.p50_s or 0.0) < _LONGEST_CARRIED_S

    @property
    def cluster(self) -> str:
        """Workers times cores."""
        return f"{self.workers} x {self.cores_per_worker}"


def read_runs(root: Path) -> list[Run]:
    """The runs as published, but for the unit."""
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


def affine_duration_s(parameters: Array, rates_per_s: Array, runs: Sequence[Run]) -> Array:
    """Batches back to back whose duration is a line of their rows: theory.md (B3)."""
    inflation = parameters[0] * rates_per_s / _working_cores(parameters, runs)
    return np.where(inflation < 1.0, 1.0 / np.where(inflation < 1.0, 1.0 - inflation, 1.0), np.inf)


def convex_duration_s(parameters: Array, rates_per_s: Array, runs: Sequence[Run]) -> Array:
    """Batches back to back whose rows cost the more, the more of them a core has to keep.

    ``D = 1 + b x D + g (x D)^2``, ``x`` the rate per core: there is no such duration beyond a rate
    at which it is still finite.
    """
    per_core = rates_per_s / _working_cores(parameters, runs)
    slack, bend = 1.0 - parameters[0] * per_core, parameters[2] * per_core**2
    root = slack**2 - 4.0 * bend
    is_bounded = (slack > 0.0) & (root >= 0.0)
    return np.where(
        is_bounded, 2.0 / np.where(is_bounded, slack + np.sqrt(np.maximum(root, 0.0)), 1.0), np.inf
    )


def _working_cores(parameters: Array, runs: Sequence[Run]) -> Array:
    """Cores less the share of one that every worker needs for itself."""
    workers = np.array([run.workers for run in runs], dtype=np.float64)
    cores = np.array([run.cores for run in runs], dtype=np.float64)
    return cores - np.clip(parameters[1], 0.0, 0.9) * workers


@dataclass(frozen=True, slots=True)
class Law:
    """Latencies ``wait + turns * D`` with the fitted duration, for p50 and p99.

    The unit of ``D`` is the duration of a batch without rows, which is not on record; so the
    turns are seconds.
    """

    name: str
    duration: Duration
    parameters: Array  # of the duration, then waits of p50 and p99, then turns of p50 and p99

    def latencies_s(self, runs: Sequence[Run]) -> tuple[Array, Array]:
        """p50 and p99; ``inf`` where the backlog grows."""
        return _latencies_s(self.duration, self.parameters, runs)

    def capacity_per_s(self, run: Run) -> float:
        """The highest rate that the cluster of a run carries, by the rule of `Run.is_carried`."""
        asked = [run] * len(_SEARCHED_RATES_PER_S)
        duration = self.duration(self.parameters, _SEARCHED_RATES_PER_S, asked)
        p50_s = self.parameters[3] + self.parameters[5] * duration
        return float(_SEARCHED_RATES_PER_S[p50_s < _LONGEST_CARRIED_S].max(initial=0.0))


def fit(name: str, duration: Duration, runs: Sequence[Run]) -> Law:
    """Least squares on the logarithms of p50 and p99 of carried runs.

    A run that was not carried must not be: its rate is above the capacity.
    """
    carried = [run for run in runs if run.is_carried and run.p50_s is not None]
    lost = [run for run in runs if not run.is_carried]
    seen = np.log([[run.p50_s, run.p99_s] for run in carried]).T

    def residuals(logs: Array) -> Array:
        parameters = np.exp(logs)
        latencies = np.array(_latencies_s(duration, parameters, carried))
        misfit = np.log(np.minimum(latencies, 1e3)) - seen
        held = np.array(_latencies_s(duration, parameters, lost)[0])
        return np.concatenate(
            [misfit.ravel(), np.log(_LONGEST_CARRIED_S / np.minimum(held, _LONGEST_CARRIED_S))]
        )

    best = min(
        (
            least_squares(residuals, np.log(np.array(start)), method="trf", max_nfev=2000)
            for start in _starts()
        ),
        key=lambda result: float(result.cost),
    )
    return Law(name, duration, np.exp(best.x))


def _starts() -> Iterator[list[float]]:
    for per_row_s in (3e-5, 5e-5, 7e-5):
        for own_cores in (0.05, 0.3):
            for bend in (1e-10, 1e-9):
                for wait_s, turn_s in ((0.3, 2.5), (1.5, 1.5), (2.5, 0.4)):
                    yield [per_row_s, own_cores, bend, wait_s, 1.4 * wait_s, turn_s, 1.3 * turn_s]


def _latencies_s(duration: Duration, parameters: Array, runs: Sequence[Run]) -> tuple[Array, Array]:
    rates = np.array([run.rate_per_s for run in runs])
    batch = duration(parameters, rates, runs)
    return parameters[3] + parameters[5] * batch, parameters[4] + parameters[6] * batch
