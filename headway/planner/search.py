"""The plan for a question: the offer and the nodes, the setting, and all that explains it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headway.assumptions.planning import CONFIDENCE
from headway.domain import (
    Advice,
    Arrivals,
    Configuration,
    Finding,
    FindingCode,
    FrontierPoint,
    JobProfile,
    NodeType,
    Objective,
    Promise,
    StreamAnswer,
    Target,
    Verdict,
)
from headway.errors import InputError
from headway.planner.advice import advice_of
from headway.planner.after_start import after_start, for_fresh_jvm
from headway.planner.answer import FoundSetting, Shortfall, as_plan
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.checkpoint import Checkpoint, held_by, new_checkpoint_advice
from headway.planner.choice import as_fast_as_possible, chosen_setting
from headway.planner.fewest import Fewest, fewest_nodes
from headway.planner.frontier import frontier_node_counts, frontier_of, own_point
from headway.planner.infeasible import (
    counts_to_look_at,
    lowest_latency_in_reach,
    nearest_setting,
    physical_floor_s,
    why_infeasible,
)
from headway.planner.nearest import Nearest, needs_of
from headway.planner.promised import require_predictable
from headway.planner.purchase import Offer, best_of, offers_of
from headway.planner.question import Question
from headway.planner.rate_limit import planned_rate_limit
from headway.planner.reasons import binding_constraints, neighbours, rejected_neighbours
from headway.planner.rules import rules_of_thumb
from headway.planner.sensitivity import sensitivities
from headway.planner.space import SearchSpace
from headway.planner.state_growth import state_findings
from headway.planner.tasks import short_of_tasks
from headway.planner.verdict import kept_probability, settling_advice


def plan(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    *,
    confidence: float = CONFIDENCE.value,
    also: Sequence[Promise] = (),
    objective: Objective = Objective.NODES,
    node_types: Sequence[NodeType] = (),
    cores_per_executor: int | None = None,
    budget_per_hour: float | None = None,
    checkpoint: Checkpoint | None = None,
    relaxation: bool = False,
    from_start: bool = False,
) -> StreamAnswer:
    """The fewest nodes, or the lowest cost or latency, that keep the promises, and the setting.

    Parameters
    ----------
    profile : JobProfile
        The job.
    arrivals : Arrivals
        The stream to plan for.
    target : Target
        The promise, on tuple latency, window latency or batch duration.
    space : SearchSpace
        What may be bought and set.
    confidence : float in [0.5, 1)
        Plan on durations that are exceeded with at most the remaining probability.
    also : sequence of Promise
        Promises that must hold beside the target.
    objective : Objective
        What to make small. Cost needs prices; latency takes what the space and budget allow.
    node_types : sequence of NodeType
        What is on offer, in place of the executors of the space.
    cores_per_executor : int or None, >= 1
        Of executors on these nodes; None lets the planner choose.
    budget_per_hour : float or None, > 0
        Most that all nodes may cost.
    checkpoint : Checkpoint or None
        Whether an existing checkpoint fixes what it does; None prefers today's setting.
    relaxation : bool
        State the bound of the convex relaxation too, which loads cvxpy.
    from_start : bool
        Plan for batches that stay as long as those of a fresh JVM.

    Returns
    -------
    Plan or InfeasiblePlan
        The latter is the nearest setting, and what would have to give way.

    Raises
    ------
    InputError
        If a target is about windows of which the profile does not tell, what is asked contradicts
        itself, or no node type has room for an executor.

    Notes
    -----
    theory.md (P4)-(P14). Every setting of every smaller number of nodes is held against the
    target, or ruled out by a bound that noise can only worsen.
    """
    question = question_of(
        replace(for_fresh_jvm(profile) if from_start else profile, arrivals=arrivals),
        target,
        space,
        confidence,
        also,
        checkpoint,
    )
    _require_prices(objective, node_types, budget_per_hour)
    offers, refused = offers_of(
        question,
        node_types,
        cores_per_executor=cores_per_executor,
        budget_per_hour=budget_per_hour,
    )
    if not offers:
        raise InputError(f"no node type can run the job: {'; '.join(refused)}")
    found = _best(offers, objective)
    answer = (
        _feasible(found.offer, found.nodes, found.fewest, found.fastest)
        if isinstance(found, _Feasible)
        else _infeasible(found, offers, objective)
    )
    if checkpoint is Checkpoint.EXISTING:
        answer = _with_new_checkpoint(answer, question)
    if relaxation:
        answer = _with_relaxation(answer)
    return as_plan(answer, objective, checkpoint, tuple(refused))


def question_of(
    profile: JobProfile,
    target: Target,
    space: SearchSpace,
    confidence: float,
    also: Sequence[Promise] = (),
    checkpoint: Checkpoint | None = None,
) -> Question:
    """The question that a plan answers, before there is an offer; parameters are those of it.

    Raises
    ------
    InputError
        If the profile cannot tell of a target at its rate, or the checkpoint contradicts the space.
    """
    question = Question(
        profile=profile, target=target, also=tuple(also), space=space, confidence=confidence
    ).at_confidence(confidence)
    for promise in (question.target, *question.also):
        require_predictable(question.profile, promise)
    return held_by(question, checkpoint)


@dataclass(frozen=True, slots=True)
class _Found:
    """An offer with what was found of it."""

    offer: Offer
    fewest: Fewest


@dataclass(frozen=True, slots=True)
class _Feasible(_Found):
    """An offer with the nodes to take of it, and the fastest setting where that is asked for."""

    nodes: int
    fastest: Candidates | None = None

    @property
    def cost(self) -> float | None:
        return self.offer.cost_per_hour(self.nodes)

    @property
    def planned_s(self) -> float:
        setting = self.fastest or chosen_at(self.offer.question, self.nodes)
        return float(setting.latency_s(self.offer.question.rate_per_s)[0])


def _best(offers: Sequence[Offer], objective: Objective) -> _Found:
    """The offer that serves the objective best; where none will do, the one with most room."""
    every = [_found(offer, objective) for offer in offers]
    feasible = [found for found in every if isinstance(found, _Feasible)]
    if feasible:
        return best_of(feasible, objective)
    return every[0] if len(every) == 1 else min(every, key=_how_far)


def _found(offer: Offer, objective: Objective) -> _Found:
    fewest = fewest_nodes(offer.question)
    if fewest.nodes is None:
        return _Found(offer, fewest)
    if objective is not Objective.LATENCY:
        return _Feasible(offer, fewest, fewest.nodes)
    latency_s, fastest = lowest_latency_in_reach(offer.question)
    if latency_s > offer.question.target.limit_s or not fastest.meets(offer.question.rate_per_s)[0]:
        at_fewest = chosen_at(offer.question, fewest.nodes)
        return _Feasible(offer, fewest, fewest.nodes, at_fewest)
    return _Feasible(offer, fewest, int(fastest.nodes[0]), fastest)


def _how_far(found: _Found) -> tuple[float, float]:
    """How far an offer is from the target; of those at capacity, the one with most room first."""
    question = found.offer.question
    floor_s, _ = lowest_latency_in_reach(question)
    return floor_s, -question.space.num_slots(question.space.max_nodes)


def chosen_at(question: Question, nodes: int) -> Candidates:
    """The setting to run at a number of nodes that keeps the promises."""
    return chosen_setting(all_candidates(question, (nodes,)))


def _feasible(offer: Offer, nodes: int, fewest: Fewest, fastest: Candidates | None) -> FoundSetting:
    question = offer.question
    setting = chosen_at(question, nodes) if fastest is None else fastest
    limit = planned_rate_limit(question, setting)
    configuration = setting.configuration(0, limit.rows)
    latency_s = float(setting.latency_s(question.rate_per_s)[0])
    beside = neighbours(question, configuration, nodes)
    rejected = rejected_neighbours(question, nodes, beside)
    own = own_point(setting, configuration, offer.price_per_hour)
    return FoundSetting(
        offer=offer,
        nodes=nodes,
        configuration=configuration,
        planned_latency_s=latency_s,
        planned_ratio=float(setting.planned_ratio(question.rate_per_s)[0]),
        frontier=tuple(_no_less(point, own) for point in _frontier(offer, nodes, nodes)),
        chosen=own,
        findings=(*state_findings(setting), *_idle_slots(question.profile, configuration)),
        binding=binding_constraints(question, setting, rejected),
        rejected=rejected,
        optimality=fewest.optimality,
        sensitivities=sensitivities(question, configuration, nodes, beside),
        advice=(
            *as_fast_as_possible(question, configuration, nodes, latency_s),
            *advice_of(question, configuration, nodes, latency_s),
        ),
        rules=rules_of_thumb(offer, configuration, own),
        limit=limit,
        after_start=after_start(setting, configuration, latency_s),
        kept_probability=kept_probability(setting, is_kept=True),
    )


def _infeasible(found: _Found, offers: Sequence[Offer], objective: Objective) -> FoundSetting:
    offer = found.offer
    question = offer.question
    frontier = _frontier(
        offer, question.space.max_nodes, question.space.max_nodes + 1, counts_to_look_at(question)
    )
    highest = tuple(frontier[-1] if one is offer else _highest(one) for one in offers)
    nearest = Nearest(
        offers=offers,
        objective=objective,
        highest=highest,
        answered=[(question, found.fewest)],
    )
    floor_s, fastest = lowest_latency_in_reach(question)
    needs = tuple(needs_of(nearest))
    failing = [place for place, need in enumerate(needs) if not need.within]
    best, setting = frontier[-1], nearest_setting(question, floor_s, fastest)
    if math.isinf(floor_s) and best.configuration is not None:
        nodes = best.configuration.executors // question.space.executors_per_node
        partitions, trigger_s = best.configuration.shuffle_partitions, best.configuration.trigger_s
        setting = candidates_at(question, [(nodes, partitions, trigger_s)])
    configuration, nodes = setting.configuration(0), int(setting.nodes[0])
    latency_s = float(setting.latency_s(question.rate_per_s)[0])
    probability = kept_probability(setting)
    return FoundSetting(
        offer=offer,
        nodes=nodes,
        configuration=configuration,
        planned_latency_s=latency_s,
        planned_ratio=float(setting.planned_ratio(question.rate_per_s)[0]),
        frontier=frontier,
        chosen=own_point(setting, configuration, offer.price_per_hour),
        binding=why_infeasible(question, floor_s, setting, best),
        optimality=found.fewest.optimality,
        shortfall=Shortfall(
            floor_s=floor_s,
            physical_floor_s=physical_floor_s(question),
            nearest=tuple(nearest.targets(failing)),
            needs=needs,
        ),
        sensitivities=sensitivities(
            question, configuration, nodes, neighbours(question, configuration, nodes)
        ),
        advice=(
            *settling_advice(setting, Verdict.of(probability, question.confidence)),
            *advice_of(question, configuration, nodes, latency_s),
        ),
        kept_probability=probability,
        findings=tuple(_idle_slots(question.profile, configuration)),
    )


def _frontier(
    offer: Offer, around: int, fewest_nodes: int, looked_at: Sequence[int] = ()
) -> tuple[FrontierPoint, ...]:
    """The frontier around a number of nodes; more may be looked at than are shown."""
    space = offer.question.space
    counts = frontier_node_counts(around, space.min_nodes, space.max_nodes)
    candidates = all_candidates(offer.question, sorted({*counts, *looked_at}))
    return tuple(frontier_of(candidates, counts, offer.price_per_hour, fewest_nodes))


def _highest(offer: Offer) -> FrontierPoint:
    """The max rate of all settings of an offer that keeps the promises at no number of nodes."""
    question, most = offer.question, offer.question.space.max_nodes
    candidates = all_candidates(question, counts_to_look_at(question))
    (point,) = frontier_of(candidates, (most,), offer.price_per_hour, most + 1)
    return point


def _no_less(point: FrontierPoint, own: FrontierPoint) -> FrontierPoint:
    """A row of as many nodes as the plan has, or more: its own setting is one of theirs."""
    if point.nodes < own.nodes or point.sustainable_rate_per_s >= own.sustainable_rate_per_s:
        return point
    assert own.configuration is not None
    unlimited = replace(own.configuration, max_offsets_per_trigger=None)
    return replace(
        own, nodes=point.nodes, configuration=unlimited, cost_per_hour=point.cost_per_hour
    )


def _with_new_checkpoint(answer: FoundSetting, asked: Question) -> FoundSetting:
    question = answer.offer.question
    if question.space.shuffle_partitions is None or asked.space.shuffle_partitions is None:
        return answer
    nodes = answer.nodes if answer.shortfall is None else question.space.max_nodes
    found: Advice | None = new_checkpoint_advice(question, nodes, answer.planned_latency_s)
    return answer if found is None else replace(answer, advice=(found, *answer.advice))


def _with_relaxation(answer: FoundSetting) -> FoundSetting:
    from headway.planner.relaxation import relaxed_nodes

    relaxed = relaxed_nodes(answer.offer.question)
    return replace(answer, optimality=replace(answer.optimality, relaxed_nodes=relaxed))


def _require_prices(
    objective: Objective, node_types: Sequence[NodeType], budget_per_hour: float | None
) -> None:
    needs = (
        "--objective cost"
        if objective is Objective.COST
        else "--budget"
        if budget_per_hour is not None
        else None
    )
    unpriced = [one.name for one in node_types if one.price_per_hour is None]
    if needs is not None and (unpriced or not node_types):
        which = f"of {', '.join(unpriced)}" if unpriced else "of a node type (--node-type)"
        raise InputError(f"{needs} needs the price {which}; give it, e.g. price=0.192")


def _idle_slots(profile: JobProfile, configuration: Configuration) -> Iterator[Finding]:
    """Stages that cannot use the slots: their tasks are fixed by the source."""
    slots = configuration.num_slots
    for stage in short_of_tasks(profile, slots):
        numbers = {"source_tasks": stage.num_source_tasks or 0, "slots": slots}
        yield Finding(code=FindingCode.IDLE_SLOTS, numbers=numbers, names={"stage": stage.name})
