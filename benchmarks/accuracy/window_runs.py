"""Window latency on real runs: predicted from runs at other triggers, measured window by window.

The query counts lines per window; lines arrive on the wall clock. The window ends that a batch
emits are observed after the aggregation, so a window is final when the last batch that emitted it
has committed. Nothing else is added to the query.

    python benchmarks/run.py window_runs --output docs/window-accuracy.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from campaign.truth import window_commits_s
from pages import headed, made_by

import headway
from headway.domain import Arrivals, Configuration, JobProfile, LatencyDistribution
from headway.models.arrays import Array
from headway.models.job.predict import predict
from headway.profiler.spark.session import embedded_session
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.measure import committed_epoch_s, progress_events
from headway.runtime.word_count import clock_lines
from headway.units import spark_trigger_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES, PARTITIONS, RATE_PER_S = 2, 4, 4_000.0
TRIGGERS_S = (1.0, 2.5)
WARM_S = 8.0
_QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One windowed query."""

    mode: str
    size_s: float
    slide_s: float
    watermark_delay_s: float

    def __str__(self) -> str:
        kind = "tumbling" if self.size_s == self.slide_s else f"sliding by {self.slide_s:g} s"
        return f"{self.mode}, {self.size_s:g} s {kind}, watermark {self.watermark_delay_s:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a case at a trigger: latency of each window."""

    case: Case
    trigger_s: float
    name: str
    latency_s: Array


CASES = (
    Case(mode="append", size_s=5.0, slide_s=5.0, watermark_delay_s=2.0),
    Case(mode="append", size_s=6.0, slide_s=1.5, watermark_delay_s=1.2),
    Case(mode="update", size_s=5.0, slide_s=5.0, watermark_delay_s=2.0),
)


def run_case(
    spark: SparkSession, case: Case, trigger_s: float, name: str, folder: Path, run_s: float
) -> Run:
    """Run a case and measure when each of its windows was final."""
    from pyspark.sql import functions

    lines = clock_lines(spark, rate_per_s=RATE_PER_S, num_source_partitions=2)
    window = functions.window("arrival", f"{case.size_s} seconds", f"{case.slide_s} seconds")
    counts = (
        lines.withWatermark("arrival", f"{case.watermark_delay_s} seconds")
        .groupBy(window, functions.length("text").alias("length"))
        .count()
        .observe(
            "windows", functions.collect_set(functions.unix_micros("window.end")).alias("ends_us")
        )
    )
    query = (
        counts.writeStream.format("noop")
        .queryName(name)
        .outputMode(case.mode)
        .option("checkpointLocation", str(folder / name))
        .trigger(processingTime=spark_trigger_text(trigger_s))
        .start()
    )
    started_s = time.time()
    time.sleep(WARM_S + run_s)
    events = progress_events(query)
    query.stop()
    return Run(
        case=case,
        trigger_s=trigger_s,
        name=name,
        latency_s=window_latencies_s(events, started_s + WARM_S, case),
    )


def window_latencies_s(events: Sequence[Mapping[str, Any]], after_s: float, case: Case) -> Array:
    """From each window's end to the commit of the last batch that emitted it."""
    # A window near the end of the run may still be emitted again.
    settled = committed_epoch_s(events[-1]) - case.watermark_delay_s - max(TRIGGERS_S) - case.size_s
    return np.array(
        [
            commit_s - end_s
            for end_s, commit_s in window_commits_s(events).items()
            if after_s < end_s < settled
        ]
    )


def predicted(profile: JobProfile, trigger_s: float) -> LatencyDistribution | None:
    """The window latency at a trigger."""
    configuration = Configuration(
        executors=1,
        cores_per_executor=CORES,
        shuffle_partitions=PARTITIONS,
        trigger_s=trigger_s,
    )
    return predict(profile, configuration, Arrivals(rate_per_s=RATE_PER_S)).window_latency


def section(case: Case, runs: Sequence[Run], log: Path) -> Iterator[str]:
    """Each trigger, predicted from the runs of the case at the other triggers."""
    yield f"## {str(case).capitalize()}"
    yield ""
    yield from headed(
        "| trigger | windows | mean: predicted | measured | error "
        "| p99: predicted | measured | error |"
    )
    for run in runs:
        others = [other.name for other in runs if other is not run]
        law = predicted(headway.profile(log, queries=others), run.trigger_s)
        trigger = f"{run.trigger_s:g} s" if run.trigger_s else "none"
        if law is None:
            yield f"| {trigger} | {len(run.latency_s)} | unavailable | | | | | |"
            continue
        mean_s, p99_s = float(run.latency_s.mean()), float(np.quantile(run.latency_s, 0.99))
        yield (
            f"| {trigger} | {len(run.latency_s)} | {law.mean_s:.3f} s | {mean_s:.3f} s "
            f"| {law.mean_s / mean_s - 1:+.1%} | {law.p99_s:.3f} s | {p99_s:.3f} s "
            f"| {law.p99_s / p99_s - 1:+.1%} |"
        )
    yield ""


def page(run_s: float) -> str:
    """Run everything and return the page."""
    with tempfile.TemporaryDirectory(prefix="headway-windows-") as scratch:
        folder = Path(scratch)
        runs = []
        with embedded_session(
            app_name="windows",
            master=f"local[{CORES}]",
            event_log_dir=folder / "log",
            jars=[clock_source_jar()],
            extra_conf={
                "spark.sql.shuffle.partitions": str(PARTITIONS),
                "spark.sql.streaming.numRecentProgressUpdates": "100000",
            },
        ) as spark:
            for number, case in enumerate(CASES):
                for place, trigger_s in enumerate(TRIGGERS_S):
                    print(f"{case}, trigger {trigger_s:g} s", file=sys.stderr)
                    name = f"windows-{number}-{place}"
                    runs.append(run_case(spark, case, trigger_s, name, folder, run_s))
        (log,) = (folder / "log").glob("eventlog_v2_*")
        lines = [
            line
            for case in CASES
            for line in section(case, [r for r in runs if r.case == case], log)
        ]
    made = (
        f"Runs of {run_s:.0f} s after {WARM_S:.0f} s, {RATE_PER_S:g} lines/s on `local[{CORES}]`, "
        f"{PARTITIONS} partitions, one JVM. Each trigger is predicted from a profile of the runs "
        "at the other triggers. Latency is from the end of the window to the commit of the last "
        f"batch that emitted it. {made_by('make window-accuracy', 'PySpark')}"
    )
    return "\n".join(["# Window latency on real runs", "", made, "", *lines]).rstrip() + "\n"


def options(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--run", type=float, default=30.0, help="seconds per run")


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.run)
