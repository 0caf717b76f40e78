"""The fewest nodes that keep a target at a rate, the frontier, and why not fewer."""

from __future__ import annotations

import math

import numpy as np

from headway.domain import (
    Applies,
    Arrivals,
    Change,
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
from headway.models.calibration import reasons_outside
from headway.models.predict import Z90, predict
from headway.models.setting import duration_model, settled_batch_rows
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.space import SearchSpace
from headway.sparkconf import query_options, spark_conf
from headway.units import format_duration, format_rate, spark_trigger_text

_FINALISTS_PER_NODE_COUNT = 8
_RATE_STEPS = 14
_WORTH_A_CHANGE_RATIO = 0.98
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
    theory.md (P4)-(P6). Every setting of the chosen number of nodes and of one node less is
    held against the target; that more nodes never lower the sustainable rate narrows the rest.
    """
    if target.metric is Metric.WINDOW:
        raise InputError(
            f"target '{target}': window latency is not planned for yet; "
            "use a target on tuple latency, e.g. 'p99 <= 3s'"
        )
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected 0.5 or more, and below 1")
    fewest = _fewest_nodes(profile, arrivals, target, space, confidence)
    node_counts = _frontier_node_counts(fewest or space.max_nodes, space.max_nodes)
    candidates = all_candidates(profile, space, target, confidence, node_counts)
    finalists, rates_per_s = _finalists(candidates, arrivals.rate_per_s)
    frontier = tuple(
        _frontier_point(profile, finalists, rates_per_s, nodes) for nodes in node_counts
    )
    if fewest is None:
        return _infeasible(profile, arrivals, target, space, confidence, frontier)
    place = _choose(profile, finalists, rates_per_s, fewest, arrivals.rate_per_s)
    limit = _rate_limit(profile, arrivals, target, finalists, place)
    configuration = finalists.configuration(place, limit)
    rejected = _neighbours(profile, arrivals, target, space, confidence, configuration, fewest)
    latency_s = float(finalists.take(np.array([place])).latency_s(arrivals.rate_per_s)[0])
    return _plan(
        profile,
        arrivals,
        target,
        configuration,
        nodes=fewest,
        feasible=True,
        planned_latency_s=latency_s,
        frontier=frontier,
        binding=_binding(target, latency_s, confidence, rejected),
        rejected=rejected,
        floor_s=_floor_s(profile, arrivals, target, space, confidence)[0],
        warnings=(),
    )


def _fewest_nodes(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
) -> int | None:
    """Bisection on the node count, each probe exhaustive over its settings."""

    def feasible(nodes: int) -> bool:
        candidates = all_candidates(profile, space, target, confidence, (nodes,))
        return bool(candidates.meets(arrivals.rate_per_s).any())

    low, high = 0, 1
    while not feasible(high):
        if high == space.max_nodes:
            return None
        low, high = high, min(2 * high, space.max_nodes)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high


def _frontier_node_counts(around: int, max_nodes: int) -> tuple[int, ...]:
    """All counts up to a little beyond the plan; from far below, only some."""
    last = min(around + 2, max_nodes)
    if last <= _MOST_FRONTIER_ROWS:
        return tuple(range(1, last + 1))
    near = range(around - 3, last + 1)
    far = np.unique(np.geomspace(1, around - 4, _MOST_FRONTIER_ROWS - len(near)).astype(int))
    return tuple(sorted({*far.tolist(), *near}))


def _finalists(candidates: Candidates, rate_per_s: float) -> tuple[Candidates, Array]:
    """The settings of each node count that could sustain most, and what they sustain.

    Noise lowers what a setting sustains, so those that would sustain most without noise are
    looked at; settings that meet the target at the asked rate are never dropped below others.
    """
    noise_free = candidates.noise_free_rate_per_s()
    keep = np.zeros(len(candidates), dtype=bool)
    for nodes in np.unique(candidates.nodes):
        places = np.flatnonzero(candidates.nodes == nodes)
        best = places[np.argsort(-noise_free[places], kind="stable")]
        keep[best[:_FINALISTS_PER_NODE_COUNT]] = True
    meets = candidates.meets(rate_per_s)
    for nodes in np.unique(candidates.nodes):
        places = np.flatnonzero((candidates.nodes == nodes) & meets)
        best = places[np.argsort(-noise_free[places], kind="stable")]
        keep[best[:_FINALISTS_PER_NODE_COUNT]] = True
    finalists = candidates.take(keep)
    floor = np.where(meets[keep], rate_per_s, 0.0)
    return finalists, _sustainable_rates(finalists, floor)


def _sustainable_rates(candidates: Candidates, known_per_s: Array) -> Array:
    """Highest rate of each setting under the target, by bisection to a part in ten thousand."""
    ceiling = np.minimum(candidates.noise_free_rate_per_s() * 1.01, _HIGHEST_RATE_PER_S)
    low, high = np.maximum(known_per_s, ceiling * 1e-3), np.maximum(ceiling, known_per_s)
    low = np.where(candidates.meets(np.maximum(low, 1e-9)), low, 0.0)
    for _ in range(_RATE_STEPS):
        middle = np.maximum((low + high) / 2, 1e-9)
        meets = candidates.meets(middle)
        low, high = np.where(meets, middle, low), np.where(meets, high, middle)
    return np.where(low > 0, low, 0.0)


def _frontier_point(
    profile: JobProfile, finalists: Candidates, rates_per_s: Array, nodes: int
) -> FrontierPoint:
    """The best of fewer or as many nodes: more nodes can always be left idle."""
    places = np.flatnonzero(finalists.nodes == nodes)
    best = int(places[np.argmax(rates_per_s[places])])
    rate_per_s = float(rates_per_s[best])
    if rate_per_s <= 0:
        return FrontierPoint(
            nodes=nodes, sustainable_rate_per_s=0.0, configuration=None, calibrated=False
        )
    configuration = finalists.configuration(best)
    return FrontierPoint(
        nodes=nodes,
        sustainable_rate_per_s=rate_per_s,
        configuration=configuration,
        calibrated=_is_calibrated(profile, configuration, rate_per_s),
    )


def _is_calibrated(profile: JobProfile, configuration: Configuration, rate_per_s: float) -> bool:
    slots, partitions = configuration.num_slots, configuration.shuffle_partitions
    rows = settled_batch_rows(
        duration_model(profile, slots, partitions), rate_per_s, configuration.trigger_s
    )
    return not any(True for _ in reasons_outside(profile, slots, partitions, float(rows)))


def _choose(
    profile: JobProfile,
    finalists: Candidates,
    rates_per_s: Array,
    nodes: int,
    rate_per_s: float,
) -> int:
    """Most headroom; where settings hardly differ, today's partitions and the rarest batches."""
    at_nodes = np.flatnonzero((finalists.nodes == nodes) & (rates_per_s >= rate_per_s))
    best_per_s = rates_per_s[at_nodes].max()
    close = at_nodes[rates_per_s[at_nodes] >= _WORTH_A_CHANGE_RATIO * best_per_s]
    today = profile.baseline.shuffle_partitions
    order = sorted(
        close.tolist(),
        key=lambda place: (
            finalists.partitions[place] != today,
            -finalists.trigger_s[place],
            -rates_per_s[place],
        ),
    )
    return int(order[0])


def _rate_limit(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    candidates: Candidates,
    place: int,
) -> int | None:
    """The largest batch that by itself still meets the limit, to two digits.

    After an outage the backlog is worked off in batches of this size, none of which outlasts the
    promise. None where it would leave too little to catch up with.
    """
    configuration = candidates.configuration(place)
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    settled = float(settled_batch_rows(model, arrivals.rate_per_s, configuration.trigger_s))
    margin = math.exp(Z90 * profile.noise.run_to_run_ratio)
    low, high = settled, settled * 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        fits = margin * float(model.mean_s(middle)) <= target.limit_s
        low, high = (middle, high) if fits else (low, middle)
    if low < _LEAST_LIMIT_RATIO * settled:
        return None
    unit = 10.0 ** (math.floor(math.log10(low)) - 1)
    return int(math.floor(low / unit) * unit)


def _neighbours(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
    chosen: Configuration,
    nodes: int,
) -> tuple[Rejection, ...]:
    """The settings beside the plan, and the number that rules each out."""
    found: list[Rejection] = []
    if nodes > 1:
        fewer = all_candidates(profile, space, target, confidence, (nodes - 1,))
        found.append(_best_of(fewer, arrivals, target, "one node fewer"))
    triggers_s = [*space.trigger_choices_s(profile, target.limit_s)]
    longer = [choice for choice in triggers_s if choice > chosen.trigger_s]
    partitions = [*space.partition_choices(profile, nodes)]
    more = [choice for choice in partitions if choice > chosen.shuffle_partitions]
    beside = [
        (f"trigger of {spark_trigger_text(choice)}", chosen.shuffle_partitions, choice)
        for choice in longer[:1]
    ] + [
        (f"{choice} shuffle partitions", choice, chosen.trigger_s)
        for choice in more[-1:]
    ]
    for change, num_partitions, trigger_s in beside:
        alone = Candidates(
            profile,
            space,
            target,
            confidence,
            np.array([nodes]),
            np.array([num_partitions]),
            np.array([trigger_s]),
        )
        if not alone.meets(arrivals.rate_per_s)[0]:
            found.append(_best_of(alone, arrivals, target, change))
    return tuple(found)


def _best_of(
    candidates: Candidates, arrivals: Arrivals, target: Target, change: str
) -> Rejection:
    """The best that a changed plan could do, as a rejection."""
    latency_s = candidates.latency_s(arrivals.rate_per_s)
    place = int(np.argmin(latency_s))
    best_s = float(latency_s[place])
    if math.isinf(best_s):
        reason = f"over capacity at {format_rate(arrivals.rate_per_s)}"
    else:
        reason = f"{target.statistic} up to {format_duration(best_s)}"
    return Rejection(
        change=change,
        configuration=candidates.configuration(place),
        reason=reason,
        latency_s=None if math.isinf(best_s) else best_s,
    )


def _binding(
    target: Target, latency_s: float, confidence: float, rejected: tuple[Rejection, ...]
) -> tuple[str, ...]:
    found = [
        f"{target}: {target.statistic} is up to {format_duration(latency_s)} "
        f"with {confidence:.0%} confidence"
    ]
    fewer = next((one for one in rejected if one.change == "one node fewer"), None)
    if fewer is None:
        found.append("one node is the least there is")
    else:
        found.append(f"one node fewer: {fewer.reason}")
    return tuple(found)


def _floor_s(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
) -> tuple[float, Candidates, int]:
    """The lowest latency that any setting reaches at the asked rate, and that setting."""
    counts = tuple(sorted({1, (space.max_nodes + 3) // 4, (space.max_nodes + 1) // 2, space.max_nodes}))
    fastest = SearchSpace(
        max_nodes=space.max_nodes,
        executors_per_node=space.executors_per_node,
        cores_per_executor=space.cores_per_executor,
        shuffle_partitions=space.shuffle_partitions,
        # Latency never falls with a longer interval: the floor is at the shortest allowed.
        trigger_s=space.trigger_s or 0.0,
    )
    candidates = all_candidates(profile, fastest, target, confidence, counts)
    latency_s = candidates.latency_s(arrivals.rate_per_s)
    lowest_s = float(latency_s.min())
    close = np.flatnonzero(latency_s <= lowest_s / _WORTH_A_CHANGE_RATIO)
    return lowest_s, candidates, int(close[np.argmin(candidates.nodes[close])])


def _infeasible(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
    frontier: tuple[FrontierPoint, ...],
) -> Plan:
    floor_s, candidates, place = _floor_s(profile, arrivals, target, space, confidence)
    best = frontier[-1]
    if math.isfinite(floor_s):
        configuration, nodes = candidates.configuration(place), int(candidates.nodes[place])
        why = (
            f"no setting of up to {space.max_nodes} nodes comes below a {target.statistic} of "
            f"{format_duration(floor_s)} at {format_rate(arrivals.rate_per_s)}"
        )
    else:
        why = f"{space.max_nodes} nodes are over capacity at {format_rate(arrivals.rate_per_s)}"
        nodes = space.max_nodes
        configuration = best.configuration or candidates.configuration(place)
    under_target = (
        f"under {target} the most is {format_rate(best.sustainable_rate_per_s)} "
        f"with {best.nodes} nodes"
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
        warnings=(f"not feasible: {why}",),
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
    floor_s: float,
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
        changes=_changes(profile, configuration),
        spark_conf=spark_conf(
            configuration, executor_memory=profile.applications[-1].executor_memory
        ),
        query_options=query_options(configuration),
        floor_s=floor_s,
        warnings=warnings + prediction.warnings,
    )


def _changes(profile: JobProfile, planned: Configuration) -> tuple[Change, ...]:
    today = profile.baseline
    pinned = bool(profile.shape.stateful_operators)
    rows = (
        ("executors", today.executors, planned.executors, Applies.NEW_APPLICATION),
        (
            "cores per executor",
            today.cores_per_executor,
            planned.cores_per_executor,
            Applies.NEW_APPLICATION,
        ),
        (
            "shuffle partitions",
            today.shuffle_partitions,
            planned.shuffle_partitions,
            # The state of a stateful query stays partitioned as its checkpoint was begun.
            Applies.NEW_CHECKPOINT if pinned else Applies.RESTART,
        ),
        (
            "trigger",
            spark_trigger_text(today.trigger_s),
            spark_trigger_text(planned.trigger_s),
            Applies.RESTART,
        ),
        (
            "rate limit",
            today.max_offsets_per_trigger or "none",
            planned.max_offsets_per_trigger or "none",
            Applies.RESTART,
        ),
    )
    return tuple(
        Change(setting=setting, before=str(before), after=str(after), applies=applies)
        for setting, before, after, applies in rows
        if before != after
    )
