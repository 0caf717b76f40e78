"""Pipelines of mini-batches: the fewest nodes, the setting with the highest rate, the proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import PIPELINE_RULE_PERIODS_S
from headway.domain.result import Result
from headway.models.arrays import Array
from headway.models.pipeline.latency import PipelineLatency, split_limit_s
from headway.models.pipeline.parameters import PipelineSetting
from headway.planner.kinds.pipelines import PipelineQuestion, grid, joined, statistic_s
from headway.planner.question import NO_LIMIT_S

_CHUNK = 400
_FINE_RATE = 1e-3
_MOST_DOUBLINGS = 40
_HALVINGS_OF_RANGES = 6
_MOST_RANGES = 40_000
_NODES_WITHOUT_PLAN = 6

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineRule:
    """A rule of thumb: a mapper and a reducer for each core, and common periods.

    ``num_nodes`` is the minimum with which it meets the target, None if none does; latency and rate
    are for the number of nodes of the plan.
    """

    shuffle_period_s: float
    poll_period_s: float
    num_nodes: int | None = field(metadata={"key": "nodes"})
    statistic_s: float = field(metadata={"key": "latency_s"})
    highest_rate_per_s: float = field(metadata={"key": "sustainable_rate_per_s"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinePlan:
    """The fewest nodes of a round, and their setting: ``(S*, Theta(S*))`` of VLDB'15, 3.1.

    ``setting`` has the highest rate within the target on the fewest nodes; None if no setting meets
    it. ``latency`` is that at this setting and the requested rate; without one, it is the lowest
    that was found, at ``lowest``, which is None if all are saturated. ``highest_rate_per_s`` is
    that of the setting within the target, and ``most_rate_per_s`` its bound over all settings; no
    setting of fewer nodes than ``proved_nodes`` meets the target (L15). ``rules`` are rules of
    thumb, for comparison.
    """

    question: PipelineQuestion
    setting: PipelineSetting | None = None
    latency: PipelineLatency | None
    lowest: PipelineSetting | None = None
    highest_rate_per_s: float = 0.0
    most_rate_per_s: float = 0.0
    proved_nodes: int
    rules: tuple[PipelineRule, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether some setting meets the target."""
        return self.setting is not None

    @property
    def is_saturated(self) -> bool:
        """Whether no setting can even keep up."""
        return self.setting is None and self.lowest is None

    @property
    def num_nodes(self) -> int | None:
        """The fewest nodes."""
        return None if self.setting is None else int(self.setting.num_nodes)

    @property
    def planned_s(self) -> float:
        """Value of the target's statistic, at the setting or at the lowest latency found. [s]"""
        if self.latency is None:
            return float("inf")
        return float(statistic_s(self.latency, self.question.target))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RoundsPlan(Result):
    """Plans of consecutive rounds; each has its part of the limit."""

    result_kind = "pipeline-plan"
    rounds: tuple[PipelinePlan, ...]
    latency: PipelineLatency | None

    @property
    def feasible(self) -> bool:
        """Whether every round meets its part."""
        return all(plan.feasible for plan in self.rounds)


def plan_rounds(questions: tuple[PipelineQuestion, ...]) -> RoundsPlan:
    """Plan consecutive rounds, with the limit divided by their lowest possible latencies.

    For a quantile this requires more than necessary: theory.md (L10).
    """
    if len(questions) > 1:
        lowest_s = [_lowest(question)[1] for question in questions]
        if np.all(np.isfinite(lowest_s)):
            limits_s = split_limit_s(questions[0].target.limit_s, lowest_s)
            questions = tuple(
                question.with_limit(limit_s)
                for question, limit_s in zip(questions, limits_s, strict=True)
            )
    rounds = tuple(plan_pipeline(question) for question in questions)
    latencies = [plan.latency for plan in rounds if plan.latency is not None]
    latency = joined(latencies) if len(latencies) == len(rounds) else None
    return RoundsPlan(rounds=rounds, latency=latency)


def plan_pipeline(question: PipelineQuestion) -> PipelinePlan:
    r"""The smallest number of nodes with a setting that meets the target, and that setting.

    **(L16)** `Λ(S) = max_θ λ` subject to `Ψ(λ, S, θ) ≤ L`; `S*` is the smallest `S` with
    `Λ(S) ≥ λ_0`, and `Θ(S*)` the setting that reaches `Λ(S*)` (VLDB'15, 3.1). Over lists of
    settings, `Λ` is found exactly: settings whose floor (L15) exceeds the limit are skipped, and
    those that miss it at a rate are not tried at a higher one. The proof that fewer nodes are not
    sufficient covers all shuffle and poll periods from the first to the last of the lists: ranges
    whose floor is within the limit are divided until none is left.
    """
    space = question.space
    for nodes in range(_nodes_for_cores(question), space.max_nodes + 1):
        settings = space.settings(nodes)
        within = _within(question, settings, question.rate_per_s)
        if len(within):
            return _planned(question, nodes, settings, within)
    lowest, _ = _lowest(question)
    return PipelinePlan(
        question=question,
        latency=None if lowest is None else question.latency(lowest, question.rate_per_s),
        lowest=lowest,
        proved_nodes=_proved_nodes(question, space.max_nodes + 1),
    )


