"""A stage whose keys are known: rows of its tasks at any number of partitions."""

from __future__ import annotations

from dataclasses import fields

from headway.domain import StageProfile
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.ordered.placement import dealt_makespan_s
from headway.models.stages.spark_hash import Int32Array, known_partition_loads
from headway.models.stages.spark_hash64 import Int64Array


class KnownLoads:
    """Shares of the rows of a stage by partition, from hash and frequency of its keys.

    Keys that are not listed have ``other_share`` of the rows, which is taken as evenly spread.
    """

    def __init__(
        self, hashes: Int32Array | Int64Array, weights: Array, other_share: float = 0.0
    ) -> None:
        if not 0.0 <= other_share < 1.0:
            raise ValueError(f"other_share is {other_share}; expected at least 0, below 1")
        self._hashes, self._weights, self._other_share = hashes, weights, other_share
        self._makespans: dict[tuple[int, int], float] = {}

    def of(self, shuffle_partitions: int) -> Array:
        """Share of each partition. [-]"""
        listed_shares = known_partition_loads(self._hashes, self._weights, shuffle_partitions)
        return listed_shares * (1.0 - self._other_share) + self._other_share / shuffle_partitions

    def makespan_ratio(self, shuffle_partitions: int, num_slots: int) -> float:
        r"""Time until the last task has processed its rows, over the time of all rows one by one.

        It lies between ``1 / num_slots`` and 1. Each partition is a task.

        **(K11)** A stage with known keys: its rows take `m(P, C)` of their time on one slot. This
        is the makespan (K9) of the loads by (K1); keys that are not listed count as evenly spread
        (see K3). If the keys are given, it replaces the share `h` of one heavy key in (T2). Exact
        without noise and fixed times of tasks. The makespan of equal tasks is a lower bound.

        >>> import numpy as np
        >>> from headway.models.stages.spark_hash import spark_hash
        >>> loads = KnownLoads(spark_hash(["a", "ab", "abc"], "string"), np.array([2.0, 1.0, 1.0]))
        >>> loads.makespan_ratio(4, 2), loads.makespan_ratio(4, 1)
        (0.5, 1.0)
        """
        setting = shuffle_partitions, num_slots
        if setting not in self._makespans:
            makespan = dealt_makespan_s(self.of(shuffle_partitions), num_slots)
            self._makespans[setting] = float(makespan)
        return self._makespans[setting]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyedStage(StageProfile):
    """A stage for which a file contains the frequency of each key."""

    loads: KnownLoads

    @classmethod
    def of(cls, stage: StageProfile, loads: KnownLoads) -> KeyedStage:
        """The same stage with its keys."""
        field_values = {field.name: getattr(stage, field.name) for field in fields(StageProfile)}
        return cls(**field_values, loads=loads)

    def row_makespan_ratio(self, num_tasks: int, num_slots: int) -> float | None:
        """By the hash of the keys themselves (K11)."""
        return self.loads.makespan_ratio(num_tasks, num_slots)
