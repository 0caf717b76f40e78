"""What a changed setting is expected to show, written down before the change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headway.domain import Z90, Interval
from headway.domain.live import Expectation
from headway.models.job.calibration import spread_ratio
from headway.models.job.catch_up import catch_up_late_s
from headway.models.job.setting import setting_law, settled_batch_rows
from headway.tuner.rule.table import CapacityTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What a change does to the query until it has taken effect.

    Until then, usually for ``wait_s`` and at most ``longest_wait_s``, it drains a backlog at
    ``drained_per_s`` (None: as afterwards). ``pause_s`` is the usual pause, ``longest_pause_s`` its
    upper end, and ``delay_s`` how much longer rows wait for it [s]; ``backlog_rows`` wait beyond
    the usual at the start.
    """

    pause_s: float = 0.0
    delay_s: float = 0.0
    longest_pause_s: float = 0.0
    wait_s: float = 0.0
    longest_wait_s: float = 0.0
    drained_per_s: float | None = None
    backlog_rows: float = 0.0


def expectation_of(
    table: CapacityTable,
    executors: int,
    trigger_s: float,
    rate_per_s: float,
    cost_ratio: float,
    transition: Transition,
) -> Expectation:
    """Expected measurements of a setting, to be recorded before the change.

    Executors and trigger are those after rounding and all bounds. theory.md (P2), (T6), (A7),
    (A18), (A19); intervals are of 90%, by moments.
    """
    setting_index = table.place_of[executors, trigger_s]
    setting = table.candidates.take(np.array([setting_index]))
    question, model = table.question, setting.durations
    rows = settled_batch_rows(model, rate_per_s, trigger_s, cost_ratio)
    slots = float(question.space.num_slots(executors))
    spread = float(spread_ratio(question.profile, slots, float(setting.partitions[0]), rows)[0])
    cost_ratios = cost_ratio * np.exp(Z90 * spread * np.array([-1.0, 1.0]))
    law = setting_law(
        question.profile, model, rate_per_s=rate_per_s, trigger_s=trigger_s, factor=cost_ratios
    )
    latency_s = np.where(law.is_quotable, setting.promised().statistic_s(law), math.inf)
    mean_s = law.batch_duration_mean_s()
    sustained = [
        table.expected(executors, trigger_s, ratio) for ratio in cost_ratios[::-1].tolist()
    ]
    slack_s = table.slack_s(executors, trigger_s, rate_per_s, cost_ratio)
    then_per_s = table.drained_per_s(executors, trigger_s, cost_ratio)
    now_per_s = then_per_s if transition.drained_per_s is None else transition.drained_per_s
    late_s = catch_up_late_s(
        transition.backlog_rows,
        rate_per_s,
        drained_now_per_s=now_per_s,
        drained_then_per_s=then_per_s,
        wait_s=transition.wait_s,
        pause_s=transition.delay_s,
        slack_s=slack_s,
    )
    return Expectation(
        sustained_per_s=Interval(low=sustained[0], high=sustained[1]),
        duration_s=Interval(low=float(mean_s[0]), high=float(mean_s[1])),
        latency_s=Interval(low=float(latency_s[0]), high=float(latency_s[1])),
        pause_s=transition.pause_s,
        late_s=late_s,
        back_within_s=_back_within_s(transition, rate_per_s, now_per_s, then_per_s),
    )


def _back_within_s(
    transition: Transition, rate_per_s: float, now_per_s: float, then_per_s: float
) -> float:
    """Maximum time until the backlog is worked off, from the start of the change."""
    wait_s, pause_s = transition.longest_wait_s, transition.longest_pause_s
    waiting = max(transition.backlog_rows + (rate_per_s - now_per_s) * wait_s, 0.0)
    spare_per_s = then_per_s - rate_per_s
    if spare_per_s <= 0.0:
        return math.inf
    return wait_s + pause_s + (waiting + pause_s * rate_per_s) / spare_per_s
