"""Runs the demonstration: profile two settings, predict two others, plan, run the plan, compare."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import headway
from headway.domain import JobProfile, Prediction, StreamAnswer, Target
from headway.emitters import FORMATS
from headway.errors import HeadwayError
from headway.formats.as_json import json_text, plan_json
from headway.formats.text_file import write_text
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.profiler.work_folder import work_folder
from headway.report.comparison import Comparison, compared, comparison_sections
from headway.report.evidence import evidence_of
from headway.report.page import sheet_page
from headway.report.sheet_text import sheet_text, text_of_sections
from headway.report.stream import stream_sheet
from headway.report.stream_page import stream_page_sheet
from headway.report.what_if import WhatIf
from headway.report.wording import trigger_words
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.measure import MeasuredRun, run_query
from headway.runtime.word_count import word_count
from headway.units import counted, format_rate
from headway.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HASH_ROUNDS = 5  # about 10 us of a core per line
_WARM_S = 3.0
_LEAST_BATCHES = 6  # a profile takes five, and may cut one as warm-up
_BUSY_RATIO = 0.5
_CPU_TIMES = Path("/proc/stat")
_CPU_LOOK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of the word count to run: arrivals, trigger, partitions."""

    rate_per_s: float
    trigger_s: float
    shuffle_partitions: int

    def __str__(self) -> str:
        return (
            f"{format_rate(self.rate_per_s)}, {trigger_words(self.trigger_s)}, "
            f"{self.shuffle_partitions} partitions"
        )


