"""A plan simulated under a rate that changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from headway.api.arguments import job_from
from headway.api.file_kinds import pipeline_kind
from headway.api.pipelines import AnyPipeline, AnyPipelineRuns, simulate_pipeline
from headway.domain import JobProfile, Outage, Playback, RateTrace, StreamAnswer
from headway.domain.argument import question_for, takes
from headway.domain.argument_values import not_expected
from headway.domain.live import PolicyComparison
from headway.domain.query_questions import Simulated, SimulateQuestion
from headway.errors import InputError, RefusedArgumentError, argument
from headway.formats.from_json import load_plan
from headway.formats.rate_trace import read_rate_trace
from headway.planner.playback import simulate_plan
from headway.planner.tasks import with_source_partitions
from headway.tuner.rule.loop import POLICIES, compare_policies


class SimulateOptions(TypedDict, total=False):
    """Arguments of a simulation, as the library takes them; a call may have ``policies``, too."""

    rate: float | str | None
    outages: Sequence[Outage | str]
    profile: JobProfile | str | Path | None
    executors: tuple[int, int] | str | None
    triggers: Sequence[float | str]
    runs: int | None
    seed: int
    length: float | str | None


@overload
def simulate(plan: AnyPipeline, **options: Unpack[SimulateOptions]) -> AnyPipelineRuns: ...


@overload
def simulate(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path,
    *,
    policies: Sequence[str] | str,
    **options: Unpack[SimulateOptions],
) -> PolicyComparison: ...


@overload
def simulate(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path | None = ...,
    **options: Unpack[SimulateOptions],
) -> Playback: ...


@takes(SimulateQuestion)
def simulate(plan: Any, rate_trace: Any = None, **options: Any) -> Any:
    """Simulate a plan under a rate trace: latency over time, late rows, backlog, recovery.

    With ``policies``, simulate it while they change its executors, or its trigger. Or simulate a
    pipeline event by event, compared with its prediction.

    Parameters
    ----------
    plan : Plan, MicroBatchPipeline, OrderedPipeline or path
        A plan, or the file that ``headway plan --json`` printed; or a pipeline, or its spec file.
    rate_trace : RateTrace or path
        Input rate over time: the JSON answer of Prometheus, the progress of a query as JSON, or a
        CSV file with the columns ``time`` and ``rate``, in which each line is the start of a rate:
        a number of seconds, ``10m``, or ``2026-11-21T08:00``. Required for a plan.
    rate : float or str
        Input rate of a pipeline; by default that of its file.
    outages : sequence of Outage or str
        Outages, during which the query does not run, e.g. ``"5m at 1h"``.
    policies : sequence of str
        Policies to compare: names, with a constant behind a colon unless it is the default:
        ``"hpa:50%"``, ``"flink:0.7"``, ``"ds2:1.2"``, ``"static:8"``.
    profile : JobProfile or path
        With policies: the profile of the plan, for batch durations with other executors.
    executors : (int, int)
        With policies: minimum and maximum; by default 1 to 1.5 times what the highest rate needs.
    triggers : sequence of float or str
        Trigger intervals that Headway's policy may use besides the plan's, e.g. ``["1s"]``.
    runs : int
        Number of simulated runs, which differ in their random draws; 16 by default, 2 of each
        policy, and 2 of a pipeline.
    seed : int
        Random seed.
    length : float or str
        Simulated time, seconds or e.g. ``"30m"``: a shorter one ends the trace early, a longer one
        continues its last rate. By default the simulation ends with the last line.

    Raises
    ------
    InputError
        If a file or a value is invalid, or a pipeline would take longer than some minutes.
    """
    return run_simulation(simulation_of(plan, {"rate_trace": rate_trace, **options}))


@takes(SimulateQuestion)
def simulate_policies(
    plan: StreamAnswer | str | Path,
    rate_trace: RateTrace | str | Path,
    *,
    policies: Sequence[str] | str = POLICIES,
    **options: Unpack[SimulateOptions],
) -> PolicyComparison:
    """As :func:`simulate` with ``policies``; all of them by default."""
    return simulate(plan, rate_trace, policies=policies, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What is simulated, and how; the plan is read, and there is a trace if it is a plan."""

    kind: Simulated
    plan: Any
    trace: RateTrace | None
    question: SimulateQuestion

    @property
    def num_runs(self) -> int:
        """Simulated runs, of each policy if these are compared."""
        return self.question.num_runs(self.kind)


