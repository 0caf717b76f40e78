"""What a changed setting is expected to show, written down before the change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headway.assumptions.live import PROVISIONING_S
from headway.domain import Z90, Interval
from headway.domain.live import ChangeKind, Expectation
from headway.models.job.calibration import spread_ratio
from headway.models.job.setting import setting_law, settled_batch_rows
from headway.planner.live.table import CapacityTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedPause:
    """Pause of a query by a change, how much longer rows wait for it, the pause's upper end [s]."""

    pause_s: float = 0.0
    delay_s: float = 0.0
    longest_s: float = 0.0


def expectation_of(
    table: CapacityTable,
    executors: int,
    trigger_s: float,
    *,
    rate_per_s: float,
    cost_ratio: float,
    kind: ChangeKind,
    pause: ExpectedPause,
    backlog_rows: float = 0.0,
) -> Expectation:
    """Expected measurements of a setting, to be recorded before the change.

    Parameters
    ----------
    table : CapacityTable
        Table of the job.
    executors, trigger_s : int, float
        The new setting, after rounding and all bounds.
    rate_per_s, cost_ratio : float
        The forecast rate, and the factor of durations over those of the profile.
    kind : ChangeKind
        Kind of the change; added executors become available after a while.
    pause : ExpectedPause
        Expected pause of the query by the change.
    backlog_rows : float, >= 0
        Rows that are already waiting.

    Notes
    -----
    theory.md (P2), (T6), (A7), (A18). Intervals are of 90%, by moments.
    """
    place = table.place_of[executors, trigger_s]
    one = table.candidates.take(np.array([place]))
    question, model = table.question, one.durations.model(num_axes=1)
    rows = settled_batch_rows(model, rate_per_s, trigger_s, cost_ratio)
    slots = float(question.space.num_slots(executors))
    spread = float(spread_ratio(question.profile, slots, float(one.partitions[0]), rows)[0])
    ends = cost_ratio * np.exp(Z90 * spread * np.array([-1.0, 1.0]))
    law = setting_law(
        question.profile, model, rate_per_s=rate_per_s, trigger_s=trigger_s, factor=ends
    )
    latency_s = np.where(law.is_quotable, one.promised().statistic_s(law), math.inf)
    mean_s = law.batch_duration_mean_s()
    sustained = [table.expected(executors, trigger_s, end) for end in ends[::-1].tolist()]
    late_s = table.late_of_pause_s(pause.delay_s, executors, trigger_s, rate_per_s, cost_ratio)
    left_per_s = table.drained_per_s(executors, trigger_s, cost_ratio) - rate_per_s
    waiting = backlog_rows + pause.longest_s * rate_per_s
    come_s = PROVISIONING_S.value if kind is ChangeKind.ADD else 0.0
    caught_up_s = waiting / left_per_s if left_per_s > 0.0 else math.inf
    return Expectation(
        sustained_per_s=Interval(low=sustained[0], high=sustained[1]),
        duration_s=Interval(low=float(mean_s[0]), high=float(mean_s[1])),
        latency_s=Interval(low=float(latency_s[0]), high=float(latency_s[1])),
        pause_s=pause.pause_s,
        late_s=late_s,
        back_within_s=come_s + pause.longest_s + caught_up_s,
    )
