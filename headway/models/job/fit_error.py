"""How far durations of a setting may be off, given the runs that a profile was fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from headway.assumptions import fits
from headway.domain import Configuration, JobProfile, ObservedSetting, StageProfile
from headway.lazy_classes import dataclass
from headway.models.arrays import Array
from headway.models.batches.microbatch import BoolArray
from headway.models.job.calibration import doublings_beyond, widened
from headway.models.job.duration import coefficient_gains
from headway.models.job.setting import duration_model

_TINY_S = 1e-6


class Shares(NamedTuple):
    """Parts of the mean duration of a batch, relative to that duration.

    ``of_coefficients`` has a row for each stage: what one unit of the time of a task without rows,
    of that per row, and of that per shuffle partition adds [1/s, rows/s, 1/s].
    """

    configuration: Configuration
    num_rows: float
    of_driver: float
    of_coefficients: Array

    @classmethod
    def of(cls, profile: JobProfile, configuration: Configuration, num_rows: float) -> Shares:
        """Parts of the mean duration of a batch, by the costs of a profile.

        theory.md (E40): `g_s/D` and `d/D`. The duration is linear in all costs of tasks, so the
        part of a coefficient is the duration of a job that has no other cost.
        """
        size = configuration.size
        model = duration_model(profile, *size)
        duration_s = max(float(model.mean_s(num_rows)), _TINY_S)
        gained = coefficient_gains(profile.stages, *size, num_rows)
        gained[~_are_followed(profile.stages), 2] = 0.0
        return cls(configuration, num_rows, model.driver_s / duration_s, gained / duration_s)


@dataclass(frozen=True, kw_only=True)
class FitError:
    """The error that remains after a fit to some runs, by the costs in the job's profile."""

    profile: JobProfile
    settings: Sequence[ObservedSetting]  # runs of the profile, and others that were not made yet

    def ratio(self, shares: Shares) -> float:
        """Standard deviation of the fitted over the true mean duration of a batch. [-]

        **(E40)** Error that remains after a fit to runs `i`. A task of stage `s` takes `t = xᵀ θ`
        with `x = (1, n/T, P)` as in (T2), and (E3) fits `θ` by relative residuals. With
        `z_i = x_i/t_i` and the prior's weights `Λ_jj = (0.1/σ_j)^2`, the error of the fit is
        `A^-1(Σ_i z_i e_i + Λ^(1/2) h)`, with `A = Σ_i z_i z_iᵀ + Λ` and `h` the error of the prior.
        All tasks and the driver of a run are off by the same `e_i`, whose standard deviation is
        that between runs, (E5). Let `g_s` be what each coefficient adds to the asked duration `D`,
        and `d/m` the part of the driver, which is a mean over runs. Then `D` is off by
        `w_i = (Σ_s g_sᵀ A_s^-1 z_is + d/m)/D` for each `e_i`, and by `0.1 |Λ^(1/2) A^-1 g_s|/D` for
        the prior. If all batches of the profile have one size, `σ_0` of the fixed time is that of
        (E43). A run counts as two observations that share its `e_i`, its smaller and its larger
        batches, each with the noise of half of its batches, counted as in (E18).
        """
        num_observations = 2 * len(self.settings)
        weights = np.full(num_observations, shares.of_driver / num_observations)
        of_prior = 0.0
        for gained, (columns, inverse, prior) in zip(
            shares.of_coefficients, self._fits, strict=True
        ):
            influence = inverse @ gained
            weights += columns @ influence
            of_prior += float(np.sum(prior * np.square(influence))) * fits.RUN_NOISE_RATIO.value**2
        of_runs = np.square(weights.reshape(-1, 2).sum(axis=1)).sum()
        noise = self.profile.noise
        effective = (1.0 - noise.autocorrelation) / (1.0 + noise.autocorrelation)
        num_batches = np.repeat([setting.num_batches / 2.0 for setting in self.settings], 2)
        of_batches = np.sum(np.square(weights * noise.batch_ratio) / (num_batches * effective))
        return float(np.sqrt(of_runs * noise.run_to_run_ratio**2 + of_batches + of_prior))

    def spread_ratio(self, shares: Shares) -> float:
        """Standard deviation of the logarithm of a run's mean duration over the fitted one.

        **(E41)** Spread of a run around the fitted duration:
        `sqrt(s_r^2 + v + σ^2(d_C^2+d_n^2) + σ_P^2 d_P^2)`. This is (P2) with the variance `v` of
        (E40) instead of `s_r^2 k/m`, which is the average of `v` over the fitted runs themselves.
        """
        # The prior contains what one size leaves open, so it must not count again.
        fitted_profile = replace(
            self.profile, settings=tuple(self.settings), row_cost_half_range_ratio=None
        )
        run_and_fit_ratio = np.hypot(self.profile.noise.run_to_run_ratio, self.ratio(shares))
        size = shares.configuration.size
        slots, partitions, rows = doublings_beyond(fitted_profile, *size, shares.num_rows)
        return float(widened(run_and_fit_ratio, slots, rows, partitions=partitions))

    @cached_property
    def _fits(self) -> tuple[tuple[Array, Array, Array], ...]:
        """For each stage: information from runs, inverse of all information, and prior."""
        of_stages = []
        observations = [
            (setting.configuration.shuffle_partitions, num_rows)
            for setting in self.settings
            for num_rows in _smaller_and_larger(setting)
        ]
        stages = self.profile.stages
        for stage, writes in zip(stages, _are_followed(stages), strict=True):
            per_task = [stage.rows.rows(n) / stage.num_tasks(count) for count, n in observations]
            written = [float(count if writes else 0) for count, _ in observations]
            rows = np.column_stack([np.ones(len(observations)), per_task, written])
            costs_s = [stage.task_fixed_s, stage.task_per_row_s, stage.task_per_partition_s]
            task_s = np.maximum(rows @ np.array(costs_s), _TINY_S)
            columns = rows / task_s[:, np.newaxis]
            prior_sd_s = _prior_sd_s(stage, float(task_s.mean()))
            if self.profile.row_cost_half_range_ratio:
                prior_sd_s[0] = max(self._open_sd_s(stage), _TINY_S)
            prior = np.square(fits.RUN_NOISE_RATIO.value / prior_sd_s)
            # A run has weight one, half for each of its observations.
            inverse = np.linalg.pinv(0.5 * columns.T @ columns + np.diag(prior), hermitian=True)
            of_stages.append((0.5 * columns, inverse, prior))
        return tuple(of_stages)

    def _open_sd_s(self, stage: StageProfile) -> float:
        """Deviation of the fixed time of a task that batches of one size leave open (E43)."""
        profile = self.profile
        rows = stage.rows.rows(float(np.mean(profile.rows_per_batch_range)))
        rows_s = stage.task_per_row_s * rows / stage.num_tasks(profile.baseline.shuffle_partitions)
        return (profile.row_cost_half_range_ratio or 0.0) * rows_s / math.sqrt(3.0)


