"""The plan of the setting that was found, explained; each part is computed when it is read.

Parts that depend on each other share intermediate results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

from headway.domain import (
    Advice,
    Finding,
    FindingCode,
    FrontierPoint,
    InfeasiblePlan,
    NearestTarget,
    Plan,
    PromiseNeed,
    RuleOfThumb,
)
from headway.domain.later import later
from headway.planner.after_start import after_start
from headway.planner.answer import plan_fields
from headway.planner.bill import bill_per_hour
from headway.planner.candidates import Candidates, all_candidates, candidates_at
from headway.planner.checkpoint import new_checkpoint_advice
from headway.planner.enumeration import Fewest
from headway.planner.explain.advice import advice_of
from headway.planner.explain.infeasible import (
    examined_node_counts,
    nearest_setting,
    physical_floor_s,
    why_infeasible,
)
from headway.planner.explain.reasons import (
    binding_constraints,
    one_node_fewer,
    rejected_neighbours,
    resized,
    retuned,
    sensitivities,
)
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.frontier import (
    frontier_around,
    frontier_of,
    point_of_setting,
    with_point_of_plan,
)
from headway.planner.purchase import Offer
from headway.planner.question import Question
from headway.planner.rate_limit import planned_rate_limit
from headway.planner.retention import retention_findings
from headway.planner.setting_choice import Buy, as_fast_as_possible
from headway.planner.state_growth import join_findings, slow_growth_findings, state_findings
from headway.planner.switches import findings_of_switches
from headway.planner.tasks import short_of_tasks
from headway.planner.verdict import kept_probability, settling_advice


def feasible_plan(
    buy: Buy, fewest: Fewest, refused: tuple[str, ...], with_state: Candidates | None = None
) -> Plan:
    """The plan for a number of nodes that meets the targets, and why it was chosen.

    ``fewest`` is the result of the search for the fewest nodes, of which the plan may take more;
    ``refused`` are the node types that cannot run the job, with the reason of each. ``with_state``
    is what the plan would be with the existing checkpoint, if it takes a new one and need not.
    """
    offer, question, setting = buy.offer, buy.offer.question, buy.setting
    limit = planned_rate_limit(setting)
    explained = _explained(setting, limit[0] if isinstance(limit, tuple) else None)
    configuration, nodes, latency_s = explained.configuration, buy.nodes, explained.latency_s
    plan_point = cache(partial(point_of_setting, setting, configuration))
    fewer = cache(partial(one_node_fewer, explained))
    neighbours = cache(partial(retuned, explained))

    @cache
    def searched() -> Iterator[FrontierPoint]:
        return with_point_of_plan(
            frontier_around(question, nodes, fewest.nodes or nodes), plan_point()
        )

    @cache
    def up_to_own() -> tuple[FrontierPoint, ...]:
        points: list[FrontierPoint] = []
        while not points or points[-1].nodes < nodes:
            points.append(next(searched()))
        return tuple(points)

    @cache
    def frontier() -> tuple[FrontierPoint, ...]:
        return (*up_to_own(), *searched())

    # Few commands need rules of thumb, so the code that compares them is loaded only then.
    def rules() -> tuple[RuleOfThumb, ...]:
        from headway.planner.explain.rules import rules_of_thumb

        return rules_of_thumb(question, configuration, plan_point())

    fields = plan_fields(
        offer,
        setting,
        explained,
        refused=refused,
        findings=(
            *state_findings(setting),
            *join_findings(question.profile),
            *slow_growth_findings(setting),
            *retention_findings(setting, configuration),
            *_existing_checkpoint(explained, with_state),
            *_idle_slots(explained),
            *findings_of_switches(offer, explained),
        ),
        limit=limit,
    )
    return Plan(
        **fields,
        frontier=later(frontier),
        chosen=later(plan_point),
        most_on_nodes=later(lambda: up_to_own()[-1]),
        binding=later(lambda: binding_constraints(setting, fewer())),
        rejected=later(lambda: rejected_neighbours(fewer(), neighbours())),
        optimality=fewest.optimality,
        sensitivities=later(lambda: sensitivities(explained, (*resized(explained), *neighbours()))),
        **_advice(
            lambda: as_fast_as_possible(explained),
            lambda: advice_of(explained),
            # Last, for it costs the state.
            lambda: new_checkpoint_advice(explained, most_nodes=nodes, is_feasible=True),
        ),
        rules=later(rules),
        after_start=later(lambda: after_start(setting, configuration, latency_s)),
        kept_probability=later(lambda: kept_probability(setting)),
    )


def nearest_plan(
    buy: Buy,
    fewest: Fewest,
    offers: Sequence[Offer],
    refused: tuple[str, ...],
    beyond_limits: Candidates | None,
) -> InfeasiblePlan:
    """The nearest plan if no setting meets the targets, and what would make them feasible.

    ``buy`` is close to the lowest latency of the nearest offer, ``fewest`` the result of the search
    for that one, and ``offers`` are all that were tried. If only the budget or the limit of files
    is in the way, ``beyond_limits`` is the setting that exceeds it by least.
    """
    from headway.planner.explain.nearest import Nearest, need_of

    offer, floor_s, question = buy.offer, buy.lowest_s, buy.offer.question
    max_nodes = question.space.max_nodes

    @cache
    def frontier() -> tuple[FrontierPoint, ...]:
        node_counts = examined_node_counts(question)
        return tuple(frontier_around(question, max_nodes, max_nodes + 1, node_counts))

    @cache
    def nearest() -> Nearest:
        highest = tuple(
            frontier()[-1] if tried_offer is offer else _highest(tried_offer.question)
            for tried_offer in offers
        )
        return Nearest(offers=offers, highest=highest, answered=[(question, fewest)])

    @cache
    def needs() -> tuple[PromiseNeed, ...]:
        return tuple(need_of(nearest(), promise) for promise in question.promises)

    def nearest_targets() -> tuple[NearestTarget, ...]:
        failing = [index for index, need in enumerate(needs()) if not need.within]
        return tuple(nearest().targets(failing))

    setting = beyond_limits
    if setting is None:
        setting = nearest_setting(question, floor_s, buy.setting)
    if math.isinf(floor_s) and (best := frontier()[-1].configuration) is not None:
        nodes = best.executors // question.space.executors_per_node
        setting = candidates_at(question, [(nodes, best.shuffle_partitions, best.trigger_s)])
    explained, probability = _explained(setting), kept_probability(setting)
    fields = plan_fields(
        offer,
        setting,
        explained,
        refused=refused,
        findings=(*_idle_slots(explained), *findings_of_switches(offer, explained)),
    )
    return InfeasiblePlan(
        **fields,
        frontier=later(frontier),
        chosen=point_of_setting(setting, explained.configuration),
        binding=later(lambda: tuple(why_infeasible(question, floor_s, setting, frontier()[-1]))),
        optimality=fewest.optimality,
        floor_s=floor_s,
        physical_floor_s=physical_floor_s(question),
        nearest=later(nearest_targets),
        needs=later(needs),
        sensitivities=later(
            lambda: sensitivities(explained, (*resized(explained), *retuned(explained)))
        ),
        **_advice(
            lambda: new_checkpoint_advice(explained, most_nodes=max_nodes, is_feasible=False),
            lambda: settling_advice(setting, probability),
            lambda: advice_of(explained),
        ),
        kept_probability=probability,
    )


def _explained(setting: Candidates, max_offsets: int | None = None) -> ExplainedSetting:
    """One setting with its planned latency, and its rate limit, if it has one."""
    question = setting.question
    return ExplainedSetting(
        question=question,
        configuration=setting.configuration(0, max_offsets),
        nodes=int(setting.nodes[0]),
        latency_s=float(setting.latency_s(question.rate_per_s)[0]),
    )


def _advice(*sources: Callable[[], Iterable[Advice]]) -> dict[str, Any]:
    """The advice of some sources in turn as fields of a plan, and the first of it alone."""
    advised = chain.from_iterable(source() for source in sources)
    first_advice = cache(lambda: next(advised, None))

    @cache
    def advice() -> tuple[Advice, ...]:
        first = first_advice()
        return () if first is None else (first, *advised)

    return {"first_advice": later(first_advice), "advice": later(advice)}


def _highest(question: Question) -> FrontierPoint:
    """The max rate of all settings if the targets are met at no number of nodes."""
    max_nodes = question.space.max_nodes
    candidates = all_candidates(question, examined_node_counts(question))
    (point,) = frontier_of(candidates, (max_nodes,), max_nodes + 1)
    return point


def _existing_checkpoint(
    planned: ExplainedSetting, with_state: Candidates | None
) -> Iterator[Finding]:
    """What a plan that costs the state would be with it, if it could be had with it."""
    if with_state is None:
        return
    question, nodes = planned.question, int(with_state.nodes[0])
    numbers = {
        "partitions": int(with_state.partitions[0]),
        "latency_s": float(with_state.latency_s(question.rate_per_s)[0]),
    }
    names = {"statistic": planned.statistic}
    if nodes != planned.nodes:
        numbers["nodes"] = nodes
    (with_state_per_hour,), (planned_per_hour,) = (
        bill_per_hour(setting).tolist() for setting in (with_state, planned.under(question))
    )
    # Without a price of nodes, bills can be compared only for the same number of them.
    is_known = nodes == planned.nodes or question.space.cost_per_hour(nodes) is not None
    if is_known and not math.isclose(with_state_per_hour, planned_per_hour):
        priced = question.space.node_type or question.store_price
        numbers["added_cost_per_hour"] = with_state_per_hour - planned_per_hour
        names["currency"] = "" if priced is None else priced.currency
    yield Finding(code=FindingCode.CHECKPOINT_WOULD_DO, numbers=numbers, names=names)


def _idle_slots(explained: ExplainedSetting) -> Iterator[Finding]:
    """Stages that cannot use the slots: their tasks are fixed by the source."""
    profile, slots = explained.question.profile, explained.configuration.num_slots
    follows_rows = any(stage.follows_rows for stage in profile.stages)
    rows = explained.rows if follows_rows else None
    for stage, num_tasks in short_of_tasks(profile, slots, rows):
        numbers = {"source_tasks": num_tasks, "slots": slots}
        yield Finding(code=FindingCode.IDLE_SLOTS, numbers=numbers, names={"stage": stage.called})
