"""What each term of the fit is worth: runs predicted from others, with and without it.

Reads committed runs (`campaign/kept_runs.py`), so it takes no Spark. Of every workload, any three
settings are fitted (some of the choices, drawn once), the others predicted; a term is taken away
by taking its evidence, and nothing of a term is fitted to these runs. Constants of judgement
that come from a campaign were not read off these runs.

The committed runs are 67 short ones of ten workloads and settings of their own, on a machine that
had other things to do (2026-11-22); `keep_campaign.py` puts those of a campaign in their place.

    python benchmarks/run.py terms
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from campaign.figures import grouped
from campaign.kept_runs import read_lines, run_of
from pages import headed

from headway.assumptions import predictions
from headway.domain import Application, Arrivals, JobProfile
from headway.models.estimation import regression
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.summarize import profile_of_runs
from headway.version import __version__

Row = dict[str, Any]
RUNS = Path(__file__).parent / "results" / "kept-runs.jsonl.gz"
SEED, NUM_SETTINGS = 20261122, 3
_APPLICATION = Application(id="kept", name="kept", spark_version="unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A run that can be fitted, and what was measured of it."""

    row: Row
    run: QueryRun

    @property
    def setting(self) -> str:
        """Which runs are repeats of each other."""
        return str(self.row["setting"])

    @property
    def is_as_fast_as_possible(self) -> bool:
        """Without a trigger interval."""
        return self.run.configuration.trigger_s == 0


class Term(NamedTuple):
    """How a fit is made without it."""

    evidence: Callable[[QueryRun], QueryRun] = lambda run: run
    profile: Callable[[JobProfile], JobProfile] = lambda profile: profile
    model: Callable[[], AbstractContextManager[Any]] = nullcontext


def _without_state_at_rate(profile: JobProfile) -> JobProfile:
    if profile.state is None:
        return profile
    return replace(profile, state=replace(profile.state, rate_exponent=0.0))


TERMS: Mapping[str, Term] = {
    "batches without rows (E32)": Term(evidence=lambda run: replace(run, without_rows=())),
    "state at the asked rate (E36)": Term(profile=_without_state_at_rate),
    "drift of the driver (E35)": Term(
        model=lambda: mock.patch.object(regression, "driver_drift_exponent", lambda *_: 0.0)
    ),
    "spread of other jobs (E5)": Term(
        model=lambda: mock.patch.object(predictions, "POOLED_RUNS", mock.Mock(value=1e-9))
    ),
}


class Errors(NamedTuple):
    """Of one run by a fit on others: predicted over measured, less one; None without latency."""

    as_fast_as_possible: bool
    mean: float | None
    p99: float | None
    duration: float
    held: bool | None
    log_score: float


def errors_of(runs: Sequence[Kept], term: Term, num_fits: int) -> Iterator[Errors]:
    """All runs of one workload, predicted from those of some three settings each time."""
    settings = sorted({one.setting for one in runs})
    choices = list(itertools.combinations(settings, min(NUM_SETTINGS, len(settings) - 1)))
    random.Random(SEED).shuffle(choices)
    for choice in choices[:num_fits]:
        fitted = sorted(
            (term.evidence(one.run) for one in runs if one.setting in choice),
            key=lambda run: run.batches[0].started_s,
        )
        with term.model():
            profile = term.profile(profile_of_runs(fitted, (_APPLICATION,), __version__))
        for one in runs:
            if one.setting not in choice:
                yield _errors_of(profile, one)


def _errors_of(profile: JobProfile, one: Kept) -> Errors:
    run, truth, age_s = one.run, one.row["truth"], one.row["jvm_age_s"]
    arrivals = Arrivals(rate_per_s=one.row["rate_per_s"], dispersion_ratio=one.row["dispersion"])
    latency = predict(profile, run.configuration, arrivals, jvm_age_s=age_s).tuple_latency
    asked = replace(profile, arrivals=arrivals).at_age(age_s)
    setting = run.configuration
    model = duration_model(asked, *setting.size)
    rows = np.array([batch.num_rows for batch in run.batches], dtype=np.float64)
    seen_s = float(np.mean([batch.duration_s for batch in run.batches]))
    duration = profile.age_factor(age_s) * float(model.mean_s(rows).mean()) / seen_s - 1.0
    spread = profile.noise.run_to_run_ratio
    score = -0.5 * (np.log1p(duration) / spread) ** 2 - np.log(spread)
    if latency is None:
        return Errors(one.is_as_fast_as_possible, None, None, duration, None, float(score))
    interval = latency.interval90_mean_s
    seen = truth["latency"]
    return Errors(
        as_fast_as_possible=one.is_as_fast_as_possible,
        mean=latency.mean_s / seen["mean"] - 1.0,
        p99=latency.p99_s / seen["p99"] - 1.0,
        duration=duration,
        held=interval.low <= seen["mean"] <= interval.high if interval else None,
        log_score=float(score),
    )


