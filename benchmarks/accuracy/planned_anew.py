"""The promises that were planned and run, planned again by the code as it is now.

What was run stays what it was: it tells whether the setting kept the promise. Beside it stand what
the profile now expects of that setting, without any margin, and whether a plan would now be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from campaign.blocks import MAIN
from campaign.reading import MeasuredGroup
from planned_runs import Asked, answer, planned, profiles

from headway.domain import Arrivals, Configuration
from headway.models.job.predict import predict

Row = dict[str, Any]


def planned_anew(measured: MeasuredGroup, rows: Iterable[Row]) -> Iterator[Row]:
    """One line for each plan that was run."""
    plans = list(rows)
    known = profiles(measured, dict.fromkeys(row["workload"] for row in plans))
    for row in plans:
        profile, setting = known[row["workload"]], row["setting"]
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
                cores_per_executor=MAIN.num_slots,
                shuffle_partitions=setting["partitions"],
                trigger_s=setting["trigger_s"],
            ),
            Arrivals(rate_per_s=row["rate_per_s"], dispersion_ratio=0.0),
        ).tuple_latency
        yield {
            "name": row["name"],
            "expected_s": None if expected is None else getattr(expected, f"{row['statistic']}_s"),
            **answer(plan),
            "setting": {
                "trigger_s": plan.configuration.trigger_s,
                "partitions": plan.configuration.shuffle_partitions,
            },
        }
