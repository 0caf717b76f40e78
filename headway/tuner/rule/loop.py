"""A plan under a rate trace, with executors changed by Headway's rule and by other policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.assumptions.live import SPARE_EXECUTORS_RATIO
from headway.assumptions.planning import LEAST_LIMIT_RATIO
from headway.assumptions.tuning import MOST_POLICY_EXECUTORS, REVERSAL_S, USUAL_CPU_TARGET_RATIO
from headway.domain import JobProfile, Metric, Outage, RateTrace, StreamAnswer
from headway.domain.live import Bounds, ExecutorStep, PolicyComparison, PolicyOutcome
from headway.errors import InputError
from headway.models.arrays import Array
from headway.models.job.setting import after_commit_s, duration_model
from headway.models.simulation.closed_loop import (
    LoopJob,
    LoopRun,
    LoopTrace,
    Policy,
    simulate_closed_loop,
)
from headway.models.simulation.rate_trace import BatchNoise
from headway.planner.question import Question, SearchSpace
from headway.planner.search import question_of
from headway.tuner.rule.optimum import optimal_steps, path_costs
from headway.tuner.rule.policies import Ds2Policy, FlinkPolicy, HeadwayPolicy, HpaPolicy, PathPolicy
from headway.tuner.rule.table import CapacityTable, capacity_table

POLICIES = ("headway", "hpa", "flink", "ds2", "static", "optimum")
_USUAL = {"hpa": USUAL_CPU_TARGET_RATIO.value, "flink": USUAL_CPU_TARGET_RATIO.value, "ds2": 1.0}
_STRETCHES = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCase:
    """A job, its bounds, and the table used by Headway's rule and the optimum."""

    job: LoopJob
    table: CapacityTable
    bounds: Bounds
    trigger_s: float

    @classmethod
    def of(
        cls,
        question: Question,
        bounds: Bounds,
        trigger_s: float,
        triggers_s: Sequence[float] = (),
    ) -> LoopCase:
        """The case of a question with fixed shuffle partitions.

        ``triggers_s`` are further intervals that Headway's rule may choose. [s]
        """
        if question.target.metric is not Metric.TUPLE:
            raise InputError(
                f"target '{question.target}': policies are compared by their late rows; expected a "
                "quantile of the tuple latency, e.g. 'p99 <= 3s'"
            )
        executors = range(bounds.min_executors, bounds.max_executors + 1)
        table = capacity_table(question, executors, sorted({trigger_s, *triggers_s}))
        profile = table.question.profile
        partitions = question.space.shuffle_partitions or profile.baseline.shuffle_partitions
        one_core = duration_model(profile, 1, partitions)._replace(driver_s=0.0)
        highest_per_s = max(table.sustained(*setting) for setting in table.place_of)
        interval_s = max(trigger_s, 0.25 * table.limit_s)
        job = LoopJob(
            duration={
                num_executors: table.durations[table.place_of[num_executors, trigger_s]]
                for num_executors in executors
            },
            cpu=(
                float(one_core.mean_s(0.0)),
                tuple(
                    (float(per_row_s) * scale, exponent)
                    for level in one_core.levels
                    for per_row_s, scale, exponent in level.stage_terms
                ),
            ),
            cores_per_executor=question.space.cores_per_executor,
            trigger_s=trigger_s,
            limit_s=question.target.limit_s,
            noise=BatchNoise(
                batch_ratio=profile.noise.batch_ratio,
                autocorrelation=profile.noise.autocorrelation,
                run_to_run_ratio=profile.noise.run_to_run_ratio,
            ),
            after_commit_s=after_commit_s(profile),
            # Rows of the largest size in one trigger, and half more; never changed.
            max_rows_per_trigger=LEAST_LIMIT_RATIO.value * highest_per_s * interval_s,
            dispersion=profile.arrivals.dispersion_ratio,
        )
        return cls(job=job, table=table, bounds=bounds, trigger_s=trigger_s)

    def policy(self, name: str, constant: float | None) -> Callable[[], Policy]:
        """A factory of policies with a name; each run gets a new one."""
        bounds, value = self.bounds, _USUAL.get(name, 0.0) if constant is None else constant
        makers: dict[str, Callable[[], Policy]] = {
            "headway": lambda: HeadwayPolicy(
                table=self.table, bounds=bounds, trigger_s=self.trigger_s
            ),
            "hpa": lambda: HpaPolicy(target_ratio=value, bounds=bounds),
            "flink": lambda: FlinkPolicy(target_ratio=value, bounds=bounds),
            "ds2": lambda: Ds2Policy(factor=value, bounds=bounds),
            "static": lambda: PathPolicy(steps=[(0.0, bounds.clipped(int(value)))], period_s=0.0),
        }
        return makers[name]

    def run(self, policy: Policy, trace: LoopTrace, seed: int) -> LoopRun:
        """One run; it begins with the executors of a path, else with those for the first rate."""
        if isinstance(policy, PathPolicy):
            executors = policy.steps[0][1]
        else:
            needed = self.table.need(float(trace.rates_per_s[0]), self.trigger_s)
            most_executors = self.table.most(self.trigger_s)
            executors = self.bounds.clipped(most_executors if needed is None else needed)
        return simulate_closed_loop(self.job, trace, policy, executors=executors, seed=seed)

    def optimum(self, trace: LoopTrace, seed: int) -> Callable[[], Policy]:
        """A factory of the optimal path with full knowledge of the trace: theory.md (A12)."""
        costs = path_costs(self.table, trace, self.trigger_s)
        steps = optimal_steps(
            costs,
            float(trace.edges_s[0]),
            lambda steps: self.run(PathPolicy(steps=steps), trace, seed).late_ratio,
            1.0 - self.table.quantile,
        )
        return lambda: PathPolicy(steps=steps)


