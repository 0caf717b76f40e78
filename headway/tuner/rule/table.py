"""Rates of all settings within bounds, computed once, so that a decision only looks them up."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.assumptions.live import (
    LARGE_BATCHES_S,
    LEAST_CARRIED_RATIO,
    LEAST_GAIN_RATIO,
    TABLE_FACTORS,
)
from headway.assumptions.planning import LEAST_LIMIT_RATIO
from headway.errors import InputError
from headway.models.arrays import Array
from headway.models.job.calibration import spread_ratio
from headway.models.job.change_pause import pause_late_s
from headway.models.job.duration import DurationModel, LevelSpan
from headway.models.job.setting import settled_batch_rows
from headway.models.laws.normal import ndtri
from headway.models.simulation.closed_loop import Costs
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.question import Question
from headway.planner.tasks import with_usual_tasks

_RATE_TOLERANCE = 1e-3
_NUM_SCORES = 15
# The middles of equally probable parts of a normal distribution.
_SCORES = ndtri((np.arange(_NUM_SCORES) + 0.5) / _NUM_SCORES)
# Loads for which late rows are tabulated, relative to the expected max rate of a setting.
_LOADS = np.geomspace(0.5, 4.0, 96)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTable:
    """Rates that settings sustain at the planned confidence, by trigger, executors, cost factor.

    ``place_of`` is the index of each setting, a pair of executors and trigger interval;
    ``sustained_per_s`` has a row for each and a column for each cost factor. ``sizes`` are the
    useful numbers of executors, by trigger. ``spread_ratio`` is the uncertainty of each setting by
    the profile alone (P2); ``late_ratio`` is its share of late rows at loads, with expected
    durations.
    """

    question: Question
    candidates: Candidates
    sustained_per_s: tuple[tuple[float, ...], ...]
    durations: tuple[Costs, ...]
    sizes: dict[float, tuple[int, ...]]
    spread_ratio: tuple[float, ...]
    late_ratio: tuple[tuple[float, ...], ...]
    highest_per_s: float
    score: float
    place_of: dict[tuple[int, float], int]

    @property
    def quantile(self) -> float:
        """Of the target."""
        quantile = self.question.target.quantile
        assert quantile is not None  # checked by capacity_table
        return quantile

    @property
    def limit_s(self) -> float:
        """Limit of the target [s]."""
        return self.question.target.limit_s

    def planned_ratio(self, executors: int, trigger_s: float) -> float:
        """Factor on the durations of a setting for the planned confidence. [-]"""
        return math.exp(self.score * self.spread_ratio[self.place_of[executors, trigger_s]])

    def spread_at(self, executors: int, trigger_s: float, batch_rows: float) -> float:
        """Uncertainty of durations of batches with a number of rows, by the profile alone: (P2)."""
        question = self.question
        partitions = self.candidates.partitions[self.place_of[executors, trigger_s]]
        slots = float(question.space.num_slots(executors))
        return float(spread_ratio(question.profile, slots, float(partitions), batch_rows))

    @property
    def triggers_s(self) -> tuple[float, ...]:
        """Trigger intervals to choose from [s]."""
        return tuple(self.sizes)

    def sustained(self, executors: int, trigger_s: float, cost_ratio: float = 1.0) -> float:
        """The highest rate within target with durations multiplied by a factor [rows/s]."""
        row = self.sustained_per_s[self.place_of[executors, trigger_s]]
        factors = TABLE_FACTORS.value
        if cost_ratio <= factors[0]:
            return row[0]
        if cost_ratio >= factors[-1]:
            return row[-1] * factors[-1] / cost_ratio
        high = bisect_left(factors, cost_ratio)
        part = (cost_ratio - factors[high - 1]) / (factors[high] - factors[high - 1])
        return row[high - 1] + part * (row[high] - row[high - 1])

    def expected(self, executors: int, trigger_s: float, cost_ratio: float) -> float:
        """The highest rate within target at a multiple of the predicted durations [rows/s]."""
        cost_ratio /= self.planned_ratio(executors, trigger_s)
        return self.sustained(executors, trigger_s, cost_ratio)

    def need(self, rate_per_s: float, trigger_s: float, cost_ratio: float = 1.0) -> int | None:
        """The fewest executors, of the useful sizes, that sustain a rate; None if none do."""
        for executors in self.sizes[trigger_s]:
            if self.sustained(executors, trigger_s, cost_ratio) >= rate_per_s:
                return executors
        return None

    def most(self, trigger_s: float) -> int:
        """The largest useful number of executors."""
        return self.sizes[trigger_s][-1]

    def duration_s(self, executors: int, trigger_s: float, batch_rows: float) -> float:
        """Mean duration of a batch by the profile [s]."""
        duration_s, terms = self.durations[self.place_of[executors, trigger_s]]
        for per_row_s, exponent in terms:
            duration_s += per_row_s * (batch_rows if exponent == 1.0 else batch_rows**exponent)
        return duration_s

    def drained_per_s(self, executors: int, trigger_s: float, cost_ratio: float = 1.0) -> float:
        """Rows that large batches process per second, at which a backlog is processed."""
        rows = self.highest_per_s * max(trigger_s, LARGE_BATCHES_S.value)
        added_s = self.duration_s(executors, trigger_s, rows) - self.duration_s(
            executors, trigger_s, 0.0
        )
        return rows / max(added_s * cost_ratio, 1e-12)

    def limit_rows(self, interval_s: float) -> float:
        """Rows of a batch that are enough for any setting: half more than it drains in an interval.

        With expected durations, not at the planned confidence. Otherwise, the limit would be lower
        with more uncertainty, and rows would wait in the source although the cores have time for
        them.
        """
        drained = (
            self.drained_per_s(self.most(trigger_s), trigger_s) for trigger_s in self.triggers_s
        )
        return LEAST_LIMIT_RATIO.value * max(drained) * interval_s

    def slack_s(
        self, executors: int, trigger_s: float, rate_per_s: float, cost_ratio: float = 1.0
    ) -> float:
        """Time that the target leaves beyond a usual row at its quantile: ``L - qB - D`` [s]."""
        rows = rate_per_s * trigger_s
        usual_s = self.duration_s(executors, trigger_s, rows) * cost_ratio
        return max(self.limit_s - self.quantile * max(trigger_s, usual_s) - usual_s, 0.0)

    def late_share(
        self, executors: int, trigger_s: float, rate_per_s: float, cost_ratio: float = 1.0
    ) -> float:
        """Expected share of late rows of a setting at a lasting rate.

        Costs are treated like rate: the share depends only on the rate over the rate that the
        setting sustains at these costs.
        """
        load = rate_per_s / max(self.expected(executors, trigger_s, cost_ratio), 1e-12)
        return float(np.interp(load, _LOADS, self.late_ratio[self.place_of[executors, trigger_s]]))

    def expected_late_share(
        self,
        executors: int,
        trigger_s: float,
        rate_per_s: float,
        cost_ratio: float,
        spread_ratio: float,
    ) -> float:
        r"""Expected share of late rows of a setting at a rate that is known with an error.

        Notes
        -----
        **(A21)** Expected share of late rows of `S` executors: `g = E[h(λ e^(s x))]`, `x` standard
        normal, with `h` by (T6) at the expected batch durations and `λ` the larger of the rate and
        its forecast (A1), (A17). Rate and durations enter as their product, so `s^2 = σ^2 + s_k^2`,
        of the forecast (A2), at most 0.25, and of the durations (A15). The mean is that of the 15
        middles of equally probable parts. `S + Λ g` is what a size costs in a second, in nodes,
        with `Λ = 1/(α(1-q))` from (A8): a size for the middle of what is expected would be too
        small half of the time, one for the upper end is paid for all of the time.
        """
        load = rate_per_s / max(self.expected(executors, trigger_s, cost_ratio), 1e-12)
        late_ratio = self.late_ratio[self.place_of[executors, trigger_s]]
        return float(np.interp(load * np.exp(spread_ratio * _SCORES), _LOADS, late_ratio).mean())

    def late_of_pause_s(
        self,
        pause_s: float,
        executors: int,
        trigger_s: float,
        rate_per_s: float,
        cost_ratio: float = 1.0,
    ) -> float:
        """Seconds of arrivals that a pause makes late at a setting: theory.md (A7)."""
        drained = self.drained_per_s(executors, trigger_s, cost_ratio)
        slack_s = self.slack_s(executors, trigger_s, rate_per_s, cost_ratio)
        return pause_late_s(pause_s, slack_s, rate_per_s / drained)


def capacity_table(
    question: Question, executors: Sequence[int], triggers_s: Sequence[float]
) -> CapacityTable:
    """The table of a question: every pair of executors and trigger, at all cost factors: (A9).

    The space of the question has one executor per node and fixed shuffle partitions; ``executors``
    increase. A target on a mean is refused, since late rows cannot be counted for it.
    """
    if question.target.quantile is None:
        raise InputError(
            f"target '{question.target}': tuning counts late rows; expected a quantile, "
            "e.g. 'p99 <= 3s'"
        )
    question = replace(question, profile=with_usual_tasks(question.profile))
    partitions = question.space.shuffle_partitions or question.profile.baseline.shuffle_partitions
    settings = [(count, float(trigger)) for trigger in triggers_s for count in executors]
    place_of = {setting: index for index, setting in enumerate(settings)}
    candidates = candidates_at(
        question, [(count, partitions, trigger_s) for count, trigger_s in settings]
    )
    rates_per_s = sustainable_rates_per_s(
        _at_factors(candidates, TABLE_FACTORS.value), _RATE_TOLERANCE
    )
    sustained = rates_per_s.reshape(len(TABLE_FACTORS.value), len(settings)).T
    usual = sustained[:, TABLE_FACTORS.value.index(1.0)]
    score = float(ndtri(question.confidence))
    spread = _spreads(candidates, usual)
    expected = [
        float(np.interp(1.0 / ratio, TABLE_FACTORS.value, row))
        for ratio, row in zip(np.exp(score * spread).tolist(), sustained, strict=True)
    ]
    late_ratio = _late_ratios(candidates, expected)
    return CapacityTable(
        question=question,
        candidates=candidates,
        sustained_per_s=tuple(map(tuple, sustained.tolist())),
        durations=_durations(candidates.durations, len(candidates)),
        sizes={
            float(trigger): _worth_going_to(
                [(count, usual[place_of[count, float(trigger)]]) for count in executors]
            )
            for trigger in triggers_s
        },
        spread_ratio=tuple(spread.tolist()),
        late_ratio=late_ratio,
        highest_per_s=2.0 * max(float(usual.max()), 1.0),
        score=score,
        place_of=place_of,
    )


def _at_factors(candidates: Candidates, factors: Sequence[float]) -> Candidates:
    """The settings with all durations multiplied by each factor in turn, side by side."""
    num_settings = len(candidates)
    side_by_side = candidates.take(np.tile(np.arange(num_settings), len(factors)))
    driver_s, levels = side_by_side.durations
    factor = np.repeat(factors, num_settings)
    # The driver's time is different for each, too; it is a level without stages here.
    slower = (LevelSpan("driver", factor * driver_s, ()), *(span.times(factor) for span in levels))
    return replace(side_by_side, durations=DurationModel(0.0, slower))


def _durations(model: DurationModel, num_settings: int) -> tuple[Costs, ...]:
    terms = [term for level in model.levels for term in level.stage_terms]
    fixed_s = np.array([level.fixed_s for level in model.levels]).reshape(-1, num_settings)
    per_row_s = np.array([term[0] for term in terms]).reshape(-1, num_settings)
    return tuple(
        (
            float(model.driver_s + setting_fixed_s.sum()),
            tuple(
                (float(per_row * scale), exponent)
                for per_row, (_, scale, exponent) in zip(setting_per_row_s, terms, strict=True)
                if per_row * scale > 0.0
            ),
        )
        for setting_fixed_s, setting_per_row_s in zip(fixed_s.T, per_row_s.T, strict=True)
    )


def _worth_going_to(sustained: Sequence[tuple[int, float]]) -> tuple[int, ...]:
    """Sizes that sustain clearly more than the next smaller such size: theory.md (A9)."""
    useful_sizes = [sustained[0]]
    for index, (_, rate_per_s) in enumerate(sustained[1:], start=1):
        before, before_per_s = useful_sizes[-1]
        gains_per_s = [
            (larger_per_s - before_per_s) / (larger - before)
            for larger, larger_per_s in sustained[index:]
        ]
        is_step = gains_per_s[0] >= LEAST_GAIN_RATIO.value * max(gains_per_s)
        if is_step and rate_per_s > LEAST_CARRIED_RATIO.value * before_per_s:
            useful_sizes.append(sustained[index])
    # A size that sustains nothing is not useful.
    return tuple(count for count, rate_per_s in useful_sizes if rate_per_s > 0.0) or (
        sustained[-1][0],
    )


def _spreads(candidates: Candidates, rates_per_s: Array) -> Array:
    """Uncertainty of the durations of each setting, by the profile alone: theory.md (P2)."""
    model = candidates.durations
    rows = settled_batch_rows(model, np.maximum(rates_per_s, 1e-9), candidates.trigger_s)
    slots = candidates.nodes.astype(np.float64) * candidates.question.space.num_slots(1)
    partitions = candidates.partitions.astype(np.float64)
    return spread_ratio(candidates.question.profile, slots, partitions, rows, model=model)


def _late_ratios(
    candidates: Candidates, sustained_per_s: Sequence[float]
) -> tuple[tuple[float, ...], ...]:
    """The share of late rows of each setting at each load; 1 where unstable.

    With expected durations; confidence is accounted for in the rate.
    """
    expected = replace(candidates, question=replace(candidates.question, confidence=0.5))
    promised, limit_s = expected.promised(), candidates.question.target.limit_s
    highest_per_s = np.asarray(sustained_per_s, dtype=np.float64)
    shares = np.ones((len(candidates), len(_LOADS)))
    sustaining = np.flatnonzero(highest_per_s > 0.0)
    if len(sustaining):
        # All at once, since one setting after the other takes several times as long.
        at_loads = expected.take(np.repeat(sustaining, len(_LOADS)))
        law = at_loads.planned_law(np.outer(highest_per_s[sustaining], _LOADS).ravel())
        late = np.where(law.is_stable, 1.0 - promised.cdf(law, limit_s), 1.0)
        late = np.clip(late, 0.0, 1.0).reshape(len(sustaining), len(_LOADS))
        shares[sustaining] = np.maximum.accumulate(late, axis=1)
    return tuple(map(tuple, shares.tolist()))
