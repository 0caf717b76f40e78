"""Fleets of a thousand jobs as people write them: a spec file, and the profiles that it names.

Twenty queries stand for all streaming jobs, each at a rate and a daily curve of its own; nightly
batch jobs are declared, each with its own work, tasks, start and deadline.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from headway.domain import (
    Application,
    Arrivals,
    Configuration,
    Drift,
    DriverPhase,
    DurationNoise,
    JobProfile,
    ObservedSetting,
    QueryShape,
    RowsLaw,
    StageProfile,
)
from headway.formats.profile_file import dump_profile

NUM_PROFILES, STREAMING_SHARE = 20, 0.8
_CORES = 4


def write_fleet(folder: Path, *, seed: int, num_jobs: int, num_types: int, pools: str) -> Path:
    """A fleet's spec file in a folder, with its profiles beside it.

    Parameters
    ----------
    folder : Path
        Where it is written.
    seed : int
        Seed; the same gives the same fleet.
    num_jobs, num_types : int
        Jobs, and node types on offer.
    pools : str
        The part of the file about pools, quotas, purchasing and schedule.
    """
    rng = np.random.default_rng(seed)
    peaks_per_s = []
    for number in range(NUM_PROFILES):
        profile, peak_per_s = _a_profile(rng, number)
        peaks_per_s.append(peak_per_s)
        (folder / f"query-{number}.profile.yaml").write_text(dump_profile(profile))
    jobs = [
        _a_stream(rng, at, peaks_per_s)
        if rng.random() < STREAMING_SHARE
        else _a_nightly_job(rng, at)
        for at in range(num_jobs)
    ]
    text = "\n".join(
        [
            "apiVersion: headway/v1",
            "kind: CapacityPlan",
            f"metadata: {{name: fleet-{seed}}}",
            "spec:",
            "  catalog:",
            "    date: 2026-11-01",
            "    currency: USD",
            "    nodes:",
            *(_a_node_type(rng, at) for at in range(num_types)),
            "  jobs:",
            *jobs,
            pools,
            "",
        ]
    )
    path = folder / f"fleet-{seed}.yaml"
    path.write_text(text)
    return path


def _a_profile(rng: np.random.Generator, number: int) -> tuple[JobProfile, float]:
    """A query of two stages, and a rate that a few executors carry."""
    num_tasks, per_row_s = int(rng.choice([24, 48, 96])), float(rng.uniform(1e-5, 8e-5))
    # So many records a second keep eight executors about half busy.
    peak_per_s = 0.5 * 8 * _CORES / per_row_s / 1.5
    stages = (
        _a_stage("source", 0, per_row_s, num_tasks),
        _a_stage("shuffle", 1, 0.5 * per_row_s, None),
    )
    phases = (("query_planning", 0.03), ("wal_commit", 0.04), ("commit_offsets", 0.03))
    seen = ObservedSetting(
        query_id=f"query-{number}",
        configuration=Configuration(
            executors=8, cores_per_executor=_CORES, shuffle_partitions=32, trigger_s=1.0
        ),
        rate_per_s=peak_per_s,
        num_batches=200,
        num_batches_cut=5,
        jvm_age_s=600.0,
        rows_per_batch_low=0.2 * peak_per_s,
        rows_per_batch_high=4.0 * peak_per_s,
        batch_duration_mean_s=0.9,
        batch_duration_sd_s=0.05,
        modelled_duration_mean_s=0.9,
    )
    profile = JobProfile(
        headway_version="0.1.0",
        applications=(
            Application(
                id=f"application-{number}",
                name=f"query {number}",
                spark_version="4.1.0",
                executor_memory="8g",
            ),
        ),
        shape=QueryShape(sources=("kafka",), sink="kafka", stateful_operators=("stateStoreSave",)),
        arrivals=Arrivals(rate_per_s=peak_per_s),
        driver_phases=tuple(
            DriverPhase(name=name, mean_s=mean_s, sd_s=0.1 * mean_s) for name, mean_s in phases
        ),
        stages=stages,
        noise=DurationNoise(batch_ratio=0.06, autocorrelation=0.2, run_to_run_ratio=0.05),
        drift=Drift(exponent=0.0, reference_age_s=600.0),
        settings=(seen,),
    )
    return profile, peak_per_s


def _a_stage(name: str, level: int, per_row_s: float, num_source_tasks: int | None) -> StageProfile:
    return StageProfile(
        name=name,
        level=level,
        tasks_rule="shuffle" if num_source_tasks is None else "source",
        num_source_tasks=num_source_tasks,
        rows=RowsLaw(scale=1.0, exponent=1.0),
        task_fixed_s=0.008,
        task_per_row_s=per_row_s,
        task_noise_ratio=0.2,
        separation="parts",
    )


def _a_stream(rng: np.random.Generator, at: int, peaks_per_s: list[float]) -> str:
    number = int(rng.integers(len(peaks_per_s)))
    peak_per_s = peaks_per_s[number] * float(rng.uniform(0.05, 1.0))
    phase, swing = rng.uniform(0, 24), rng.uniform(0.1, 0.45)
    daily = ", ".join(
        f"{peak_per_s * (1 - swing + swing * math.cos((hour - phase) / 12 * math.pi)):.0f}/s"
        for hour in range(24)
    )
    return (
        f"  - name: stream-{at}\n    streaming:\n      profile: query-{number}.profile.yaml\n"
        f"      rate: {{daily: [{daily}]}}\n      target: p99 <= 5s"
    )


def _a_nightly_job(rng: np.random.Generator, at: int) -> str:
    work_h, tasks = rng.lognormal(2.5, 0.8), int(rng.integers(100, 3000))
    deadline_min, start = int(rng.integers(60, 300)), int(rng.integers(24))
    return (
        f"  - name: nightly-{at}\n    batch:\n      declared: {{work: {work_h:.1f}h, "
        f"tasks: {tasks}, stages: {int(rng.integers(1, 5))}, cores_per_executor: {_CORES}, "
        f"executor_memory: 8g}}\n      deadline: {deadline_min}min\n      start_hour: {start}"
    )


def _a_node_type(rng: np.random.Generator, at: int) -> str:
    cores = int(rng.choice([4, 8, 16, 32]))
    price = cores * 0.048 * float(rng.uniform(0.8, 1.25))
    return (
        f"    - {{name: type-{at}, cores: {cores}, memory: {4 * cores}Gi, "
        f"price_per_hour: {price:.4f}, spot_price_per_hour: {0.35 * price:.4f}, "
        f"committed_price_per_hour: {0.63 * price:.4f}, speed: {rng.choice([0.8, 1.0, 1.2])}}}"
    )