def compare_policies(
    plan: StreamAnswer,
    profile: JobProfile,
    trace: RateTrace,
    policies: Sequence[tuple[str, float | None]],
    *,
    executors: tuple[int, int] | None = None,
    triggers_s: Sequence[float] = (),
    outages: Sequence[Outage] = (),
    num_runs: int = 2,
    seed: int = 1,
) -> PolicyComparison:
    """Compare policies on a plan's job under a trace, all with the same rows and noise.

    The parameters are those of :func:`headway.simulate` with policies, which are names of
    `POLICIES` with a constant, or None for the default of each. The plan has the target, the
    trigger interval, the shuffle partitions, and the executors of the static policy.

    Notes
    -----
    theory.md (A11), (A12).
    """
    trigger_s = plan.configuration.trigger_s
    bounds = _bounds(plan, trace, executors)
    case = LoopCase.of(_question(plan, profile, bounds), bounds, trigger_s, triggers_s)
    first_s = trace.times_s[0]
    loop_trace = LoopTrace(
        edges_s=np.array([*trace.times_s, trace.end_s]),
        rates_per_s=np.array(trace.rates_per_s),
        outages_s=tuple(
            (first_s + outage.start_s, first_s + outage.start_s + outage.length_s)
            for outage in outages
        ),
    )
    edges = np.linspace(first_s, trace.end_s, _STRETCHES + 1)
    seeds = range(seed, seed + num_runs)
    outcomes = []
    for name, constant in policies:
        value = float(plan.executors) if name == "static" and constant is None else constant
        make = case.optimum(loop_trace, seed) if name == "optimum" else case.policy(name, value)
        runs = [case.run(make(), loop_trace, run_seed) for run_seed in seeds]
        text = constant_text(name, value)
        outcomes.append(outcome_of(name, text, runs, 1.0 - case.table.quantile, edges))
    rows = runs[0].late_by(edges)[0]
    return PolicyComparison(
        trace=trace,
        outages=tuple(outages),
        limit_s=case.table.limit_s,
        most_late_ratio=1.0 - case.table.quantile,
        min_executors=bounds.min_executors,
        max_executors=bounds.max_executors,
        triggers_s=case.table.triggers_s,
        executors_per_node=max(plan.configuration.executors // plan.nodes, 1),
        num_runs=num_runs,
        outcomes=tuple(outcomes),
        stretch_rates_per_s=tuple((rows / np.diff(edges)).tolist()),
    )


def constant_text(name: str, value: float | None) -> str:
    """The constant that the user of a policy has to set, as text.

    >>> constant_text("hpa", 0.5), constant_text("static", 8.0), constant_text("headway", None)
    ('CPU 50%', '8 executors', '')
    """
    if value is None:
        value = _USUAL.get(name)
    if value is None:
        return ""
    return {
        "hpa": f"CPU {value:.0%}",
        "flink": f"utilisation {value:.0%}",
        "ds2": f"factor {value:g}",
        "static": f"{value:g} executors",
    }.get(name, "")


def outcome_of(
    name: str, constant: str, runs: Sequence[LoopRun], most_late_ratio: float, edges: Array
) -> PolicyOutcome:
    """The mean of runs."""
    by_edges = [run.late_by(edges) for run in runs]
    rows = np.sum([run_rows for run_rows, _ in by_edges], axis=0)
    late = np.sum([run_late_rows for _, run_late_rows in by_edges], axis=0)
    return PolicyOutcome(
        policy=name,
        constant=constant,
        executor_s=float(np.mean([run.executor_s for run in runs])),
        late_ratio=float(np.mean([run.late_ratio for run in runs])),
        kept_share=float(np.mean([run.kept_share(most_late_ratio) for run in runs])),
        changes_per_run=float(np.mean([run.num_changes for run in runs])),
        reversals_per_run=float(np.mean([run.num_reversals(REVERSAL_S.value) for run in runs])),
        steps=tuple(
            ExecutorStep(at_s=step.at_s, executors=step.executors, trigger_s=step.trigger_s)
            for step in runs[0].steps
        ),
        stretch_late_ratio=tuple((late / np.maximum(rows, 1e-9)).tolist()),
    )


def _question(plan: StreamAnswer, profile: JobProfile, bounds: Bounds) -> Question:
    """The question of the plan, with executors instead of nodes."""
    setting = plan.configuration
    return question_of(
        replace(profile, arrivals=plan.arrivals),
        plan.target,
        SearchSpace(
            max_nodes=bounds.max_executors,
            cores_per_executor=setting.cores_per_executor,
            task_cpus=setting.task_cpus,
            tasks_per_executor=setting.tasks_per_executor,
            shuffle_partitions=setting.shuffle_partitions,
            trigger_s=setting.trigger_s,
        ),
        plan.confidence,
        plan.also,
    )


def _bounds(plan: StreamAnswer, trace: RateTrace, executors: tuple[int, int] | None) -> Bounds:
    if executors is None:
        usual = plan.max_rate_per_s or plan.rate_per_s
        needed = plan.executors * SPARE_EXECUTORS_RATIO.value * max(trace.rates_per_s) / usual
        executors = (1, min(max(math.ceil(needed), plan.executors), MOST_POLICY_EXECUTORS.value))
    min_executors, max_executors = executors
    if not 1 <= min_executors <= max_executors:
        raise InputError(f"executors {min_executors}..{max_executors}; expected e.g. 2..12")
    return Bounds(min_executors=min_executors, max_executors=max_executors)
