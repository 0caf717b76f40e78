"""Published runs on clusters, predicted from the runs on smaller ones, as a Markdown page.

python benchmarks/run.py clusters ../shared/data --output docs/cluster-accuracy.md
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pages import headed, made_by
from scale import host_counts, stream_clusters, task_counts
from scale.stream_clusters import Law, Run

from headway.errors import HeadwayError
from headway.models.arrays import Array

PREFACE = """\
Runs on more than one core or more than one machine, with figures that others published. In each
section the small settings are fitted and the larger ones predicted. The files are kept beside the
repository.
"""

STREAM_PREFACE = """\
Thirty-four runs of half an hour (Klarrio, open-stream-processing-benchmark): one Structured
Streaming query reads two Kafka topics, parses and joins their rows and puts them into tumbling
windows. It runs as fast as possible, on 1 to 6 workers of 1 to 6 cores. Latency is measured from
topic to topic.

Only rates, latencies and the lag at the end were published, but no batches and no tasks, so there
is no profile to make. The calibration has five numbers: the cost of a row, the share of a core
that each worker keeps for itself, p50 as a wait plus a number of batch durations, and the ratio
of p99 to p50. Batches run back to back and take a fixed time plus a time per row (theory.md
(B3)). A cluster *carried* a rate if p50 and the lag at the end stayed below {carried:.0f} s; it
is *predicted* to carry a rate that needs at most 0.9 s of work per second (P3).