def _columns(errors: Sequence[Errors]) -> Iterator[str]:
    for regime in (False, True):
        of = [one for one in errors if one.as_fast_as_possible is regime]
        predicted = [one for one in of if one.mean is not None]
        yield str(len(of))
        yield str(len(of) - len(predicted))
        for name, goal in (("mean", 0.10), ("p99", 0.15)):
            values = [abs(getattr(one, name)) for one in predicted]
            # What is not predicted counts as missed.
            within = sum(value <= goal for value in values) / len(of) if of else 0.0
            yield (
                f"{100 * statistics.median(values):.1f}%, {100 * within:.0f}%" if predicted else "-"
            )
        yield f"{100 * statistics.median(abs(one.duration) for one in of):.1f}%" if of else "-"


def _size(errors: Sequence[Errors]) -> float:
    """Root mean square error of durations, what is beyond 100% counted as that."""
    return float(np.sqrt(np.mean([min(abs(one.duration), 1.0) ** 2 for one in errors])))


def read_kept(path: Path) -> dict[str, list[Kept]]:
    """Runs that kept up, by group and workload; of backlogs and varying rates none."""
    rows = [
        row
        for row in read_lines(path)
        if row["run"] is not None and not row["setting"].get("backlog")
    ]
    kept = [
        Kept(row=row, run=run_of(row["run"])) for row in rows if row["truth"].get("kept_up", True)
    ]
    of_each = grouped([one.row for one in kept], lambda row: f"{row['group']}, {row['workload']}")
    names = {id(row): name for name, of in of_each.items() for row in of}
    found: dict[str, list[Kept]] = {}
    for one in kept:
        found.setdefault(names[id(one.row)], []).append(one)
    return {name: of for name, of in found.items() if len({one.setting for one in of}) > 2}


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--runs", type=Path, default=RUNS, help="kept runs")
    parser.add_argument("--fits", type=int, default=10, help="fits of each workload")


def text(given: argparse.Namespace) -> str:
    """The tables."""
    return "\n".join(tables(read_kept(given.runs), given.fits)) + "\n"


def tables(workloads: Mapping[str, Sequence[Kept]], num_fits: int) -> Iterator[str]:
    """Errors with all terms and without each, and on how many workloads it helps and hurts."""
    cases = {"all terms": Term(), **{f"without {name}": term for name, term in TERMS.items()}}
    found = {
        case: {name: list(errors_of(runs, term, num_fits)) for name, runs in workloads.items()}
        for case, term in cases.items()
    }
    yield from headed(
        "| | on a trigger | unavailable | mean, within 10% | p99, within 15% | duration "
        "| as fast as possible | unavailable | mean, within 10% | p99, within 15% | duration "
        "| better on | worse on | log score | intervals held |"
    )
    for case, of_each in found.items():
        every = [one for errors in of_each.values() for one in errors]
        sizes = {name: _size(errors) for name, errors in of_each.items() if errors}
        whole = {name: _size(errors) for name, errors in found["all terms"].items() if errors}
        better = sum(whole[name] < 0.995 * sizes[name] for name in sizes)
        worse = sum(whole[name] > 1.005 * sizes[name] for name in sizes)
        held = [one.held for one in every if one.held is not None]
        yield (
            f"| {case} | {' | '.join(_columns(every))} | {better} | {worse} "
            f"| {statistics.fmean(one.log_score for one in every):.3f} "
            f"| {100 * statistics.fmean(held):.0f}% |"
        )
    yield ""
    yield from headed("| durations, root mean square error | " + " | ".join(cases) + " |")
    for name in workloads:
        cells = [f"{100 * _size(found[case][name]):.1f}%" for case in cases]
        yield f"| {name} | {' | '.join(cells)} |"
