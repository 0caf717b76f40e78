"""How many queries a driver carries: predicted from runs of few, beside runs of up to 40.

python benchmarks/run.py driver_page --folder FOLDER    # profiles of the event logs, once
python benchmarks/run.py driver_page --output docs/driver.md
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean, median, stdev
from typing import Any

from driver_runs import RESULTS, Split
from pages import headed, on_days
from read_logs import read_logs_of_runs
from result_lines import keep, lines_of
from scipy.special import stdtrit

from headway.assumptions.resources import COMPILER_CORE_S, DRIVER_CPU_RATIO, LAUNCHES_PER_S
from headway.digits import size_text
from headway.domain import JobProfile
from headway.domain.plan_parts import PlannedDriver
from headway.formats.profile_file import dump_profile, load_profile
from headway.models.job.driver_load import (
    DriverWork,
    driver_work,
    live_heap_bytes,
    planned_driver,
)
from headway.units import counted, format_duration

PROFILES = Path(__file__).parent / "results" / "driver-profiles.jsonl"
LEAST_ON_TIME_RATIO = 0.95
"""Share of the batches that triggers would start, below which a run is saturated."""
_TASK_THREADS, _COMPILER_THREADS = ("Executo",), ("C1 Comp", "C2 Comp")
_THREADS = {
    "queries": ("stream",),
    "tasks": _TASK_THREADS,
    "listeners": ("spark-l",),
    "scheduler": ("dag-sch", "dispatc", "task-re", "netty-r"),
    "collector": ("GC Thre", "G1 Conc", "G1 Serv", "VM Thre"),
}
"""Threads by what they do, as Linux shortens their names."""

Line = dict[str, Any]


def options(parser: argparse.ArgumentParser) -> None:
    """The results, and the folder with event logs if they are to be profiled."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--profiles", type=Path, default=PROFILES)
    parser.add_argument("--folder", type=Path, help="profile the logs of the fitted runs in it")


def text(given: argparse.Namespace) -> str | None:
    """The page; with a folder, only the profiles."""
    lines = lines_of(given.results)
    if given.folder is not None:
        keep_profiles(lines, given.folder, given.profiles)
        return None
    profiles: defaultdict[str, list[JobProfile]] = defaultdict(list)
    for line in lines_of(given.profiles):
        profiles[line["run"]].append(_loaded(line["profile"]))
    return "\n".join(_page(lines, profiles)) + "\n"


def keep_profiles(lines: Sequence[Line], folder: Path, profiles: Path) -> None:
    """Profile each query of the fitted runs and one of the others, and keep what is not there."""
    done = {(line["run"], line["query"]) for line in lines_of(profiles)}
    fitted = {line["run"] for line in _fitted(lines)}
    for line in lines:
        num_queries = line["num_queries"] if line["run"] in fitted else 1
        queries = [f"query-{index:02d}" for index in range(num_queries)]
        left = [query for query in queries if (line["run"], query) not in done]
        logs = read_logs_of_runs(folder / line["log"]) if left else None
        for query in left:
            assert logs is not None
            profile = dump_profile(logs.profile([query]))
            keep(profiles, {"run": line["run"], "query": query, "profile": profile})


def _fitted(lines: Sequence[Line]) -> list[Line]:
    fitted = Split().settings["fitted"]
    return [line for line in lines if line["num_queries"] in fitted]


def predicted_work(profile: JobProfile, trigger_s: float) -> DriverWork:
    """Work of the driver for a query of the runs, by the profile of one: theory.md (U1)."""
    return driver_work(
        profile,
        profile.baseline.size,
        batch_rows=profile.arrivals.rate_per_s * trigger_s,
        interval_s=trigger_s,
    )


def predicted_driver(profiles: Sequence[JobProfile], line: Line) -> PlannedDriver:
    """The driver of a run by the profiles of its queries: theory.md (U2), (U3)."""
    works = [predicted_work(profile, line["trigger_s"]) for profile in profiles]
    return planned_driver(works, line["cores"])


