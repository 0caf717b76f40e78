"""The plan for a question about a streaming query: the offer, the nodes, and the setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from headway.assumptions.planning import CONFIDENCE
from headway.domain import (
    Arrivals,
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
from headway.domain.switches import Switch
from headway.domain.writes import StorePrice
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.planner.after_start import for_fresh_jvm
from headway.planner.answer import in_short
from headway.planner.bill import within_limits
from headway.planner.candidates import Candidates, all_candidates
from headway.planner.checkpoint import held_by
from headway.planner.choice import Buy, cheapest, chosen_setting
from headway.planner.enumeration import (
    Fewest,
    enumerated,
    enumerated_if_feasible,
    require_prices,
)
from headway.planner.explain.explained import nearest_there_is, settled_on
from headway.planner.explain.infeasible import lowest_latency_in_reach
from headway.planner.fewest import fewest_nodes
from headway.planner.growing_batches import until_a_date, while_growing, with_growth_ahead
from headway.planner.promised import require_predictable
from headway.planner.purchase import Offer, offers_of
from headway.planner.question import Charges, Question, burst_of
from headway.planner.retention import require_rows_kept
from headway.planner.space import SearchSpace
from headway.planner.state_growth import with_full_join
from headway.planner.switches import turned_offers


def plan(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    *,
    confidence: float = CONFIDENCE.value,
    further_targets: Sequence[Promise] = (),
    objective: Objective = "nodes",
    node_types: Sequence[NodeType] = (),
    cores_per_executor: int | None = None,
    budget_per_hour: float | None = None,
    checkpoint: Checkpoint | None = None,
    store_price: StorePrice | None = None,
    retention_s: float | None = None,
    most_files_per_hour: float = math.inf,
    allowed: Sequence[Switch] = (),
    relaxation: bool = False,
    from_start: bool = False,
    rate_ratios: Sequence[float] = (),
) -> StreamAnswer:
    """The fewest nodes, lowest cost or lowest latency that meet the targets, and the setting.

    The first ``target`` is on tuple latency, window latency or batch duration, and ``space`` is
    what may be bought and set; most options are those of :func:`headway.plan`. ``node_types`` are
    available instead of the executors of the space. ``budget_per_hour`` limits the cost of all
    nodes, and of write requests if their ``store_price`` is known, which are part of the cost then.
    ``from_start`` plans with batch durations that remain those of a fresh JVM. The plan shows what
    other rates need, at ``rate_ratios`` times that of the arrivals. An infeasible one contains the
    nearest setting, and what would have to change. Raises InputError if a target is on windows that
    are not in the profile, the question is contradictory, no node type has room for an executor, or
    rows of an outage are not kept.

    theory.md (P4)-(P14), (P33). Every setting with fewer nodes is compared with the target, or
    ruled out by a bound that noise can only worsen. While batches grow, a plan holds until a date
    (P31), or none is feasible (P27).
    """

    def offered(job: JobProfile) -> tuple[list[Offer], tuple[str, ...]]:
        question = replace(
            question_of(job, target, space, confidence, further_targets, checkpoint),
            retention_s=retention_s,
            most_files_per_hour=most_files_per_hour,
            allowed=tuple(allowed),
        )
        if store_price is not None:
            charges = Charges(
                price=store_price,
                budget_per_hour=budget_per_hour,
                are_minimised=objective == "cost",
            )
            question = replace(question, charges=charges)
        require_prices(objective, node_types, budget_per_hour)
        offers_for = partial(
            offers_of,
            node_types=node_types,
            cores_per_executor=cores_per_executor,
            budget_per_hour=budget_per_hour,
        )
        offers, refused = offers_for(question)
        return turned_offers(question, offers, checkpoint, offers_for), refused

    def planned(job: JobProfile) -> tuple[StreamAnswer, Question]:
        offers, refused = offered(job)
        enumeration = enumerated([_OfQuery(offer=offer) for offer in offers], objective)
        buy, fewest = enumeration.size, enumeration.fewest
        question = buy.offer.question
        if relaxation:
            from headway.planner.relaxation import relaxed_nodes

            relaxed = replace(fewest.optimality, relaxed_nodes=relaxed_nodes(question))
            fewest = fewest._replace(optimality=relaxed)
        if enumeration.feasible:
            return settled_on(buy, fewest.optimality, objective, checkpoint, refused), question
        return nearest_there_is(buy, fewest, offers, objective, checkpoint, refused), question

    require_rows_kept(further_targets, retention_s)
    job = replace(for_fresh_jvm(profile) if from_start else profile, arrivals=arrivals)
    job = with_full_join(job)
    if job.growth is not None and job.growth.is_foreseeable:
        answer, question = planned(with_growth_ahead(job))
        lasting = until_a_date(answer, question) if answer.feasible else None
        if lasting is not None:
            return lasting
    answer, question = planned(job)
    if job.growth is not None:
        return while_growing(answer, job.growth, question)

    def at_rate(rate_per_s: float) -> PlannedRate:
        offers, _ = offered(replace(job, arrivals=replace(arrivals, rate_per_s=rate_per_s)))
        enumeration = enumerated_if_feasible([_OfQuery(offer=offer) for offer in offers], objective)
        if enumeration is None:
            return PlannedRate(rate_per_s=rate_per_s)
        optimality = enumeration.fewest.optimality
        return in_short(settled_on(enumeration.size, optimality, objective, checkpoint, ()))

    def rates() -> tuple[PlannedRate, ...]:
        bursts = filter(None, map(burst_of, further_targets))
        below_per_s = min((burst.rate_per_s for burst in bursts), default=math.inf)
        planned_rate = in_short(answer)
        return tuple(
            planned_rate if rate_per_s == arrivals.rate_per_s else at_rate(rate_per_s)
            for rate_per_s in _round_rates(arrivals.rate_per_s, rate_ratios)
            if rate_per_s < below_per_s
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
    """The question of a plan, before there is an offer; with the same parameters as `plan`.

    Raises InputError if the profile is insufficient for a target at its rate, the checkpoint
    contradicts the space, or stages run on executors of their own.
    """
    _require_executors_of_one_kind(profile)
    question = Question(
        profile=profile,
        target=target,
        also=tuple(further_targets),
        space=space,
        confidence=confidence,
    ).at_confidence(confidence)
    for promise in (question.target, *question.also):
        require_predictable(question.profile, promise)
    return held_by(question, checkpoint)


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
    def most_slots(self) -> int:
        space = self.offer.question.space
        return space.num_slots(space.max_nodes)

    def fewest(self) -> Fewest:
        return fewest_nodes(self.offer.question)

    def size(self, fewest: int, objective: Objective) -> Buy:
        question = self.offer.question
        if objective == "cost" and question.charges is not None:
            return cheapest(self.offer, fewest)
        if objective != "latency":
            # The bill depends on the setting, which is then searched once.
            sought = None if question.charges is None else chosen_at(question, fewest)
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
