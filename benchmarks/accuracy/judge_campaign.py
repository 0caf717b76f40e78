"""Fits profiles on the fitted runs of a campaign and predicts all others.

Reads the work folder of `run_campaign.py`; writes one line per judged run, truth and prediction,
from which `campaign_page.py` makes the page at any time.

    python benchmarks/accuracy/judge_campaign.py WORK_FOLDER --output results/campaign.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.reading import Played, read_group
from campaign.schedule import ACROSS, FIT, GROUPS, VARIED
from campaign.workloads import WORKLOADS
from pyspark import __version__ as pyspark_version

from headway.domain import Arrivals, Configuration, Interval, JobProfile, LatencyDistribution
from headway.errors import HeadwayError
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model
from headway.profiler.spark.session import embedded_session
from headway.version import __version__

if TYPE_CHECKING:
    pass

Row = dict[str, Any]


def judged(fitted: Played, played: Played, workload: str, role: str = FIT) -> Iterator[Row]:
    """Every run of a workload that was not fitted, predicted."""
    known = [row for row in fitted.of(workload) if row["role"] == role and row["truth"]]
    if not known:
        return
    profile = fitted.fitted_on(known)
    for row in played.of(workload):
        if row["role"] in (FIT, VARIED) or row["truth"] is None:
            continue
        yield {
            **row,
            "fitted": {"group": fitted.group.name, "role": role, "runs": len(known)},
            "predicted": _predicted(profile, played, row),
        }


def _predicted(profile: JobProfile, played: Played, row: Row) -> Row:
    setting, num_slots = row["setting"], played.group.num_slots
    configuration = Configuration(
        executors=1,
        cores_per_executor=num_slots,
        shuffle_partitions=setting["partitions"],
        trigger_s=setting["trigger_s"],
        max_offsets_per_trigger=row["max_rows"],
    )
    age_s = played.jvm_age_s(row)
    factor = profile.drift.factor(age_s)
    model = duration_model(profile, num_slots, setting["partitions"])
    if setting["backlog"]:
        full_s = factor * float(model.mean_s(float(row["max_rows"])))
        return {"rows_per_s": row["max_rows"] / full_s, "duration_mean": full_s}
    # What arrives in the run asked about is known: an even stream, unless bursts belong to the job.
    bursts = WORKLOADS[row["workload"]].burst_share_ratio < 1
    dispersion_ratio = profile.arrivals.dispersion_ratio if bursts else 0.0
    arrivals = Arrivals(rate_per_s=row["rate_per_s"], dispersion_ratio=dispersion_ratio)
    said = predict(profile, configuration, arrivals, jvm_age_s=age_s)
    return {
        "stable": said.stable,
        "calibrated": said.calibrated,
        "near_saturation": any(_is_about_load(warning) for warning in said.warnings),
        "sustainable_rate_per_s": said.sustainable_rate_per_s,
        "latency": _as_row(said.tuple_latency),
        "duration": _as_row(said.batch_duration),
        "windows": _as_row(said.window_latency),
        "run_to_run_ratio": profile.noise.run_to_run_ratio,
        "jvm_age_s": age_s,
    }


def _is_about_load(warning: str) -> bool:
    """Whether a prediction warns that it is not to be relied on, as it does close to saturation."""
    return warning.startswith("close to saturation") or "outlast the trigger interval" in warning


def _as_row(told: LatencyDistribution | None) -> Row | None:
    if told is None:
        return None
    return {
        "mean": told.mean_s,
        "p50": told.p50_s,
        "p95": told.p95_s,
        "p99": told.p99_s,
        "mean90": _ends(told.interval90_mean_s),
        "p99_90": _ends(told.interval90_p99_s),
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def all_judged(folder: Path) -> Iterator[Row]:
    """All predictions of a campaign."""
    present = [group for group in GROUPS.values() if (folder / group.name / "truth.jsonl").exists()]
    if not present:
        raise HeadwayError(f"{folder}: no group of a campaign in it; run run_campaign.py first")
    with embedded_session(app_name="headway accuracy") as spark:
        played = {group.name: read_group(spark, group, folder / group.name) for group in present}
    for one in played.values():
        for workload in one.group.workloads:
            yield from judged(one, one, workload)
            yield from judged(one, one, workload, VARIED)
    for first, second in ACROSS:
        if first in played and second in played:
            for workload in GROUPS[first].workloads:
                yield from judged(played[first], played[second], workload)


def main() -> None:
    """Write the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="work folder of run_campaign.py")
    parser.add_argument("--output", type=Path, required=True, help="gzipped JSON lines")
    arguments = parser.parse_args()
    lines = [json.dumps(row) for row in all_judged(arguments.folder)]
    # Without a date in its header the same lines make the same file.
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))
    arguments.output.with_name("campaign-machine.json").write_text(
        json.dumps({"made": _made()}, indent=2) + "\n"
    )
    print(f"{arguments.output}: {len(lines)} predictions")


def _made() -> str:
    """When, where and by what the runs were made."""
    return (
        f"Made {datetime.now(UTC):%Y-%m-%d} by `make accuracy-campaign`, headway {__version__}, "
        f"PySpark {pyspark_version}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.machine()}, {platform.system()}; the page by `make accuracy`."
    )


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(f"judge_campaign: {error}")
