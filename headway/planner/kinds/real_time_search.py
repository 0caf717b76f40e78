"""Real-Time Mode: the fewest nodes that meet a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headway.assumptions.real_time import (
    BATCH_LENGTH_S,
    GAP_RATIOS,
    MOST_BUSY_RATIO,
    PATH_RATIOS,
    SHORTEST_BATCH_S,
)
from headway.assumptions.resources import SHUFFLE_MAX_WAIT_S
from headway.domain import CatchUp, JobProfile, Objective, Target
from headway.domain.configuration import task_slots
from headway.domain.real_time import RealTimePlan, RealTimeSetting
from headway.lazy_classes import dataclass
from headway.limits import MOST_PARTITIONS
from headway.models.laws.normal import ndtri
from headway.models.real_time.stages import required_slots
from headway.planner.enumeration import best_of
from headway.planner.kinds.real_time import gap_of, latency_at, predicted, spread_of, stages_of
from headway.planner.question import SearchSpace
from headway.sparkconf.knobs import ROCKSDB_PROVIDER
from headway.units import counted, format_duration, spark_memory_text

_WHOLE_S = 60.0
_MOST_STEPS = 12
_MANY = 10**9
_JUST_BELOW = 1.0 - 1e-9
_MAX_RATE_TOLERANCE = 1.001


def best_plan(searches: Sequence[RealTimeSearch], objective: Objective) -> RealTimePlan:
    """The fewest nodes, or the best ones, that meet a target in Real-Time Mode.

    **(N10)** The shuffle partitions are the fewest with which no task is busier than 0.7, at the
    confidence of the plan, and the target is met; the slots are those of (N1). A batch lasts 5 min,
    or longer if a gap `g`, 2.2 times the usual one, would otherwise be part of the quantile `q`:
    `T ≥ g(1/((1-ρ)(1-q))-1)` by (N7), with `ρ` of the busiest task. A batch that failed is repeated
    from its start, so after an outage of `H` the query has caught up after at most `(H+T) ρ/(1-ρ)`,
    which a target on catching up limits.
    """
    plans = [search.plan(objective) for search in searches]
    feasible = [plan for plan in plans if plan.feasible]
    if feasible:
        return best_of(feasible, objective)
    return min(plans, key=lambda plan: (plan.planned_s, plan.nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeSearch:
    """The question of a plan on the nodes of a type, and the job on cores of their speed.

    What is None is chosen by the plan, or as profiled. A row takes ``path_s`` from the source and
    to the sink.
    """

    profile: JobProfile
    rate_per_s: float
    target: Target
    also: Sequence[CatchUp]
    space: SearchSpace
    source_partitions: int
    shuffle_partitions: int | None
    batch_length_s: float | None
    path_s: float
    confidence: float

    @property
    def margin(self) -> float:
        """Factor of planned over expected times of rows."""
        return math.exp(float(ndtri(self.confidence)) * spread_of(self.profile))

    def plan(self, objective: Objective) -> RealTimePlan:
        partitions = self._partitions()
        if objective == "latency":
            partitions = self._fastest_partitions(partitions)
        setting = self._setting(partitions)
        planned_s = self._planned_at(setting, self.rate_per_s)
        why = (*self._in_the_way(setting), *self._too_late(planned_s), *self._not_back(setting))
        return RealTimePlan(
            target=self.target,
            also=tuple(self.also),
            rate_per_s=self.rate_per_s,
            feasible=not why,
            nodes=-(-setting.executors // self.space.executors_per_node),
            node_type=self.space.node_type,
            setting=setting,
            planned_s=planned_s,
            confidence=self.confidence,
            expected=predicted(self.profile, setting, self.rate_per_s, self.path_s),
            max_rate_per_s=None if why else self._max_rate_per_s(setting),
            binding=why or tuple(self._what_decides(setting)),
            spark_conf=self._spark_conf(setting),
            keeps_state=bool(self.profile.shape.stateful_operators),
            spark_version=self.profile.application.spark_version,
        )

    def _partitions(self) -> int:
        """The fewest shuffle partitions that meet the target; as profiled if none are needed."""
        if self.shuffle_partitions is not None or not self._has_shuffle:
            return self.shuffle_partitions or self.profile.baseline.shuffle_partitions
        max_partitions = max(min(self._most_partitions(), MOST_PARTITIONS), 1)

        def keeps(partitions: int) -> bool:
            setting = self._setting(partitions)
            return self._planned_at(setting, self.rate_per_s) <= self.target.limit_s

        return _first_that(keeps, min(self._fewest_partitions(), max_partitions), max_partitions)

    def _fastest_partitions(self, fewest: int) -> int:
        """The shuffle partitions with the lowest latency of those that all nodes have slots for."""
        if self.shuffle_partitions is not None or not self._has_shuffle:
            return fewest
        max_partitions = max(min(self._most_partitions(), MOST_PARTITIONS), fewest)
        steps = np.geomspace(fewest, max_partitions, _MOST_STEPS).round()
        counts = sorted({int(count) for count in steps})
        return min(
            counts, key=lambda count: self._planned_at(self._setting(count), self.rate_per_s)
        )

    def _in_the_way(self, setting: RealTimeSetting) -> Iterator[str]:
        """Tasks that would be too busy, and slots that are not available."""
        max_busy_ratio, partitions = MOST_BUSY_RATIO.value, setting.shuffle_partitions
        busy_ratios = self._busy(partitions)
        for stage in self.profile.stages:
            busy = busy_ratios[stage.name]
            if busy <= max_busy_ratio + 1e-9:
                continue
            num_tasks, partition_kind = partitions, "shuffle partitions"
            if stage.num_source_tasks is not None:
                num_tasks, partition_kind = self.source_partitions, "source partitions"
            num_enough = math.ceil(num_tasks * busy / max_busy_ratio)
            cure = f"about {num_enough} equally loaded ones are enough"
            if stage.hot_share_ratio and self._busy(_MANY)[stage.name] > max_busy_ratio:
                cure = "the rows of its hottest key alone are too many"
            yield (
                f"{stage.called}: the busiest of {num_tasks} {partition_kind} is busy for "
                f"{busy:.0%} of the time, more than {max_busy_ratio:.0%}; {cure}"
            )
        space = self.space
        if setting.executors > space.max_nodes * space.executors_per_node:
            yield (
                f"{counted(self._num_slots(partitions), 'task')} of all stages run at once, more "
                f"than {counted(space.max_nodes, 'node')} have slots for"
            )

    @property
    def _has_shuffle(self) -> bool:
        return any(stage.num_source_tasks is None for stage in self.profile.stages)

    def _busy(self, partitions: int, rate_per_s: float | None = None) -> dict[str, float]:
        """Busy share of the busiest task of each stage, at the confidence of the plan."""
        rate_per_s = self.rate_per_s if rate_per_s is None else rate_per_s
        stages = stages_of(self.profile, self.source_partitions, partitions, self.margin)
        return {
            stage.name: real_time_stage.utilization_ratio(rate_per_s)
            for stage, real_time_stage in zip(self.profile.stages, stages, strict=True)
        }

    def _busiest(self, partitions: int, rate_per_s: float | None = None) -> float:
        """Busy share of the busiest task of all stages."""
        return max(self._busy(partitions, rate_per_s).values())

    def _fewest_partitions(self) -> int:
        """The fewest shuffle partitions with which no task behind an exchange is too busy."""
        fewest = 1
        for stage in self.profile.stages:
            if stage.num_source_tasks is None:
                hot = stage.hot_share_ratio
                all_rows = self._busy(1)[stage.name]
                spare_ratio = MOST_BUSY_RATIO.value - hot * all_rows
                if spare_ratio > 0.0:
                    fewest = max(fewest, math.ceil((1.0 - hot) * all_rows / spare_ratio - 1e-9))
        return fewest

    def _most_partitions(self) -> int:
        """The maximum number of shuffle partitions that all nodes have slots for."""
        slots = self.space.num_slots(self.space.max_nodes)
        shuffles = sum(stage.num_source_tasks is None for stage in self.profile.stages)
        return (slots - self.source_partitions) // max(shuffles, 1)

    def _num_slots(self, partitions: int) -> int:
        return required_slots(stages_of(self.profile, self.source_partitions, partitions))

    def _setting(self, partitions: int) -> RealTimeSetting:
        space = self.space
        per_executor = task_slots(1, space.cores_per_executor, space.task_cpus)
        return RealTimeSetting(
            executors=-(-self._num_slots(partitions) // per_executor),
            cores_per_executor=space.cores_per_executor,
            source_partitions=self.source_partitions,
            shuffle_partitions=partitions,
            batch_length_s=self.batch_length_s or self._best_batch_length_s(partitions),
            task_cpus=space.task_cpus,
        )

    def _best_batch_length_s(self, partitions: int) -> float:
        """The default; longer for the quantile, shorter for catching up (N10)."""
        busy = self._busiest(partitions)
        length_s = BATCH_LENGTH_S.value
        if busy >= 1.0:
            return length_s
        quantile = self.target.quantile
        if quantile is not None:
            gap_s = GAP_RATIOS.value[1] * gap_of(self.profile)
            least_s = gap_s * (1.0 / ((1.0 - busy) * (1.0 - quantile)) - 1.0)
            length_s = max(length_s, math.ceil(least_s / _WHOLE_S) * _WHOLE_S)
        for catch_up in self.also:
            longest_s = catch_up.limit_s * (1.0 - busy) / max(busy, 1e-9) - _outage_s(catch_up)
            length_s = min(length_s, max(math.floor(longest_s), SHORTEST_BATCH_S.value))
        return length_s

    def _planned_at(self, setting: RealTimeSetting, rate_per_s: float) -> float:
        """Value of the target at the worse end of the intervals [s]; ``inf`` if batches pile up."""
        gap_ratio, quantile = GAP_RATIOS.value[1], self.target.quantile
        latency = latency_at(self.profile, setting, rate_per_s, self.margin, gap_ratio)
        latency_s = latency.mean_s if quantile is None else float(latency.quantile_s(quantile))
        return PATH_RATIOS.value[1] * self.path_s + latency_s

    def _not_back(self, setting: RealTimeSetting) -> Iterator[str]:
        busy = self._busiest(setting.shuffle_partitions)
        for catch_up in self.also:
            back_s = math.inf
            if busy < 1.0:
                back_s = (_outage_s(catch_up) + setting.batch_length_s) * busy / (1.0 - busy)
            if back_s > catch_up.limit_s:
                delay_text = "never" if math.isinf(back_s) else f"after {format_duration(back_s)}"
                yield (
                    f"'{catch_up}': with batches of {format_duration(setting.batch_length_s)}, "
                    f"which are repeated from their beginning, the query has caught up {delay_text}"
                )

    def _too_late(self, planned_s: float) -> Iterator[str]:
        if planned_s <= self.target.limit_s:
            return
        shuffle_note = ""
        if self._has_shuffle:
            max_wait = format_duration(SHUFFLE_MAX_WAIT_S.value)
            shuffle_note = f"; a shuffle holds rows for up to {max_wait} on any number of nodes"
        yield f"the planned {self.target.statistic} is {format_duration(planned_s)}{shuffle_note}"

    def _what_decides(self, setting: RealTimeSetting) -> Iterator[str]:
        yield (
            f"slots: {counted(self._num_slots(setting.shuffle_partitions), 'task')} of all stages "
            "run at once as long as the query runs"
        )
        name, busy = max(self._busy(setting.shuffle_partitions).items(), key=lambda item: item[1])
        yield f"busiest task: of {name}, {busy:.0%} of {MOST_BUSY_RATIO.value:.0%} at most"

    def _max_rate_per_s(self, setting: RealTimeSetting) -> float:
        """The highest rate at which the setting meets the target, to 0.1%, in three digits.

        It is searched below the rate at which the busiest task is as busy as it may be, so it does
        not depend on the requested one, which the setting is known to meet.
        """

        def keeps(rate_per_s: float) -> bool:
            return (
                self._busiest(setting.shuffle_partitions, rate_per_s) <= MOST_BUSY_RATIO.value
                and self._planned_at(setting, rate_per_s) <= self.target.limit_s
            )

        low = high = MOST_BUSY_RATIO.value / self._busiest(setting.shuffle_partitions, 1.0)
        while low > self.rate_per_s and not keeps(low * _JUST_BELOW):
            low, high = 0.5 * low, low
        while high / low > _MAX_RATE_TOLERANCE:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
        digits = 10.0 ** (math.floor(math.log10(low)) - 2)
        return max(math.floor(low / digits) * digits, self.rate_per_s)

    def _spark_conf(self, setting: RealTimeSetting) -> dict[str, str]:
        """Spark configuration to start with."""
        conf = {
            "spark.executor.instances": str(setting.executors),
            "spark.executor.cores": str(setting.cores_per_executor),
            "spark.dynamicAllocation.enabled": "false",
        }
        if setting.task_cpus != 1:
            conf["spark.task.cpus"] = str(setting.task_cpus)
        if self.space.executor_memory_bytes is not None:
            conf["spark.executor.memory"] = spark_memory_text(self.space.executor_memory_bytes)
        if self._has_shuffle:
            conf["spark.sql.shuffle.partitions"] = str(setting.shuffle_partitions)
            conf["spark.sql.execution.sortBeforeRepartition"] = "false"
        if self.profile.shape.stateful_operators:
            store = "spark.sql.streaming.stateStore"
            conf[f"{store}.providerClass"] = ROCKSDB_PROVIDER
            conf[f"{store}.checkpointFormatVersion"] = "2"
            conf[f"{store}.rocksdb.changelogCheckpointing.enabled"] = "true"
        return conf


def _outage_s(promise: CatchUp) -> float:
    """How long nothing was read; bursts have been rejected before."""
    assert promise.outage_s is not None
    return promise.outage_s


def _first_that(holds: Callable[[int], bool], minimum: int, maximum: int) -> int:
    """The smallest number from which on a condition holds; the minimum if it never does."""
    if maximum <= minimum or holds(minimum) or not holds(maximum):
        return minimum
    for _ in range(_MOST_STEPS):
        if maximum - minimum <= 1:
            break
        middle = (minimum + maximum) // 2
        minimum, maximum = (minimum, middle) if holds(middle) else (middle, maximum)
    return maximum
