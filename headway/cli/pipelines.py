"""``headway predict``, ``plan`` and ``simulate`` of pipelines that a spec file describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from headway.api.pipelines import declared_kind, plan_pipeline, predict_pipeline, simulate_pipeline
from headway.cli.options import given, refuse
from headway.cli.progress import Progress
from headway.cli.terminal import answer, suggest
from headway.domain import Target
from headway.errors import ExitCode

if TYPE_CHECKING:
    from headway.domain import AnyPromise

# Parameters that say something of a pipeline, by command.
_PREDICT = ("profile", "rate", "as_json")
_PLAN = ("profile", "rate", "targets", "max_nodes", "output_format", "as_json")
_SIMULATE = ("plan", "rate", "runs", "seed", "length", "as_json")


def predict_of_pipeline(file: str, *, rate: float | None, as_json: bool) -> int:
    """Print the prediction for a pipeline."""
    from headway.planner.pipelines import PipelinePrediction
    from headway.report.operators import operators_json, operators_text
    from headway.report.pipelines import pipeline_prediction_json, pipeline_prediction_text
    from headway.spec.spec_file import load_spec

    _refuse_all_but(_PREDICT, file)
    prediction = predict_pipeline(file, rate=rate)
    if isinstance(prediction, PipelinePrediction):
        answer(
            prediction,
            lambda prediction: pipeline_prediction_text(
                prediction, target=load_spec(file).spec.target
            ),
            pipeline_prediction_json,
            as_json=as_json,
        )
    else:
        answer(prediction, operators_text, operators_json, as_json=as_json)
    if not as_json:
        suggest(f"headway plan {file} --target 'p99 <= 3s'")
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
    """Print the simulation of a pipeline."""
    from headway.planner.pipeline_runs import PipelineRuns
    from headway.report.operators import operators_runs_json, operators_runs_text
    from headway.report.pipelines import pipeline_runs_json, pipeline_runs_text

    _refuse_all_but(_SIMULATE, file)
    if declared_kind(file) == "OrderedPipeline":
        refuse(given("runs", "seed", "length"), "ordered operators are simulated without chance")
    with Progress() as progress:
        progress.step("simulating")
        simulation = simulate_pipeline(file, rate=rate, runs=runs or 2, seed=seed, length=length)
    if isinstance(simulation, PipelineRuns):
        answer(simulation, pipeline_runs_text, pipeline_runs_json, as_json=as_json)
    else:
        answer(simulation, operators_runs_text, operators_runs_json, as_json=as_json)
    if not as_json:
        suggest(f"headway plan {file} --target 'p99 <= 3s'")
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
    from headway.planner.pipeline_search import RoundsPlan
    from headway.report.operators import operators_plan_json, operators_plan_text
    from headway.report.pipelines import rounds_plan_json, rounds_plan_text

    _refuse_all_but(_PLAN, file)
    if output_format not in ("text", "json"):
        refuse([f"--format {output_format}"], "a pipeline does not run on Spark")
    latency_targets = cast("Sequence[Target]", targets)  # any other is refused by the call
    with Progress() as progress:
        progress.step("planning")
        plan = plan_pipeline(file, target=latency_targets or None, rate=rate, max_nodes=max_nodes)
    as_json = output_format == "json"
    if isinstance(plan, RoundsPlan):
        answer(
            plan,
            rounds_plan_text,
            rounds_plan_json,
            as_json=as_json,
            is_met=plan.feasible,
        )
    else:
        answer(
            plan,
            operators_plan_text,
            operators_plan_json,
            as_json=as_json,
            is_met=plan.feasible,
        )
    if not as_json:
        suggest(f"headway simulate {file}")
    return ExitCode.OK if plan.feasible else ExitCode.INFEASIBLE


def _refuse_all_but(allowed_params: tuple[str, ...], file: str) -> None:
    context = click.get_current_context()
    refuse(
        given(*(set(context.params) - set(allowed_params))),
        f"{file} describes a pipeline; not for one",
    )
