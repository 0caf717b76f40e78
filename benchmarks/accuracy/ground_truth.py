"""Predicted against measured on recorded real runs, as a Markdown page.

Each folder of recorded runs holds one Spark event log, of one warm JVM that ran many settings,
and ``truth.jsonl`` with the latency that was measured in each. The split into runs that are
fitted and runs that are judged is a rule on the settings, fixed before looking:

* fit on the runs with a trigger of 1 or 3 s, at most 8 partitions, and less than 0.3 cores used
  by other processes; judge on all others;
* fit on one run, judge on all others; for each run in turn.

    python benchmarks/run.py ground_truth FOLDER --output docs/recorded-accuracy.md
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from campaign.reliability import Outcome, outcomes_of, reliability_table
from pages import headed, made_by
from read_logs import LogsOfRuns, read_logs_of_runs

from headway.domain import Arrivals, Configuration, JobProfile
from headway.errors import HeadwayError
from headway.models.job.predict import predict

PREFACE = """\
Recorded runs of real Structured Streaming queries: a wall-clock source at a constant rate, 20
nested hashes per row, a stateful count by 1000 Zipf-distributed keys, update mode, default
checkpoint manager; one warm JVM, 22 s per setting. Latency is measured from the arrival of a row
to the end of its batch, without the offset commit. The recordings are kept beside the repository.

Parameters are never fitted on a run that is judged. One choice about the form of the model was
made after the errors of sha_agg_local2 had been seen: noise multiplies the whole duration, since
driver and stages of a batch are slow together in these logs. Before, it had an additive and a
proportional part, with which the median p99 error there was 10.2%. sha_agg_local1 had no part in
this choice.

Runs with more than about 0.3 cores used by other processes are themselves disturbed; those who
recorded them advise not to trust them. All judged runs below are of that kind.
"""

_PROMISES = (
    "For every pair, one random target for the mean, the p95 and the p99 each. Limits are drawn "
    "between 0.6 and 1.6 times the prediction, regardless of the measurement. The probability is "
    "the one that a plan states for this setting (theory.md P23). Targets of one fit, and of one "
    "judged run, are far from independent: the error of chance is a lower bound."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """One measured run."""

    query_id: str
    started_s: float
    configuration: Configuration
    rate_per_s: float
    mean_s: float
    p95_s: float
    p99_s: float
    duration_s: float
    cores_used_by_others: float
    warm_s: float

    @classmethod
    def parse(cls, line: str) -> Truth:
        """One line of ``truth.jsonl``."""
        row: dict[str, Any] = json.loads(line)
        latency_s = row["tuple_latency_s"]
        return cls(
            query_id=row["query_id"],
            started_s=datetime.fromisoformat(row["started"]).timestamp(),
            configuration=Configuration(
                executors=1,
                cores_per_executor=row["cores"],
                shuffle_partitions=row["shuffle_partitions"],
                trigger_s=float(row["trigger_s"]),
            ),
            rate_per_s=float(row["rate_per_s"]),
            mean_s=latency_s["mean"],
            p95_s=latency_s["p95"],
            p99_s=latency_s["p99"],
            duration_s=row["batch_duration_s"]["mean"],
            cores_used_by_others=row["cores_used_by_others"],
            warm_s=float(row["warm_s"]),
        )

    @property
    def is_fitted(self) -> bool:
        """The split rule."""
        return (
            self.configuration.trigger_s in (1.0, 3.0)
            and self.configuration.shuffle_partitions <= 8
            and self.cores_used_by_others < 0.3
        )

    def __str__(self) -> str:
        trigger_s = self.configuration.trigger_s
        trigger = f"{trigger_s:g} s" if trigger_s else "as fast as possible"
        partitions = self.configuration.shuffle_partitions
        return f"{self.rate_per_s:g}/s, {trigger}, {partitions} partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One run, predicted and measured. Errors are predicted over measured less one."""

    truth: Truth
    stable: bool
    mean_s: float
    p99_s: float
    mean_error: float
    p95_error: float
    p99_error: float
    duration_error: float
    mean_covered: bool
    p99_covered: bool
    calibrated: bool
    outcomes: tuple[Outcome, ...] = ()


