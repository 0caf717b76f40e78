"""Profiles of one run, and of the advised runs, against runs at settings never seen."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from campaign.fixed_work import is_same_machine, mean_loop_s, slower_ratio
from campaign.predicting import (
    age_as_said_s,
    arrivals_of,
    configuration_of,
    errors_by_part,
    predicted_of,
)
from campaign.reading import MeasuredGroup, read_group
from campaign.reliability import outcomes_of
from campaign.schedule import JUDGE
from result_lines import lines_of

from headway.domain import Arrivals, JobProfile, Prediction
from headway.errors import HeadwayError
from headway.models.job.predict import predict
from ordinary.advice import advised_run
from ordinary.jobs import FILES, JOBS
from ordinary.legs import ADVISED_FILE, legs_of
from ordinary.split import ADVISED, PRODUCTION, SPLIT

Row = dict[str, Any]
MISSED_RATIO = 1.05
"""A promise is missed for sure beyond this share of its limit."""
STABLE, NOT_STABLE, NOT_KNOWN = "stable", "not stable", "not known"
AROUND_LIMIT = (0.81, 1.1)
"""Stability is asked at these shares of the capacity: a verdict beyond them is false.

Headway calls a setting stable up to nine tenths of its capacity (P3); the first is a tenth below.
"""
FAR_FROM_LIMIT = (0.5, 2.0)
"""And at these, further from it than runs differ."""


def judged_block(block: int, folder: Path) -> Iterator[Row]:
    """A line for each judged run of a block and each profile, and one for each run left out."""
    groups = read_groups(block, folder)
    advice = lines_of(folder / ADVISED_FILE)
    advised = {advised_run(block, line).name for line in advice if line["left_out"] is None}
    for name in dict.fromkeys(job for leg in legs_of(block) for job in leg.jobs):
        of_job = {key: group for key, group in groups.items() if group.of(name)}
        yield from _judged_job(block, name, of_job, advised)
    for line in advice:
        if line["left_out"] is not None:
            yield {"block": block, "workload": line["workload"], "left_out": line["left_out"]}


def read_groups(block: int, folder: Path) -> dict[str, MeasuredGroup]:
    """What the legs of a block left behind, by group."""
    groups = {leg.group.name: leg.group for leg in legs_of(block)}
    return {
        name: read_group(group, folder / name, SPLIT)
        for name, group in groups.items()
        if (folder / name / "truth.jsonl").exists()
    }


def _judged_job(
    block: int, name: str, groups: Mapping[str, MeasuredGroup], advised_names: Container[str]
) -> Iterator[Row]:
    main = next((group for key, group in groups.items() if key.endswith("-two")), None)
    if main is None:
        return
    all_rows = main.of(name)
    rows = [row for row in all_rows if not _is_of_another_machine(row, all_rows)]
    one_run = [row for row in rows if row["role"] == PRODUCTION and row["truth"]]
    # Runs that were advised after an earlier run in production may be on record, too.
    advised = [
        row
        for row in rows
        if row["role"] == ADVISED and row["truth"] and row["name"] in advised_names
    ]
    if not one_run:
        yield {"block": block, "workload": name, "left_out": "the run in production failed"}
        return
    for role, fitted in ((PRODUCTION, one_run), (ADVISED, one_run + advised)):
        beside_fit_s = mean_loop_s(fitted)
        try:
            profile = main.fitted_on(fitted)
        except HeadwayError as error:
            why = f"no profile from {len(fitted)} runs: {error}"
            yield {"block": block, "workload": name, "fitted": {"role": role}, "left_out": why}
            continue
        for group in groups.values():
            for row in group.of(name):
                if row["role"] == JUDGE:
                    about = {
                        "role": role,
                        "runs": len(fitted),
                        "group": main.group.name,
                        "interpreter_s": beside_fit_s,
                    }
                    judged: Row = (
                        {"left_out": "run on another machine than the one in production"}
                        if _is_of_another_machine(row, all_rows)
                        else judged_run(profile, group, row, beside_fit_s)
                    )
                    yield {**row, "fitted": about, **judged}


def _is_of_another_machine(row: Row, rows: Sequence[Row]) -> bool:
    """Whether a run was on another machine than the run in production among these."""
    in_production = next((row for row in rows if row["role"] == PRODUCTION), row)
    work, work_in_production = row.get("fixed_work"), in_production.get("fixed_work")
    if not (work and work_in_production):
        return False
    return not is_same_machine(work["interpreter_s"], work_in_production["interpreter_s"])


def judged_run(
    profile: JobProfile, measured: MeasuredGroup, row: Row, beside_fit_s: float | None
) -> Row:
    """What is predicted of a run, promised of it and said of it and of its limit.

    ``beside_fit_s`` is how long fixed work took beside the fitted runs [s].
    """
    if row["truth"] is None:
        return {"left_out": row.get("failed", "fewer than two batches after the warm-up")}
    arrivals = arrivals_of(profile, row, is_even=JOBS[row["workload"]].source != FILES)
    configuration, age_s = configuration_of(measured, row), age_as_said_s(measured.jvm_age_s(row))
    prediction = predict(profile, configuration, arrivals, jvm_age_s=age_s)
    slower = slower_ratio(row, beside_fit_s)
    return {
        "predicted": predicted_of(profile, measured, row, arrivals, slower),
        "verdict": verdict_of(prediction),
        "promises": _promises(profile.at_age(age_s), row, prediction),
        "verdicts": _verdicts(profile, measured, row, AROUND_LIMIT),
        "far_verdicts": _verdicts(profile, measured, row, FAR_FROM_LIMIT),
        "parts": _parts(profile, measured, row, arrivals),
        "stages": stages_of_levels(profile),
    }


def stages_of_levels(profile: JobProfile) -> list[str]:
    """What the stages of each level are called."""
    levels = groupby(profile.stages, key=lambda stage: stage.level)
    return ["; ".join(stage.called for stage in stages) for _, stages in levels]


def _parts(
    profile: JobProfile, measured: MeasuredGroup, row: Row, arrivals: Arrivals
) -> Row | None:
    """Parts of the error; None where the stages of the run are not those of the profile."""
    run = measured.run_of(row)
    if run is None or len(run.batches[0].stages) != len(profile.stages):
        return None
    return errors_by_part(profile, measured, row, arrivals)


def _promises(profile: JobProfile, row: Row, prediction: Prediction) -> list[list[float]]:
    """Random promises: probability, whether it was met, and whether it was missed for sure."""
    latency = prediction.tuple_latency
    if latency is None:
        return []
    seen_s: dict[str, float] = row["truth"]["latency"]
    less_s = {figure: value / MISSED_RATIO for figure, value in seen_s.items()}
    asked = (profile, prediction.configuration, prediction.arrivals, latency)
    met = outcomes_of(*asked, seen_s, row["name"])
    nearly = outcomes_of(*asked, less_s, row["name"])
    return [
        [outcome.probability, float(outcome.kept), float(not within.kept)]
        for outcome, within in zip(met, nearly, strict=True)
    ]


def _verdicts(
    profile: JobProfile, measured: MeasuredGroup, row: Row, shares: Sequence[float]
) -> list[str]:
    """What the setting is called at shares of its limit."""
    configuration = configuration_of(measured, row)
    age_s = age_as_said_s(measured.jvm_age_s(row))
    return [
        verdict_of(
            predict(
                profile,
                configuration,
                replace(
                    profile.arrivals, rate_per_s=share * row["limit_per_s"], dispersion_ratio=0.0
                ),
                jvm_age_s=age_s,
            )
        )
        for share in shares
    ]


def verdict_of(prediction: Prediction) -> str:
    """What the prediction calls its setting without a doubt; beyond rates it prints, nothing."""
    if not prediction.stable:
        return NOT_STABLE if prediction.is_surely_unstable else NOT_KNOWN
    is_within = prediction.arrivals.rate_per_s <= prediction.sustainable_rate_per_s
    return STABLE if is_within and prediction.is_surely_stable else NOT_KNOWN


def left_out_reasons(rows: Sequence[Row]) -> dict[str, int]:
    """How many lines were left out for each reason."""
    counts: dict[str, int] = {}
    for row in rows:
        if row.get("left_out"):
            reason = str(row["left_out"]).split(":")[0]
            counts[reason] = counts.get(reason, 0) + 1
    return counts
