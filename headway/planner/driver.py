"""What the driver can do: it launches every task itself, one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.resources import LAUNCHES_PER_S
from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric


def most_launches_per_s(profile: JobProfile) -> float:
    """Tasks per second that a driver is known to launch: as expected, or as seen if that is more.

    Notes
    -----
    theory.md (P18).
    """
    seen = (
        float(
            launches_per_s(
                profile,
                one.configuration.shuffle_partitions,
                max(one.configuration.trigger_s, one.batch_duration_mean_s),
            )
        )
        for one in profile.settings
        if one.batch_duration_mean_s > 0.0
    )
    return max(LAUNCHES_PER_S.value, 0.0, *seen)


def launches_per_s(
    profile: JobProfile, partitions: int | NDArray[np.int_], interval_s: Numeric
) -> Array:
    """Tasks that settings launch per second, a batch in every interval [1/s].

    Notes
    -----
    theory.md (P18).
    """
    tasks = sum(
        partitions if stage.num_source_tasks is None else stage.num_source_tasks
        for stage in profile.stages
    )
    return np.asarray(tasks / np.maximum(interval_s, 1e-6))
