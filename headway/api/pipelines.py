"""Pipelines of mini-batches and of ordered operators: predicted, simulated, planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from headway.api.file_kinds import PIPELINE_KINDS
from headway.domain import AnyPromise, Target
from headway.domain.ordered import OrderedPipeline as Operators
from headway.domain.query_questions import SimulateQuestion
from headway.domain.question import PlanQuestion, PredictQuestion
from headway.errors import InputError, SpecError, argument
from headway.planner.kinds.operators import (
    OperatorsPlan,
    OperatorsPrediction,
    OperatorsRuns,
    plan_operators,
    predict_operators,
    simulate_operators,
)
from headway.planner.kinds.pipeline_search import RoundsPlan, plan_rounds
from headway.planner.kinds.pipelines import (
    PipelinePrediction,
    PipelineQuestion,
    PipelineRuns,
    simulate_runs,
)
from headway.planner.kinds.pipelines import predict_pipeline as predict_rounds
from headway.spec.kinds.ordered import OrderedPipeline
from headway.spec.kinds.pipelines import MicroBatchPipeline, require_modelled
from headway.spec.pipelines import pipelines_of, rounds_of, space_of
from headway.spec.spec_file import SpecFile, load_spec, require_kind

AnyPipeline: TypeAlias = MicroBatchPipeline | OrderedPipeline | Operators
AnyPipelinePrediction: TypeAlias = PipelinePrediction | OperatorsPrediction
AnyPipelineRuns: TypeAlias = PipelineRuns | OperatorsRuns
AnyPipelinePlan: TypeAlias = RoundsPlan | OperatorsPlan


def predict_pipeline(source: Any, question: PredictQuestion) -> AnyPipelinePrediction:
    """Predict a pipeline, or that of a file: its latency phase by phase, or the rate it carries.

    A pipeline that cannot keep up is no error: the prediction then is saturated.
    """
    pipeline, _ = _declared(source, question.rate_per_s)
    if isinstance(pipeline, MicroBatchPipeline):
        return predict_rounds(pipelines_of(pipeline), pipeline.target)
    return predict_operators(_operators(pipeline))


def simulate_pipeline(source: Any, question: SimulateQuestion, num_runs: int) -> AnyPipelineRuns:
    """Simulate a pipeline, or that of a file, event by event; compare it with the prediction."""
    pipeline, file = _declared(source, question.rate_per_s)
    if not isinstance(pipeline, MicroBatchPipeline):
        return simulate_operators(_operators(pipeline))
    rounds = pipelines_of(pipeline)
    if len(rounds) > 1:
        raise _fault(file, "job", "several rounds are not simulated together; expected one")
    return simulate_runs(
        rounds[0], num_runs=num_runs, seed=question.seed, length_s=question.length_s
    )


def plan_pipeline(source: Any, question: PlanQuestion) -> AnyPipelinePlan:
    """The fewest nodes, or workers, with which a pipeline meets its target, or the given one."""
    pipeline, file = _declared(source, question.rate_per_s)
    target = _target(pipeline, file, question.targets)
    max_count = question.max_nodes if "max_nodes" in question.named_arguments else None
    if not isinstance(pipeline, MicroBatchPipeline):
        return plan_operators(_operators(pipeline), target, most_workers=max_count)
    try:
        space = space_of(pipeline)
    except InputError as error:
        raise _fault(file, "search", str(error)) from None
    if max_count is not None:
        space = replace(space, max_nodes=max_count)
    return plan_rounds(
        tuple(
            PipelineQuestion(
                round=pipeline_round, rate_per_s=pipeline.rate_per_s, target=target, space=space
            )
            for pipeline_round in rounds_of(pipeline)
        )
    )


def _declared(source: Any, rate_per_s: float | None) -> tuple[Any, SpecFile | None]:
    """A pipeline, at another rate if one is given, and the file that contains it, if any."""
    file: SpecFile | None = None
    if isinstance(source, str | Path):
        file = load_spec(source)
        require_kind(file, *PIPELINE_KINDS)
        source = file.spec
    return source if rate_per_s is None else replace(source, rate_per_s=rate_per_s), file


def _operators(pipeline: Any) -> Operators:
    """A pipeline of ordered operators as the models take it."""
    is_of_file = isinstance(pipeline, OrderedPipeline)
    return cast("Operators", pipeline.pipeline() if is_of_file else pipeline)


def _fault(file: SpecFile | None, key: str, message: str) -> InputError:
    """An error about a key, with its position if there is one."""
    message = message.removeprefix(f"{key}: ")
    if file is None:
        return InputError(f"{key}: {message}")
    return SpecError(f"{file.place(key)}: spec.{key}: {message}")


def _target(pipeline: Any, file: SpecFile | None, targets: Sequence[AnyPromise]) -> Target:
    """The given target, else that of the pipeline."""
    if len(targets) > 1:
        raise InputError("a pipeline is planned for one target, e.g. 'p99 <= 3s'")
    target: object = targets[0] if targets else getattr(pipeline, "target", None)
    if target is None:
        raise _fault(file, "target", f"missing; expected one, or {argument('target')} 'p99 <= 3s'")
    try:
        require_modelled(target, windowed=getattr(pipeline, "is_windowed", False))
    except ValueError as error:
        raise InputError(str(error)) from None
    assert isinstance(target, Target)
    return target