def judge(
    profile: JobProfile,
    truth: Truth,
    jvm_started_s: float,
    *,
    know_age: bool,
    promised: str | None = None,
) -> Judged:
    """Predict one measured run, at the age of its JVM or at that of the profile's last run.

    With a name as their random seed, random targets for it are judged, too.
    """
    # The middle of what was measured: 22 s a run, the first ones left out.
    age_s = truth.started_s + truth.warm_s + 8.0 - jvm_started_s
    dispersion_ratio = profile.arrivals.dispersion_ratio
    arrivals = Arrivals(rate_per_s=truth.rate_per_s, dispersion_ratio=dispersion_ratio)
    prediction = predict(
        profile, truth.configuration, arrivals, jvm_age_s=age_s if know_age else None
    )
    latency, duration = prediction.tuple_latency, prediction.batch_duration
    if latency is None or duration is None:
        inf = float("inf")
        return Judged(
            truth=truth, stable=False, mean_s=inf, p99_s=inf, mean_error=inf, p95_error=inf,
            p99_error=inf, duration_error=inf, mean_covered=False, p99_covered=False,
            calibrated=False,
        )  # fmt: skip
    outcomes: list[Outcome] = []
    if promised is not None:
        measured_s = {"mean": truth.mean_s, "p95": truth.p95_s, "p99": truth.p99_s}
        aged = profile.at_age(age_s)
        setting = truth.configuration
        outcomes = outcomes_of(aged, setting, arrivals, latency, measured_s, promised)
    mean_range, p99_range = latency.interval90_mean_s, latency.interval90_p99_s
    assert mean_range is not None
    assert p99_range is not None
    return Judged(
        truth=truth,
        stable=True,
        mean_s=latency.mean_s,
        p99_s=latency.p99_s,
        mean_error=latency.mean_s / truth.mean_s - 1,
        p95_error=latency.p95_s / truth.p95_s - 1,
        p99_error=latency.p99_s / truth.p99_s - 1,
        duration_error=duration.mean_s / truth.duration_s - 1,
        mean_covered=mean_range.low <= truth.mean_s <= mean_range.high,
        p99_covered=p99_range.low <= truth.p99_s <= p99_range.high,
        calibrated=prediction.calibrated,
        outcomes=tuple(outcomes),
    )


def median_percent(values: Iterable[float]) -> str:
    """Median of absolute errors in per cent."""
    return f"{100 * statistics.median(abs(value) for value in values):.1f}%"


def worst_percent(values: Iterable[float]) -> str:
    """Largest absolute error in per cent."""
    return f"{100 * max(abs(value) for value in values):.0f}%"


def summary(judged: Sequence[Judged]) -> str:
    """Median and largest errors, and how often the intervals cover."""
    covered = [one.mean_covered for one in judged] + [one.p99_covered for one in judged]
    return (
        f"median error: mean {median_percent(one.mean_error for one in judged)}, "
        f"p95 {median_percent(one.p95_error for one in judged)}, "
        f"p99 {median_percent(one.p99_error for one in judged)}, "
        f"batch duration {median_percent(one.duration_error for one in judged)}; "
        f"largest: mean {worst_percent(one.mean_error for one in judged)}, "
        f"p99 {worst_percent(one.p99_error for one in judged)}; "
        f"90% intervals cover {sum(covered)} of {len(covered)}"
    )


def detail_table(judged: Sequence[Judged]) -> list[str]:
    """One row per judged run."""
    lines = [
        *headed(
            "| setting | others' cores | mean: predicted | measured | error "
            "| p99: predicted | measured | error | batch duration error | calibrated |"
        ),
    ]
    for one in judged:
        truth = one.truth
        lines.append(
            f"| {truth} | {truth.cores_used_by_others:.2f} "
            f"| {one.mean_s:.3f} s | {truth.mean_s:.3f} s | {one.mean_error:+.1%} "
            f"| {one.p99_s:.3f} s | {truth.p99_s:.3f} s | {one.p99_error:+.1%} "
            f"| {one.duration_error:+.1%} | {'yes' if one.calibrated else 'no'} |"
        )
    return lines


def single_table(rows: Sequence[tuple[Truth, Sequence[Judged]]]) -> list[str]:
    """One row per run that was fitted alone."""
    lines = [
        *headed(
            "| fitted on | median error: mean | p99 | batch duration | largest: mean | p99 "
            "| predicted unstable |"
        ),
    ]
    for truth, judged in rows:
        stable = [one for one in judged if one.stable]
        lines.append(
            f"| {truth} | {median_percent(one.mean_error for one in stable)} "
            f"| {median_percent(one.p99_error for one in stable)} "
            f"| {median_percent(one.duration_error for one in stable)} "
            f"| {worst_percent(one.mean_error for one in stable)} "
            f"| {worst_percent(one.p99_error for one in stable)} "
            f"| {len(judged) - len(stable)} of {len(judged)} |"
        )
    return lines


