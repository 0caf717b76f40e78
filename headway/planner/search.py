"""The plan for a question about a streaming query: the offer, the nodes, and the setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from headway.domain import (
    JobProfile,
    NodeType,
    Objective,
    PlannedRate,
    Promise,
    StreamAnswer,
    Target,
)
from headway.domain.later import later, with_changes
from headway.domain.question import Checkpoint
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.planner.after_start import for_fresh_jvm
from headway.planner.answer import in_short
from headway.planner.bill import within_limits
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.checkpoint import held_by_checkpoint
from headway.planner.enumeration import Fewest, enumerated, enumerated_if_feasible, require_prices
from headway.planner.explain.explained import feasible_plan, nearest_plan
from headway.planner.explain.infeasible import lowest_latency_in_reach, nearest_beyond_limits
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.growing_batches import until_a_date, while_growing, with_growth_ahead
from headway.planner.promised_latency import require_predictable
from headway.planner.purchase import Offer, offers_of
from headway.planner.question import Question, SearchSpace, burst_of
from headway.planner.retention import require_rows_kept
from headway.planner.setting_choice import Buy, cheapest, chosen_setting
from headway.planner.state_growth import with_full_join
from headway.planner.switches import turned_offers


def plan(
    question: Question,
    *,
    node_types: Sequence[NodeType] = (),
    cores_per_executor: int | None = None,
    budget_per_hour: float | None = None,
    relaxation: bool = False,
    from_start: bool = False,
    at_other_rates: Question | None = None,
    rate_ratios: Sequence[float] = (),
) -> StreamAnswer:
    """The fewest nodes, lowest cost or lowest latency that meet the targets, and the setting.

    The space of the question is what may be bought and set. ``node_types`` are available instead of
    its executors. ``budget_per_hour`` limits the cost of all nodes, and of write requests if their
    price is known, which are part of the cost then. ``from_start`` plans with batch durations that
    remain those of a fresh JVM. The plan shows what other rates need, at ``rate_ratios`` times that
    of the arrivals, by ``at_other_rates`` if that is another question. An infeasible one contains
    the nearest setting, and what would have to change.
    Raises InputError if a target is on windows that are not in the profile, the question is
    contradictory, no node type has room for an executor, or rows of an outage are not kept.

    theory.md (P4)-(P14), (P33). Every setting with fewer nodes is compared with the target, or
    ruled out by a bound that noise can only worsen. While batches grow, a plan holds until a date
    (P31), or none is feasible (P27).
    """
    objective, rate_per_s = question.objective, question.rate_per_s
    at_other_rates = at_other_rates or question
    if question.store_price is not None and budget_per_hour is not None:
        question = replace(question, most_bill_per_hour=budget_per_hour)
        at_other_rates = replace(at_other_rates, most_bill_per_hour=budget_per_hour)

    def offered(by: Question, job: JobProfile) -> tuple[list[Offer], tuple[str, ...]]:
        of_job = checked(replace(by, profile=job))
        require_prices(objective, node_types, budget_per_hour)
        offers_for = partial(
            offers_of,
            node_types=node_types,
            cores_per_executor=cores_per_executor,
            budget_per_hour=budget_per_hour,
        )
        offers, refused = offers_for(of_job)
        return turned_offers(of_job, offers, offers_for), refused

    def planned(job: JobProfile) -> tuple[StreamAnswer, Question]:
        offers, refused = offered(question, job)
        _, buy, fewest = enumerated([_OfQuery(offer=offer) for offer in offers], objective)
        beyond_limits = None
        if fewest.nodes is None:
            beyond_limits = nearest_beyond_limits(offer.question for offer in offers)
        if beyond_limits is not None and beyond_limits.question is not buy.offer.question:
            closest = next(offer for offer in offers if offer.question is beyond_limits.question)
            buy, fewest = _OfQuery(offer=closest).nearest(), _OfQuery(offer=closest).fewest()
        of_buy = buy.offer.question
        if relaxation:
            from headway.planner.relaxation import relaxed_nodes

            relaxed = replace(fewest.optimality, relaxed_nodes=relaxed_nodes(of_buy))
            fewest = fewest._replace(optimality=relaxed)
        if fewest.nodes is not None:
            buy = replace(buy, sought=buy.setting)
            return feasible_plan(buy, fewest, refused, _with_state(buy)), of_buy
        return nearest_plan(buy, fewest, offers, refused, beyond_limits), of_buy

    require_rows_kept(question.also, question.retention_s)
    job = with_full_join(for_fresh_jvm(question.profile) if from_start else question.profile)
    if job.growth is not None and job.growth.is_foreseeable:
        answer, of_answer = planned(with_growth_ahead(job))
        lasting = until_a_date(answer, of_answer) if answer.feasible else None
        if lasting is not None:
            return lasting
    answer, of_answer = planned(job)
    if job.growth is not None:
        return while_growing(answer, job.growth, of_answer)

    def at_rate(other_per_s: float) -> PlannedRate:
        other_job = replace(job, arrivals=replace(job.arrivals, rate_per_s=other_per_s))
        offers, _ = offered(at_other_rates, other_job)
        best = enumerated_if_feasible([_OfQuery(offer=offer) for offer in offers], objective)
        if best is None:
            return PlannedRate(rate_per_s=other_per_s)
        _, buy, fewest = best
        return in_short(feasible_plan(buy, fewest, ()))

    def rates() -> tuple[PlannedRate, ...]:
        bursts = filter(None, map(burst_of, question.also))
        below_per_s = min((burst.rate_per_s for burst in bursts), default=math.inf)
        planned_rate = in_short(answer)
        return tuple(
            planned_rate if other_per_s == rate_per_s else at_rate(other_per_s)
            for other_per_s in _round_rates(rate_per_s, rate_ratios)
            if other_per_s < below_per_s
        )

    return with_changes(answer, rates=later(rates)) if rate_ratios else answer


def _round_rates(rate_per_s: float, ratios: Sequence[float]) -> list[float]:
    """Other rates in two digits, and the rate itself as it is."""
    return [rate_per_s if ratio == 1.0 else float(f"{ratio * rate_per_s:.2g}") for ratio in ratios]


def question_of(
    profile: JobProfile,
    target: Target,
    space: SearchSpace,
    confidence: float,
    further_targets: Sequence[Promise] = (),
    checkpoint: Checkpoint | None = None,
) -> Question:
    """The question of a plan, before there is an offer, as `checked`."""
    return checked(
        Question(
            profile=profile,
            target=target,
            also=tuple(further_targets),
            space=space,
            confidence=confidence,
            checkpoint=checkpoint,
        )
    )


def checked(question: Question) -> Question:
    """A question whose declared figures are in the middle of their ranges, made ready to plan.

    Raises InputError if the profile is insufficient for a target at its rate, the checkpoint
    contradicts the space, or stages run on executors of their own.
    """
    _require_executors_of_one_kind(question.profile)
    question = question.at_confidence(question.confidence)
    for promise in question.promises:
        require_predictable(question.profile, promise)
    return held_by_checkpoint(question)


def _require_executors_of_one_kind(profile: JobProfile) -> None:
    for stage in profile.stages:
        if stage.resources is not None and stage.resources.has_own_executors:
            raise InputError(
                f"{stage.called} has executors of its own, by a resource profile in the job's code "
                f"({stage.resources.needs}); these need dynamic allocation, and a plan is for a "
                "fixed number of executors of one kind: ask for predictions instead, or give the "
                "stage a profile of task resources only"
            )


def chosen_at(question: Question, nodes: int) -> Candidates:
    """The setting to run at a number of nodes that meets the targets."""
    return chosen_setting(all_candidates(question, (nodes,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfQuery:
    """A streaming query on the nodes of an offer: an `Offered`."""

    offer: Offer

    @property
    def most_room(self) -> float:
        space = self.offer.question.space
        return space.num_slots(space.max_nodes) * space.core_speed_ratio

    def fewest(self) -> Fewest:
        return fewest_nodes(self.offer.question)

    def size(self, fewest: int, objective: Objective) -> Buy:
        question = self.offer.question
        if question.minimises_bill:
            return cheapest(self.offer, fewest)
        if objective != "latency":
            # The bill depends on the setting, which is then searched once.
            sought = None if question.store_price is None else chosen_at(question, fewest)
            return Buy(offer=self.offer, nodes=fewest, sought=sought)
        fastest = self.nearest()
        if (
            fastest.planned_s > question.target.limit_s
            or not fastest.setting.meets(question.rate_per_s)[0]
            or not within_limits(fastest.setting)[0]
        ):
            return Buy(offer=self.offer, nodes=fewest, sought=chosen_at(question, fewest))
        return fastest

    def nearest(self) -> Buy:
        lowest_s, fastest = lowest_latency_in_reach(self.offer.question)
        nodes = int(fastest.nodes[0])
        return Buy(offer=self.offer, nodes=nodes, sought=fastest, lowest_s=lowest_s)


def _with_state(buy: Buy) -> Candidates | None:
    """The setting that the search finds for the existing checkpoint, if a plan needs a new one.

    None if it needs none, or if the existing one does not meet the question.
    """
    question, held = buy.offer.question, held_by_checkpoint(buy.offer.question.with_state())
    pinned = held.space.shuffle_partitions
    if pinned is None or pinned == buy.setting.partitions[0]:
        return None
    if question.minimises_nodes:
        # With more of them, the existing checkpoint would not do as well.
        space = replace(held.space, min_nodes=buy.nodes, max_nodes=buy.nodes)
        held = replace(held, space=space)
    query = _OfQuery(offer=replace(buy.offer, question=held))
    fewest = query.fewest().nodes
    return None if fewest is None else query.size(fewest, question.objective).setting
