"""The fewest nodes that keep a target at a rate, the frontier, and why not fewer."""

from __future__ import annotations

import math

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
from headway.models.calibration import reasons_outside
from headway.models.predict import Z90, predict
from headway.models.setting import duration_model, settled_batch_rows
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.reasons import (
    binding_constraints,
    changes_from_today,
    rejected_neighbours,
)
from headway.planner.space import SearchSpace
from headway.sparkconf import query_options, spark_conf
from headway.units import format_duration, format_rate

_FINALISTS_PER_NODE_COUNT = 8
_RATE_STEPS = 14
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
    frontier = _frontier(profile, finalists, rates_per_s, node_counts)
    if fewest is None:
        return _infeasible(profile, arrivals, target, space, confidence, frontier)
    setting = _choose(profile, candidates, finalists, rates_per_s, fewest, arrivals.rate_per_s)
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


def _frontier(
    profile: JobProfile, finalists: Candidates, rates_per_s: Array, node_counts: tuple[int, ...]
) -> tuple[FrontierPoint, ...]:
    """The best setting of up to so many nodes: those that do not help can be left idle."""
    points = []
    for nodes in node_counts:
        within = np.where(finalists.nodes <= nodes, rates_per_s, -1.0)
        best = int(np.argmax(within))
        rate_per_s = max(float(rates_per_s[best]), 0.0)
        configuration = finalists.configuration(best) if rate_per_s > 0 else None
        points.append(
            FrontierPoint(
                nodes=nodes,
                sustainable_rate_per_s=rate_per_s,
                configuration=configuration,
                calibrated=configuration is not None
                and _is_calibrated(profile, configuration, rate_per_s),
            )
        )
    return tuple(points)


def _is_calibrated(profile: JobProfile, configuration: Configuration, rate_per_s: float) -> bool:
    slots, partitions = configuration.num_slots, configuration.shuffle_partitions
    rows = settled_batch_rows(
        duration_model(profile, slots, partitions), rate_per_s, configuration.trigger_s
    )
    return not any(True for _ in reasons_outside(profile, slots, partitions, float(rows)))


def _choose(
    profile: JobProfile,
    candidates: Candidates,
    finalists: Candidates,
    rates_per_s: Array,
    nodes: int,
    rate_per_s: float,
) -> Candidates:
    """The one setting to run at the chosen node count.

    Of the settings that would carry a quarter more than asked: today's partitions first, which
    spares a new checkpoint, then batches that keep to their trigger, then the rarest batches.
    Where none has that much room, the one that sustains most.
    """
    at_nodes = candidates.take(candidates.nodes == nodes)
    roomy = np.flatnonzero(at_nodes.meets(_HEADROOM_RATIO * rate_per_s))
    if not len(roomy):
        most = np.where(finalists.nodes == nodes, rates_per_s, -1.0)
        return finalists.take(np.array([int(np.argmax(most))]))
    overruns = at_nodes.overrun_probability(rate_per_s) > _SELDOM_PROB
    order = sorted(
        roomy.tolist(),
        key=lambda place: (
            at_nodes.partitions[place] != profile.baseline.shuffle_partitions,
            overruns[place] and at_nodes.trigger_s[place] > 0,
            -at_nodes.trigger_s[place],
            at_nodes.partitions[place],
        ),
    )
    return at_nodes.take(np.array([order[0]]))


def _rate_limit(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    setting: Candidates,
) -> int | None:
    """The largest batch that by itself still meets the limit, to two digits.

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
    if low < _LEAST_LIMIT_RATIO * settled:
        return None
    unit = 10.0 ** (math.floor(math.log10(low)) - 1)
    return int(math.floor(low / unit) * unit)


def _floor_s(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    confidence: float,
) -> tuple[float, Candidates, int]:
    """The lowest latency that any setting reaches at the asked rate, and that setting."""
    counts = tuple(
        sorted({1, (space.max_nodes + 3) // 4, (space.max_nodes + 1) // 2, space.max_nodes})
    )
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
    close = np.flatnonzero(latency_s <= lowest_s / _CLOSE_RATIO)
    return lowest_s, candidates, int(close[np.argmin(candidates.nodes[close])])


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
        configuration = best.configuration or candidates.configuration(place)
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