def _smaller_and_larger(setting: ObservedSetting) -> tuple[float, float]:
    """Mean rows of the smaller and of the larger half of batches that are spread evenly."""
    low, high = setting.rows_per_batch_low, setting.rows_per_batch_high
    return 0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high


def _are_followed(stages: Sequence[StageProfile]) -> BoolArray:
    """Which stages write for an exchange."""
    levels = [stage.level for stage in stages]
    return np.array([max(levels[index:]) > level for index, level in enumerate(levels)])


def _prior_sd_s(stage: StageProfile, task_s: float) -> Array:
    """Prior standard deviations of the coefficients, as in (E3); inf if nothing is known."""
    if stage.separation == "totals":
        fixed_sd_s = task_s / np.sqrt(12.0)  # anything from nothing to all of it
    elif stage.separation == "empty":
        fixed_sd_s = max(fits.EMPTY_BATCH_SD_RATIO.value * stage.task_fixed_s, _TINY_S)
    elif stage.observed is not None and stage.observed.python_ratio is not None:
        fixed_sd_s = fits.USUAL_PARTS_SD_WITH_PYTHON_S.value
    else:
        fixed_sd_s = fits.USUAL_PARTS_SD_S.value
    return np.array([fixed_sd_s, np.inf, fits.USUAL_PARTITION_S.value])