def repeatability(truths: Sequence[Truth]) -> list[str]:
    """How much runs of one setting differ: no prediction can be closer than that."""
    by_setting: dict[str, list[Truth]] = {}
    for truth in truths:
        by_setting.setdefault(str(truth), []).append(truth)
    return [
        f"* {setting}: mean "
        + ", ".join(f"{one.mean_s:.3f} s" for one in runs)
        + "; p99 "
        + ", ".join(f"{one.p99_s:.3f} s" for one in runs)
        for setting, runs in by_setting.items()
        if len(runs) > 1
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recorded log and the measurements of its runs."""

    name: str
    truths: Sequence[Truth]
    log: LogsOfRuns

    def fitted_on(self, truths: Sequence[Truth]) -> JobProfile:
        """A profile of some of the runs."""
        return self.log.profile([truth.query_id for truth in truths])

    def judged(
        self,
        profile: JobProfile,
        truths: Sequence[Truth],
        *,
        know_age: bool,
        promised: str | None = None,
    ) -> list[Judged]:
        """Runs predicted from a profile; with the name of the fit, random targets, too."""
        return [
            judge(
                profile,
                truth,
                self.log.jvm_starts_s[0],
                know_age=know_age,
                promised=None if promised is None else f"{promised}-{truth.query_id}",
            )
            for truth in truths
        ]


def workload_section(recording: Recording) -> list[str]:
    """The report on one folder of recorded runs."""
    truths = recording.truths
    fitted = [truth for truth in truths if truth.is_fitted]
    others = [truth for truth in truths if not truth.is_fitted]
    profile = recording.fitted_on(fitted)
    at_age = recording.judged(profile, others, know_age=True)
    ageless = recording.judged(profile, others, know_age=False)
    alone = [
        (
            truth,
            recording.judged(
                recording.fitted_on([truth]),
                [other for other in truths if other is not truth],
                know_age=True,
                promised=truth.query_id,
            ),
        )
        for truth in truths
    ]
    every = [one for _, judged in alone for one in judged if one.stable]
    return [
        f"## {recording.name}",
        "",
        f"{len(truths)} runs, fitted on {len(fitted)}, judged on {len(others)}.",
        "",
        "### Fitted on several settings",
        "",
        "With the age of the JVM in each judged run (code that is compiled by then is faster):",
        "",
        *detail_table(at_age),
        "",
        f"**{summary(at_age)}.**",
        "",
        "Without the age, so predicted for the age of the last fitted run:",
        "",
        f"{summary(ageless)}.",
        "",
        "Repeats of one setting in these runs:",
        "",
        *repeatability(truths),
        "",
        "### Fitted on one run, all others predicted",
        "",
        *single_table(alone),
        "",
        f"All pairs together: {summary(every)}.",
        "",
        "### Calibration of probabilities",
        "",
        _PROMISES,
        "",
        *reliability_table(outcome for one in every for outcome in one.outcomes),
    ]


def read_truths(folder: Path) -> list[Truth]:
    """The measured runs in order of time."""
    lines = (folder / "truth.jsonl").read_text().splitlines()
    return sorted((Truth.parse(line) for line in lines), key=lambda truth: truth.started_s)


def read_recording(folder: Path) -> Recording:
    """The tables of a log, read once, and the measurements of its runs."""
    log = read_logs_of_runs(
        next(folder.glob("eventlog_v2_*")),
        lambda step: print(f"{folder.name}: {step}", file=sys.stderr),
    )
    return Recording(
        name=folder.name,
        truths=read_truths(folder),
        log=log,
    )


def page(root: Path) -> str:
    """The whole page."""
    folders = sorted(path.parent for path in root.glob("*/truth.jsonl"))
    if not folders:
        raise HeadwayError(f"{root}: no recorded runs (folders with truth.jsonl) below it")
    recordings = [read_recording(folder) for folder in folders]
    made = made_by("make recorded-accuracy")
    lines = ["# Predictions about recorded runs", "", PREFACE, made, ""]
    for recording in recordings:
        lines += workload_section(recording)
    return "\n".join(lines)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="folder of recorded runs")


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.folder)