def _planned(
    question: PipelineQuestion, nodes: int, settings: PipelineSetting, within: Indices
) -> PipelinePlan:
    rate_per_s, best = _highest_rate(question, settings, within)
    most_per_s = _most_rate_per_s(question, nodes, rate_per_s)
    setting = chosen(settings, best)
    return PipelinePlan(
        question=question,
        setting=setting,
        latency=question.latency(setting, question.rate_per_s),
        highest_rate_per_s=rate_per_s,
        most_rate_per_s=most_per_s,
        proved_nodes=_proved_nodes(question, nodes),
        rules=tuple(_rules(question, nodes, most_per_s)),
    )


def chosen(settings: PipelineSetting, index: int) -> PipelineSetting:
    """One of many settings, as scalars."""
    return PipelineSetting(
        **{
            field.name: np.broadcast_to(
                getattr(settings, field.name), np.shape(settings.num_nodes)
            )[index].item()
            for field in fields(PipelineSetting)
        }
    )


def _parted(settings: PipelineSetting, indices: Indices) -> PipelineSetting:
    return PipelineSetting(
        **{
            field.name: value if np.ndim(value) == 0 else np.asarray(value)[indices]
            for field in fields(PipelineSetting)
            for value in (getattr(settings, field.name),)
        }
    )


def _within(question: PipelineQuestion, settings: PipelineSetting, rate_per_s: float) -> Indices:
    """Indices of the settings that meet the target; those whose floor exceeds it are not tried."""
    possible = _not_ruled_out(question, settings, rate_per_s)
    met_chunks = [
        part[question.meets_target(_parted(settings, part), rate_per_s)]
        for part in _chunks(possible)
    ]
    return np.concatenate([possible[:0], *met_chunks])


def _not_ruled_out(
    question: PipelineQuestion, settings: PipelineSetting, rate_per_s: float
) -> Indices:
    floor_s = question.floor_s(settings, settings, rate_per_s)
    return np.flatnonzero(floor_s <= question.target.limit_s)


def _chunks(indices: Indices) -> list[Indices]:
    return [indices[start : start + _CHUNK] for start in range(0, len(indices), _CHUNK)]


def _nodes_for_cores(question: PipelineQuestion) -> int:
    """The minimum number of nodes whose cores can do the work on rows, for any setting."""
    job, state = question.round.job, question.round.state
    update_s = float(job.reduce_per_row_s)
    if state is not None:
        update_s = min(update_s, state.on_disk_s)
    per_row_s = float(job.map_per_row_s) + float(job.outputs_per_row) * update_s
    busy = question.rate_per_s * question.round.rate_ratio * per_row_s
    return max(int(np.ceil(busy / float(question.round.nodes.num_cores) * (1.0 - 1e-9))), 1)


def _highest_rate(
    question: PipelineQuestion, settings: PipelineSetting, indices: Indices
) -> tuple[float, int]:
    """The highest rate of any setting within the target, and that setting."""
    low = question.rate_per_s
    high = 2.0 * low
    for _ in range(_MOST_DOUBLINGS):
        feasible = indices[_within(question, _parted(settings, indices), high)]
        if not len(feasible):
            break
        indices, low, high = feasible, high, 2.0 * high
    while high - low > _FINE_RATE * low:
        middle = 0.5 * (low + high)
        feasible = indices[_within(question, _parted(settings, indices), middle)]
        if len(feasible):
            indices, low = feasible, middle
        else:
            high = middle
    latencies_s = [question.statistic_s(_parted(settings, part), low) for part in _chunks(indices)]
    return low, int(indices[int(np.argmin(np.concatenate(latencies_s)))])


def _most_rate_per_s(question: PipelineQuestion, nodes: int, low: float) -> float:
    """Upper bound of the rate within the target of all settings with a number of nodes."""
    high = 1.01 * low
    for _ in range(_MOST_DOUBLINGS):
        if _is_out_of_reach(question, nodes, high):
            break
        high *= 1.5
    else:
        return float("inf")
    while high - low > 0.005 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _is_out_of_reach(question, nodes, middle) else (middle, high)
    return high


def _proved_nodes(question: PipelineQuestion, nodes: int) -> int:
    """The number of nodes below which it is proven that no setting meets the target."""
    for fewer in range(_nodes_for_cores(question), nodes):
        if not _is_out_of_reach(question, fewer, question.rate_per_s):
            return fewer
    return nodes


