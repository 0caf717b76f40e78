"""The page about simulated tuning, from the lines of its traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from pages import headed, made_by, yes_or_no
from traces import CALM_KINDS

from headway.domain.live import PolicyOutcome
from headway.models.job.change_cost import late_price
from headway.units import S_PER_HOUR

SAME_NODE_HOURS = 1.02
QUANTILE = 0.99
OPTIMUM = "optimum"
RULES_OF_OTHERS = ("hpa", "flink", "ds2")
FIXED = "static"
# Of 36 traces: against each rule of others, against fixed sizes, and against all of them.
GOAL_OF_RULES, GOAL_OF_FIXED, GOAL_OF_ANY, NUM_TRACES = 34, 28, 26, 36
GOAL_OF_OPTIMUM, GOAL_OF_CHANGES, GOAL_OF_LOSS = 1.30, 1.5, 0.03
CAUSES = {
    "outage": "an outage in the quarter of an hour before",
    "new high": "a step up for a load higher than any before",
    "returned": "a step up after the rule had stepped down",
    "first size": "a step up from the size at the start",
    "step down": "the long batch of a step down",
    "no change": "no change of the executors near it",
}
FIGURES = (
    "policy", "constant", "executor_s", "late_ratio", "kept_share", "changes_per_run",
    "reversals_per_run",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """The outcomes of all policies on one trace.

    ``purses_s`` are the node-seconds that Headway's steps down were worth, by (A8), in the mean of
    its runs.
    """

    part: str
    trace: str
    kind: str
    num_steps: int | None
    length_s: float
    purses_s: float
    headway: PolicyOutcome
    others: tuple[PolicyOutcome, ...]
    optimum: PolicyOutcome

    @classmethod
    def of(cls, part: str, lines: Sequence[Mapping[str, Any]]) -> TraceResult:
        """What the lines of a trace say, one of each policy and constant."""
        outcomes: dict[str, list[PolicyOutcome]] = defaultdict(list)
        for line in lines:
            figures = {name: line[name] for name in FIGURES}
            outcome = PolicyOutcome(**figures, steps=(), stretch_late_ratio=())
            outcomes[outcome.policy].append(outcome)
        (headway,), (optimum,) = outcomes.pop("headway"), outcomes.pop(OPTIMUM)
        first = lines[0]
        return cls(
            part=part,
            trace=first["trace"],
            kind=first["kind"],
            num_steps=first["num_steps"],
            length_s=first["length_s"],
            purses_s=max(line["purses_s"] for line in lines),
            headway=headway,
            others=tuple(chain(*outcomes.values())),
            optimum=optimum,
        )

    def best(self, *policies: str) -> PolicyOutcome | None:
        """The constant that keeps the most windows at no more node-hours than Headway takes."""
        max_executor_s = SAME_NODE_HOURS * self.headway.executor_s
        within = [
            outcome
            for outcome in self.others
            if outcome.policy in policies and outcome.executor_s <= max_executor_s
        ]
        return max(
            within,
            key=lambda outcome: (outcome.kept_share, -outcome.executor_s),
            default=None,
        )

    def lost_by(self, *policies: str) -> float:
        """Share of windows that the best of these keeps and Headway does not."""
        best = self.best(*policies)
        return 0.0 if best is None else max(best.kept_share - self.headway.kept_share, 0.0)

    def is_won(self, *policies: str) -> bool:
        """Whether none of these keeps more, whatever its constant."""
        return self.lost_by(*policies) <= 1e-9

    def cost_s(self, outcome: PolicyOutcome) -> float:
        """Node-seconds, and those that its late rows are worth: theory.md (A8)."""
        late_s = outcome.late_ratio * self.length_s
        return outcome.executor_s + late_price(QUANTILE) * late_s

    @property
    def cheapest_size(self) -> PolicyOutcome:
        """The fixed size with the least cost on this trace, known only afterwards."""
        return min((outcome for outcome in self.others if outcome.policy == FIXED), key=self.cost_s)

    @property
    def regret_s(self) -> float:
        """What Headway costs more than that size; negative if less. [node-s]"""
        return self.cost_s(self.headway) - self.cost_s(self.cheapest_size)


def page_of(
    results: Sequence[TraceResult], before: str, lost_windows: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The page; ``before`` tells of the frozen rule and of those before it."""
    return "\n".join(_page(results, before, lost_windows))


