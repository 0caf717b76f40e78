"""A streaming job of a fleet: the fewest executors that meet the targets in each hour."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from headway.api.arguments import promises_from, require_room_for_tasks
from headway.api.fleet_needs import FleetJob, KnownNeeds, executor_node, executor_size
from headway.api.plan import plan
from headway.assumptions.resources import FLEET_STREAM_EXECUTORS
from headway.domain import DuringBurst, JobProfile, Promise
from headway.domain.target import targets_text
from headway.domain.writes import StorePrice
from headway.errors import InputError
from headway.fleet.nouns import JobWrites
from headway.planner.after_start import for_fresh_jvm
from headway.planner.bill import planned_writes
from headway.planner.candidates import candidates_at
from headway.planner.nodes_by_rate import NodesByRate
from headway.planner.purchase import at_core_speed
from headway.planner.question import Question, SearchSpace, burst_of, with_limit
from headway.planner.search import chosen_at, question_of
from headway.planner.verdict import kept_probability
from headway.spec.kinds.capacity import FleetEntry
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.kinds.jobs import StreamingJob
from headway.spec.kinds.rates import hourly_rates, peak_rate
from headway.spec.parts import cluster_of, store_price

# What is computed once for jobs that are alike: nodes by rate with needs, and with bounds of them.
_SEARCHED, _BOUNDED = "searched", "bounded"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingNeeds(FleetJob):
    """A streaming job: the fewest executors that meet the targets at the rate of each hour."""

    job: StreamingJob
    profile: JobProfile
    kind: int

    @property
    def takes_search(self) -> bool:
        """Many settings are compared for each number of executors."""
        return True

    @property
    def promise(self) -> str:
        """The targets."""
        return targets_text(self.job.targets)

    @property
    def range_ratios(self) -> tuple[float, float]:
        """Range of the rate of the busiest hour."""
        rate = peak_rate(self.job.rate)
        return rate.low / rate.mid, rate.high / rate.mid

    def looser(self, ratio: float) -> StreamingNeeds:
        """The job with targets that are looser by a ratio."""
        targets = tuple(looser_promise(target, ratio) for target in self.job.targets)
        return replace(self, job=replace(self.job, targets=targets))

    def executors(self, speed: float) -> tuple[int, ...] | None:
        """Executors in each hour; at least one if the job runs. None while its batches grow."""
        if self.profile.growth is not None:
            return None
        if self._has_burst:
            self._question(speed)  # refuses a burst that is not above the rate
        return self._nodes_by_rate(_SEARCHED, speed).fewest_nodes(self._rates_per_s)

    def least_executors(self, speed: float) -> tuple[int, ...] | None:
        """A lower bound of these: by moments where that was foreseen, or by noise-free models."""
        if self.profile.growth is not None:
            return None
        return self._nodes_by_rate(_BOUNDED, speed).least_nodes(self._rates_per_s)

    def kept_computation(self, speed: float) -> tuple[Hashable, Callable[[], float]] | None:
        """How this probability is computed, by its key."""
        executors = self.executors(speed)
        if executors is None:
            return None
        key = (*self._key("kept", speed), max(self._rates_per_s), max(executors))
        return key, partial(_kept_probability, self._question(speed), max(executors))

    def writes(self, speed: float, catalog: NodeCatalog) -> JobWrites | None:
        """What it writes in a day, at the rate of each hour in the setting of the busiest one."""
        store = self.job.checkpoint_store or self.profile.shape.checkpoint_store
        executors = None if store is None else self.executors(speed)
        if store is None or executors is None:
            return None
        price = store_price(store, catalog)
        key = (*self._key("writes", speed), store, price, *self._rates_per_s, max(executors))
        return self.known_needs.once(
            key, lambda: self._written(speed, max(executors), store, price)
        )

    def _written(
        self, speed: float, executors: int, store: str, price: StorePrice | None
    ) -> JobWrites:
        """Files of a day, and requests and what they and the space cost, as far as known."""
        question = self._question(speed)
        setting = chosen_at(question, executors).settings()
        question = replace(question, store_price=price)
        files = requests = cost = 0.0
        for rate_per_s, num_hours in Counter(self._rates_per_s).items():
            if rate_per_s > 0.0:
                writes = planned_writes(candidates_at(question.at_rate(rate_per_s), setting))
                files += num_hours * writes.files_per_hour
                requests += num_hours * (writes.requests_per_hour or 0.0)
                cost += num_hours * (writes.bill_per_hour or 0.0)
        return JobWrites(
            store=store,
            files_per_day=files,
            requests_per_day=None if price is None else requests,
            cost_per_day=None if price is None else cost,
        )

    def why_none(self, speed: float) -> tuple[str, str]:
        """The binding constraint at the highest rate."""
        growth = self.profile.growth
        # A fleet is planned for months, not until a date.
        lasting = None if growth is None else replace(growth, part_rise_ratio=None)
        answer = plan(
            replace(self.profile, growth=lasting),
            rate=max(self._rates_per_s),
            target=self.job.targets,
            max_nodes=FLEET_STREAM_EXECUTORS.value,
            node_types=[executor_node(self.cores, speed)],
            cores=self.cores,
            partitions=self.job.pinned.shuffle_partitions,
            trigger=self.job.pinned.trigger_s,
            confidence=self.job.confidence,
            checkpoint=self.job.checkpoint,
            from_start=self.job.from_start,
            limit=self.job.limits,
        )
        nearest_targets = () if answer.feasible else answer.nearest
        nearest_text = " or ".join(nearest_target.text for nearest_target in nearest_targets)
        # A node stands for an executor.
        why, instead = (
            text.replace("node", "executor") for text in ("; ".join(answer.binding), nearest_text)
        )
        return why, instead or f"a looser target than {self.promise}, or a lower rate"

    @property
    def _rates_per_s(self) -> list[float]:
        return [getattr(rate, self.end) * self.scale for rate in hourly_rates(self.job.rate)]

    @property
    def _has_burst(self) -> bool:
        return any(map(burst_of, self.job.targets))

    def _nodes_by_rate(self, result_kind: str, speed: float) -> NodesByRate:
        return self.known_needs.once(
            self._key(result_kind, speed), lambda: NodesByRate(self._question(speed))
        )

    def _key(self, result_kind: str, speed: float) -> tuple[Hashable, ...]:
        """The key of something that jobs share whose plans differ by the rate only."""
        job = self.job
        return (
            *(result_kind, self.kind, job.targets, job.pinned, job.confidence, job.checkpoint),
            *(job.from_start, job.limits, self.cores, speed),
        )

    def _question(self, speed: float) -> Question:
        """The plan for the busiest hour, on cores of a speed."""
        job, task_cpus = self.job, self.profile.baseline.task_cpus
        target, further_targets = promises_from(job.targets)
        profile = for_fresh_jvm(self.profile) if job.from_start else self.profile
        arrivals = replace(profile.arrivals, rate_per_s=max(self._rates_per_s))
        # A node that is one executor: how many of them fit on what is bought comes later.
        space = SearchSpace(
            max_nodes=FLEET_STREAM_EXECUTORS.value,
            cores_per_executor=self.cores,
            task_cpus=task_cpus,
            tasks_per_executor=profile.baseline.tasks_per_executor,
            shuffle_partitions=job.pinned.shuffle_partitions,
            trigger_s=job.pinned.trigger_s,
        )
        try:
            require_room_for_tasks(self.cores, task_cpus)
            question = question_of(
                replace(profile, arrivals=arrivals),
                target,
                space,
                job.confidence,
                tuple(further_targets),
                job.checkpoint,
            )
        except InputError as error:
            raise InputError(f"job {self.entry.name!r}: {error}") from None
        return replace(
            question,
            profile=at_core_speed(question.profile, speed),
            most_files_per_hour=min(
                (limit.files_per_hour for limit in job.limits), default=math.inf
            ),
        )


def streaming_needs(
    entry: FleetEntry, job: StreamingJob, pool_cores: int | None, known_needs: KnownNeeds
) -> StreamingNeeds:
    """A streaming job as a fleet needs it; executors are as profiled unless stated otherwise."""
    cluster = cluster_of(job)
    profile = known_needs.profile_of(entry.name, job)
    cores, memory_bytes = executor_size(cluster, pool_cores, profile.application)
    return StreamingNeeds(
        entry=entry,
        job=job,
        profile=profile,
        cores=cores or profile.baseline.cores_per_executor,
        memory_bytes=memory_bytes,
        known_needs=known_needs,
        kind=known_needs.kind_of(profile),
    )


def search_together(
    searches: Iterable[tuple[FleetJob, float, bool]],
    known_needs: KnownNeeds,
    *,
    first: Callable[[], object] | None = None,
) -> None:
    """Search what jobs need, for all rates of streaming jobs that are alike together.

    ``searches`` are jobs of any kind with a speed of cores, and whether their executors are
    searched, or only bounds of these. This process does something else ``first``, and then what the
    other kinds need, which takes little.
    """
    questions: dict[Hashable, Question] = {}
    makes: dict[Hashable, Callable[..., NodesByRate]] = {}
    rates_per_s: dict[Hashable, list[list[float]]] = defaultdict(list)
    of_other_kinds: list[Callable[[], object]] = []
    for job, speed, is_searched in searches:
        if not isinstance(job, StreamingNeeds):
            of_other_kinds.append(partial(job.executors, speed))
            continue
        # What is refused for a burst is found out with the job that has it.
        if job._has_burst or job.profile.growth is not None:
            continue
        key = job._key(_SEARCHED if is_searched else _BOUNDED, speed)
        if key not in questions:
            questions[key] = job._question(speed)
            makes[key] = NodesByRate.searched if is_searched else NodesByRate.bounded
        rates_per_s[key].append(job._rates_per_s)

    def prepare() -> None:
        for compute in (*([first] if first else []), *of_other_kinds):
            compute()

    # The longest searches come first, so that all processes end at about the same time.
    keys = sorted(questions, key=lambda key: -len(rates_per_s[key]))
    known_needs.compute_ahead(
        {key: partial(makes[key], questions[key], rates_per_s[key]) for key in keys}, first=prepare
    )


def _kept_probability(question: Question, num_executors: int) -> float:
    """Probability that the setting to run on a number of executors meets the targets."""
    return kept_probability(chosen_at(question, num_executors))


def looser_promise(promise: Promise, ratio: float) -> Promise:
    """A target whose limit is longer by a ratio."""
    limited = promise.target if isinstance(promise, DuringBurst) else promise
    return with_limit(promise, limited.limit_s * ratio)
