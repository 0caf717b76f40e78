"""What a tuner remembers in its file: costs of changes and the budget of late rows."""

from __future__ import annotations

from dataclasses import replace

from headway.assumptions.live import COSTS_REMEMBERED
from headway.domain.live import ChangeKind
from headway.domain.tuner import LateBin, LearnedCost, LearnedPause, SpentExecutors, TunerState
from headway.models.estimation.daily_rates import DailyRates
from headway.planner.live.memory import BudgetBin, LearnedCosts, Memory, SpentHour


def with_memory(state: TunerState, memory: Memory) -> TunerState:
    """The state with what the rule has learned so far."""
    costs = memory.costs
    return replace(
        state,
        costs=tuple(LearnedCost(kind=kind, late_s=late_s) for kind, late_s in costs.late_s.items()),
        up_late_s=costs.up_late_s,
        provisioning_s=costs.provisioning_s,
        changed_at_s=memory.changes_s,
        spent=tuple(
            SpentExecutors(began_s=one.start_s, executor_s=one.executor_s) for one in memory.spent
        ),
        late=tuple(
            LateBin(
                began_s=one.start_s,
                batch_rows=one.batch_rows,
                late_rows=one.late_rows,
                peak_per_s=one.peak_per_s,
            )
            for one in memory.budget
        ),
        daily_per_s={slot: float(f"{rate:.4g}") for slot, rate in memory.daily.rates_per_s.items()},
    )


def with_pause(state: TunerState, kind: ChangeKind, pause_s: float) -> TunerState:
    """The state after one more change of a kind paused the query for so long [s]."""
    known = {one.kind: one.pauses_s for one in state.pauses}
    known[kind] = (*known.get(kind, ()), pause_s)[-COSTS_REMEMBERED.value :]
    pauses = tuple(LearnedPause(kind=one, pauses_s=each) for one, each in known.items())
    return replace(state, pauses=pauses)


def remembered_pauses(state: TunerState) -> dict[ChangeKind, tuple[float, ...]]:
    """How long changes of each kind have paused the query [s]."""
    return {ChangeKind(one.kind): one.pauses_s for one in state.pauses}


def remembered(state: TunerState) -> Memory:
    """Initial memory of a rule: what was learned before; it learns level and batch costs again.

    It learns first after every start, since earlier rates say little.
    """
    costs = LearnedCosts(
        late_s={ChangeKind(one.kind): one.late_s for one in state.costs},
        provisioning_s=state.provisioning_s,
    )
    if state.up_late_s is not None:
        costs = replace(costs, up_late_s=state.up_late_s)
    return Memory(
        costs=costs,
        changes_s=state.changed_at_s,
        spent=tuple(
            SpentHour(start_s=one.began_s, executor_s=one.executor_s) for one in state.spent
        ),
        budget=tuple(
            BudgetBin(
                start_s=one.began_s,
                batch_rows=one.batch_rows,
                late_rows=one.late_rows,
                peak_per_s=one.peak_per_s,
            )
            for one in state.late
        ),
        daily=DailyRates.of(state.daily_per_s),
    )
