"""Profile jobs with heavy keys, plan them with their keys, and run the planned configurations."""

from __future__ import annotations

import csv
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from campaign.running import Query, backlog_stream, measured_run, run_query, warm_up
from campaign.workloads import Stream, Workload
from read_logs import read_logs_of_runs
from result_lines import keep, lines_of
from skewed_jobs import (
    BY_KEY,
    PLACED,
    CountedKey,
    SkewedJob,
    counted_keys,
    last_stages,
    rows_of_partitions,
    total_rows_of_tasks,
)

import headway
from headway.domain import StreamAnswer
from headway.domain.ordered import KeyPlacement
from headway.errors import HeadwayError
from headway.formats.profile_file import dump_profile, load_profile
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPLIT = Path(__file__).parent / "skewed-split.json"
"""Jobs, targets, rates and profiled configurations, committed before the first run."""
CORES = 2
WAYS = (BY_KEY, PLACED)
_PROFILED_SEED = 1
_PROBED_ROWS = (5_000, 60_000)
_WARM_S = 4.0
_WARM_UP_PER_S = 25_000.0
_COUNTED_ROWS = 400_000

Line = dict[str, Any]


class Fitted(NamedTuple):
    """A profiled configuration."""

    trigger_s: float
    partitions: int
    share: float
    measured_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What is run: the whole split, or the minimum that shows that it works."""

    jobs: tuple[SkewedJob, ...]
    fitted: tuple[Fitted, ...]
    share: float
    repeats: int
    batches: int
    probe_s: float = 7.0
    warm_up_s: float = 15.0

    @classmethod
    def of_split(cls) -> Amount:
        """The whole split."""
        split = json.loads(SPLIT.read_text(encoding="utf-8"))
        return cls(
            jobs=tuple(SkewedJob(**one) for one in split["jobs"]),
            fitted=tuple(Fitted(**one) for one in split["fitted"]),
            share=split["share"],
            repeats=split["repeats"],
            batches=split["batches"],
        )

    @classmethod
    def short(cls) -> Amount:
        """One job, a few batches."""
        whole = cls.of_split()
        fitted = tuple(one._replace(measured_s=8.0) for one in whole.fitted)
        return replace(
            whole, jobs=whole.jobs[-2:-1], fitted=fitted, repeats=1, batches=6, probe_s=6.0,
            warm_up_s=8.0,
        )  # fmt: skip


def split_digest() -> str:
    """Digest of the split, which every line of the results contains."""
    return hashlib.sha256(SPLIT.read_bytes()).hexdigest()[:12]


def measure(results: Path, amount: Amount) -> None:
    """Run what is missing from the results: first the profiles, then one repeat after another."""
    known = lines_of(results)
    profiled = {line["profile_of"] for line in known if "profile_of" in line}
    unknown = [job for job in amount.jobs if job.name not in profiled]
    with tempfile.TemporaryDirectory(prefix="headway-skewed-") as scratch:
        if unknown:
            for line in _profiles(unknown, amount, Path(scratch) / "profiled"):
                keep(results, line)
        _run_plans(results, amount, Path(scratch) / "planned")


def _session(folder: Path) -> AbstractContextManager[SparkSession]:
    """A session whose event log is plain text, to be read while it runs."""
    return embedded_session(
        app_name="headway skewed plans",
        master=f"local[{CORES}]",
        event_log_dir=folder / "log",
        jars=[clock_source_jar()],
        extra_conf={
            **local_checkpoint_conf(),
            "spark.eventLog.compress": "false",
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            "spark.sql.codegen.cache.maxEntries": "10000",
        },
    )


def _profiles(jobs: Sequence[SkewedJob], amount: Amount, folder: Path) -> Iterator[Line]:
    """Each job in the profiled configurations: profile, capacity, and keys as a user counts."""
    folder.mkdir(parents=True)
    found: dict[str, tuple[float, dict[str, CountedKey]]] = {}
    with _session(folder) as spark:
        for job in jobs:
            warm_up(spark, job.workload(), folder, _WARM_UP_PER_S, amount.warm_up_s)
            carried_per_s = _carried_per_s(spark, job.workload(), amount, folder)
            _say(f"{job.name}: capacity {carried_per_s:,.0f} rows/s")
            counts = counted_keys(spark, job, _PROFILED_SEED, _COUNTED_ROWS, folder)
            found[job.name] = carried_per_s, counts
            for setting in amount.fitted:
                query = Query(
                    name=_fitted_name(job, setting),
                    workload=job.workload(),
                    stream=Stream(rate_per_s=setting.share * carried_per_s, seed=_PROFILED_SEED),
                    trigger_s=setting.trigger_s,
                    partitions=setting.partitions,
                )
                _say(query.name)
                run_s = _WARM_S + setting.trigger_s + setting.measured_s
                run_query(spark, query, run_s=run_s, folder=folder)
    log = read_logs_of_runs(folder / "log")
    for job in jobs:
        carried_per_s, counts = found[job.name]
        profile = log.profile([_fitted_name(job, setting) for setting in amount.fitted])
        yield {
            "profile_of": job.name,
            "split": split_digest(),
            "carried_per_s": carried_per_s,
            "keys": {key: one.num_rows for key, one in counts.items()},
            "profile": dump_profile(profile),
        }


def _fitted_name(job: SkewedJob, setting: Fitted) -> str:
    return f"{job.name}/{setting.trigger_s:g}s-p{setting.partitions}-{setting.share:.0%}"


def _carried_per_s(spark: SparkSession, workload: Workload, amount: Amount, folder: Path) -> float:
    """Rows per second at which processing one more row takes as long as its arrival."""
    few, many = _PROBED_ROWS
    medians_s = []
    for num_rows in (many, few):
        query = Query(
            name=f"probe/{workload.name}/{num_rows}",
            workload=workload,
            stream=backlog_stream(num_rows),
            trigger_s=0.0,
            partitions=4,
        )
        _, events = run_query(spark, query, run_s=amount.probe_s, folder=folder)
        took_ms = [event["durationMs"]["triggerExecution"] for event in events]
        if not took_ms:
            raise HeadwayError(f"{query.name}: no batch was finished in {amount.probe_s:g} s")
        medians_s.append(statistics.median(took_ms[len(took_ms) // 2 :]) / 1e3)
    large_s, small_s = medians_s
    return float((many - few) / max(large_s - small_s, 1e-3))


class Planned(NamedTuple):
    """A job's plan with its keys, and the placement of the heavy ones."""

    job: SkewedJob
    rate_per_s: float
    plan: StreamAnswer
    placed: KeyPlacement


