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
    question, profile = setting.question, setting.question.profile
    state, growth_per_s = profile.state, profile.state_growth_per_s
    costs = any(stage.task_per_state_row_s > 0 for stage in profile.stages)
    if state is None or growth_per_s <= 0 or not costs:
        return

    def keeps_after(elapsed_s: float) -> bool:
        """Whether the targets are met with the state that there is after some time."""
        later = replace(state, rows=state.rows + round(growth_per_s * elapsed_s))
        grown = replace(question, profile=replace(profile, state=later))
        return bool(candidates_at(grown, setting.settings()).meets(question.rate_per_s)[0])

    if keeps_after(LONGEST_GROWTH_S.value):
        return
    missed_s = first_missed_s(keeps_after)
    yield Finding(
        code=FindingCode.STATE_BREAKS_PROMISE,
        numbers={
            "missed_after_s": missed_s,
            "growth_per_s": growth_per_s,
            "state_rows": float(state.rows),
            "state_rows_then": state.rows + growth_per_s * missed_s,
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