# What makes a JVM warm is how often code has run, not for how long: batches without a pause.
WARM_UP = Setting(rate_per_s=16_000, trigger_s=0.0, shuffle_partitions=8)
PROFILED = {
    "word-count-1": Setting(rate_per_s=4_000, trigger_s=1.0, shuffle_partitions=2),
    "word-count-2": Setting(rate_per_s=16_000, trigger_s=2.0, shuffle_partitions=8),
}
PREDICTED = {
    "word-count-3": Setting(rate_per_s=10_000, trigger_s=0.5, shuffle_partitions=4),
    "word-count-4": Setting(rate_per_s=8_000, trigger_s=0.0, shuffle_partitions=2),
}
PLANNED_RATE_PER_S = 30_000.0
TARGET = "p99 <= 2s"
_MOST_NODES = 4  # a node is this machine, and more of its kind
# Shares of the max rate to plan for. What others do on a busy machine differs from run to run: a
# batch may take twice as long as in the runs that were profiled.
_LITTLE_LESS, _HALF = 0.9, 0.5
_ABOVE_FLOOR_FACTOR = 1.35
_LEAST_RATE_PER_S = 4_000.0
_TOO_SLOW = "this machine is too slow or too busy for the demonstration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long the parts of the demonstration run [s].

    The warm-up is longer where it has fewer than ``warm_batches`` batches, as on a slow machine.
    """

    warm_up_s: float
    warm_batches: int
    profiled_s: float
    predicted_s: float
    planned_s: float

    @property
    def on_busy_machine(self) -> Length:
        """Measured runs take twice as long: the load of other processes evens out over time."""
        return replace(self, profiled_s=2 * self.profiled_s, planned_s=2 * self.planned_s)


FULL = Length(warm_up_s=30.0, warm_batches=60, profiled_s=15.0, predicted_s=8.0, planned_s=18.0)
QUICK = Length(warm_up_s=12.0, warm_batches=20, profiled_s=8.0, predicted_s=0.0, planned_s=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """Results of the demonstration; its files are in ``folder``."""

    folder: Path
    profile: JobProfile
    predictions: Mapping[str, Prediction]
    plans: tuple[StreamAnswer, ...]
    comparisons: tuple[Comparison, ...]
    measured: MeasuredRun
    promise_kept: bool
    was_busy: bool = False

    @property
    def plan(self) -> StreamAnswer:
        """The plan that was run."""
        return self.plans[-1]


def run_demo(
    folder: Path,
    length: Length,
    *,
    is_busy: bool,
    step: Callable[[str], None],
    share: Callable[[float], None],
) -> DemoOutcome:
    """Run the demonstration on an embedded Spark; all files are written to ``folder``.

    ``folder`` is made, and must be empty if it exists. ``is_busy`` says whether other processes use
    this machine: then runs take longer, and the plan stays further below the rate that the machine
    sustains. ``step`` and ``share`` are called with each step, and how far it is. Raises
    SparkUnavailableError if there is no Java to run Spark with.
    """
    length = length.on_busy_machine if is_busy else length
    event_logs = folder / "event-logs"
    with contextlib.ExitStack() as stack:
        # Checkpoints are of no use afterwards.
        scratch = stack.enter_context(work_folder("demo"))
        event_logs.mkdir(parents=True)
        step("starting Spark")
        session = embedded_session(
            app_name="headway demo",
            event_log_dir=event_logs,
            jars=[clock_source_jar()],
            extra_conf=local_checkpoint_conf(),
        )
        spark = stack.enter_context(session)
        run = partial(_measured, spark, scratch / "checkpoints", step, share)
        _warm_up(run, length)
        for name, setting in PROFILED.items():
            run(name, setting, run_s=length.profiled_s)
        step("profiling the event log")
        profile = headway.profile(event_logs, queries=list(PROFILED), engine="in-process")
        headway.save_profile(profile, folder / "word-count.profile.yaml")
        predictions = {name: _predict(profile, setting) for name, setting in PREDICTED.items()}
        plans = _plans(profile, is_busy=is_busy)
        plan = plans[-1]
        if not plan.feasible:
            raise HeadwayError(f"{_TOO_SLOW}: {'; '.join(plan.binding)}")
        _write_plan(folder, plan)
        comparisons = [
            _compared(run(name, setting, run_s=length.predicted_s), setting, predictions[name])
            for name, setting in PREDICTED.items()
            # Over capacity, as on a busy machine, there is no latency to compare.
            if length.predicted_s and predictions[name].is_quotable
        ]
        planned = Setting(
            rate_per_s=plan.arrivals.rate_per_s,
            trigger_s=plan.configuration.trigger_s,
            shuffle_partitions=plan.configuration.shuffle_partitions,
        )
        limit = plan.configuration.max_offsets_per_trigger
        measured = run("planned", planned, run_s=length.planned_s, max_rows=limit)
    comparisons.append(_compared(measured, planned, plan.prediction, label="the plan: "))
    step("writing the report")
    _write_comparison(folder, profile, plan, comparisons)
    return DemoOutcome(
        folder=folder,
        profile=profile,
        predictions=predictions,
        plans=tuple(plans),
        comparisons=tuple(comparisons),
        measured=measured,
        promise_kept=measured.kept_up and measured.tuple_latency.p99_s <= plan.target.limit_s,
        was_busy=is_busy,
    )


def busy_note() -> str | None:
    """A note before the runs, if other processes use this machine."""
    busy_cores, num_cores = _busy_cores(), os.cpu_count() or 1
    if busy_cores < _BUSY_RATIO * num_cores:
        return None
    return (
        f"this machine is busy: others use {busy_cores:.1f} of {counted(num_cores, 'core')}. Runs "
        "take longer here, differ more from their predictions, and are planned with more headroom"
    )


def _busy_cores() -> float:
    """Cores that other processes use: now if the system reports it, else in the last minute."""
    before = _cpu_ticks()
    if before is None:
        return os.getloadavg()[0]
    time.sleep(_CPU_LOOK_S)
    after = _cpu_ticks() or before
    idle, total = (late - early for early, late in zip(before, after, strict=True))
    return (1.0 - idle / total) * (os.cpu_count() or 1) if total > 0 else 0.0


def _cpu_ticks() -> tuple[int, int] | None:
    """Idle and all time of the cores since the start, as Linux counts it; None elsewhere."""
    try:
        ticks = [int(field) for field in _CPU_TIMES.read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)
    except (OSError, ValueError, IndexError):
        return None


def _warm_up(run: Callable[..., MeasuredRun], length: Length) -> None:
    """Run batches until the JVM has compiled what they run, or for twice as long as planned."""
    first = run("warm-up", WARM_UP, run_s=length.warm_up_s)
    missing_s = (length.warm_batches - first.num_batches) * first.batch_duration.mean_s
    if missing_s > 0.0:
        run("warm-up-2", WARM_UP, run_s=min(missing_s, length.warm_up_s))


def _measured(
    spark: SparkSession,
    checkpoints: Path,
    step: Callable[[str], None],
    share: Callable[[float], None],
    name: str,
    setting: Setting,
    *,
    run_s: float,
    max_rows: int | None = None,
) -> MeasuredRun:
    """Run one setting of the word count for a while, and measure it."""
    step(f"running {name}: {setting}")
    query = word_count(
        spark,
        rate_per_s=setting.rate_per_s,
        # More map tasks than slots, as a topic has more partitions than a small cluster.
        num_source_partitions=2 * spark.sparkContext.defaultParallelism,
        hash_rounds=_HASH_ROUNDS,
        max_rows_per_trigger=max_rows,
    )
    return run_query(
        query,
        query_name=name,
        trigger_s=setting.trigger_s,
        checkpoint=checkpoints / name,
        warm_s=_WARM_S,
        run_s=run_s,
        shuffle_partitions=setting.shuffle_partitions,
        least_batches=_LEAST_BATCHES,
        progress=share,
    )


def _predict(profile: JobProfile, setting: Setting) -> Prediction:
    return headway.predict(
        profile,
        rate=setting.rate_per_s,
        trigger=setting.trigger_s,
        partitions=setting.shuffle_partitions,
    )


def _plans(profile: JobProfile, *, is_busy: bool) -> list[StreamAnswer]:
    """The plan for the higher rate; and, if this machine alone cannot meet the target then, a plan
    that can be run here: for a share of its max rate within target or, if it is too slow for the
    target at any rate, for a target within its reach."""
    share = _HALF if is_busy else _LITTLE_LESS
    requested_plan = headway.plan(
        profile, rate=PLANNED_RATE_PER_S, target=TARGET, max_nodes=_MOST_NODES
    )
    within_reach_per_s = share * requested_plan.frontier[0].sustainable_rate_per_s
    has_room = not is_busy or within_reach_per_s >= PLANNED_RATE_PER_S
    if requested_plan.feasible and requested_plan.nodes == 1 and has_room:
        return [requested_plan]
    if within_reach_per_s >= _LEAST_RATE_PER_S:
        rounded_per_s = float(f"{within_reach_per_s:.1e}")
        plan_here = headway.plan(profile, rate=rounded_per_s, target=TARGET, max_nodes=1)
        return [requested_plan, plan_here]
    fastest = headway.plan(profile, rate=_LEAST_RATE_PER_S, target="p99 <= 1ms", max_nodes=1)
    floor_s = fastest.planned_latency_s if fastest.feasible else fastest.floor_s
    if math.isinf(floor_s):
        raise HeadwayError(f"{_TOO_SLOW}: {requested_plan.binding[0]}")
    laxer = Target(quantile=0.99, limit_s=math.ceil(_ABOVE_FLOOR_FACTOR / share * floor_s))
    plan_here = headway.plan(profile, rate=_LEAST_RATE_PER_S, target=laxer, max_nodes=1)
    return [requested_plan, plan_here]


def _compared(
    measured: MeasuredRun, setting: Setting, prediction: Prediction, label: str = ""
) -> Comparison:
    assert prediction.tuple_latency is not None, "only stable settings are compared"
    return compared(f"{label}{setting}", prediction.tuple_latency, measured.tuple_latency)


def _write_plan(folder: Path, plan: StreamAnswer) -> None:
    texts = {
        "plan.json": json_text(plan_json(plan)) + "\n",
        "plan.txt": sheet_text(stream_sheet(plan)) + "\n",
        "spark-defaults.conf": FORMATS["spark-defaults"](plan, version=__version__),
        "spark-submit.sh": FORMATS["spark-submit"](plan, version=__version__),
        "query_settings.py": FORMATS["pyspark"](plan, version=__version__),
    }
    for file, text in texts.items():
        write_text(folder / file, text, label="the plan")


def _write_comparison(
    folder: Path, profile: JobProfile, plan: StreamAnswer, comparisons: Sequence[Comparison]
) -> None:
    text = text_of_sections(comparison_sections(comparisons))
    write_text(folder / "comparison.txt", text + "\n", label="the comparison")
    file = "word-count.profile.yaml"
    page = sheet_page(
        stream_page_sheet(plan, comparisons, evidence_of(profile, WhatIf.of(plan, file))),
        files=["plan.json", file],
        profile=profile,
        made_at=datetime.now(UTC),
        data_json=json_text(plan_json(plan)),
    )
    write_text(folder / "report.html", page, label="the report")
