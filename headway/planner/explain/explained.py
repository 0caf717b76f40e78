"""The setting that was found, with its explanation; each part is computed when it is read.

Parts that depend on each other share intermediate results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

from headway.domain import (
    Advice,
    Configuration,
    Finding,
    FindingCode,
    FrontierPoint,
    Objective,
    Optimality,
    Rejection,
    RuleOfThumb,
    Sensitivity,
    Verdict,
)
from headway.domain.later import later
from headway.domain.question import Checkpoint
from headway.planner.after_start import after_start
from headway.planner.answer import FoundSetting, Shortfall
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.checkpoint import new_checkpoint_advice, pinned_partitions
from headway.planner.choice import as_fast_as_possible
from headway.planner.enumeration import Fewest
from headway.planner.explain.advice import advice_of
from headway.planner.explain.infeasible import (
    counts_to_look_at,
    nearest_setting,
    physical_floor_s,
    why_infeasible,
)
from headway.planner.explain.reasons import (
    Neighbour,
    binding_constraints,
    rejected_neighbours,
    resized,
    retuned,
)
from headway.planner.frontier import frontier_around, frontier_of, own_point, with_own
from headway.planner.planned_batch import PlannedBatch
from headway.planner.purchase import Offer
from headway.planner.question import Question
from headway.planner.rate_limit import planned_rate_limit
from headway.planner.state_growth import state_findings
from headway.planner.tasks import short_of_tasks
from headway.planner.verdict import kept_probability, settling_advice


def settled_on(
    offer: Offer,
    nodes: int,
    setting: Candidates,
    optimality: Optimality,
    checkpoint: Checkpoint | None,
) -> FoundSetting:
    """The setting of a number of nodes that meets the targets, and why it was chosen.

    Parameters
    ----------
    offer : Offer
        The chosen offer.
    nodes : int
        Number of nodes.
    setting : Candidates
        The setting, on its own.
    optimality : Optimality
        What is proven for fewer nodes.
    checkpoint : Checkpoint or None
        What the plan starts from.
    """
    question = offer.question
    limit = planned_rate_limit(question, setting)
    configuration = setting.configuration(0, limit.rows)
    latency_s = float(setting.latency_s(question.rate_per_s)[0])
    planned = (question, configuration, nodes)

    @cache
    def plan_point() -> FrontierPoint:
        return own_point(setting, configuration, offer.price_per_hour)

    @cache
    def neighbours() -> tuple[Neighbour, ...]:
        return retuned(*planned)

    @cache
    def rejected() -> tuple[Rejection, ...]:
        return rejected_neighbours(question, nodes, neighbours())

    # Few commands need rules of thumb, so the code that compares them is loaded only then.
    def rules() -> tuple[RuleOfThumb, ...]:
        from headway.planner.explain.rules import rules_of_thumb

        return rules_of_thumb(offer, configuration, plan_point())

    return FoundSetting(
        offer=offer,
        nodes=nodes,
        configuration=configuration,
        planned_latency_s=latency_s,
        planned_ratio=float(setting.planned_ratio(question.rate_per_s)[0]),
        frontier=later(lambda: with_own(frontier_around(offer, nodes, nodes), plan_point())),
        chosen=later(plan_point),
        findings=(*state_findings(setting), *_idle_slots(question, configuration)),
        binding=later(lambda: binding_constraints(question, setting, rejected())),
        rejected=later(rejected),
        optimality=optimality,
        sensitivities=later(lambda: _sensitivities(*planned, neighbours())),
        advice=later(
            lambda: (
                *_of_new_checkpoint(checkpoint, question, nodes, latency_s),
                *as_fast_as_possible(*planned, latency_s),
                *advice_of(*planned, latency_s),
            )
        ),
        rules=later(rules),
        limit=limit,
        after_start=later(lambda: after_start(setting, configuration, latency_s)),
        kept_probability=later(lambda: kept_probability(setting)),
    )


def nearest_there_is(
    offer: Offer,
    fastest: Candidates,
    floor_s: float,
    fewest: Fewest,
    offers: Sequence[Offer],
    objective: Objective,
    checkpoint: Checkpoint | None,
) -> FoundSetting:
    """The nearest setting if none meets the targets, and what would make them feasible.

    Parameters
    ----------
    offer : Offer
        The nearest one.
    fastest : Candidates
        Its setting with nearly the lowest latency, on few nodes.
    floor_s : float
        The lowest latency of any of its settings [s].
    fewest : Fewest
        The search result for it.
    offers : sequence of Offer
        All offers that were tried.
    objective : Objective
        Decides between them.
    checkpoint : Checkpoint or None
        What the plan starts from.
    """
    from headway.planner.explain.nearest import Nearest, needs_of

    question = offer.question
    frontier = frontier_around(
        offer, question.space.max_nodes, question.space.max_nodes + 1, counts_to_look_at(question)
    )
    highest = tuple(
        frontier[-1] if tried_offer is offer else _highest(tried_offer) for tried_offer in offers
    )
    nearest = Nearest(
        offers=offers,
        objective=objective,
        highest=highest,
        answered=[(question, fewest)],
    )
    needs = tuple(needs_of(nearest))
    failing = [index for index, need in enumerate(needs) if not need.within]
    best, setting = frontier[-1], nearest_setting(question, floor_s, fastest)
    if math.isinf(floor_s) and best.configuration is not None:
        nodes = best.configuration.executors // question.space.executors_per_node
        partitions, trigger_s = best.configuration.shuffle_partitions, best.configuration.trigger_s
        setting = candidates_at(question, [(nodes, partitions, trigger_s)])
    configuration, nodes = setting.configuration(0), int(setting.nodes[0])
    latency_s = float(setting.latency_s(question.rate_per_s)[0])
    probability, planned = kept_probability(setting), (question, configuration, nodes)
    return FoundSetting(
        offer=offer,
        nodes=nodes,
        configuration=configuration,
        planned_latency_s=latency_s,
        planned_ratio=float(setting.planned_ratio(question.rate_per_s)[0]),
        frontier=frontier,
        chosen=own_point(setting, configuration, offer.price_per_hour),
        binding=why_infeasible(question, floor_s, setting, best),
        optimality=fewest.optimality,
        shortfall=Shortfall(
            floor_s=floor_s,
            physical_floor_s=physical_floor_s(question),
            nearest=tuple(nearest.targets(failing)),
            needs=needs,
        ),
        sensitivities=later(lambda: _sensitivities(*planned, retuned(*planned))),
        advice=later(
            lambda: (
                *_of_new_checkpoint(checkpoint, question, question.space.max_nodes, latency_s),
                *settling_advice(setting, Verdict.of(probability, question.confidence)),
                *advice_of(*planned, latency_s),
            )
        ),
        kept_probability=probability,
        findings=tuple(_idle_slots(question, configuration)),
    )


def _sensitivities(
    question: Question, configuration: Configuration, nodes: int, neighbours: Sequence[Neighbour]
) -> tuple[Sensitivity, ...]:
    """The plan with each setting at its next choices, and with each input a tenth higher."""
    from headway.planner.explain.sensitivity import sensitivities

    planned = (question, configuration, nodes)
    return sensitivities(*planned, (*resized(*planned), *neighbours))


def _highest(offer: Offer) -> FrontierPoint:
    """The max rate of all settings of an offer that meets the targets at no number of nodes."""
    question, max_nodes = offer.question, offer.question.space.max_nodes
    candidates = all_candidates(question, counts_to_look_at(question))
    (point,) = frontier_of(candidates, (max_nodes,), offer.price_per_hour, max_nodes + 1)
    return point


def _of_new_checkpoint(
    checkpoint: Checkpoint | None, question: Question, nodes: int, latency_s: float
) -> Iterator[Advice]:
    """Gain of a new checkpoint, if the existing one fixes the shuffle partitions."""
    if checkpoint is Checkpoint.EXISTING and pinned_partitions(question.profile) is not None:
        advice = new_checkpoint_advice(question, nodes, latency_s)
        if advice is not None:
            yield advice


def _idle_slots(question: Question, configuration: Configuration) -> Iterator[Finding]:
    """Stages that cannot use the slots: their tasks are fixed by the source."""
    slots, rows = configuration.num_slots, None
    if any(stage.follows_rows for stage in question.profile.stages):
        rows = PlannedBatch.of(question, configuration).rows
    for stage, num_tasks in short_of_tasks(question.profile, slots, rows):
        numbers = {"source_tasks": num_tasks, "slots": slots}
        yield Finding(code=FindingCode.IDLE_SLOTS, numbers=numbers, names={"stage": stage.called})