The split was fixed first: the first calibration is fitted on the clusters of up to {cores} cores
and judged on 24 and 36. Its errors showed what small clusters do not show: the time of a batch
without rows grows with the cluster. A second calibration, made after this had been seen, has a
sixth number for this growth. To learn it, one more cluster, 4 x 6, is fitted; 6 x 4 and 6 x 6 are
judged.
"""

TASK_PREFACE = """\
One Spark job of fixed work on one machine, with 1 to 70 concurrent tasks, three runs each
(LucaCanali, Spark_CPU_memory_load_testkit). Two points are fitted: one task alone ({alone:.0f} s)
and {last:.0f} tasks, which do the work of {servers:.1f}. All points between are predicted.
"""

HOST_PREFACE = """\
{runs} runs of two GraphX jobs on 3 to 10 hosts and data of many sizes (GiovanniPaoloGibilisco,
spark-log-processor); {tasks} tasks per stage. Fitted on 3 and 5 hosts, judged on the others. A
stage takes a fixed time plus the makespan of its tasks, and the time of a task is linear in the
size of the data: three numbers per job. The number of cores of a host was not published; {cores}
are assumed, and the last columns show the errors with half and with twice as many.
"""

TASK_AFTERWORD = """\
In "shared cores", tasks that always work share a number of servers; there is no slowdown before
all servers are taken. In "a common resource", each task needs one resource that all share, such
as memory, for a small part of its time: the other tasks delay it long before that resource is
full. The last column is mean value analysis, which is exact for such a network. All of them are
about 5% too low from 3 tasks on, before anything can be full. A processor that clocks lower with
more cores at work would look like that, but clock rates were not published.
"""

HOST_AFTERWORD = """\
The only bias is PageRank on 9 hosts, predicted 13% too slow although 7 hosts are predicted
correctly: no law of hosts and tasks has such a step. The files do not say what else changed.
"""

STREAM_AFTERWORD = """\
The first calibration lacks a term for the driver: it launches the tasks of a batch one by one,
and a batch has as many tasks as the cluster has cores. Without rows, p50 rises from 3.0 s (6
cores) to 3.5 s (24, four workers), 3.9 s (24, six) and 4.5 s (36), but any rise from 6 to 12
cores is within the noise. If you calibrate on two sizes, take them far apart. All rates that are
predicted wrongly are within 4% of the predicted limit. Among the fitted clusters, 6 x 2 carried
more than predicted and 2 x 6 less, which no share of a core per worker explains.
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A law and the runs that it was not fitted on."""

    name: str
    law: Law
    fitted: Sequence[Run]
    judged: Sequence[Run]


def stream_section(root: Path) -> Iterator[str]:
    """Which cluster carries which rate."""
    runs = stream_clusters.read_runs(root)
    clear = [run for run in runs if not run.is_unclear]
    calibrations = (
        _calibration("up to 12 cores", clear, lambda run: run.cores <= 12, grows=False),
        _calibration(
            "with 4 x 6", clear, lambda run: run.cores <= 12 or run.cluster == "4 x 6", grows=True
        ),
    )
    yield "## Structured Streaming on 1 to 6 workers"
    yield ""
    yield STREAM_PREFACE.format(cores=12, carried=stream_clusters.LONGEST_CARRIED_S)
    yield (
        f"{len(runs) - len(clear)} run is left out: its output kept up, but it has no latencies "
        "(the same setting occurs a second time)."
    )
    yield ""
    yield from _capacities(clear, calibrations)
    yield from _latencies(clear, calibrations)
    for one in calibrations:
        yield f"* {one.name}: {_parameters(one.law)}; {_stream_summary(one)}."
    yield ""
    yield STREAM_AFTERWORD


def _calibration(
    name: str, runs: Sequence[Run], is_fitted: Callable[[Run], bool], *, grows: bool
) -> Calibration:
    fitted = [run for run in runs if is_fitted(run)]
    law = stream_clusters.fit(fitted, grows=grows)
    return Calibration(name, law, fitted, [run for run in runs if not is_fitted(run)])


def _capacities(runs: Sequence[Run], calibrations: Sequence[Calibration]) -> Iterator[str]:
    yield "### Which cluster carries which rate"
    yield ""
    yield from headed(
        "| workers x cores | carried | not carried "
        + "".join(f"| predicted ({one.name}) | fitted | right " for one in calibrations)
        + "|"
    )
    for cluster in dict.fromkeys(run.cluster for run in sorted(runs, key=lambda run: run.cores)):
        own = [run for run in runs if run.cluster == cluster]
        carried = max(run.rate_per_s for run in own if run.is_carried)
        lost = min((run.rate_per_s for run in own if not run.is_carried), default=None)
        cells = [
            cluster,
            f"{carried / 1e3:.0f}k/s",
            "none tried" if lost is None else f"{lost / 1e3:.0f}k/s",
        ]
        for one in calibrations:
            right = sum(one.law.carries(run) == run.is_carried for run in own)
            cells += [
                f"{one.law.capacity_per_s(own[0]) / 1e3:.0f}k/s",
                "yes" if own[0] in one.fitted else "",
                f"{right} of {len(own)}",
            ]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _latencies(runs: Sequence[Run], calibrations: Sequence[Calibration]) -> Iterator[str]:
    yield "### Latency on clusters that were not fitted"
    yield ""
    yield from headed(
        "| workers x cores | rate | p50 measured "
        + "".join(f"| {one.name} | error " for one in calibrations)
        + "| p99 measured "
        + "".join(f"| {one.name} | error " for one in calibrations)
        + "|"
    )
    for run in runs:
        if not any(run in one.judged for one in calibrations):
            continue
        cells = [run.cluster, f"{run.rate_per_s / 1e3:.0f}k/s"]
        for measured_s, predicted_value_s in (
            (run.p50_s, [one.law.p50_s(run) for one in calibrations]),
            (run.p99_s, [one.law.p99_s(run) for one in calibrations]),
        ):
            cells.append("not carried" if not run.is_carried else f"{measured_s:.1f} s")
            for one, value_s in zip(calibrations, predicted_value_s, strict=True):
                cells += _latency_cells(one, run, value_s, measured_s)
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _latency_cells(
    one: Calibration, run: Run, predicted_value_s: float, measured_s: float | None
) -> tuple[str, str]:
    if run in one.fitted:
        return "fitted", ""
    if not one.law.carries(run):
        return "not carried", ""
    if not run.is_carried or measured_s is None:
        return f"{predicted_value_s:.1f} s", ""
    return f"{predicted_value_s:.1f} s", f"{predicted_value_s / measured_s - 1:+.0%}"


def _parameters(law: Law) -> str:
    growth = f" (1 + {law.growth_per_core:.2f} per core)" if law.growth_per_core else ""
    return (
        f"{law.core_per_row_s * 1e6:.0f} us of a core per row, {law.own_cores:.2f} cores kept by "
        f"each worker, p50 {law.wait_s:.2f} s + {law.turn_s:.2f} s{growth} / (1 - work per "
        f"second), p99 {law.p99_ratio:.2f} times that"
    )


def _stream_summary(one: Calibration) -> str:
    parts = []
    for label, runs in (("fitted", one.fitted), ("judged", one.judged)):
        carried = [run for run in runs if run.is_carried and run.p50_s and run.p99_s]
        p50 = _median(one.law.p50_s(run) / (run.p50_s or 1.0) - 1 for run in carried)
        p99 = _median(one.law.p99_s(run) / (run.p99_s or 1.0) - 1 for run in carried)
        parts.append(f"median error {label}: p50 {p50}, p99 {p99}")
    false_feasible = sum(one.law.carries(run) for run in one.judged if not run.is_carried)
    false_infeasible = sum(not one.law.carries(run) for run in one.judged if run.is_carried)
    parts.append(
        f"of {len(one.judged)} judged rates wrongly predicted as carried {false_feasible}, as not "
        f"carried {false_infeasible}"
    )
    return "; ".join(parts)


def task_section(root: Path) -> Iterator[str]:
    """Tasks that share a machine."""
    curve = task_counts.read_curve(root)
    laws = (
        ("a core each", task_counts.ideal_s(curve)),
        ("shared cores (R2)", task_counts.shared_cores_s(curve)),
        ("a common resource (R2)", task_counts.shared_memory_s(curve)),
        ("the same, exact", task_counts.queued_memory_s(curve)),
    )
    yield "## One job with 1 to 70 concurrent tasks"
    yield ""
    yield TASK_PREFACE.format(alone=curve.alone_s, last=curve.num_tasks[-1], servers=curve.servers)
    yield from headed(
        "| tasks | job | repeats differ by " + "".join(f"| {n} | error " for n, _ in laws) + "|"
    )
    for place in range(0, len(curve.num_tasks), 3):
        cells = [
            f"{curve.num_tasks[place]:.0f}",
            f"{curve.job_s[place]:.1f} s",
            f"{curve.repeat_spread[place]:.0%}",
        ]
        for _, seconds in laws:
            cells += [
                f"{seconds[place]:.1f} s",
                f"{seconds[place] / curve.job_s[place] - 1:+.0%}",
            ]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    bands = ((2, 10), (11, 20), (21, 30), (31, 45), (46, 69))
    yield "Median error by number of tasks:"
    yield ""
    yield from headed("| tasks " + "".join(f"| {name} " for name, _ in laws) + "|")
    for low, high in bands:
        band = (curve.num_tasks >= low) & (curve.num_tasks <= high)
        medians = [_median((seconds / curve.job_s - 1)[band]) for _, seconds in laws]
        yield f"| {low} to {high} | " + " | ".join(medians) + " |"
    yield ""
    yield TASK_AFTERWORD
    yield ""


def host_section(root: Path) -> Iterator[str]:
    """Graph jobs by number of hosts."""
    runs = host_counts.read_runs(root)
    yield "## Graph jobs of Spark 1.4 on 3 to 10 hosts"
    yield ""
    yield HOST_PREFACE.format(
        runs=len(runs), cores=host_counts.CORES_PER_HOST, tasks=runs[0].num_tasks
    )
    yield from headed(
        "| job | hosts | runs | fitted | median error | largest | on average "
        "| with half the cores | with twice |"
    )
    for job in dict.fromkeys(run.job for run in runs):
        own = [run for run in runs if run.job == job]
        fitted = [run for run in own if run.hosts in host_counts.FITTED_HOSTS]
        for hosts in sorted({run.hosts for run in own}):
            some = [run for run in own if run.hosts == hosts]
            seen = np.array([run.stages_s for run in some])
            error = host_counts.predicted_s(some, fitted) / seen - 1
            others = [
                _median(
                    host_counts.predicted_s(some, fitted, int(share * host_counts.CORES_PER_HOST))
                    / seen
                    - 1
                )
                for share in (0.5, 2)
            ]
            yield (
                f"| {job} | {hosts} | {len(some)} "
                f"| {'yes' if hosts in host_counts.FITTED_HOSTS else ''} | {_median(error)} "
                f"| {np.abs(error).max():.0%} | {error.mean():+.0%} | {others[0]} | {others[1]} |"
            )
    yield ""
    yield HOST_AFTERWORD
    yield ""


def _median(errors: Iterable[float] | Array) -> str:
    return f"{statistics.median(abs(float(error)) for error in errors):.0%}"


def page(root: Path) -> str:
    """The whole page."""
    files = (stream_clusters.FILE, task_counts.FILE, host_counts.FILE)
    if missing := [name for name in files if not (root / name).is_file()]:
        raise HeadwayError(f"{root}: no published runs there ({missing[0]})")
    made = made_by("make cluster-accuracy")
    sections = [*stream_section(root), *task_section(root), *host_section(root)]
    lines = ["# Clusters, predicted from smaller ones", "", PREFACE, made, "", *sections]
    return "\n".join(lines).rstrip() + "\n"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="folder with the published runs")


def text(given: argparse.Namespace) -> str | None:
    """The page, where the published runs are."""
    if not given.folder.is_dir():
        print(f"clusters: skipped: no folder {given.folder}", file=sys.stderr)
        return None
    return page(given.folder)
