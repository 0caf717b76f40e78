"""Real-Time Mode as planned, run on a real broker: p99 predicted from a profile in micro-batches.

A query between two topics runs in micro-batches first, at two rates; Real-Time Mode is planned from
its profile, and the planned setting is run. Each plan adds a line of JSON, and the table goes to
stdout; a job that has a line is not run again.

    python benchmarks/run.py planned_real_time --results planned-real-time.jsonl
    python benchmarks/run.py planned_real_time --results try.jsonl --quick
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kafka.cases import Case, Job, Mode
from kafka.runs import Record, run_case, warm_up
from kafka_broker.broker import Lane, running_lane
from kafka_broker.jars import KafkaUnavailableError, connector_jars
from kafka_lane import (
    CORES,
    JIT_WARM_S,
    REAL_TIME_CONF,
    REAL_TIME_SLOTS,
    RUN_S,
    WARM_S,
    about,
    tell,
)
from read_logs import read_logs_of_runs
from result_lines import keep, lines_of

import headway
from headway.domain import JobProfile
from headway.domain.real_time import RealTimePlan
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf

BATCH_LENGTH_S = 10.0
_BATCHES = 6
_TARGET = "p99 <= 1s"
_RATES_PER_S = {Job.TRANSFORM: (1000.0, 4000.0), Job.DEDUPLICATE: (500.0, 1000.0)}
_PARTITIONS = 4


def profiles_of(
    lane: Lane, folder: Path, jobs: Sequence[Job], warm_s: float
) -> dict[Job, JobProfile]:
    """Run each job in micro-batches at two rates, and profile it."""
    names: dict[Job, list[str]] = {}
    with embedded_session(
        app_name="planned real time: micro-batches",
        master=f"local[{CORES}]",
        event_log_dir=folder / "log",
        jars=connector_jars(),
        extra_conf=local_checkpoint_conf(),
    ) as spark:
        for job in jobs:
            cases = [
                Case(job=job, partitions=_PARTITIONS, rate_per_s=rate, trigger_s=trigger_s)
                for rate, trigger_s in zip(_RATES_PER_S[job], (1.0, 2.0), strict=True)
            ]
            tell(f"warm-up: {job}")
            warm_up(spark, lane, replace(cases[-1], repeat=99), folder, warm_s)
            for case in cases:
                tell(f"micro-batches: {case.name}")
                run_case(spark, lane, case, folder, warm_s=WARM_S, run_s=RUN_S)
            names[job] = [case.name for case in cases]
    log = read_logs_of_runs(folder / "log")
    return {job: log.profile(names[job]) for job in jobs}


def run_plans(
    lane: Lane, folder: Path, profiles: dict[Job, JobProfile]
) -> Iterator[tuple[Job, Record]]:
    """Plan each profile, and run the plan."""
    with embedded_session(
        app_name="planned real time",
        master=f"local[{REAL_TIME_SLOTS}]",
        event_log_dir=folder / "real-log",
        jars=connector_jars(),
        extra_conf={**local_checkpoint_conf(), **REAL_TIME_CONF},
    ) as spark:
        for job, profile in profiles.items():
            plan = headway.plan(
                profile,
                mode="real-time",
                rate=_RATES_PER_S[job][-1],
                target=_TARGET,
                cores=REAL_TIME_SLOTS,
                max_nodes=1,
                trigger=BATCH_LENGTH_S,
            )
            case = Case(
                job=job,
                partitions=plan.setting.source_partitions,
                rate_per_s=plan.rate_per_s,
                trigger_s=BATCH_LENGTH_S,
                mode=Mode.REAL_TIME,
                shuffle_partitions=plan.setting.shuffle_partitions,
            )
            tell(f"warm-up: {case.name}")
            warm_up(spark, lane, replace(case, repeat=99), folder, 2.0 * BATCH_LENGTH_S)
            tell(f"planned: {case.name}")
            run_s = _BATCHES * BATCH_LENGTH_S
            run = run_case(spark, lane, case, folder, warm_s=WARM_S, run_s=run_s)
            yield job, _judged(plan, run)


def _judged(plan: RealTimePlan, run: Record) -> Record:
    latency, measured = plan.expected.tuple_latency, run["to_append_s"]
    assert latency is not None and latency.interval90_p99_s is not None
    low_s, high_s = latency.interval90_p99_s.low, latency.interval90_p99_s.high
    return {
        "name": run["name"],
        "feasible": plan.feasible,
        "slots": plan.expected.num_slots_needed,
        "rows": measured["num_rows"],
        "predicted": {"mean": latency.mean_s, **_levels(latency.statistics_s)},
        "measured": {"mean": measured["mean"], **_levels(measured)},
        "interval90_p99_s": [low_s, high_s],
        "is_inside": low_s <= measured["p99"] <= high_s,
        "is_kept": measured["p99"] <= plan.target.limit_s,
        "between_batches_s": run["between_batches_s"],
        "cores_idle": run["cores_idle"],
    }


def _levels(found: Record) -> Record:
    return {name: found[name] for name in ("p50", "p95", "p99")}


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, required=True, help="JSONL; lines are appended")
    parser.add_argument("--quick", action="store_true", help="a trial: one job, short warm-up")


def run(given: argparse.Namespace) -> None:
    """Measure, write the lines, and print the table."""
    known = lines_of(given.results)
    done = {one["job"] for one in known if "job" in one}
    asked = [Job.TRANSFORM] if given.quick else list(_RATES_PER_S)
    jobs = [job for job in asked if job.value not in done]
    try:
        if jobs and not known:
            first = about()
            first["about"]["command"] = "make planned-real-time"
            keep(given.results, first)
        if jobs:
            _measure(given.results, jobs, 5.0 if given.quick else JIT_WARM_S)
    except KafkaUnavailableError as error:
        print(f"planned_real_time: skipped: {error}", file=sys.stderr)
        return
    for one in (line for line in lines_of(given.results) if "job" in line):
        low_s, high_s = one["interval90_p99_s"]
        print(
            f"{one['name']}: {one['slots']} slots, p99 {one['predicted']['p99'] * 1e3:.0f} ms "
            f"({low_s * 1e3:.0f} to {high_s * 1e3:.0f}), measured "
            f"{one['measured']['p99'] * 1e3:.0f} ms, {'inside' if one['is_inside'] else 'outside'}"
        )


def _measure(results: Path, jobs: Sequence[Job], warm_s: float) -> None:
    """Profile, plan and run the jobs; a line of the results for each."""
    with tempfile.TemporaryDirectory(prefix="headway-planned-") as scratch:
        folder = Path(scratch)
        with running_lane(folder / "broker") as lane:
            profiles = profiles_of(lane, folder, jobs, warm_s)
            for job, found in run_plans(lane, folder, profiles):
                keep(results, {"job": job.value, **found})
