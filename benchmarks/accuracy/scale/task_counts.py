"""One job with 1 to 70 concurrent tasks on one machine: what a shared core yields."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.models.arrays import Array
from headway.models.stages.shared_resources import (
    ThreadGroup,
    alternating_slowdown,
    slowdown_beside,
)

FILE = (
    "measured/LucaCanali+Miscellaneous/Performance_Testing/Spark_CPU_memory_load_testkit/Test_CPUs/"
    "Data/test_Spark_CPU_memory_sparkmeasure_HDP6_1_70.csv"
)


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean over the repeats: seconds by number of concurrent tasks."""

    num_tasks: Array
    job_s: Array
    repeat_spread: Array
    """Largest less smallest of the repeats, as a share of their mean."""

    @property
    def alone_s(self) -> float:
        """The job with one task at a time."""
        return float(self.job_s[0])

    @property
    def servers(self) -> float:
        """Maximum work of the machine, in tasks that run alone: that at the largest number."""
        return self.alone_s / float(self.job_s[-1])


def read_curve(root: Path) -> Curve:
    """The curve, averaged over the repeats."""
    seconds: dict[int, list[float]] = defaultdict(list)
    with (root / FILE).open() as file:
        for row in csv.DictReader(file):
            if row["Num_concurrent_tasks"]:
                seconds[int(row["Num_concurrent_tasks"])].append(float(row["job_run_time (sec)"]))
    counts = sorted(seconds)
    return Curve(
        np.array(counts, dtype=np.float64),
        np.array([np.mean(seconds[count]) for count in counts]),
        np.array([np.ptp(seconds[count]) / np.mean(seconds[count]) for count in counts]),
    )


def ideal_s(curve: Curve) -> Array:
    """Every task on a core of its own, however many there are."""
    return curve.alone_s / curve.num_tasks


def shared_cores_s(curve: Curve) -> Array:
    """Tasks that always work share the servers: theory.md (R2) with a busy share of 1."""
    slowdown = [
        float(
            slowdown_beside(
                curve.servers, [ThreadGroup(num_threads=round(count) - 1, busy_ratio=1.0)]
            )
        )
        for count in curve.num_tasks
    ]
    return np.asarray(ideal_s(curve) * np.array(slowdown))


def shared_memory_s(curve: Curve) -> Array:
    """Tasks that share one common resource and otherwise work alone: theory.md (R2).

    Each needs the resource for such a share of its time that the maximum work of the machine keeps
    the resource busy.
    """
    share = 1.0 / curve.servers
    slowdown = [
        float(alternating_slowdown(1, ThreadGroup(num_threads=round(count) - 1, busy_ratio=share)))
        for count in curve.num_tasks
    ]
    return ideal_s(curve) * (1.0 - share + share * np.array(slowdown))


def queued_memory_s(curve: Curve) -> Array:
    """The same by mean value analysis, exact for a closed network of two stations."""
    share = 1.0 / curve.servers
    waiting, seconds = 0.0, {}
    for count in range(1, round(float(curve.num_tasks[-1])) + 1):
        at_resource = share * (1.0 + waiting)
        cycle = 1.0 - share + at_resource
        waiting = count * at_resource / cycle
        seconds[count] = curve.alone_s * cycle / count
    return np.array([seconds[round(count)] for count in curve.num_tasks])