def _is_out_of_reach(question: PipelineQuestion, nodes: int, rate_per_s: float) -> bool:
    """Whether the floor of every range of periods exceeds the limit, (L15)."""
    space = question.space
    shuffles, polls = _ranges(space.shuffle_periods_s), _ranges(space.poll_periods_s)
    sizes = (space.mappers, space.reducers, space.input_periods_s)
    mappers, reducers, inputs, of_shuffle, of_poll = grid(
        *sizes, np.arange(len(shuffles)), np.arange(len(polls))
    )
    low_sh, high_sh = shuffles[of_shuffle].T
    low_ch, high_ch = polls[of_poll].T
    for _ in range(_HALVINGS_OF_RANGES):
        size = (np.full_like(mappers, nodes), mappers, reducers, inputs)
        shortest = space.setting(*size, low_sh, low_ch)
        longest = space.setting(*size, high_sh, high_ch)
        floor_s = question.floor_s(shortest, longest, rate_per_s)
        live = np.flatnonzero(floor_s <= question.target.limit_s)
        if not len(live):
            return True
        if 4 * len(live) > _MOST_RANGES:
            return False
        mappers, reducers, inputs = (np.tile(axis[live], 4) for axis in (mappers, reducers, inputs))
        sh, ch = _halves(low_sh[live], high_sh[live]), _halves(low_ch[live], high_ch[live])
        low_sh, high_sh = np.concatenate([sh[0], sh[0], sh[1], sh[1]]).T
        low_ch, high_ch = np.concatenate([ch[0], ch[1], ch[0], ch[1]]).T
    return False


def _ranges(values_s: tuple[float, ...]) -> Array:
    """Ranges between consecutive values; for a single one, that value."""
    edges_s = values_s if len(values_s) > 1 else values_s * 2
    return np.column_stack([edges_s[:-1], edges_s[1:]])


def _halves(low: Array, high: Array) -> tuple[Array, Array]:
    middle = np.sqrt(low * high)
    return np.column_stack([low, middle]), np.column_stack([middle, high])


def _lowest(question: PipelineQuestion) -> tuple[PipelineSetting | None, float]:
    """The setting with the lowest latency at some numbers of nodes up to the maximum."""
    fewest = min(_nodes_for_cores(question), question.space.max_nodes)
    counts = np.unique(
        np.rint(np.geomspace(fewest, question.space.max_nodes, _NODES_WITHOUT_PLAN)).astype(int)
    )
    best, best_s = None, NO_LIMIT_S
    for nodes in counts.tolist():
        settings = question.space.settings(nodes)
        for part in _chunks(
            _not_ruled_out(question.with_limit(best_s), settings, question.rate_per_s)
        ):
            # A quantile needs many evaluations of the law, so only for settings below the lowest.
            part_settings = _parted(settings, part)
            is_below = question.with_limit(best_s).meets_target(part_settings, question.rate_per_s)
            if not np.any(is_below):
                continue
            part = part[is_below]
            latencies_s = question.statistic_s(_parted(settings, part), question.rate_per_s)
            lowest = int(np.argmin(latencies_s))
            if latencies_s[lowest] < best_s:
                best, best_s = chosen(settings, int(part[lowest])), float(latencies_s[lowest])
    return best, best_s if best is not None else float("inf")


def _rules(
    question: PipelineQuestion, nodes: int, most_rate_per_s: float
) -> Iterator[PipelineRule]:
    """The rules of thumb, the nodes on which they meet the target, and their highest rates."""
    periods_s = PIPELINE_RULE_PERIODS_S.value
    shuffle, poll = grid(periods_s, periods_s)
    threads = max(int(question.round.nodes.num_cores), 1)
    space, input_s = question.space, question.space.input_periods_s[0]

    def setting(num_nodes: Array, shuffle_s: Array, poll_s: Array) -> PipelineSetting:
        return space.setting(num_nodes, threads, threads, input_s, shuffle_s, poll_s)

    rate_per_s = question.rate_per_s
    at_plan = setting(np.full(len(shuffle), float(nodes)), shuffle, poll)
    statistics_s = question.statistic_s(at_plan, rate_per_s)
    low = np.zeros(len(shuffle))
    high = np.full(len(shuffle), min(most_rate_per_s, 1e3 * rate_per_s))
    while np.max(high - low) > 2.0 * _FINE_RATE * rate_per_s:
        middle = 0.5 * (low + high)
        met = question.meets_target(at_plan, middle)
        low, high = np.where(met, middle, low), np.where(met, high, middle)
    max_nodes = min(question.space.max_nodes, 4 * nodes)
    counts = np.arange(_nodes_for_cores(question), max_nodes + 1, dtype=np.float64)
    for rule_index, (shuffle_s, poll_s) in enumerate(zip(shuffle, poll, strict=True)):
        shuffles_s, polls_s = np.full_like(counts, shuffle_s), np.full_like(counts, poll_s)
        enough = counts[_within(question, setting(counts, shuffles_s, polls_s), rate_per_s)]
        yield PipelineRule(
            shuffle_period_s=float(shuffle_s),
            poll_period_s=float(poll_s),
            num_nodes=int(enough[0]) if len(enough) else None,
            statistic_s=float(statistics_s[rule_index]),
            highest_rate_per_s=float(low[rule_index]),
        )
