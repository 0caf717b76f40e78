"""The batch that a plan expects, and whether advice about a part of it is worthwhile."""

from __future__ import annotations

from typing import NamedTuple

from headway.assumptions.planning import WORTHWHILE_LATENCY_RATIO
from headway.domain import Configuration, StageProfile
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.models.stages.coalescing import num_tasks_at
from headway.planner.question import Question
from headway.units import format_duration


class PlannedBatch(NamedTuple):
    """The settled batch of a plan: its rows, its mean duration [s], and the setting.

    Notes
    -----
    theory.md (P14). Advice about a part of the batch stands only if the batch would be shorter by
    the share from which advice is worthwhile.
    """

    rows: float
    duration_s: float
    chosen: Configuration

    @classmethod
    def of(cls, question: Question, configuration: Configuration) -> PlannedBatch:
        """The batch at the rate of a question."""
        model = duration_model(
            question.profile, configuration.num_slots, configuration.shuffle_partitions
        )
        rows = float(settled_batch_rows(model, question.rate_per_s, configuration.trigger_s))
        return cls(rows, float(model.mean_s(rows)), configuration)

    def is_much(self, saved_s: float) -> bool:
        """Whether saving some time is worthwhile.

        Examples
        --------
        >>> setting = Configuration(
        ...     executors=1, cores_per_executor=2, shuffle_partitions=8, trigger_s=1.0
        ... )
        >>> batch = PlannedBatch(1000.0, 0.5, setting)
        >>> batch.is_much(0.1), batch.is_much(0.001)
        (True, False)
        """
        remaining_s = self.duration_s - saved_s
        return remaining_s < WORTHWHILE_LATENCY_RATIO.value * self.duration_s

    def num_tasks(self, stage: StageProfile) -> int:
        """Tasks of a stage."""
        return num_tasks_at(stage, self.rows, self.chosen.num_slots, self.chosen.shuffle_partitions)

    def rows_s(self, stage: StageProfile, share: float) -> float:
        """Time that a share of the rows of a stage takes in one task [s]."""
        return share * stage.task_per_row_s * float(stage.rows.rows(self.rows))

    def stage_s(self, stage: StageProfile) -> float:
        """Time of a stage: its tasks in waves [s]."""
        tasks = self.num_tasks(stage)
        fixed_s = stage.task_fixed_s + stage.task_per_partition_s * self.chosen.shuffle_partitions
        waves = -(-tasks // self.chosen.num_slots)
        return waves * (fixed_s + self.rows_s(stage, 1.0 / tasks))

    def share_text(self, part_s: float) -> str:
        """A part of the batch, as text."""
        return f"{format_duration(part_s)} of a batch of {format_duration(self.duration_s)}"
