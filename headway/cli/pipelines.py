"""``headway predict``, ``plan`` and ``simulate`` of pipelines that a spec file describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from headway.api.pipelines import plan_pipeline, predict_pipeline, simulate_pipeline
from headway.cli.options import given, refuse
from headway.cli.progress import Progress
from headway.cli.terminal import verdict
from headway.domain import Target
from headway.errors import ExitCode
from headway.formats.as_json import json_text

if TYPE_CHECKING:
    from headway.domain import AnyPromise

# Parameters that say something of a pipeline, by command.
_PREDICT = ("profile", "rate", "as_json")
_PLAN = ("profile", "rate", "targets", "max_nodes", "output_format", "as_json")
_SIMULATE = ("plan", "rate", "runs", "seed", "length", "as_json")


def predict_of_pipeline(file: str, *, rate: float | None, as_json: bool) -> int:
    """Print what is expected of a pipeline."""
    from headway.report.pipelines import pipeline_prediction_json, pipeline_prediction_text
    from headway.spec.spec_file import load_spec

    _refuse_all_but(_PREDICT, file)
    found = predict_pipeline(file, rate=rate)
    _show(
        found,
        lambda one: pipeline_prediction_text(one, target=load_spec(file).spec.target),
        pipeline_prediction_json,
        as_json=as_json,
    )
    return ExitCode.OK


def simulate_of_pipeline(
    file: str,
    *,
    rate: float | None,
    runs: int | None,
    seed: int,
    length: float | None,
    as_json: bool,
) -> int:
    """Print what a simulation of a pipeline shows."""
    from headway.report.pipelines import pipeline_runs_json, pipeline_runs_text

    _refuse_all_but(_SIMULATE, file)
    with Progress() as progress:
        progress.step("simulating")
        found = simulate_pipeline(file, rate=rate, runs=runs or 2, seed=seed, length=length)
    _show(found, pipeline_runs_text, pipeline_runs_json, as_json=as_json)
    return ExitCode.OK


def plan_of_pipeline(
    file: str,
    *,
    targets: Sequence[AnyPromise],
    rate: float | None,
    max_nodes: int | None,
    output_format: str,
) -> int:
    """Print the plan of a pipeline."""
    from headway.report.pipelines import rounds_plan_json, rounds_plan_text

    _refuse_all_but(_PLAN, file)
    if output_format not in ("text", "json"):
        refuse([f"--format {output_format}"], "a pipeline does not run on Spark")
    asked = cast("Sequence[Target]", targets)  # any other is refused by the call
    with Progress() as progress:
        progress.step("planning")
        found = plan_pipeline(file, target=asked or None, rate=rate, max_nodes=max_nodes)
    _show(
        found,
        lambda one: verdict(rounds_plan_text(one), is_met=found.feasible),
        rounds_plan_json,
        as_json=output_format == "json",
    )
    return ExitCode.OK if found.feasible else ExitCode.INFEASIBLE


def _show(found: Any, in_words: Any, as_data: Any, *, as_json: bool) -> None:
    click.echo(json_text(as_data(found)) if as_json else in_words(found))


def _refuse_all_but(known: tuple[str, ...], file: str) -> None:
    context = click.get_current_context()
    refuse(given(*(set(context.params) - set(known))), f"{file} describes a pipeline; not for one")
