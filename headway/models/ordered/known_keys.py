"""A stage whose keys are known: rows of its tasks at any number of partitions."""

from __future__ import annotations

from dataclasses import field, fields

from headway.domain import StageProfile
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.ordered.placement import dealt_makespan_s
from headway.models.stages.spark_hash import Int32Array, Int64Array, known_partition_loads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyedStage(StageProfile):
    """A stage for which a file contains the frequency of each key.

    ``hashes`` and ``weights`` are those of the listed keys; the others have ``other_share`` of the
    rows, which is taken as evenly spread. Makespans are remembered by partitions and slots.
    """

    hashes: Int32Array | Int64Array
    weights: Array
    other_share: float = 0.0
    makespans: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        StageProfile.__post_init__(self)  # slots make a new class, which `super` does not know
        if not 0.0 <= self.other_share < 1.0:
            raise ValueError(f"other_share is {self.other_share}; expected at least 0, below 1")

    @classmethod
    def of(
        cls,
        stage: StageProfile,
        hashes: Int32Array | Int64Array,
        weights: Array,
        other_share: float = 0.0,
    ) -> KeyedStage:
        """The same stage with its keys."""
        values = {member.name: getattr(stage, member.name) for member in fields(StageProfile)}
        return cls(**values, hashes=hashes, weights=weights, other_share=other_share)

    def shares_at(self, shuffle_partitions: int) -> Array:
        """Share of the rows in each partition. [-]"""
        listed_shares = known_partition_loads(self.hashes, self.weights, shuffle_partitions)
        return listed_shares * (1.0 - self.other_share) + self.other_share / shuffle_partitions

    def row_makespan_ratio(self, num_tasks: int, num_slots: int) -> float | None:
        r"""Time until the last task has processed its rows, over the time of all rows one by one.

        It lies between ``1 / num_slots`` and 1. Each partition is a task.

        **(K11)** A stage with known keys: its rows take `m(P, C)` of their time on one slot. This
        is the makespan (K9) of the loads by (K1); keys that are not listed count as evenly spread
        (see K3). If the keys are given, it replaces the share `h` of one heavy key in (T2). Exact
        without noise and fixed times of tasks. The makespan of equal tasks is a lower bound.
        """
        setting = num_tasks, num_slots
        if setting not in self.makespans:
            makespan = dealt_makespan_s(self.shares_at(num_tasks), num_slots)
            self.makespans[setting] = float(makespan)
        return self.makespans[setting]