def measured_knee(lines: Sequence[Line]) -> float | None:
    """Queries whose batches the saturated runs would have started at their triggers.

    Saturated runs start as many batches in a second, however many queries they have.

    Examples
    --------
    >>> runs = [{"on_time_ratio": 1.0, "batches_per_s": 8.0, "trigger_s": 1.0},
    ...         {"on_time_ratio": 0.8, "batches_per_s": 19.0, "trigger_s": 1.0},
    ...         {"on_time_ratio": 0.5, "batches_per_s": 21.0, "trigger_s": 1.0}]
    >>> measured_knee(runs)
    20.0
    """
    started = started_per_interval(lines)
    return mean(started) if started else None


def started_per_interval(lines: Sequence[Line]) -> list[float]:
    """Batches that each saturated run started in a trigger interval."""
    saturated = [line for line in lines if line["on_time_ratio"] < LEAST_ON_TIME_RATIO]
    return [line["batches_per_s"] * line["trigger_s"] for line in saturated]


def half_width(started: Sequence[float]) -> float:
    """How far the mean of runs may be off, with 95% probability (Student).

    Examples
    --------
    >>> round(half_width([6.0, 8.0]), 1)
    12.7
    """
    quantile = float(stdtrit(len(started) - 1, 0.975))
    return quantile * stdev(started) / math.sqrt(len(started))


def errors_of_single_runs(started: Sequence[float]) -> list[float]:
    """How far each run is from the mean of the others, over that.

    Examples
    --------
    >>> [round(error, 3) for error in errors_of_single_runs([6.0, 8.0, 10.0])]
    [-0.333, 0.0, 0.429]
    """
    total = sum(started)
    return [value / ((total - value) / (len(started) - 1)) - 1.0 for value in started]


def knee_by_core_time(line: Line) -> float:
    """The knee by what a run took of the machine, which no log shows.

    Examples
    --------
    Four batches a second keep 0.9 of the 1.5 cores busy that the compiler leaves:

    >>> threads = {"C2 Comp": 5.0}
    >>> knee_by_core_time({"machine_cpu_s": 14.0, "window_s": 10.0, "batches_per_s": 4.0,
    ...                    "trigger_s": 1.0, "cores": 2, "thread_cpu_s": threads})
    6.666666666666667
    """
    compiler_s = sum(line["thread_cpu_s"].get(name, 0.0) for name in _COMPILER_THREADS)
    left_s = line["cores"] * line["window_s"] - compiler_s
    batches = line["batches_per_s"] * line["trigger_s"]
    return float(batches * left_s / (line["machine_cpu_s"] - compiler_s))


def driver_cpu_s(line: Line) -> float:
    """Core time of a batch outside of tasks and of the compiler [s].

    Examples
    --------
    >>> threads = {"Executo": 2.0, "C2 Comp": 1.0, "stream": 3.0}
    >>> driver_cpu_s({"jvm_cpu_s": 7.0, "thread_cpu_s": threads, "num_batches": 100})
    0.04
    """
    return float((line["jvm_cpu_s"] - _beside_s(line)) / line["num_batches"])


def driver_core_s(lines: Sequence[Line]) -> float:
    """Core time of a batch without its tasks: the JVM's, and that of the system for it [s].

    The JVM's is the mean of the runs. What the machine does beside the JVM is partly not for it,
    and that counts least where there are most batches: it is that of the run with most queries.

    Examples
    --------
    >>> threads = {"Executo": 1.0, "C2 Comp": 5.0}
    >>> runs = [
    ...     {"num_queries": 1, "num_batches": 10, "jvm_cpu_s": 7.0, "machine_cpu_s": 9.0,
    ...      "thread_cpu_s": threads},
    ...     {"num_queries": 4, "num_batches": 40, "jvm_cpu_s": 18.0, "machine_cpu_s": 20.0,
    ...      "thread_cpu_s": threads},
    ... ]
    >>> driver_core_s(runs)
    0.25
    """
    most = max(lines, key=lambda line: line["num_queries"])
    outside_s = (most["machine_cpu_s"] - most["jvm_cpu_s"]) / most["num_batches"]
    return float(mean(map(driver_cpu_s, lines)) + outside_s)


