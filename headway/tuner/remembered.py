"""What a tuner remembers in its file: costs of changes, late rows, the load of days."""

from __future__ import annotations

from dataclasses import replace

from headway.assumptions.live import COSTS_REMEMBERED
from headway.domain.live import ChangeKind
from headway.domain.tuner import LearnedCost, LearnedPause, TunerState
from headway.models.estimation.daily_rates import DailyRates
from headway.tuner.rule.memory import LearnedCosts, Memory


def with_memory(state: TunerState, memory: Memory) -> TunerState:
    """The state with what the rule has learned so far."""
    costs = memory.costs
    return replace(
        state,
        costs=tuple(LearnedCost(kind=kind, late_s=late_s) for kind, late_s in costs.late_s.items()),
        up_late_s=costs.up_late_s,
        returns_late_s=costs.returns_late_s,
        provisioning_s=costs.provisioning_s,
        changed_at_s=memory.changes_s,
        spent=memory.spent,
        late=memory.budget,
        daily_per_s={slot: float(f"{rate:.4g}") for slot, rate in memory.daily.rates_per_s.items()},
        calms_s=memory.calms_s,
    )


def with_pause(state: TunerState, kind: ChangeKind, pause_s: float) -> TunerState:
    """The state after one more change of a kind paused the query for so long [s]."""
    pauses_by_kind = {pause.kind: pause.pauses_s for pause in state.pauses}
    pauses_by_kind[kind] = (*pauses_by_kind.get(kind, ()), pause_s)[-COSTS_REMEMBERED.value :]
    pauses = tuple(
        LearnedPause(kind=learned_kind, pauses_s=pauses_s)
        for learned_kind, pauses_s in pauses_by_kind.items()
    )
    return replace(state, pauses=pauses)


def remembered_pauses(state: TunerState) -> dict[ChangeKind, tuple[float, ...]]:
    """How long changes of each kind have paused the query [s]."""
    return {ChangeKind(pause.kind): pause.pauses_s for pause in state.pauses}


def remembered(state: TunerState) -> Memory:
    """Initial memory of a rule: what was learned before; it learns level and batch costs again.

    It learns first after every start, since earlier rates say little.
    """
    costs = LearnedCosts(
        late_s={ChangeKind(cost.kind): cost.late_s for cost in state.costs},
        returns_late_s=dict(state.returns_late_s),
        provisioning_s=state.provisioning_s,
    )
    if state.up_late_s is not None:
        costs = replace(costs, up_late_s=state.up_late_s)
    return Memory(
        costs=costs,
        changes_s=state.changed_at_s,
        spent=state.spent,
        budget=state.late,
        daily=DailyRates.of(state.daily_per_s),
        calms_s=dict(state.calms_s),
    )
