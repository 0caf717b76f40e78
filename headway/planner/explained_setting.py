"""The setting that a plan explains: its latency, and the batch that settles there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from headway.assumptions.planning import WORTHWHILE_LATENCY_RATIO
from headway.domain import Advice, Configuration, JobProfile, StageProfile
from headway.lazy_classes import dataclass
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.models.stages.task_counts import num_tasks_at
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.question import Question
from headway.units import format_duration


@dataclass(frozen=True, kw_only=True)
class ExplainedSetting:
    """A setting under a question, its planned latency, and the batch that settles there.

    Advice about a part of the batch stands only if the batch would be shorter by the share from
    which advice is worthwhile: theory.md (P14).
    """

    question: Question
    configuration: Configuration
    nodes: int
    latency_s: float

    @property
    def size(self) -> tuple[int, int, float]:
        """Its nodes, partitions and trigger interval, as `candidates_at` takes them."""
        return self.nodes, self.configuration.shuffle_partitions, self.configuration.trigger_s

    @property
    def statistic(self) -> str:
        """What the first target is on, such as p99."""
        return self.question.target.statistic

    @cached_property
    def model(self) -> DurationModel:
        """Mean batch duration by rows."""
        return duration_model(self.question.profile, *self.configuration.size)

    @cached_property
    def rows(self) -> float:
        """Rows of the settled batch."""
        rate_per_s = self.question.rate_per_s
        return float(settled_batch_rows(self.model, rate_per_s, self.configuration.trigger_s))

    @cached_property
    def duration_s(self) -> float:
        """Mean duration of the settled batch [s]."""
        return float(self.model.mean_s(self.rows))

    def under(self, question: Question) -> Candidates:
        """The same setting under another question."""
        return candidates_at(question, [self.size])

    def latency_with(self, profile: JobProfile) -> float:
        """Planned latency of the same setting with a changed job [s]."""
        candidates = self.under(replace(self.question, profile=profile))
        return float(candidates.latency_s(profile.arrivals.rate_per_s)[0])

    def if_worthwhile(self, job: JobProfile, text_of: Callable[[str], str]) -> Iterator[Advice]:
        """Advice to change the job, if worthwhile; its text is that of the latency then."""
        improved_s = self.latency_with(job)
        if is_worthwhile(improved_s, self.latency_s):
            yield Advice(text=text_of(format_duration(improved_s)), latency_s=improved_s)

    def is_much(self, saved_s: float) -> bool:
        """Whether saving some time of the batch is worthwhile."""
        return is_worthwhile(self.duration_s - saved_s, self.duration_s)

    def num_tasks(self, stage: StageProfile) -> int:
        return num_tasks_at(stage, self.rows, *self.configuration.size)

    def rows_s(self, stage: StageProfile, share: float) -> float:
        """Time that a share of the rows of a stage takes in one task [s]."""
        return share * stage.task_per_row_s * float(stage.rows.rows(self.rows))

    def stage_s(self, stage: StageProfile) -> float:
        """Time of a stage: its tasks in waves [s]."""
        tasks, partitions = self.num_tasks(stage), self.configuration.shuffle_partitions
        fixed_s = stage.task_fixed_s + stage.task_per_partition_s * partitions
        waves = -(-tasks // self.configuration.num_slots)
        return waves * (fixed_s + self.rows_s(stage, 1.0 / tasks))

    def share_text(self, part_s: float) -> str:
        """A part of the batch, as text."""
        return f"{format_duration(part_s)} of a batch of {format_duration(self.duration_s)}"


def each_latency_s(settings: Candidates, rate_per_s: float) -> list[float]:
    """Planned latencies of a few settings that are printed side by side, each by (T4) [s]."""
    return [float(settings.alone(index).latency_s(rate_per_s)[0]) for index in range(len(settings))]


def is_worthwhile(improved_s: float, now_s: float) -> bool:
    """Whether advice is worthwhile by which a time would become shorter.

    >>> is_worthwhile(0.4, 0.5), is_worthwhile(0.499, 0.5)
    (True, False)
    """
    return improved_s < WORTHWHILE_LATENCY_RATIO.value * now_s
