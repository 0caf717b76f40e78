"""Pipelines of mini-batches and of ordered operators: predicted, simulated, planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from headway.domain import Target
from headway.errors import InputError, SpecError, argument
from headway.formats.own_files import beginning_of

if TYPE_CHECKING:
    from headway.domain import AnyPromise
    from headway.domain.ordered import OrderedPipeline as Operators
    from headway.domain.query_questions import SimulateQuestion
    from headway.domain.question import PlanQuestion, PredictQuestion
    from headway.planner.kinds.operators import OperatorsPlan, OperatorsPrediction, OperatorsRuns
    from headway.planner.kinds.pipeline_runs import PipelineRuns
    from headway.planner.kinds.pipeline_search import RoundsPlan
    from headway.planner.kinds.pipelines import PipelinePrediction
    from headway.spec.kinds import MicroBatchPipeline, OrderedPipeline
    from headway.spec.spec_file import SpecFile

    AnyPipeline: TypeAlias = MicroBatchPipeline | OrderedPipeline | Operators
    AnyPipelinePrediction: TypeAlias = PipelinePrediction | OperatorsPrediction
    AnyPipelineRuns: TypeAlias = PipelineRuns | OperatorsRuns
    AnyPipelinePlan: TypeAlias = RoundsPlan | OperatorsPlan

_MOST_BYTES = 4 * 2**20
_KINDS = ("MicroBatchPipeline", "OrderedPipeline")
_KIND = re.compile(rf"(?m)^kind:\s*['\"]?({'|'.join(_KINDS)})['\"]?\s*(?:#.*)?$")


def is_pipeline(source: object) -> bool:
    """Whether something is a pipeline, or the path of a file that describes one, right or not."""
    return pipeline_kind(source) is not None


def pipeline_kind(source: object) -> str | None:
    """The kind of a pipeline, or the kind that a file declares; None for all else."""
    if not isinstance(source, str | Path):
        kind = type(source).__name__
        return kind if kind in _KINDS else None
    match = _KIND.search(beginning_of(Path(source), _MOST_BYTES))
    return None if match is None else match[1]


def predict_pipeline(pipeline: Any, question: PredictQuestion) -> AnyPipelinePrediction:
    """Predict a pipeline, or that of a file: its latency phase by phase, or the rate it carries.

    Raises
    ------
    InputError
        If the file is invalid. A pipeline that cannot keep up is no error: the prediction then is
        saturated.
    """
    from headway.spec.kinds import MicroBatchPipeline

    declared = _Declared.of(pipeline, question.rate_per_s)
    if isinstance(declared.spec, MicroBatchPipeline):
        from headway.planner.kinds.pipelines import predict_pipeline as predict
        from headway.spec.pipelines import pipelines_of

        return predict(pipelines_of(declared.spec), declared.spec.target)
    from headway.planner.kinds.operators import predict_operators

    return predict_operators(declared.operators())


def simulate_pipeline(pipeline: Any, question: SimulateQuestion, num_runs: int) -> AnyPipelineRuns:
    """Simulate a pipeline, or that of a file, event by event; compare it with the prediction.

    Raises
    ------
    InputError
        If the file is invalid, or the simulation would take longer than some minutes.
    """
    from headway.spec.kinds import MicroBatchPipeline

    declared = _Declared.of(pipeline, question.rate_per_s)
    if not isinstance(declared.spec, MicroBatchPipeline):
        from headway.planner.kinds.operators import simulate_operators

        return simulate_operators(declared.operators())
    from headway.planner.kinds.pipeline_runs import simulate_runs
    from headway.spec.pipelines import pipelines_of

    rounds = pipelines_of(declared.spec)
    if len(rounds) > 1:
        raise declared.fault("job", "several rounds are not simulated together; expected one")
    return simulate_runs(
        rounds[0], num_runs=num_runs, seed=question.seed, length_s=question.length_s
    )


def plan_pipeline(pipeline: Any, question: PlanQuestion) -> AnyPipelinePlan:
    """The fewest nodes, or workers, with which a pipeline meets its target, or the given one.

    Raises
    ------
    InputError
        If the file is invalid, or no target is given and it has none.
    """
    from headway.spec.kinds import MicroBatchPipeline

    declared = _Declared.of(pipeline, question.rate_per_s)
    planned_target = declared.target(question.targets)
    max_count = question.max_nodes if "max_nodes" in question.named_arguments else None
    if not isinstance(declared.spec, MicroBatchPipeline):
        from headway.planner.kinds.operators import plan_operators

        return plan_operators(declared.operators(), planned_target, most_workers=max_count)
    from headway.planner.kinds.pipeline_search import plan_rounds
    from headway.planner.kinds.pipelines import PipelineQuestion
    from headway.spec.pipelines import rounds_of, space_of

    try:
        space = space_of(declared.spec)
    except InputError as error:
        raise declared.fault("search", str(error)) from None
    if max_count is not None:
        space = replace(space, max_nodes=max_count)
    return plan_rounds(
        tuple(
            PipelineQuestion(
                round=pipeline_round,
                rate_per_s=declared.spec.rate_per_s,
                target=planned_target,
                space=space,
            )
            for pipeline_round in rounds_of(declared.spec)
        )
    )


class _Declared:
    """A pipeline with the file that contains it, if any."""

    def __init__(self, spec: Any, file: SpecFile | None) -> None:
        self.spec, self.file = spec, file

    @classmethod
    def of(cls, source: object, rate_per_s: float | None) -> _Declared:
        from headway.spec.spec_file import load_spec, require_kind

        if isinstance(source, str | Path):
            file = load_spec(source)
            require_kind(file, *_KINDS)
            declared = cls(file.spec, file)
        else:
            declared = cls(source, None)
        if rate_per_s is not None:
            declared.spec = replace(declared.spec, rate_per_s=rate_per_s)
        return declared

    def operators(self) -> Operators:
        """A pipeline of ordered operators as the models take it."""
        from headway.spec.kinds import OrderedPipeline

        pipeline = self.spec.pipeline() if isinstance(self.spec, OrderedPipeline) else self.spec
        return cast("Operators", pipeline)

    def fault(self, key: str, message: str) -> InputError:
        """An error about a key, with its position if there is one."""
        message = message.removeprefix(f"{key}: ")
        if self.file is None:
            return InputError(f"{key}: {message}")
        return SpecError(f"{self.file.place(key)}: spec.{key}: {message}")

    def target(self, targets: Sequence[AnyPromise]) -> Target:
        """The given target, else that of the file."""
        from headway.spec.kinds.pipelines import require_modelled

        if len(targets) > 1:
            raise InputError("a pipeline is planned for one target, e.g. 'p99 <= 3s'")
        declared = getattr(self.spec, "target", None)
        if not targets and declared is None:
            raise self.fault(
                "target", f"missing; expected one, or {argument('target')} 'p99 <= 3s'"
            )
        target: object = targets[0] if targets else declared
        if isinstance(target, str):
            target = Target.parse(target)
        try:
            require_modelled(target, windowed=getattr(self.spec, "is_windowed", False))
        except ValueError as error:
            raise InputError(str(error)) from None
        assert isinstance(target, Target)
        return target