def _beside_s(line: Line) -> float:
    """Core time of tasks and of the compiler in a run [s]."""
    threads: Mapping[str, float] = line["thread_cpu_s"]
    return sum(threads.get(name, 0.0) for name in (*_TASK_THREADS, *_COMPILER_THREADS))


def compiler_core_s(line: Line, profile: JobProfile) -> float:
    """Cores that the compiler kept busy in a run times the age of its JVM: `B` of (U1) [s]."""
    threads: Mapping[str, float] = line["thread_cpu_s"]
    compiled_s = sum(threads.get(name, 0.0) for name in _COMPILER_THREADS)
    return float(compiled_s / line["window_s"] * profile.settings[-1].jvm_age_s)


def fitted_cpu_ratio(
    lines: Sequence[Line], profiles: Mapping[str, Sequence[JobProfile]]
) -> float | None:
    """Core time of the driver over the time of its phases alone: `κ` of theory.md (U1)."""
    alone = [
        profile for line in lines if line["num_queries"] == 1 for profile in profiles[line["run"]]
    ]
    if not alone:
        return None
    num_tasks = mean(line["num_tasks"] / line["num_batches"] for line in lines)
    phases_s = mean(map(_phases_s, alone))
    return float((driver_core_s(lines) - num_tasks / LAUNCHES_PER_S.value) / phases_s)


def _phases_s(profile: JobProfile) -> float:
    return sum(phase.mean_s for phase in profile.driver_phases)


def _page(lines: Sequence[Line], profiles: Mapping[str, Sequence[JobProfile]]) -> Iterator[str]:
    yield "# How many queries a driver carries\n"
    if not lines:
        yield "Not measured yet: `make driver-runs` on a quiet machine, 15 minutes."
        return
    settings = Split().settings
    yield (
        "Made by `make driver-page` from `benchmarks/accuracy/results/driver-runs.jsonl`, which "
        f"`make driver-runs` measured {on_days(line['day'] for line in lines)} on a machine of "
        f"{counted(lines[0]['machine_cores'], 'core')}.\n"
    )
    yield (
        f"Each run is an application on Spark 4.3 with `local[{settings['cores']}]`, whose JVM is "
        f"warmed up for {settings['warm_up_s']} s by other queries, and then has 1 to "
        f"{max(settings['judged'])} queries: each counts {settings['rows_per_batch']} rows by key "
        f"on a trigger of {format_duration(settings['trigger_s'])}, with "
        f"{counted(settings['shuffle_partitions'], 'shuffle partition')}. The batches of "
        f"{settings['window_s']} s count. In this mode the tasks run in the driver's JVM: the "
        "model adds their core time (U1). Which runs a prediction may use is in "
        "`benchmarks/accuracy/driver-split.json`, committed before the first run.\n"
    )
    yield from _knee(lines, profiles, settings["allowed_ratio"])
    yield "## The runs\n"
    yield (
        "*On time* are the batches over those that the triggers would start; *busy* are cores that "
        "the JVM kept busy, of which *driver* is without tasks and the compiler, per batch.\n"
    )
    yield from headed(
        "| queries | run | on time | batches/s | median batch | p95 | busy | driver | tasks/s |"
    )
    for line in sorted(lines, key=lambda line: (line["num_queries"], line["repeat"])):
        yield _run_row(line)
    yield ""
    yield from _parts(lines, profiles)
    yield from _heap(lines)
    yield (
        "Left out: a driver of its own on a cluster, other sources and sinks, other Spark "
        "versions, and queries that collect rows to the driver."
    )


