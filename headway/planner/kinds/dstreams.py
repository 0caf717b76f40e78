"""DStreams applications: the fewest nodes that meet a latency target, and their configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from headway.assumptions.planning import LEAST_CATCH_UP_RATIO, TRIGGERS_S
from headway.assumptions.predictions import CALIBRATED_DOUBLINGS
from headway.domain import Change, Finding, FindingCode, Objective, PlannedSetting, Target
from headway.domain.dstreams import DStreamsPlan, DStreamsPoint, DStreamsSetting
from headway.lazy_classes import dataclass
from headway.models.batches.dstreams import DStreamJobs
from headway.models.laws.normal import ndtri
from headway.planner.enumeration import (
    IS_SLOWER,
    Fewest,
    best_count,
    enumerated,
    fewest_of,
    spread_counts,
)
from headway.planner.kinds.dstreams_batches import DStreamsBatches
from headway.planner.kinds.dstreams_prediction import predicted
from headway.planner.question import SearchSpace
from headway.planner.spark_settings import (
    changes_of,
    executor_conf,
    planned_settings,
    profiled_values,
)
from headway.sparkconf.reader_limits import (
    CONCURRENT_JOBS_KEY,
    PARTITION_RATE_KEY,
    RECEIVER_RATE_KEY,
)
from headway.units import counted, format_duration

_MOST_POINTS = 12


def plan_dstreams(searches: Sequence[DStreamsSearch], objective: Objective) -> DStreamsPlan:
    """The fewest nodes, or the best ones, with which a DStreams application meets a latency target.

    theory.md (V7). Numbers of nodes are tried from one upwards, each with the profiled batch
    interval first, since another one is a change of the application's code.
    """
    index, point, fewest = enumerated(searches, objective)
    search, feasible = searches[index], fewest.nodes is not None
    batches, load, space = search.batches, search.load, search.space
    profile = batches.profile
    setting = search.setting(point.nodes, point.batch_interval_s)
    expected = predicted(batches, setting, load)
    conf = executor_conf(profile, setting.executors, space)
    if setting.concurrent_jobs > 1 or CONCURRENT_JOBS_KEY in profile.application.properties:
        conf[CONCURRENT_JOBS_KEY] = str(setting.concurrent_jobs)
    conf |= _limit_conf(search, setting)
    settings = planned_settings(conf, profiled_values(profile))
    return DStreamsPlan(
        feasible=feasible,
        target=search.target,
        rate_per_s=batches.rate_at(load),
        point=point,
        setting=setting,
        expected=expected,
        max_rate_per_s=batches.rate_at(search.highest_load(setting)),
        frontier=tuple(search.around(point)),
        confidence=search.confidence,
        node_type=space.node_type,
        binding=tuple(_binding(search, point, feasible=feasible)),
        spark_conf=conf,
        settings=settings,
        changes=tuple(_changes(search, setting, settings)),
        findings=(*expected.findings, *_findings(search, conf)),
        spark_version=profile.application.spark_version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DStreamsSearch:
    """The question on the nodes of a type, and the latencies for it: an `Offered`.

    ``load`` is the rate over the profiled one, ``batch_interval_s`` the interval if it is fixed.
    """

    batches: DStreamsBatches
    load: float
    target: Target
    space: SearchSpace
    concurrent_jobs: int
    batch_interval_s: float | None
    confidence: float
    latencies_s: dict[tuple[float, float], float] = field(default_factory=dict)

    def setting(self, nodes: int, interval_s: float) -> DStreamsSetting:
        return DStreamsSetting(
            executors=nodes * self.space.executors_per_node,
            cores_per_executor=self.space.cores_per_executor,
            batch_interval_s=interval_s,
            concurrent_jobs=self.concurrent_jobs,
            task_cpus=self.space.task_cpus,
            num_receivers=self.batches.profiled_setting.num_receivers,
        )

    def intervals_s(self) -> list[float]:
        """The profiled one, then the others, longest first, since they start the fewest jobs."""
        if self.batch_interval_s is not None:
            return [self.batch_interval_s]
        profiled_s = self.batches.profiled_setting.batch_interval_s
        farthest = 2.0**CALIBRATED_DOUBLINGS.value
        others = [
            interval_s
            for interval_s in reversed(TRIGGERS_S.value)
            if 1.0 / farthest <= interval_s / profiled_s <= farthest and interval_s != profiled_s
        ]
        return [profiled_s, *others]

    def point(self, nodes: int, interval_s: float) -> DStreamsPoint:
        """Expected and planned latency; ``inf`` if batches accumulate."""
        setting = self.setting(nodes, interval_s)
        planned_s = expected_s = math.inf
        if setting.num_slots:
            planned_s = self.planned_s(setting, self.load)
            expected_s = self.latency_s(self.batches.jobs(setting, self.load), setting)
        return DStreamsPoint(
            nodes=nodes,
            batch_interval_s=interval_s,
            expected_s=expected_s,
            planned_s=planned_s,
            cost_per_hour=self.space.cost_per_hour(nodes),
        )

    def factor(self, setting: DStreamsSetting, load: float) -> float:
        """Factor of planned over expected durations."""
        return self.batches.upper_factor(setting, load, float(ndtri(self.confidence)))

    def planned_s(self, setting: DStreamsSetting, load: float) -> float:
        """At the planned confidence; fewer rows than profiled do not shorten tasks."""
        jobs = self.batches.cautious.jobs(setting, load, self.factor(setting, load))
        return self.latency_s(jobs, setting)

    def latency_s(self, jobs: DStreamJobs, setting: DStreamsSetting) -> float:
        """The latency of the target; results for the same work are cached."""
        if jobs.work_s >= setting.concurrent_jobs * setting.batch_interval_s:
            return math.inf
        cache_key = (jobs.work_s, setting.batch_interval_s)
        if cache_key not in self.latencies_s:
            latency, quantile = self.batches.latency(setting, jobs), self.target.quantile
            self.latencies_s[cache_key] = (
                latency.tuple_mean_s
                if quantile is None
                else float(latency.tuple_quantile_s(quantile))
            )
        return self.latencies_s[cache_key]

    @property
    def most_room(self) -> float:
        return self.setting(self.space.max_nodes, 1.0).num_slots * self.space.core_speed_ratio

    def fewest(self) -> Fewest:
        max_nodes = self.space.max_nodes
        return fewest_of(
            range(1, max_nodes + 1),
            lambda nodes: self.in_time(nodes) is not None,
            max_nodes=max_nodes,
            tries_every=True,
        )

    def size(self, fewest: int, objective: Objective) -> DStreamsPoint:
        point = self.in_time(fewest)
        assert point is not None  # this number of nodes was found to meet the target
        if objective != "latency":
            return point  # fewer nodes of a type cost less
        counts = spread_counts(self.space.max_nodes, _MOST_POINTS)
        nodes = best_count(counts, lambda nodes: self.fastest(nodes).planned_s)
        return min([point, self.fastest(nodes)], key=lambda size: (size.planned_s, size.nodes))

    def fastest(self, nodes: int) -> DStreamsPoint:
        """The interval with the lowest planned latency at a number of nodes."""
        points = [self.point(nodes, interval_s) for interval_s in self.intervals_s()]
        return min(points, key=lambda point: point.planned_s)

    def in_time(self, nodes: int) -> DStreamsPoint | None:
        """The first interval at which this number of nodes meets the target."""
        share = 0.5 if self.target.quantile is None else self.target.quantile
        for interval_s in self.intervals_s():
            # A row waits for its batch, however short batches are.
            if share * interval_s < self.target.limit_s:
                point = self.point(nodes, interval_s)
                if point.planned_s <= self.target.limit_s:
                    return point
        return None

    def nearest(self) -> DStreamsPoint:
        """The lowest possible planned latency."""
        return min(self.table(), key=lambda point: (point.planned_s, point.expected_s, point.nodes))

    def table(self) -> list[DStreamsPoint]:
        """Latencies for some numbers of nodes, with every interval."""
        counts = spread_counts(self.space.max_nodes, _MOST_POINTS)
        return [
            self.point(nodes, interval_s) for nodes in counts for interval_s in self.intervals_s()
        ]

    def around(self, point: DStreamsPoint) -> Iterator[DStreamsPoint]:
        """Latencies by number of nodes, at the interval of the plan."""
        counts = {point.nodes - 1, point.nodes, *spread_counts(self.space.max_nodes, _MOST_POINTS)}
        for nodes in sorted(count for count in counts if count >= 1):
            yield point if nodes == point.nodes else self.point(nodes, point.batch_interval_s)

    def highest_load(self, setting: DStreamsSetting) -> float:
        """The largest load at which the setting meets the target, by bisection; 0 if none."""
        if setting.num_slots == 0:
            return 0.0
        high = self.batches.highest_load(setting)
        low = 0.0
        while high - low > 1e-2 * high:
            middle = 0.5 * (low + high)
            is_met = self.planned_s(setting, middle) <= self.target.limit_s
            low, high = (middle, high) if is_met else (low, middle)
        return low


def _limit_conf(search: DStreamsSearch, setting: DStreamsSetting) -> dict[str, str]:
    """The rate at which batches of the planned length still fit into their interval, as the
    source's option; none if rows are not counted or if it would restrict the plan.
    """
    factor = search.factor(setting, search.load)
    highest_load = search.batches.highest_load(setting, factor) if setting.num_slots else 0
    rate_per_s = search.batches.rate_at(highest_load)
    if rate_per_s is None or highest_load < LEAST_CATCH_UP_RATIO.value * search.load:
        return {}
    if setting.num_receivers:
        return {RECEIVER_RATE_KEY: _two_digits(rate_per_s / setting.num_receivers)}
    sources = [stage.num_tasks for stage in search.batches.profile.stages if not stage.parents]
    return {PARTITION_RATE_KEY: _two_digits(rate_per_s / max(sources))}


def _two_digits(rate_per_s: float) -> str:
    """Rounded down to two digits, at least 1."""
    step = 10.0 ** max(math.floor(math.log10(max(rate_per_s, 1.0))) - 1, 0)
    return str(max(int(rate_per_s / step) * int(step), 1))


def _binding(search: DStreamsSearch, point: DStreamsPoint, *, feasible: bool) -> Iterator[str]:
    if not feasible:
        yield (
            f"the best is {counted(point.nodes, 'node')} with a batch interval of "
            f"{format_duration(point.batch_interval_s)}: {_up_to(point.planned_s)}"
        )
        tasks = search.batches.num_tasks
        if search.space.num_slots(search.space.max_nodes) > tasks:
            yield f"the stages of a batch have {counted(tasks, 'task')} in all: further slots idle"
        return
    yield f"{search.target}: {_up_to(point.planned_s)}"
    if point.nodes == 1:
        yield "one node is the minimum"
    else:
        fewer = search.point(point.nodes - 1, point.batch_interval_s)
        is_met = fewer.planned_s <= search.target.limit_s
        yield f"one node fewer: {_up_to(fewer.planned_s)}{IS_SLOWER if is_met else ''}"


def _up_to(seconds: float) -> str:
    return f"up to {format_duration(seconds)}" if math.isfinite(seconds) else "batches may pile up"


def _changes(
    search: DStreamsSearch, setting: DStreamsSetting, settings: Sequence[PlannedSetting]
) -> Iterator[Change]:
    baseline = search.batches.profiled_setting
    if setting.batch_interval_s != baseline.batch_interval_s:
        yield Change(
            setting="batch interval (of the StreamingContext, in the application's code)",
            before=format_duration(baseline.batch_interval_s),
            after=format_duration(setting.batch_interval_s),
            applies="new checkpoint",
        )
    yield from changes_of(settings, if_unknown="not set")


def _findings(search: DStreamsSearch, conf: Mapping[str, str]) -> Iterator[Finding]:
    key = PARTITION_RATE_KEY
    if key in conf:
        yield Finding(code=FindingCode.RATE_LIMIT_OF_KAFKA_ONLY, names={"key": key})
    if search.batches.profiled_rate_per_s is None:
        yield Finding(code=FindingCode.ROWS_NOT_COUNTED)
