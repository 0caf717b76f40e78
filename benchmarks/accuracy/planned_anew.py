"""The promises that were planned and run, planned again by the code as it is now.

What was run stays what it was: it tells whether the setting kept the promise. Beside it stand what
the profile now expects of that setting, without any margin, and whether a plan would now be found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from campaign.reading import MeasuredGroup
from campaign.schedule import FIT
from planned_runs import GROUP, PLANNED, Asked, planned

from headway.domain import Arrivals, Configuration
from headway.models.job.predict import predict

Row = dict[str, Any]


def planned_anew(measured: MeasuredGroup, rows: Iterable[Row]) -> Iterator[Row]:
    """One line for each plan that was run."""
    profiles = {
        name: measured.fitted_on([row for row in measured.of(name) if row["role"] == FIT])
        for name in PLANNED
    }
    for row in rows:
        profile, setting = profiles[row["workload"]], row["setting"]
        asked = Asked(
            name=row["name"],
            workload=row["workload"],
            rate_per_s=row["rate_per_s"],
            target=row["target"],
            pinned_partitions=row["pinned_partitions"],
        )
        plan = planned(profile, asked)
        expected = predict(
            profile,
            Configuration(
                executors=1,
                cores_per_executor=GROUP.num_slots,
                shuffle_partitions=setting["partitions"],
                trigger_s=setting["trigger_s"],
            ),
            Arrivals(rate_per_s=row["rate_per_s"], dispersion_ratio=0.0),
        ).tuple_latency
        yield {
            "name": row["name"],
            "expected_s": None if expected is None else getattr(expected, f"{row['statistic']}_s"),
            "feasible": plan.feasible,
            "planned_latency_s": plan.planned_latency_s
            if math.isfinite(plan.planned_latency_s)
            else None,
            "setting": {
                "trigger_s": plan.configuration.trigger_s,
                "partitions": plan.configuration.shuffle_partitions,
            },
        }