def _knee(
    lines: Sequence[Line], profiles: Mapping[str, Sequence[JobProfile]], allowed_ratio: float
) -> Iterator[str]:
    judged = [line for line in lines if line["num_queries"] in Split().settings["judged"]]
    measured = measured_knee(judged)
    yield "## The knee\n"
    if measured is None:
        most = max((line["num_queries"] for line in judged), default=0)
        yield f"No judged run is saturated, so the knee is above {most} queries.\n"
        return
    saturated = [line for line in judged if line["on_time_ratio"] < LEAST_ON_TIME_RATIO]
    on_time = [line["num_queries"] for line in judged if line not in saturated]
    started = started_per_interval(judged)
    numbers = ", ".join(map(str, sorted({line["num_queries"] for line in saturated})))
    yield (
        f"Runs of {numbers} queries were saturated: they started {measured:.1f} batches in each "
        f"trigger interval, from {min(started):.1f} to {max(started):.1f} by run, and that is the "
        "number of queries that would just keep their triggers. "
        + (
            f"The run of {counted(max(on_time), 'query', 'queries')} kept them.\n"
            if on_time
            else "\n"
        )
    )
    if len(started) > 1:
        errors = errors_of_single_runs(started)
        num_within = sum(abs(error) <= allowed_ratio for error in errors)
        yield (
            f"The mean of {len(started)} runs may be off by {half_width(started):.1f} (95%). A "
            "single run differs from the mean of the others by up to "
            f"{max(map(abs, errors)):.0%}, at the median by {median(map(abs, errors)):.0%}, and "
            f"{num_within} of {len(errors)} are within {allowed_ratio:.0%}: a prediction from a "
            "single JVM cannot be expected to be closer.\n"
        )
    fitted = [line for line in _fitted(lines) if profiles.get(line["run"])]
    yield from headed(
        "| predicted from | knee | 90% interval | measured | error | by core time | error |"
    )
    drivers = [predicted_driver(profiles[line["run"]], line) for line in fitted]
    errors = [driver.knee_queries / measured - 1.0 for driver in drivers]
    for line, driver, error in zip(fitted, drivers, errors, strict=True):
        queries = counted(line["num_queries"], "query", "queries")
        yield (
            f"| a run of {queries}{' (repeat)' if line['repeat'] > 1 else ''} "
            f"| {driver.knee_queries:.1f} | {driver.knee_low_queries:.1f} to "
            f"{driver.knee_high_queries:.1f} | {measured:.1f} | {error:+.1%} "
            f"| {knee_by_core_time(line):.1f} | {knee_by_core_time(line) / measured - 1.0:+.1%} |"
        )
    if errors:
        together = geometric_mean(driver.knee_queries for driver in drivers)
        error = together / measured - 1.0
        yield f"| all of them | {together:.1f} | | {measured:.1f} | {error:+.1%} | | |"
    yield ""
    if not errors:
        yield "No run of few queries is profiled yet.\n"
        return
    num_within = sum(abs(error) <= allowed_ratio for error in errors)
    yield (
        f"{num_within} of {len(errors)} within {allowed_ratio:.0%}; the median error is "
        f"{median(map(abs, errors)):.1%}.\n"
    )
    compiler_s = mean(compiler_core_s(line, profiles[line["run"]][0]) for line in fitted)
    ratio = f", and `κ` as {DRIVER_CPU_RATIO.value:g}"
    fitted_ratio = fitted_cpu_ratio(fitted, profiles)
    if fitted_ratio is not None:
        ratio += f" (these runs: {fitted_ratio:.2f})"
    yield (
        "*By core time* is what the cores that the same run kept busy would predict, which no log "
        "shows. Constants of (U1) are from the same runs of few queries: the model takes `B` as "
        f"{COMPILER_CORE_S.value:g} s (these runs: {compiler_s:.0f} s){ratio}. What became part of "
        "the model after the judged runs had been seen, without a constant that is fitted to them: "
        "that a young JVM's compiler takes cores, how `κ` is taken from the runs of few, and what "
        "batches of several queries that start at the same instant do to each other. At first, the "
        "cores over the number of batches at once said how much they wait, which is too little for "
        "two, since a batch keeps more than one thread busy; and `κ` was the slope of core time "
        "of the machine, as if it did as much beside in each run, which the table below refutes. "
        "That gave 10.1, 7.9, 9.5 and 8.1, 2 of 4 within 15%. Now the tasks of the log say how "
        "long threads waited (`v` of (U1)).\n"
    )


