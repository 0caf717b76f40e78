"""The fewest nodes that keep a target at a rate, the frontier, and why not fewer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headway.domain import (
    Arrivals,
    Configuration,
    FrontierPoint,
    JobProfile,
    Metric,
    Plan,
    Rejection,
    Target,
)
from headway.errors import InputError
from headway.models.arrays import Array
from headway.models.job.calibration import reasons_outside
from headway.models.job.predict import LEAST_CATCH_UP_RATIO, Z90, predict
from headway.models.job.setting import duration_model, increasing_root, settled_batch_rows
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.reasons import (
    binding_constraints,
    changes_from_today,
    rejected_neighbours,
)
from headway.planner.space import SearchSpace
from headway.sparkconf import query_options, spark_conf
from headway.units import format_duration, format_rate

_FIRST_LOOKS = 3
_RATE_TOLERANCE_RATIO = 1e-4
_LOWEST_SHARE = 1e-4
_LEAST_RATE_PER_S = 1e-12
_WORTHWHILE_RATIO = 1.001
_CLOSE_RATIO = 0.98
_HEADROOM_RATIO = 1.25
_SELDOM_PROB = 0.1
_MOST_FRONTIER_ROWS = 12
_LEAST_LIMIT_RATIO = 1.5
_HIGHEST_RATE_PER_S = 1e12


def plan(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    *,
    confidence: float = 0.95,
) -> Plan:
    """The fewest nodes that keep the target, with the setting that does.

    Parameters
    ----------
    profile : JobProfile
        The job.
    arrivals : Arrivals
        The stream to plan for.
    target : Target
        The promise, on tuple latency or batch duration.
    space : SearchSpace
        What may be bought and set.
    confidence : float in [0.5, 1)
        Plan on durations that are exceeded with at most the remaining probability.

    Returns
    -------
    Plan
        Infeasible plans carry the nearest feasible setting.

    Raises
    ------
    InputError
        If the target is about windows, which the profile does not tell of.

    Notes
    -----
    theory.md (P4)-(P6). Every setting of every smaller number of nodes is held against the
    target, or ruled out by a bound that noise can only worsen.
    """
    if target.metric is Metric.WINDOW:
        raise InputError(
            f"target '{target}': window latency is not planned for yet; "
            "use a target on tuple latency, e.g. 'p99 <= 3s'"
        )
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected 0.5 or more, and below 1")
    profile = replace(profile, arrivals=arrivals)
    fewest = _fewest_nodes(profile, arrivals, target, space, confidence)
    node_counts = _frontier_node_counts(fewest or space.max_nodes, space.max_nodes)
    candidates = all_candidates(profile, space, target, confidence, node_counts)
    frontier = tuple(_frontier(profile, candidates, node_counts))
    if fewest is None:
        return _infeasible(profile, arrivals, target, space, confidence, frontier)
    at_fewest = candidates.take(candidates.nodes == fewest)
    setting = _choose(profile, at_fewest, arrivals.rate_per_s)
    configuration = setting.configuration(0, _rate_limit(profile, arrivals, target, setting))
    rejected = rejected_neighbours(
        profile, arrivals, target, space, confidence, configuration, fewest
    )
    latency_s = float(setting.latency_s(arrivals.rate_per_s)[0])
    return _plan(
        profile,
        arrivals,
        target,
        configuration,
        nodes=fewest,
        feasible=True,
        planned_latency_s=latency_s,
        frontier=frontier,
        binding=binding_constraints(target, latency_s, confidence, rejected),
        rejected=rejected,
        floor_s=None,
        warnings=_idle_slots(profile, configuration),
    )


def _fewest_nodes(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
) -> int | None:
    """The first node count of which a setting meets the target, from one upwards.

    More nodes are no safe bet for a target that fewer miss: beyond the profiled slots a plan
    allows for more uncertainty.
    """
    for nodes in range(1, space.max_nodes + 1):
        candidates = all_candidates(profile, space, target, confidence, (nodes,))
        possible = candidates.noise_free_rate_per_s() >= arrivals.rate_per_s
        if np.any(possible) and np.any(candidates.take(possible).meets(arrivals.rate_per_s)):
            return nodes
    return None


def _frontier_node_counts(around: int, max_nodes: int) -> tuple[int, ...]:
    """All counts up to a little beyond the plan; from far below, only some."""
    last = min(around + 2, max_nodes)
    if last <= _MOST_FRONTIER_ROWS:
        return tuple(range(1, last + 1))
    near = range(around - 3, last + 1)
    far = np.unique(np.geomspace(1, around - 4, _MOST_FRONTIER_ROWS - len(near)).astype(int))
    return tuple(sorted({*far.tolist(), *near}))


def best_of_each_node_count(candidates: Candidates) -> dict[int, tuple[int, float]]:
    """The place of the setting that sustains most, and the rate it sustains [records/s].

    Notes
    -----
    theory.md (P5). The settings with the highest bounds are solved to a part in ten thousand;
    another takes their place if it sustains a thousandth more than the best of them.
    """
    bound_per_s = candidates.noise_free_rate_per_s()
    groups = [np.flatnonzero(candidates.nodes == nodes) for nodes in np.unique(candidates.nodes)]
    first = np.concatenate(
        [group[np.argsort(-bound_per_s[group], kind="stable")[:_FIRST_LOOKS]] for group in groups]
    )
    rate_per_s = np.zeros(len(candidates))
    rate_per_s[first] = _sustainable_rates(candidates.take(first), bound_per_s[first])
    goal_per_s = np.zeros(len(candidates))
    for group in groups:
        goal_per_s[group] = rate_per_s[group].max() * _WORTHWHILE_RATIO
    others = np.setdiff1d(
        np.flatnonzero(bound_per_s > np.maximum(goal_per_s, _LEAST_RATE_PER_S)), first
    )
    if len(others):
        goals_per_s = np.maximum(goal_per_s[others], bound_per_s[others] * _LOWEST_SHARE)
        others = others[candidates.take(others).meets(goals_per_s)]
    if len(others):
        rate_per_s[others] = _sustainable_rates(candidates.take(others), bound_per_s[others])
    best = [int(group[np.argmax(rate_per_s[group])]) for group in groups]
    return {int(candidates.nodes[place]): (place, float(rate_per_s[place])) for place in best}


def _sustainable_rates(candidates: Candidates, bound_per_s: Array) -> Array:
    """Highest rate of each setting under the target; 0 where it is met at no rate."""
    highest = np.clip(bound_per_s, _LEAST_RATE_PER_S, _HIGHEST_RATE_PER_S)
    shares = increasing_root(
        lambda share: candidates.excess(np.maximum(share, _LOWEST_SHARE) * highest),
        np.where(bound_per_s > 0, 0.5, 0.0),
        _RATE_TOLERANCE_RATIO,
    )
    return np.where(shares > _LOWEST_SHARE, np.minimum(shares * highest, _HIGHEST_RATE_PER_S), 0.0)


def _frontier(
    profile: JobProfile, candidates: Candidates, node_counts: tuple[int, ...]
) -> Iterator[FrontierPoint]:
    """The best setting of up to so many nodes: those that do not help can be left idle."""
    best_at = best_of_each_node_count(candidates)
    for nodes in node_counts:
        place, rate_per_s = max(
            (best_at[count] for count in node_counts if count <= nodes), key=lambda best: best[1]
        )
        configuration = candidates.configuration(place) if rate_per_s > 0 else None
        yield FrontierPoint(
            nodes=nodes,
            sustainable_rate_per_s=rate_per_s,
            configuration=configuration,
            calibrated=configuration is not None
            and _is_calibrated(profile, configuration, rate_per_s),
        )


def _is_calibrated(profile: JobProfile, configuration: Configuration, rate_per_s: float) -> bool:
    slots, partitions = configuration.num_slots, configuration.shuffle_partitions
    rows = settled_batch_rows(
        duration_model(profile, slots, partitions), rate_per_s, configuration.trigger_s
    )
    return not any(True for _ in reasons_outside(profile, slots, partitions, float(rows)))


def _choose(profile: JobProfile, at_nodes: Candidates, rate_per_s: float) -> Candidates:
    """The one setting to run at the chosen node count: theory.md (P6).

    Of the settings that would carry a quarter more than asked: today's partitions first, which
    spares a new checkpoint, then batches that keep to their trigger, then the rarest batches.
    Where none has that much room, the one that sustains most.
    """
    possible = at_nodes.take(at_nodes.noise_free_rate_per_s() >= rate_per_s)
    met = possible.take(possible.meets(rate_per_s))
    roomy = met.take(met.meets(_HEADROOM_RATIO * rate_per_s))
    if not len(roomy):
        rates_per_s = _sustainable_rates(met, met.noise_free_rate_per_s())
        return met.take(np.array([int(np.argmax(rates_per_s))]))
    overruns = roomy.overrun_probability(rate_per_s) > _SELDOM_PROB
    order = sorted(
        range(len(roomy)),
        key=lambda place: (
            roomy.partitions[place] != profile.baseline.shuffle_partitions,
            overruns[place] and roomy.trigger_s[place] > 0,
            -roomy.trigger_s[place],
            roomy.partitions[place],
        ),
    )
    return roomy.take(np.array([order[0]]))


def _rate_limit(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    setting: Candidates,
) -> int | None:
    """The largest batch that by itself still meets the limit, to two digits: theory.md (P6).

    After an outage the backlog is worked off in batches of this size, none of which outlasts the
    promise. None where it would leave too little to catch up with.
    """
    configuration = setting.configuration(0)
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    settled = float(settled_batch_rows(model, arrivals.rate_per_s, configuration.trigger_s))
    margin = math.exp(Z90 * profile.noise.run_to_run_ratio)
    low, high = settled, settled * 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        fits = margin * float(model.mean_s(middle)) <= target.limit_s
        low, high = (middle, high) if fits else (low, middle)
    if low < max(_LEAST_LIMIT_RATIO * settled, 1.0):
        return None
    unit = 10.0 ** max(math.floor(math.log10(low)) - 1, 0)
    rounded = int(math.floor(low / unit) * unit)
    limit = rounded if rounded >= _LEAST_LIMIT_RATIO * settled else int(low)
    interval_s = max(configuration.trigger_s, float(model.mean_s(float(limit))))
    leaves_room = limit >= max(
        _LEAST_LIMIT_RATIO * settled, LEAST_CATCH_UP_RATIO * arrivals.rate_per_s * interval_s
    )
    return limit if leaves_room else None


def _floor_s(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
) -> tuple[float, Candidates]:
    """The lowest latency that any setting reaches at the asked rate, and that setting: (P6).

    Of those that come close to it, one with the fewest nodes.
    """
    counts = tuple(range(1, space.max_nodes + 1))
    candidates = all_candidates(profile, space, target, confidence, counts)
    place, lowest_s = candidates.lowest_latency(arrivals.rate_per_s)
    if math.isinf(lowest_s):
        return lowest_s, candidates.take(np.array([place]))
    close_s = lowest_s / _CLOSE_RATIO
    possible = candidates.noise_free_latency_s(arrivals.rate_per_s) <= close_s
    fewest = int(candidates.nodes[place])
    for nodes in np.unique(candidates.nodes[possible]).tolist():
        if nodes == fewest:
            break
        beside = candidates.take(possible & (candidates.nodes == nodes))
        at, latency_s = beside.lowest_latency(arrivals.rate_per_s)
        if latency_s <= close_s:
            return lowest_s, beside.take(np.array([at]))
    return lowest_s, candidates.take(np.array([place]))


def _idle_slots(profile: JobProfile, configuration: Configuration) -> tuple[str, ...]:
    """Stages that cannot use the slots: their tasks are fixed by the source."""
    return tuple(
        f"{stage.name} has {stage.num_source_tasks} tasks, as many as the source has partitions: "
        f"{configuration.num_slots - stage.num_source_tasks} of {configuration.num_slots} slots "
        "are idle in it; more source partitions would use them"
        for stage in profile.stages
        if stage.num_source_tasks is not None
        and stage.level == 0
        and stage.num_source_tasks < configuration.num_slots
    )


def _infeasible(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
    frontier: tuple[FrontierPoint, ...],
) -> Plan:
    floor_s, fastest = _floor_s(profile, arrivals, target, space, confidence)
    best = frontier[-1]
    if math.isfinite(floor_s):
        configuration, nodes = fastest.configuration(0), int(fastest.nodes[0])
        why = (
            f"no setting of up to {space.max_nodes} nodes comes below a {target.statistic} of "
            f"{format_duration(floor_s)} at {format_rate(arrivals.rate_per_s)}"
        )
    else:
        why = f"{space.max_nodes} nodes are over capacity at {format_rate(arrivals.rate_per_s)}"
        configuration = best.configuration or fastest.configuration(0)
        nodes = configuration.executors // space.executors_per_node
    under_target = (
        f"{target} holds up to {format_rate(best.sustainable_rate_per_s)} "
        f"with up to {best.nodes} nodes"
        if best.sustainable_rate_per_s > 0
        else f"no rate keeps {target} with up to {space.max_nodes} nodes"
    )
    return _plan(
        profile,
        arrivals,
        target,
        configuration,
        nodes=nodes,
        feasible=False,
        planned_latency_s=floor_s,
        frontier=frontier,
        binding=(why, under_target),
        rejected=(),
        floor_s=floor_s,
        warnings=_idle_slots(profile, configuration),
    )


def _plan(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    configuration: Configuration,
    *,
    nodes: int,
    feasible: bool,
    planned_latency_s: float,
    frontier: tuple[FrontierPoint, ...],
    binding: tuple[str, ...],
    rejected: tuple[Rejection, ...],
    floor_s: float | None,
    warnings: tuple[str, ...],
) -> Plan:
    prediction = predict(profile, configuration, arrivals)
    return Plan(
        target=target,
        arrivals=arrivals,
        feasible=feasible,
        nodes=nodes,
        configuration=configuration,
        prediction=prediction,
        planned_latency_s=planned_latency_s,
        frontier=frontier,
        binding=binding,
        rejected=rejected,
        changes=changes_from_today(profile, configuration),
        spark_conf=spark_conf(
            configuration, executor_memory=profile.applications[-1].executor_memory
        ),
        query_options=query_options(configuration),
        floor_s=floor_s,
        warnings=warnings + prediction.warnings,
    )