def planned(job: SkewedJob, line: Line, amount: Amount, folder: Path) -> Planned:
    """The answers of ``headway plan --keys`` and ``headway ordered --keys`` for a user's files."""
    folder.mkdir(parents=True, exist_ok=True)
    profile, keys = folder / f"{job.name}.profile.yaml", folder / f"{job.name}.keys.csv"
    profile.write_text(line["profile"], encoding="utf-8")
    with keys.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("key", "count"), *line["keys"].items()])
    rate_per_s = amount.share * line["carried_per_s"]
    plan = headway.plan(
        load_profile(profile),
        rate=rate_per_s,
        target=job.target,
        max_nodes=1,
        node_cores=CORES,
        cores=CORES,
        checkpoint="new",
        keys=keys,
    )
    setting = plan.configuration
    found = headway.ordered_plan(
        profile,
        keys,
        rate=rate_per_s,
        trigger=setting.trigger_s,
        executors=1,
        cores=CORES,
        partitions=setting.shuffle_partitions,
    )
    return Planned(job, rate_per_s, plan, found.placed)


def _run_plans(results: Path, amount: Amount, folder: Path) -> None:
    lines = lines_of(results)
    done = {line["run"] for line in lines if "run" in line}
    profiled = {line["profile_of"]: line for line in lines if "profile_of" in line}
    left = [
        (job, way, repeat)
        for repeat in range(1, amount.repeats + 1)
        for job in amount.jobs
        for way in WAYS
        if run_name(job, way, repeat) not in done
    ]
    if not left:
        return
    plans = {
        job.name: planned(job, profiled[job.name], amount, folder)
        for job in amount.jobs
        if any(job is one for one, _, _ in left)
    }
    with _session(folder) as spark:
        for one in plans.values():
            carried_per_s = one.rate_per_s / amount.share
            for placed in (None, one.placed):
                half_s = amount.warm_up_s / 2
                warm_up(spark, one.job.workload(placed), folder, carried_per_s, half_s)
        for job, way, repeat in left:
            keep(results, _judged(spark, plans[job.name], way, repeat, amount, folder))


def run_name(job: SkewedJob, way: str, repeat: int) -> str:
    """Name of a run in the results and in the event log."""
    return f"{job.name}/{way}/{repeat}"


def _judged(
    spark: SparkSession, one: Planned, way: str, repeat: int, amount: Amount, folder: Path
) -> Line:
    """Run the planned configuration, by key as the plan assumes, or with the heavy keys placed."""
    setting, skew = one.plan.configuration, one.plan.skew
    assert skew is not None
    placed = one.placed if way == PLACED else None
    choice = skew.planned if placed is None else placed.choice
    latency, duration = one.plan.prediction.tuple_latency, one.plan.prediction.batch_duration
    partitions = choice.shuffle_partitions
    name, seed = run_name(one.job, way, repeat), _PROFILED_SEED + repeat
    query = Query(
        name=name,
        workload=one.job.workload(placed),
        stream=Stream(
            rate_per_s=one.rate_per_s,
            max_rows_per_trigger=setting.max_offsets_per_trigger,
            seed=seed,
        ),
        trigger_s=setting.trigger_s,
        partitions=partitions,
    )
    usual_s = max(setting.trigger_s, 1.2 * duration.mean_s) if duration else setting.trigger_s
    _say(f"{name}: trigger {setting.trigger_s:g} s, {partitions} partitions")
    run = measured_run(
        spark,
        query,
        warm_s=_WARM_S + setting.trigger_s,
        measured_s=amount.batches * usual_s,
        folder=folder,
    )
    stages = last_stages(folder / "log", run.events[0]["id"])
    rows = total_rows_of_tasks(stages, partitions)
    counts = counted_keys(spark, one.job, seed, sum(rows), folder)
    from_s = run.truth.from_s if run.truth else run.started_s
    return {
        "run": name,
        "job": one.job.name,
        "way": way,
        "repeat": repeat,
        "split": split_digest(),
        "target": one.job.target,
        "limit_s": one.plan.target.limit_s,
        "feasible": one.plan.feasible,
        "rate_per_s": one.rate_per_s,
        "trigger_s": setting.trigger_s,
        "partitions": partitions,
        "predicted": {
            "largest_share": choice.largest_share,
            "stage": {"mean": choice.mean_s, "p99": choice.p99_s},
            # The plan is for the query by key; for placed keys only the stage is predicted.
            "latency": latency.statistics_s if latency and placed is None else None,
            "duration": duration.statistics_s if duration and placed is None else None,
            "promised_s": one.plan.planned_latency_s if placed is None else None,
        },
        "stage_s": [round(stage.took_s, 4) for stage in stages if stage.begun_s >= from_s],
        "rows_of_tasks": rows,
        "reckoned_rows": rows_of_partitions(counts, partitions, placed),
        **run.as_json(),
    }


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