def _run_row(line: Line) -> str:
    queries = [query for query in line["queries"] if query["num_batches"]]
    cells = (
        str(line["num_queries"]),
        str(line["repeat"]),
        f"{line['on_time_ratio']:.0%}",
        f"{line['batches_per_s']:.1f}",
        format_duration(median(query["p50_s"] for query in queries)),
        format_duration(median(query["p95_s"] for query in queries)),
        f"{line['jvm_cpu_s'] / line['window_s']:.2f}",
        format_duration(driver_cpu_s(line)),
        f"{line['tasks_per_s']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _parts(lines: Sequence[Line], profiles: Mapping[str, Sequence[JobProfile]]) -> Iterator[str]:
    yield "## Where the time of a batch goes\n"
    yield (
        "Core time per batch by threads, without the compiler, beside what the event log has of "
        "the first query: the time of the driver's phases (`d`), the share of time in which tasks "
        "were on a processor (`ρ`), and the core time that (U1) makes of them. A log shows no "
        "threads: a batch costs as much whatever the number of queries, but for the differences "
        "between JVMs, while phases take longer and longer, since threads wait for processors.\n"
    )
    yield from headed(
        f"| queries | run | {' | '.join(_THREADS)} | other threads | outside the JVM | together "
        "| phases | on processor | by (U1) |"
    )
    for line in sorted(lines, key=lambda line: (line["num_queries"], line["repeat"])):
        threads: Mapping[str, float] = line["thread_cpu_s"]
        parts_s = [sum(threads.get(name, 0.0) for name in names) for names in _THREADS.values()]
        compiler_s = sum(threads.get(name, 0.0) for name in _COMPILER_THREADS)
        parts_s.append(line["jvm_cpu_s"] - compiler_s - sum(parts_s))
        parts_s += (line["machine_cpu_s"] - line["jvm_cpu_s"], line["machine_cpu_s"] - compiler_s)
        cells = [format_duration(max(part_s, 0.0) / line["num_batches"]) for part_s in parts_s]
        of_run = profiles.get(line["run"])
        cells += _of_log(of_run[0], line["trigger_s"]) if of_run else ["-"] * 3
        yield f"| {line['num_queries']} | {line['repeat']} | {' | '.join(cells)} |"
    yield ""


def _of_log(profile: JobProfile, trigger_s: float) -> list[str]:
    """Phases of the driver, the largest share of tasks on a processor, and what (U1) says."""
    shares = [stage.observed.cpu_ratio for stage in profile.stages if stage.observed]
    return [
        format_duration(_phases_s(profile)),
        f"{max(shares, default=1.0):.2f}",
        format_duration(predicted_work(profile, trigger_s).core_s),
    ]


def _heap(lines: Sequence[Line]) -> Iterator[str]:
    yield "## Heap\n"
    yield (
        "Heap right after full collections, by (U4) and measured. It contains what the status "
        "store keeps of the last 1,000 executions of all queries, also those of the warm-up. The "
        "queries go on meanwhile: what their batches allocate until the heap is read is measured, "
        "too, so the measured heap is an upper bound of what is live.\n"
    )
    yield from headed("| queries | executions | by the model | measured |")
    for line in sorted(lines, key=lambda line: (line["num_queries"], line["repeat"])):
        modelled = live_heap_bytes(line["num_queries"], line["num_batches_ever"])
        cells = (
            str(line["num_queries"]),
            f"{line['num_batches_ever']:,}",
            size_text(modelled),
            size_text(line["heap_bytes"]),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _loaded(profile: str) -> JobProfile:
    """A profile from the text of its file."""
    with tempfile.NamedTemporaryFile("w", suffix=".profile.yaml", encoding="utf-8") as file:
        file.write(profile)
        file.flush()
        return load_profile(file.name)
