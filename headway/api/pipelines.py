"""Pipelines of mini-batches: predicted, simulated, planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headway.api.arguments import count, positive_seconds
from headway.domain import Target
from headway.errors import InputError, SpecError
from headway.limits import LARGEST_NUMBER, MOST_NODES
from headway.units import parse_rate_per_s

if TYPE_CHECKING:
    from headway.planner.pipeline_runs import PipelineRuns
    from headway.planner.pipeline_search import RoundsPlan
    from headway.planner.pipelines import PipelinePrediction
    from headway.spec.kinds import MicroBatchPipeline
    from headway.spec.spec_file import SpecFile

    AnyPipeline: TypeAlias = MicroBatchPipeline
    AnyPipelinePrediction: TypeAlias = PipelinePrediction
    AnyPipelineRuns: TypeAlias = PipelineRuns
    AnyPipelinePlan: TypeAlias = RoundsPlan

_KINDS = ("MicroBatchPipeline",)
_KIND = re.compile(rf"(?m)^kind:\s*['\"]?({'|'.join(_KINDS)})['\"]?\s*(?:#.*)?$")


def is_pipeline(source: object) -> bool:
    """Whether something is a pipeline, or the path of a file that describes one, right or not."""
    if not isinstance(source, str | Path):
        return type(source).__name__ in _KINDS
    try:
        return _KIND.search(Path(source).read_text(encoding="utf-8")) is not None
    except (OSError, ValueError):
        return False


def refuse_for_pipelines(**given: object) -> None:
    """Refuse what says nothing of a pipeline.

    Raises
    ------
    InputError
        Names what was given.
    """
    names = [name for name, value in given.items() if value not in (None, False, ())]
    if names:
        raise InputError(f"{', '.join(names)}: not for pipelines")


def predict_pipeline(
    pipeline: AnyPipeline | str | Path, *, rate: float | str | None = None
) -> AnyPipelinePrediction:
    """What the models say of a pipeline: its latency, phase by phase.

    Parameters
    ----------
    pipeline : MicroBatchPipeline or path
        A pipeline, or the spec file of one.
    rate : float or str, optional
        Input rate, rows per second or e.g. ``"50k/s"``; as the pipeline says by default.

    Raises
    ------
    InputError
        If a value is not what it should be. A pipeline that cannot keep up is no error: the
        prediction then is saturated.
    """
    from headway.planner.pipelines import predict_pipeline as predict
    from headway.spec.pipelines import pipelines_of

    return predict(pipelines_of(_Declared.of(pipeline, rate).spec))


def simulate_pipeline(
    pipeline: AnyPipeline | str | Path,
    *,
    rate: float | str | None = None,
    runs: int = 2,
    seed: int = 1,
    length: float | str | None = None,
) -> AnyPipelineRuns:
    """Simulate a pipeline event by event, and put the prediction beside it.

    Parameters
    ----------
    pipeline : MicroBatchPipeline or path
        A pipeline, or the spec file of one.
    rate : float or str, optional
        Input rate; as the pipeline says by default.
    runs : int
        Runs, which differ in the phases of all clocks.
    seed : int
        Random seed of the first run.
    length : float or str, optional
        Simulated time, seconds or e.g. ``"30s"``; by default enough for every period.

    Raises
    ------
    InputError
        If a value is not what it should be, or so many events would take more than minutes.
    """
    from headway.planner.pipeline_runs import simulate_runs
    from headway.spec.pipelines import pipelines_of

    declared = _Declared.of(pipeline, rate)
    length_s = None if length is None else positive_seconds(length, "length")
    rounds = pipelines_of(declared.spec)
    if len(rounds) > 1:
        raise declared.fault("job", "several rounds are not simulated together; expected one")
    return simulate_runs(
        rounds[0], num_runs=count(runs, "runs", 1000), seed=seed, length_s=length_s
    )


def plan_pipeline(
    pipeline: AnyPipeline | str | Path,
    *,
    target: Target | str | Sequence[Target | str] | None = None,
    rate: float | str | None = None,
    max_nodes: int | None = None,
) -> AnyPipelinePlan:
    """The fewest nodes with which a pipeline meets a target.

    Parameters
    ----------
    pipeline : MicroBatchPipeline or path
        A pipeline, or the spec file of one.
    target : Target or str, optional
        What is to be met, e.g. ``"p99 <= 3s"``; as the pipeline says by default.
    rate : float or str, optional
        Input rate; as the pipeline says by default.
    max_nodes : int, optional
        Maximum number of nodes.

    Raises
    ------
    InputError
        If a value is not what it should be. A target that cannot be met is no error: the plan
        then says ``feasible=False``.
    """
    from headway.planner.pipeline_search import plan_rounds
    from headway.planner.pipelines import PipelineQuestion
    from headway.spec.pipelines import rounds_of, space_of

    declared = _Declared.of(pipeline, rate)
    asked = declared.target(target)
    try:
        space = space_of(declared.spec)
    except InputError as error:
        raise declared.fault("search", str(error)) from None
    if max_nodes is not None:
        space = replace(space, max_nodes=count(max_nodes, "max_nodes", MOST_NODES))
    return plan_rounds(
        tuple(
            PipelineQuestion(
                round=one, rate_per_s=declared.spec.rate_per_s, target=asked, space=space
            )
            for one in rounds_of(declared.spec)
        )
    )


class _Declared:
    """A pipeline with the file that it stands in, if any."""

    def __init__(self, spec: MicroBatchPipeline, file: SpecFile | None) -> None:
        self.spec, self.file = spec, file

    @classmethod
    def of(cls, source: object, rate: float | str | None) -> _Declared:
        from headway.spec.kinds import MicroBatchPipeline
        from headway.spec.spec_file import load_spec, spec_of

        if isinstance(source, str | Path):
            file = load_spec(source)
            found = cls(spec_of(file, MicroBatchPipeline), file)
        elif isinstance(source, MicroBatchPipeline):
            found = cls(source, None)
        else:
            raise InputError(
                f"got {type(source).__name__}; expected a MicroBatchPipeline or the path of one's "
                "spec file"
            )
        if rate is not None:
            found.spec = replace(found.spec, rate_per_s=_rate_per_s(rate))
        return found

    def fault(self, key: str, message: str) -> InputError:
        """An error about a key, with its place where there is one."""
        message = message.removeprefix(f"{key}: ")
        if self.file is None:
            return InputError(f"{key}: {message}")
        return SpecError(f"{self.file.place(key)}: spec.{key}: {message}")

    def target(self, given: Target | str | Sequence[Target | str] | None) -> Target:
        """The target that is asked for, else that of the file."""
        from headway.spec.kinds.pipelines import require_modelled

        every = [given] if isinstance(given, Target | str) else list(given or ())
        if len(every) > 1:
            raise InputError("a pipeline is planned for one target, e.g. 'p99 <= 3s'")
        if not every and self.spec.target is None:
            raise self.fault("target", "missing; expected one, or --target 'p99 <= 3s'")
        found: object = every[0] if every else self.spec.target
        target = Target.parse(found) if isinstance(found, str) else found
        try:
            require_modelled(target, windowed=self.spec.is_windowed)
        except ValueError as error:
            raise InputError(str(error)) from None
        assert isinstance(target, Target)
        return target


def _rate_per_s(rate: float | str) -> float:
    rate_per_s = parse_rate_per_s(rate) if isinstance(rate, str) else rate
    is_number = isinstance(rate_per_s, int | float) and not isinstance(rate_per_s, bool)
    if not is_number or not 0 < rate_per_s <= LARGEST_NUMBER:
        raise InputError(f"rate is {rate!r}; expected a positive number of rows per second")
    return float(rate_per_s)
