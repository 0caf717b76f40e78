"""Published runs on clusters, predicted from the runs on smaller ones, as a Markdown page.

python benchmarks/accuracy/clusters.py ../shared/data --output docs/cluster-accuracy.md
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scale import host_counts, stream_clusters, task_counts
from scale.stream_clusters import Law, Run

from headway.errors import HeadwayError
from headway.models.arrays import Array
from headway.version import __version__

PREFACE = """\
Figures that others published of runs on more cores, or more machines, than one. In each section the
small settings are fitted and the larger ones told. The files lie beside the repository.
"""

STREAM_PREFACE = """\
Thirty-four runs of half an hour (Klarrio, open-stream-processing-benchmark): two Kafka topics,
parsed, joined, put into tumbling windows by one Structured Streaming query that runs as fast as
possible, on 1 to 6 workers of 1 to 6 cores; latency from topic to topic.

Fitted on the clusters of up to {cores} cores, judged on those of 24 and 36. Only rates, latencies
and the lag at the end are on record, no batch and no task, so there is no profile to make; the
calibration is a small one of five or six numbers: cost per row and core, the share of a core that
each worker keeps for itself, and for p50 and p99 a wait and a number of batch durations. A cluster
*carries* a rate if p50 and the lag at the end stay below {carried:.0f} s. The split was fixed
first. The form was not: the affine law is Headway's own, and the convex one was added after its
errors, those on the larger clusters included, had been seen.
"""


def stream_section(root: Path) -> Iterator[str]:
    """Which cluster carries which rate."""
    runs = stream_clusters.read_runs(root)
    clear = [run for run in runs if not run.is_unclear]
    small = [run for run in clear if run.cores <= stream_clusters.MOST_FITTED_CORES]
    large = [run for run in clear if run.cores > stream_clusters.MOST_FITTED_CORES]
    laws = [
        stream_clusters.fit("affine", stream_clusters.affine_duration_s, small),
        stream_clusters.fit("convex", stream_clusters.convex_duration_s, small),
    ]
    yield "## Structured Streaming on 1 to 6 workers"
    yield ""
    yield STREAM_PREFACE.format(
        cores=stream_clusters.MOST_FITTED_CORES,
        carried=15.0,
    )
    yield (
        f"Left out: {len(runs) - len(clear)} run whose output kept up but which has no latencies "
        f"(the same setting is there a second time). Fitted on {len(small)}, judged on "
        f"{len(large)}."
    )
    yield ""
    yield from _capacities(clear, laws)
    yield from _latencies(large, laws)
    for law in laws:
        yield f"{law.name.capitalize()}: {_parameters(law)}; {_stream_summary(law, small, large)}."
        yield ""
    yield STREAM_AFTERWORD
    yield ""


def _capacities(runs: Sequence[Run], laws: Sequence[Law]) -> Iterator[str]:
    yield "### Which cluster carries which rate"
    yield ""
    yield (
        "| workers x cores | fitted | carried up to | no longer at "
        + "".join(f"| {law.name}: carries | verdicts right " for law in laws)
        + "|"
    )
    yield "|---|---|---|---|" + "---|---|" * len(laws)
    for cluster in dict.fromkeys(run.cluster for run in sorted(runs, key=lambda run: run.cores)):
        own = [run for run in runs if run.cluster == cluster]
        carried = max(run.rate_per_s for run in own if run.is_carried)
        lost = min((run.rate_per_s for run in own if not run.is_carried), default=None)
        cells = [
            cluster,
            "yes" if own[0].cores <= stream_clusters.MOST_FITTED_CORES else "",
            f"{carried / 1e3:.0f}k/s",
            "none tried" if lost is None else f"{lost / 1e3:.0f}k/s",
        ]
        for law in laws:
            capacity = law.capacity_per_s(own[0])
            right = sum((run.rate_per_s <= capacity) == run.is_carried for run in own)
            cells += [f"{capacity / 1e3:.0f}k/s", f"{right} of {len(own)}"]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _latencies(runs: Sequence[Run], laws: Sequence[Law]) -> Iterator[str]:
    yield "### Latency on the larger clusters"
    yield ""
    yield (
        "| workers x cores | rate | p50 measured "
        + "".join(f"| {law.name} | error " for law in laws)
        + "| p99 measured "
        + "".join(f"| {law.name} | error " for law in laws)
        + "|"
    )
    yield "|---|---|---|---|" + "---|---|" * (2 * len(laws))
    told = [law.latencies_s(runs) for law in laws]
    for place, run in enumerate(runs):
        cells = [run.cluster, f"{run.rate_per_s / 1e3:.0f}k/s"]
        for which, measured_s in ((0, run.p50_s), (1, run.p99_s)):
            cells.append("lost" if not run.is_carried else f"{measured_s:.1f} s")
            for latencies in told:
                value = float(latencies[which][place])
                is_told = np.isfinite(value)
                cells.append(f"{value:.1f} s" if is_told else "not carried")
                cells.append(
                    f"{value / measured_s - 1:+.0%}"
                    if is_told and run.is_carried and measured_s
                    else ""
                )
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _parameters(law: Law) -> str:
    per_row_s, own_cores, _, wait50_s, wait99_s, turn50_s, turn99_s = law.parameters
    return (
        f"{per_row_s * 1e6:.0f} us of a core per row, {min(own_cores, 0.9):.2f} cores per worker "
        f"kept, p50 {wait50_s:.2f} s + {turn50_s:.2f} s x D, p99 {wait99_s:.2f} s + "
        f"{turn99_s:.2f} s x D, with D = 1 without rows"
    )


def _stream_summary(law: Law, small: Sequence[Run], large: Sequence[Run]) -> str:
    parts = []
    for label, runs in (("fitted", small), ("judged", large)):
        carried = [run for run in runs if run.is_carried]
        p50, p99 = law.latencies_s(carried)
        parts.append(
            f"{label}: median error p50 {_median(p50 / [run.p50_s or 0 for run in carried] - 1)}, "
            f"p99 {_median(p99 / [run.p99_s or 0 for run in carried] - 1)}"
        )
    false_feasible = sum(
        run.rate_per_s <= law.capacity_per_s(run) for run in large if not run.is_carried
    )
    false_infeasible = sum(
        run.rate_per_s > law.capacity_per_s(run) for run in large if run.is_carried
    )
    parts.append(
        f"on the larger clusters {false_feasible} rates are called carried that were not, "
        f"{false_infeasible} not carried that were"
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
    yield "## One job by 1 to 70 tasks at a time"
    yield ""
    yield TASK_PREFACE.format(alone=curve.alone_s, last=curve.num_tasks[-1], servers=curve.servers)
    yield "| tasks | job | repeats differ by " + "".join(f"| {n} | error " for n, _ in laws) + "|"
    yield "|---|---|---|" + "---|---|" * len(laws)
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
    yield "| tasks " + "".join(f"| {name} " for name, _ in laws) + "|"
    yield "|---|" + "---|" * len(laws)
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
    yield (
        "| job | hosts | runs | fitted | median error | largest | on average "
        "| with a quarter of the cores | with four times |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
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
                for share in (0.25, 4)
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
    made = (
        f"Made {datetime.now(UTC):%Y-%m-%d} by `make cluster-accuracy` "
        f"(`python benchmarks/accuracy/clusters.py`), headway {__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {platform.system()}."
    )
    sections = [*stream_section(root), *task_section(root), *host_section(root)]
    lines = ["# Clusters, predicted from smaller ones", "", PREFACE, made, "", *sections]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder with the published runs")
    parser.add_argument("--output", type=Path, help="Markdown file; printed if not given")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        print(f"clusters: skipped: no folder {arguments.folder}", file=sys.stderr)
        return
    text = page(arguments.folder)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text)
        print(arguments.output)


TASK_PREFACE = """\
One Spark job of fixed work on one machine, by 1 to 70 tasks at a time, three runs each
(LucaCanali, Spark_CPU_memory_load_testkit). Two points are fitted: one task alone ({alone:.0f} s)
and {last:.0f} tasks, which do the work of {servers:.1f}. All between are told.
"""

HOST_PREFACE = """\
{runs} runs of two GraphX jobs on 3 to 10 hosts and data of many sizes
(GiovanniPaoloGibilisco, spark-log-processor); {tasks} tasks per stage. Fitted on 3 and 5 hosts,
judged on the others. A stage takes a time of its own and the makespan of its tasks, whose time is
a line of the data: three numbers per job. The cores of a host are not on record; {cores} are
assumed, and the last columns show that it hardly matters with so many tasks.
"""

STREAM_AFTERWORD = ""
TASK_AFTERWORD = ""
HOST_AFTERWORD = ""


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(f"clusters: {error}")
