"""All settings of some node counts at once, held against a target at some rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from headway.domain import Configuration, JobProfile, Metric, Target
from headway.models.arrays import Array, Numeric
from headway.models.calibration import spread_ratio
from headway.models.duration import DurationModel, stacked
from headway.models.predict import HIGHEST_QUOTED_INFLATION
from headway.models.setting import (
    SettingLaw,
    after_commit_s,
    duration_model,
    setting_law,
    settled_batch_rows,
)
from headway.planner.space import SearchSpace

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Settings as parallel arrays; one entry is one (nodes, partitions, trigger)."""

    profile: JobProfile
    space: SearchSpace
    target: Target
    confidence: float
    nodes: NDArray[np.int_]
    partitions: NDArray[np.int_]
    trigger_s: Array

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, chosen: NDArray[np.intp] | BoolArray) -> Candidates:
        """Some of the settings."""
        return Candidates(
            self.profile,
            self.space,
            self.target,
            self.confidence,
            self.nodes[chosen],
            self.partitions[chosen],
            self.trigger_s[chosen],
        )

    def configuration(self, place: int, max_offsets: int | None = None) -> Configuration:
        """One setting as a configuration."""
        return Configuration(
            executors=int(self.nodes[place]) * self.space.executors_per_node,
            cores_per_executor=self.space.cores_per_executor,
            shuffle_partitions=int(self.partitions[place]),
            trigger_s=float(self.trigger_s[place]),
            max_offsets_per_trigger=max_offsets,
        )

    def meets(self, rate_per_s: Numeric) -> BoolArray:
        """Which settings keep the target at the planned confidence and rate."""
        law = self._planned_law(rate_per_s)
        quotable = law.is_stable & (law.inflation_ratio <= HIGHEST_QUOTED_INFLATION)
        limit_s, quantile = self.target.limit_s, self.target.quantile
        if self.target.metric is Metric.BATCH:
            value_s = (
                law.batch_duration_mean_s()
                if quantile is None
                else law.batch_duration_quantile_s(quantile)
            )
            return np.asarray(quotable & (value_s <= limit_s))
        if quantile is None:
            return np.asarray(quotable & (law.tuple_latency_mean_s() <= limit_s))
        # One value of the distribution function instead of the some forty a quantile takes.
        return np.asarray(quotable & (law.tuple_latency_cdf(limit_s) >= quantile))

    def latency_s(self, rate_per_s: Numeric) -> Array:
        """The latency the target is about, at the planned confidence; ``inf`` beyond capacity."""
        law = self._planned_law(rate_per_s)
        quantile = self.target.quantile
        if self.target.metric is Metric.BATCH:
            value_s = (
                law.batch_duration_mean_s()
                if quantile is None
                else law.batch_duration_quantile_s(quantile)
            )
        elif quantile is None:
            value_s = law.tuple_latency_mean_s()
        else:
            value_s = law.tuple_latency_quantile_s(quantile)
        quotable = law.is_stable & (law.inflation_ratio <= HIGHEST_QUOTED_INFLATION)
        return np.where(quotable, value_s, np.inf)

    def overrun_probability(self, rate_per_s: Numeric) -> Array:
        """Probability that a batch outlasts its trigger interval, at the planned confidence."""
        return self._planned_law(rate_per_s).overrun_probability

    def noise_free_rate_per_s(self) -> Array:
        """Highest rate under the target if batches never varied: noise only costs.

        Notes
        -----
        theory.md (P5). The longest batch that the target allows, and the rows it has time for.
        """
        limit_s = self.target.limit_s
        weight = 0.5 if self.target.quantile is None else self.target.quantile
        if self.target.metric is Metric.BATCH:
            longest_s = np.full(len(self), limit_s)
        else:
            allowed_s = limit_s + after_commit_s(self.profile)
            on_grid_s = allowed_s - weight * self.trigger_s
            free_running_s = allowed_s / (1.0 + weight)
            longest_s = np.where(
                on_grid_s <= self.trigger_s, on_grid_s, np.maximum(free_running_s, self.trigger_s)
            )
        model = self._model(num_axes=1)
        rows = _rows_of_duration(model, longest_s)
        interval_s = np.maximum(self.trigger_s, longest_s)
        return np.where(longest_s > 0, rows / np.maximum(interval_s, 1e-9), 0.0)

    def _planned_law(self, rate_per_s: Numeric) -> SettingLaw:
        """The law with all durations at the upper end that the confidence asks for."""
        rows = settled_batch_rows(self._model(num_axes=1), rate_per_s, self.trigger_s)
        spread = spread_ratio(self.profile, self._slots(), self.partitions, rows)
        return setting_law(
            self.profile,
            self._model(num_axes=2),
            rate_per_s=rate_per_s,
            trigger_s=self.trigger_s,
            factor=np.exp(ndtri(self.confidence) * spread),
        )

    def _slots(self) -> NDArray[np.int_]:
        return self.nodes * self.space.num_slots(1)

    def _model(self, num_axes: int) -> DurationModel:
        """The duration models of all settings; those that differ are built once."""
        built: dict[tuple[int, int], DurationModel] = {}
        for key in zip(self._slots().tolist(), self.partitions.tolist(), strict=True):
            if key not in built:
                built[key] = duration_model(self.profile, *key)
        models = [
            built[key] for key in zip(self._slots().tolist(), self.partitions.tolist(), strict=True)
        ]
        return stacked(models, num_axes)


def all_candidates(
    profile: JobProfile,
    space: SearchSpace,
    target: Target,
    confidence: float,
    node_counts: tuple[int, ...],
) -> Candidates:
    """Every setting of the space at some node counts."""
    triggers_s = space.trigger_choices_s(profile, target.limit_s)
    settings = [
        (nodes, partitions, trigger_s)
        for nodes in node_counts
        for partitions in space.partition_choices(profile, nodes)
        for trigger_s in triggers_s
    ]
    nodes, partitions, trigger_s = zip(*settings, strict=True)
    return Candidates(
        profile,
        space,
        target,
        confidence,
        np.array(nodes),
        np.array(partitions),
        np.array(trigger_s, dtype=np.float64),
    )


def _rows_of_duration(model: DurationModel, duration_s: Array) -> Array:
    """Rows of a batch that takes a given time on average; 0 where even an empty one takes longer."""
    rows = np.ones_like(duration_s)
    for _ in range(60):
        gap_s = duration_s - model.mean_s(rows)
        slope_s = np.maximum(model.slope_s(rows), 1e-15)
        # The duration is concave in the rows: a step from below never overshoots.
        rows = np.clip(rows + gap_s / slope_s, 1.0, 1e15)
    return np.where(model.mean_s(np.ones_like(rows)) < duration_s, rows, 0.0)