def _page(
    results: Sequence[TraceResult], before: str, lost_windows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    yield "# Tuning, simulated"
    yield ""
    yield made_by("make tuning-simulated")
    yield ""
    yield (
        "One query under a changing load. Its executors are changed by Headway's rule (theory.md, "
        "Live tuning) and by those of others. It has 48 source tasks and 48 tasks with state, 12 "
        "and 30 ms each, 50 us per row, 1 to 12 executors of 4 cores, a driver time of 0.12 s, "
        "noise of 8% from batch to batch and 5% that lasts, a trigger interval of 1.5 s and the "
        "target p99 <= 3s. Executors arrive 20 to 60 s after they are requested, and are paid for "
        "from the request on. The first two batches with them take twice as long, and a removal "
        "makes one batch 5.9 s longer. All rules change executors of the running query, which "
        "favours those that would restart it. Two random seeds, one for four days; rows, noise "
        "and provisioning times are the same for all policies. The figures are in "
        "`benchmarks/tuning/results/tuning-simulated.jsonl`."
    )
    yield ""
    yield before
    yield ""
    yield "## Goals"
    yield ""
    yield from _goals(results)
    yield ""
    for part in dict.fromkeys(result.part for result in results):
        yield f"## Traces {part}"
        yield ""
        yield from _table([result for result in results if result.part == part])
        yield ""
    yield "## Traces lost"
    yield ""
    yield from _lost(results)
    yield ""
    if lost_windows:
        yield "## Why windows are late"
        yield ""
        yield from _causes(results, lost_windows)
        yield ""
    yield "## Regret"
    yield ""
    yield from _regret(results)
    yield ""
    yield "## All constants"
    yield ""
    yield from _sums(results)
    yield ""
    yield (
        "Executors of 4 cores are nodes here. Kept: five-minute windows with at most 1% of the "
        "rows late. The constant of each other rule is the one that keeps the most windows on that "
        "very trace, with at most 2% more node-hours than Headway. So even a static size is chosen "
        "with knowledge of the whole trace. Optimum: dynamic programming over the known trace "
        "(A12), simulated like the others, with 1% of all rows late."
    )
    yield ""


def _table(results: Sequence[TraceResult]) -> Iterator[str]:
    yield from headed(
        "| trace | Headway: late, kept | node-h | changes | best other at its node-hours "
        "| late, kept | node-h | changes | optimum node-h |"
    )
    for result in results:
        best = result.best(*RULES_OF_OTHERS, FIXED)
        other = (
            "none with so few node-hours | | | "
            if best is None
            else f"{best.policy}, {best.constant} | {_quality(best)} | {_hours(best)} "
            f"| {best.changes_per_run:.0f}"
        )
        yield (
            f"| {result.trace} | {_quality(result.headway)} | {_hours(result.headway)} "
            f"| {result.headway.changes_per_run:.0f} | {other} | {_hours(result.optimum)} |"
        )


def _quality(outcome: PolicyOutcome) -> str:
    return f"{outcome.late_ratio:.2%}, {outcome.kept_share:.1%}"


def _hours(outcome: PolicyOutcome) -> str:
    return f"{outcome.executor_s / S_PER_HOUR:.1f}"


def _goals(results: Sequence[TraceResult]) -> Iterator[str]:
    parts = list(dict.fromkeys(result.part for result in results))
    yield from headed(f"| goal | all | {' | '.join(parts)} | met |")
    of_parts = [[result for result in results if result.part == part] for part in parts]
    for goal, figure, is_met in _figures():
        cells = " | ".join(text for text, _ in map(figure, of_parts))
        text, number = figure(results)
        yield f"| {goal} | {text} | {cells} | {yes_or_no(is_met(number, len(results)))} |"


def _figures() -> Iterator[tuple[str, Any, Any]]:
    """Each goal, its figure as text and number by traces, and whether a number of all meets it."""

    def won(*policies: str) -> Any:
        def count(results: Sequence[TraceResult]) -> tuple[str, float]:
            number = sum(result.is_won(*policies) for result in results)
            return f"{number} of {len(results)}", number

        return count

    def at_least(goal: int) -> Any:
        return lambda number, num_traces: number * NUM_TRACES >= goal * num_traces

    def at_most(goal: float) -> Any:
        return lambda number, _num_traces: number <= goal + 1e-9

    for policy in RULES_OF_OTHERS:
        goal = f"keeps at least as much as {policy} at the same node-hours in {GOAL_OF_RULES} of 36"
        yield goal, won(policy), at_least(GOAL_OF_RULES)
    fixed = f"keeps at least as much as any fixed size in {GOAL_OF_FIXED} of {NUM_TRACES}"
    yield fixed, won(FIXED), at_least(GOAL_OF_FIXED)
    every = f"keeps at least as much as any of them in {GOAL_OF_ANY} of {NUM_TRACES}"
    yield every, won(*RULES_OF_OTHERS, FIXED), at_least(GOAL_OF_ANY)
    yield (
        f"keeps at most {100 * GOAL_OF_LOSS:g} points less than the best fixed size",
        lambda results: _percents(max(result.lost_by(FIXED) for result in results)),
        at_most(GOAL_OF_LOSS),
    )
    yield (
        f"node-hours at most {GOAL_OF_OPTIMUM:.2f} times the optimum in total",
        lambda results: _number(_total(results) / _total(results, of_optimum=True)),
        at_most(GOAL_OF_OPTIMUM),
    )
    yield (
        f"at most {GOAL_OF_CHANGES:g} changes per load step",
        lambda results: _number(max(_changes_per_step(results), default=0.0)),
        at_most(GOAL_OF_CHANGES),
    )
    yield (
        "no reversal within 30 minutes on step, ramp, costs, outage, day",
        lambda results: _number(
            sum(result.headway.reversals_per_run for result in results if result.kind in CALM_KINDS)
        ),
        at_most(0.0),
    )


def _number(number: float) -> tuple[str, float]:
    return f"{number:.2f}", number


def _percents(ratio: float) -> tuple[str, float]:
    return f"{100 * ratio:.1f} points", ratio


def _total(results: Iterable[TraceResult], *, of_optimum: bool = False) -> float:
    return sum((result.optimum if of_optimum else result.headway).executor_s for result in results)


def _changes_per_step(results: Iterable[TraceResult]) -> list[float]:
    return [
        result.headway.changes_per_run / result.num_steps for result in results if result.num_steps
    ]


def _lost(results: Sequence[TraceResult]) -> Iterator[str]:
    lost = [result for result in results if not result.is_won(*RULES_OF_OTHERS, FIXED)]
    if not lost:
        yield "None."
        return
    yield from headed(
        "| trace | lost to | fewer windows kept | node-hours of the other, of Headway |"
    )
    for result in lost:
        best = result.best(*RULES_OF_OTHERS, FIXED)
        assert best is not None
        yield (
            f"| {result.trace} ({_hours(result.headway)} node-h) | {best.policy}, "
            f"{best.constant} | {result.lost_by(*RULES_OF_OTHERS, FIXED):.1%} "
            f"| {_hours(best)}, {_hours(result.headway)} |"
        )


def _causes(
    results: Sequence[TraceResult], lost_windows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Late windows by the first cause that applies, on all traces and on those that were lost."""
    lost = {
        (result.part, result.trace)
        for result in results
        if not result.is_won(*RULES_OF_OTHERS, FIXED)
    }
    of_lost = [line for line in lost_windows if (line["part"], line["trace"]) in lost]
    yield (
        "Windows of five minutes in which Headway had more than 1% late rows, by the first cause "
        "of this table that applies; all runs on the traces together. A fixed size never steps, "
        "and one chosen with the trace known carries the highest load from the start: it only "
        "loses windows to outages, to noise, and to loads that it is too small for."
    )
    yield ""
    yield from headed("| cause | all traces | traces lost |")
    for name, said in CAUSES.items():
        yield f"| {said} | {_sum(lost_windows, name)} | {_sum(of_lost, name)} |"
    num_all, num_of_lost = (
        sum(_sum(lines, name) for name in CAUSES) for lines in (lost_windows, of_lost)
    )
    yield (
        f"| all | {num_all} of {_sum(lost_windows, 'windows'):,} "
        f"| {num_of_lost} of {_sum(of_lost, 'windows'):,} |"
    )


def _sum(lines: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(line[name] for line in lines)


def _regret(results: Sequence[TraceResult]) -> Iterator[str]:
    yield (
        f"Cost: node-hours, and {late_price(QUANTILE):.0f} node-seconds for each second of late "
        "arrivals (A8). Regret: Headway's cost less that of the fixed size with the least cost on "
        "that trace, negative where Headway costs less. Bound: (A20), that is the worth of all "
        "steps down twice. It holds for late rows that steps down cause; a load that is higher "
        "than any before comes on top."
    )
    yield ""
    yield from headed("| trace | Headway | best fixed size | its cost | regret | bound |")
    sums = np.zeros(4)
    for result in results:
        hours = np.array((
            result.cost_s(result.headway), result.cost_s(result.cheapest_size),
            result.regret_s, 2.0 * result.purses_s,
        )) / S_PER_HOUR  # fmt: skip
        sums += hours
        cost, fixed, regret, bound = hours.tolist()
        yield (
            f"| {result.trace} | {cost:.1f} | {result.cheapest_size.constant} | {fixed:.1f} "
            f"| {regret:.1f} | {bound:.1f} |"
        )
    yield f"| all | {sums[0]:.1f} | | {sums[1]:.1f} | {sums[2]:.1f} | {sums[3]:.1f} |"


def _sums(results: Sequence[TraceResult]) -> Iterator[str]:
    yield from headed("| policy | node-h in total | kept, mean | late, mean | changes |")
    rows = {("headway", ""): [result.headway for result in results]}
    for result in results:
        for other in result.others:
            rows.setdefault((other.policy, other.constant), []).append(other)
    rows["optimum", ""] = [result.optimum for result in results]
    for (policy, constant), outcomes in rows.items():
        hours = sum(outcome.executor_s for outcome in outcomes) / S_PER_HOUR
        yield (
            f"| {f'{policy} {constant}'.strip()} | {hours:.0f} "
            f"| {np.mean([outcome.kept_share for outcome in outcomes]):.1%} "
            f"| {np.mean([outcome.late_ratio for outcome in outcomes]):.2%} "
            f"| {sum(outcome.changes_per_run for outcome in outcomes):.0f} |"
        )
