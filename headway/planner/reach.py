"""Where settings have no latency whatever their law: too many task launches, unknown batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel
from headway.models.job.row_cost import known_up_to_rows
from headway.models.job.setting import settled_batch_rows
from headway.planner.tasks import launch_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Settings as parallel arrays, and how far they are within what driver and profile allow.

    Parameters
    ----------
    profile : JobProfile
        The job.
    model : DurationModel
        Mean durations of the settings by rows.
    partitions : (n,) array of int, >= 1
        Their shuffle partitions.
    trigger_s : (n,) array, >= 0
        Their trigger intervals. [s]
    """

    profile: JobProfile
    model: DurationModel
    partitions: NDArray[np.int_]
    trigger_s: Array

    def ratio(self, rate_per_s: Array, factor: Array) -> Array:
        """The worse of both ratios: there is no latency above 1. [-]"""
        launches = self.launch_ratio(rate_per_s, factor)
        if math.isinf(known_up_to_rows(self.profile)):
            return launches
        return np.maximum(launches, self.rows_ratio(rate_per_s))

    def launch_ratio(self, rate_per_s: Array, factor: Array) -> Array:
        """Tasks that the driver has to launch per second, over the rate that it can sustain. [-]

        If no batch is short enough to exceed it, the value of the shortest batch.
        """

        def of_batches(batch_rows: Array) -> Array:
            interval_s = np.maximum(self.trigger_s, factor * self.model.mean_s(batch_rows))
            return launch_ratio(self.profile, self.partitions, interval_s)

        highest = of_batches(np.zeros_like(self.trigger_s))
        if np.all(highest <= 1.0):
            return highest
        return of_batches(settled_batch_rows(self.model, rate_per_s, self.trigger_s, factor))

    def rows_ratio(self, rate_per_s: Numeric) -> Array:
        """Rows of a batch of the expected duration over those that a plan may rely on. [-]

        Notes
        -----
        theory.md (P28). 0 for profiles of several sizes.
        """
        rows = settled_batch_rows(self.model, rate_per_s, self.trigger_s)
        return np.asarray(rows / known_up_to_rows(self.profile))