def simulation_of(plan: Any, options: Mapping[str, Any]) -> Simulation:
    """The simulation that is asked for, before it begins; errors are those of `simulate`."""
    kind_of_plan = Simulated.POLICIES if options.get("policies") else Simulated.PLAN
    kind = Simulated(pipeline_kind(plan) or kind_of_plan)
    question = question_for(kind, SimulateQuestion, options)
    trace = None
    if kind in (Simulated.PLAN, Simulated.POLICIES):
        trace = _trace_of(question)
        plan = load_plan(plan) if isinstance(plan, str | Path) else plan
        if not hasattr(plan, "configuration"):
            raise not_expected("plan", plan, "a plan of a streaming query, or the path of one")
    if kind is Simulated.POLICIES:
        _require_policies(question)
    return Simulation(kind=kind, plan=plan, trace=trace, question=question)


def run_simulation(simulation: Simulation) -> Any:
    """The outcome of a simulation; errors are those of `simulate`."""
    question, num_runs = simulation.question, simulation.num_runs
    if simulation.trace is None:
        return simulate_pipeline(simulation.plan, question, num_runs)
    if simulation.kind is Simulated.PLAN:
        return simulate_plan(
            simulation.plan,
            simulation.trace,
            outages=question.outages,
            num_runs=num_runs,
            seed=question.seed,
        )
    assert question.profile is not None  # required of policies
    return compare_policies(
        simulation.plan,
        with_source_partitions(job_from(question.profile), simulation.plan.source_partitions),
        simulation.trace,
        [parse_policy(policy) for policy in question.policies or ()],
        executors=question.executors,
        triggers_s=question.triggers_s,
        outages=question.outages,
        num_runs=num_runs,
        seed=question.seed,
    )


def _trace_of(question: SimulateQuestion) -> RateTrace:
    trace = question.rate_trace
    if trace is None:
        raise InputError(
            f"{argument('rate_trace')} is missing; expected the path of a CSV file, or of JSON"
        )
    if not isinstance(trace, RateTrace):
        return read_rate_trace(trace).to_simulate(question.length_s)
    if question.length_s is not None:
        raise InputError(f"{argument('length')} is for trace files; a RateTrace has its own end")
    return trace


def _require_policies(question: SimulateQuestion) -> None:
    names = [parse_policy(policy)[0] for policy in question.policies or ()]
    if question.profile is None:
        raise InputError(
            f"{argument('policies')} needs {argument('profile')}: the plan holds how long batches "
            "take at its own number of executors only, its profile at any"
        )
    if question.triggers_s and "headway" not in names:
        raise RefusedArgumentError(
            f"{argument('triggers')}: is for {argument('policies')} headway; the others change "
            "executors only"
        )


def parse_policy(text: str) -> tuple[str, float | None]:
    """Read a policy as it is written on the command line.

    >>> parse_policy("hpa:50%"), parse_policy("headway")
    (('hpa', 0.5), ('headway', None))
    """
    name, _, constant = text.strip().partition(":")
    if name not in POLICIES:
        raise InputError(f"no policy {name!r}; expected one of {', '.join(POLICIES)}")
    if not constant:
        return name, None
    if name in ("headway", "optimum"):
        raise InputError(f"policy {text!r}: {name} has no constant; write {name}")
    try:
        value = float(constant.removesuffix("%")) / (100.0 if constant.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    max_constant = {"hpa": 1.0, "flink": 1.0}.get(name, math.inf)
    if not 0.0 < value <= max_constant or (name == "static" and value != int(value)):
        expected = {"hpa": "50%", "flink": "70%", "ds2": "1.2", "static": "8"}[name]
        raise InputError(f"policy {text!r}: expected a constant such as {name}:{expected}")
    return name, value
