"""Errors of predictions outside the profiled range, from all runs that have any."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from campaign.figures import is_judged
from campaign.schedule import FIT as FITTED_ROLE
from campaign.schedule import FITTED, GROUPS
from ground_truth import Recording

from headway.assumptions.predictions import USUAL_RUN_TO_RUN_RATIO
from headway.domain import Z90
from headway.models.job.calibration import doublings_beyond, doublings_outside, of_runs_and_fit
from headway.models.job.setting import duration_model, setting_law, settled_batch_rows
from scale import host_counts, stream_clusters, task_counts
from scale.split import Kind
from scale.stream_clusters import Law, Run

if TYPE_CHECKING:
    from headway.domain import JobProfile

_FEWEST_ROWS = "0.5s-p2-10%"
_SPREAD_THEN = 0.1
_FARTHEST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """One prediction outside (or inside) the profiled range, compared with the measurement.

    ``log_factor`` is the logarithm of the factor on all durations with which the measured mean
    duration of a batch would have been predicted (or that of a job, or the median latency if no
    duration is recorded): intervals multiply all durations, and batches back to back amplify that.
    ``own_spread`` is the standard deviation that runs of one setting and the fit on a few of them
    have at distance 0.
    """

    source: str
    part: str
    name: str
    slots: float
    partitions: float
    rows: float
    log_factor: float
    own_spread: float

    @property
    def kind(self) -> Kind:
        """Where it comes from."""
        return Kind(self.source, self.part)


def read_errors(path: Path) -> list[Error]:
    """Errors as :func:`write_errors` left them."""
    return [Error(**json.loads(line)) for line in path.read_text().splitlines()]


def write_errors(errors: Sequence[Error], path: Path) -> None:
    """One line for each."""
    lines = [
        json.dumps(
            {
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in asdict(error).items()
            }
        )
        for error in errors
    ]
    path.write_text("\n".join(lines) + "\n")


def all_errors(ground_truth: Path, published: Path, campaign: Path) -> Iterator[Error]:
    """Errors of every source."""
    yield from recorded_errors(ground_truth)
    yield from campaign_errors(campaign)
    yield from task_errors(published)
    yield from host_errors(published)
    yield from cluster_errors(published)


def recorded_errors(root: Path) -> Iterator[Error]:
    """Fitted on one run, all others of the same query predicted, each at the age of its JVM."""
    from ground_truth import read_recording

    folders = sorted(path.parent for path in root.glob("*/truth.jsonl"))
    recordings = [read_recording(folder) for folder in folders]
    for fitted in recordings:
        for known in fitted.truths:
            profile = fitted.fitted_on([known])
            for asked in recordings:
                part = fitted.name if asked is fitted else f"{fitted.name} to {asked.name}"
                yield from _of_recording(profile, asked, part, f"{known}", known.query_id)


def _of_recording(
    profile: JobProfile, asked: Recording, part: str, fitted_on: str, query_id: str
) -> Iterator[Error]:
    for truth in asked.truths:
        if truth.query_id == query_id:
            continue
        setting, rate_per_s = truth.configuration, truth.rate_per_s
        age_s = truth.started_s + truth.warm_s + 8.0 - asked.log.jvm_starts_s[0]
        age_factor = profile.age_factor(age_s)
        model = duration_model(profile, *setting.size)
        rows = float(settled_batch_rows(model, rate_per_s, setting.trigger_s, age_factor))
        slots, partitions, beyond = doublings_beyond(profile, *setting.size, rows)
        factors = np.exp(np.linspace(-_FARTHEST, _FARTHEST, 4001))
        law = setting_law(
            profile,
            model,
            rate_per_s=rate_per_s,
            trigger_s=setting.trigger_s,
            factor=age_factor * factors,
        )
        place = int(np.searchsorted(law.batch_duration_mean_s(), truth.duration_s))
        yield Error(
            source="recorded",
            part=part,
            name=f"{fitted_on}: {truth}",
            slots=float(slots),
            partitions=float(partitions),
            rows=float(beyond),
            log_factor=math.log(factors[min(place, len(factors) - 1)]),
            own_spread=of_runs_and_fit(profile.noise.run_to_run_ratio, len(profile.settings)),
        )


def campaign_errors(path: Path) -> Iterator[Error]:
    """Fitted on three settings, judged on others, with the same and with other slots."""
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    carried = {(row["group"], row["workload"]): float(row["carried_per_s"]) for row in rows}
    partitions = [setting.partitions for setting in FITTED]
    longest_share = max(setting.trigger_s * setting.share for setting in FITTED)
    for row in rows:
        fitted, setting = row["fitted"], row["setting"]
        of_fit = fitted["role"] == FITTED_ROLE and row["play"] >= 1
        part = _campaign_part(fitted["group"], row["group"])
        # It is not recorded whether the smallest of these batches are smaller than any fitted one.
        if not of_fit or part is None or not is_judged(row) or _FEWEST_ROWS in row["name"]:
            continue
        most_rows = longest_share * carried[fitted["group"], row["workload"]]
        batch_rows = row["truth"]["rows_per_s"] * max(
            setting["trigger_s"], row["truth"]["duration"]["mean"]
        )
        slots = abs(math.log2(GROUPS[row["group"]].num_slots / GROUPS[fitted["group"]].num_slots))
        beyond = float(doublings_outside(setting["partitions"], min(partitions), max(partitions)))
        larger = max(math.log2(batch_rows / most_rows), 0.0)
        own = of_runs_and_fit(row["predicted"]["run_to_run_ratio"], fitted["runs"])
        yield Error(
            source="campaign",
            part=part,
            name=row["name"],
            slots=slots,
            partitions=beyond,
            rows=larger,
            log_factor=_read_off(row, math.hypot(own, _SPREAD_THEN * (slots + beyond + larger))),
            own_spread=own,
        )


def _read_off(row: dict[str, Any], spread: float) -> float:
    """The factor, from the ends of the recorded interval for the mean duration."""
    predicted, seen_s = row["predicted"]["duration"], row["truth"]["duration"]["mean"]
    low_s, high_s = predicted["mean90"]
    steepness = math.log(high_s / low_s) / (2 * Z90 * spread)
    return math.log(seen_s / predicted["mean"]) / steepness


def _campaign_part(fitted: str, asked: str) -> str | None:
    if fitted == asked:
        return asked if asked == "two-cores" else None
    return f"{fitted} to {asked}"


def task_errors(root: Path) -> Iterator[Error]:
    """A job of fixed work by concurrent tasks, predicted from other numbers of them."""
    curve = task_counts.read_curve(root)
    counts = [round(count) for count in curve.num_tasks.tolist() if count <= curve.servers]
    seconds = dict(zip(map(round, curve.num_tasks.tolist()), curve.job_s.tolist(), strict=True))
    for fitted in (1, 2, 4, 8, 16):
        for asked in counts:
            if asked == fitted:
                continue
            predicted_value_s = seconds[fitted] * fitted / asked
            yield _of_job(
                "tasks",
                "odd" if asked % 2 else "even",
                f"{fitted} to {asked} tasks",
                abs(math.log2(asked / fitted)),
                seconds[asked] / predicted_value_s,
                num_sizes=1,
            )


def host_errors(root: Path) -> Iterator[Error]:
    """Graph jobs, fitted on two adjacent numbers of hosts, predicted on all others."""
    runs = host_counts.read_runs(root)
    for job in dict.fromkeys(run.job for run in runs):
        own = [run for run in runs if run.job == job]
        hosts = sorted({run.hosts for run in own})
        for low, high in pairwise(hosts):
            fitted = [run for run in own if run.hosts in (low, high)]
            others = [run for run in own if run.hosts not in (low, high)]
            for run, predicted_value_s in zip(
                others, host_counts.predicted_s(others, fitted).tolist(), strict=True
            ):
                yield _of_job(
                    "hosts",
                    job,
                    f"{low} and {high} to {run.hosts} hosts, data {run.data_size:g}",
                    float(doublings_outside(run.hosts, low, high)),
                    run.stages_s / predicted_value_s,
                    num_sizes=2,
                )


def cluster_errors(root: Path) -> Iterator[Error]:
    """Streams on clusters, fitted on up to 12 cores, by median latency: no duration is recorded."""
    runs = [run for run in stream_clusters.read_runs(root) if not run.is_unclear]
    fitted = [run for run in runs if run.cores <= stream_clusters.MOST_FITTED_CORES]
    law = stream_clusters.fit(fitted, grows=False)
    sizes = len({run.cores for run in fitted})
    for run in runs:
        if run in fitted or not run.is_carried or run.p50_s is None:
            continue
        yield _of_job(
            "clusters",
            run.cluster,
            f"up to 12 to {run.cores} cores, {run.rate_per_s / 1e3:.0f}k/s",
            math.log2(run.cores / stream_clusters.MOST_FITTED_CORES),
            _slower(law, run, run.p50_s),
            num_sizes=sizes,
        )


def _slower(law: Law, run: Run, p50_s: float) -> float:
    """The factor on the durations of a law with which it gives this median."""
    factors = np.exp(np.linspace(-_FARTHEST, _FARTHEST, 4001))
    predicted_value_s = np.array(
        [
            replace(
                law, core_per_row_s=factor * law.core_per_row_s, turn_s=factor * law.turn_s
            ).p50_s(run)
            for factor in factors
        ]
    )
    return float(factors[int(np.searchsorted(predicted_value_s, p50_s))])


def _of_job(
    source: str, part: str, name: str, doublings: float, ratio: float, *, num_sizes: int
) -> Error:
    """Error of a law without a profile: usual spread between runs, nothing known about rows."""
    return Error(
        source=source,
        part=part,
        name=name,
        slots=doublings,
        partitions=0.0,
        rows=0.0,
        log_factor=math.log(ratio),
        own_spread=of_runs_and_fit(USUAL_RUN_TO_RUN_RATIO.value, num_sizes),
    )
