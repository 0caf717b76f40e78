"""The page about single runs: each recorded run alone predicts the batches of all others.

What a row costs is not to be seen in batches of one size (E43), but their CPU time says something
of it (E46). The runs are committed, so nothing is run. Records of the campaign do not say which
operators its stages run; all but those with Python workers are Spark's own.

    python benchmarks/run.py run_pairs --output docs/run-pairs.md
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from campaign.kept_runs import read_lines, run_of
from campaign.record import RESULTS
from campaign.record import RUNS as CAMPAIGN_RUNS
from ordinary.record import RUNS as ORDINARY_RUNS
from pages import headed, made_by

from headway.models.arrays import Array
from headway.profiler.operators import Operator
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.samples import BatchSample, QueryRun

SETS = {"workloads of the campaign": CAMPAIGN_RUNS, "ordinary jobs": ORDINARY_RUNS}
NUM_SLOTS, LEAST_BATCHES = 2, 5
BOUNDS = (0.0, 0.1, 0.25, 0.7, 1.4, 4.0, 10.0, np.inf)
_OWN = (Operator(is_replanned=False, position=0, name="HashAggregate", table=None),)


class Pair(NamedTuple):
    """How far a run's mean duration is off, predicted from another run of its job."""

    job: str
    size_ratio: float
    log_error: float


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")


def text(given: argparse.Namespace) -> str:
    """The page."""
    return "\n".join(page_lines(given.results)).rstrip() + "\n"


def page_lines(results: Path) -> Iterator[str]:
    """The whole page."""
    yield "# Predictions from a single run\n"
    yield (
        "Each recorded run on two cores was profiled alone, and predicted the mean duration of the "
        "batches of each other run of its job with as many partitions. The numbers of (E46) are "
        "means of the workloads of the campaign. That CPU time shows what rows cost was seen in "
        "the ordinary jobs, which no number was fitted to.\n"
    )
    for name, file in SETS.items():
        pairs = [
            pair
            for job, runs in runs_by_job(results / file).items()
            for pair in pairs_of(job, runs)
        ]
        num_jobs = len({pair.job for pair in pairs})
        yield f"## {name.capitalize()}: {num_jobs} jobs, {len(pairs):,} pairs of runs\n"
        yield from headed(
            "| rows of a batch, over those of the profiled run | pairs | median error "
            "| median size of the error | 90% of errors are within | root mean square |"
        )
        for low, high in pairwise(BOUNDS):
            within = [pair for pair in pairs if low <= pair.size_ratio < high]
            if within:
                yield _line(low, high, within)
        yield ""
    yield made_by("make run-pairs", "numpy")


def runs_by_job(file: Path) -> dict[str, list[QueryRun]]:
    """The runs on two cores that have enough batches, with stages of one number."""
    runs: dict[str, list[QueryRun]] = defaultdict(list)
    for row in read_lines(file):
        run = run_of(row["run"]) if row.get("run") else None
        if run is None or run.configuration.num_slots != NUM_SLOTS:
            continue
        if len(run.batches) >= LEAST_BATCHES:
            runs[row["workload"]].append(_with_operators(run))
    return {job: _alike(of_job) for job, of_job in runs.items()}


def pairs_of(job: str, runs: Sequence[QueryRun]) -> Iterator[Pair]:
    """Each run, predicted from each other one."""
    for profiled in runs:
        fit = fit_duration([profiled])
        for run in runs:
            partitions = run.configuration.shuffle_partitions
            if run is profiled or partitions != profiled.configuration.shuffle_partitions:
                continue
            rows = _rows_of(run)
            predicted_s = float(fit.model(run.configuration).mean_s(rows).mean())
            measured_s = float(np.mean([batch.duration_s for batch in run.batches]))
            size_ratio = float(rows.mean() / _rows_of(profiled).mean())
            yield Pair(job, size_ratio, float(np.log(predicted_s / measured_s)))


def _line(low: float, high: float, pairs: Sequence[Pair]) -> str:
    errors = np.expm1([pair.log_error for pair in pairs])
    size = f"{low:g} to {high:g}" if np.isfinite(high) else f"more than {low:g}"
    sizes = np.abs(errors)
    return (
        f"| {size} | {len(pairs)} | {100 * np.median(errors):+.0f}% "
        f"| {100 * np.median(sizes):.0f}% | {100 * np.quantile(sizes, 0.9):.0f}% "
        f"| {_root_mean_square(pairs):.2f} |"
    )


def _root_mean_square(pairs: Sequence[Pair]) -> float:
    """Of the logarithm; the mean over jobs, so that those of many runs do not weigh more."""
    of_job: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        of_job[pair.job].append(pair.log_error**2)
    return float(np.sqrt(np.mean([np.mean(squares) for squares in of_job.values()])))


def _rows_of(run: QueryRun) -> Array:
    return np.array([float(batch.num_rows) for batch in run.batches])


def _alike(runs: Sequence[QueryRun]) -> list[QueryRun]:
    """Those whose batches have as many stages as most."""
    counts = Counter(len(run.batches[0].stages) for run in runs)
    (usual, _), *_ = counts.most_common(1)
    return [run for run in runs if len(run.batches[0].stages) == usual]


def _with_operators(run: QueryRun) -> QueryRun:
    def complete(batch: BatchSample) -> BatchSample:
        stages = tuple(
            stage if stage.operators or stage.python_s else replace(stage, operators=_OWN)
            for stage in batch.stages
        )
        return replace(batch, stages=stages)

    return replace(
        run,
        batches=tuple(map(complete, run.batches)),
        without_rows=tuple(map(complete, run.without_rows)),
    )
