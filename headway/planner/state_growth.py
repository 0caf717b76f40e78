"""How long a plan stays feasible while the state of its query keeps growing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.assumptions.planning import LONGEST_GROWTH_S
from headway.domain import Finding, FindingCode
from headway.planner.candidates import Candidates, candidates_at

_SHORTEST_S = 1.0
_TOLERANCE_RATIO = 1e-3


def state_findings(setting: Candidates) -> Iterator[Finding]:
    """When state growth makes the plan's setting miss a target, within a year.

    Notes
    -----
    **(P21)** Growing state: its rows grow as in the last profiled run, in proportion to the rate,
    `S(t) = S_0 + g t λ/λ_0`, and a task with `S/T` of them takes `s S/T` longer (T2). The plan's
    setting is compared with its targets at `S(t)`. The first `t` within a year at which one is
    missed is in the headline; it is found by doubling and bisection, since a larger state only
    makes batches longer.
    """
    profile = setting.question.profile
    growth_per_s = profile.state_growth_per_s
    costs = any(stage.task_per_state_row_s > 0 for stage in profile.stages)
    if profile.state is None or growth_per_s <= 0 or not costs:
        return
    if _keeps_after(setting, LONGEST_GROWTH_S.value, growth_per_s):
        return
    missed_s = first_missed_s(lambda elapsed_s: _keeps_after(setting, elapsed_s, growth_per_s))
    yield Finding(
        code=FindingCode.STATE_BREAKS_PROMISE,
        numbers={
            "missed_after_s": missed_s,
            "growth_per_s": growth_per_s,
            "state_rows": float(profile.state.rows),
            "state_rows_then": profile.state.rows + growth_per_s * missed_s,
        },
    )


def first_missed_s(keeps_after: Callable[[float], bool]) -> float:
    """The first time at which a target is missed, by doubling and bisection [s].

    >>> round(first_missed_s(lambda elapsed_s: elapsed_s < 500.0))
    500
    """
    kept_s, missed_s = 0.0, _SHORTEST_S
    while keeps_after(missed_s):
        kept_s, missed_s = missed_s, 2.0 * missed_s
    while missed_s - kept_s > max(_TOLERANCE_RATIO * missed_s, _SHORTEST_S / 2):
        middle_s = 0.5 * (kept_s + missed_s)
        if keeps_after(middle_s):
            kept_s = middle_s
        else:
            missed_s = middle_s
    return missed_s


def _keeps_after(setting: Candidates, elapsed_s: float, growth_per_s: float) -> bool:
    """Whether the setting meets its targets with the state that it has after some time."""
    question = setting.question
    assert question.profile.state is not None
    rows = question.profile.state.rows + round(growth_per_s * elapsed_s)
    state = replace(question.profile.state, rows=rows)
    grown = replace(question, profile=replace(question.profile, state=state))
    planned_setting = (
        int(setting.nodes[0]),
        int(setting.partitions[0]),
        float(setting.trigger_s[0]),
    )
    return bool(candidates_at(grown, [planned_setting]).meets(question.rate_per_s)[0])
