"""A job at many settings at once: from its profile to the latency distribution of each.

The vectorised path that prediction and search share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.predictions import HIGHEST_QUOTED_UTILIZATION_RATIO
from headway.domain import JobProfile, StageProfile
from headway.few_numbers import together
from headway.lazy_classes import Identity, dataclass
from headway.models.arrays import Array, Numeric, open_probability
from headway.models.batches.microbatch import (
    AffineDuration,
    BoolArray,
    SteadyState,
    steady_state,
    values_of,
)
from headway.models.batches.tuple_latency import (
    tuple_latency_cdf,
    tuple_latency_mean,
    tuple_latency_quantile,
)
from headway.models.job.duration import DurationModel, level_spans
from headway.models.job.state_at_rates import state_follows_rate, with_state_times
from headway.models.laws.distributions import lognormal_cdf, lognormal_quantile

AFTER_COMMIT_PHASES = ("commit_offsets", "other")
MOST_BATCH_ROWS = 1e15
_MOST_AMPLIFICATION = 1.0 / (1.0 - HIGHEST_QUOTED_UTILIZATION_RATIO.value)


@dataclass(frozen=True, slots=True)
class SettingLaw(SteadyState):
    """Durations and latencies at an array of settings, by their moments: theory.md (B15)."""

    @classmethod
    def of(cls, state: SteadyState) -> SettingLaw:
        """The distributions with given moments."""
        return SettingLaw(*values_of(state))

    @property
    def amplification_ratio(self) -> Array:
        """Factor by which an error of the durations is larger in the squares of the intervals (P3).

        **(B8)** Free running, `D' = (a+rD) ξ` with `E ξ^k = (1+c^2)^(k(k-1)/2)`. Then
        `E[D] = a/(1-r)`, `E[D^2] = (1+c^2)(a^2+2ar E[D])/(1-r^2(1+c^2))`, and the third moment
        likewise. The latency is `L = VD + D'`, weighted by `D`. A moment whose denominator is not
        positive is `inf`. Exact.

        So they have a pole at ``r^2 (1 + c^2) = 1``. ``inf`` where unstable.
        """
        denominator = 1.0 - self.offered_load_ratio**2 * (1.0 + self.relative_noise**2)
        amplifies = self.is_stable & (denominator > 0.0)
        return np.where(amplifies, 1.0 / np.where(amplifies, denominator, 1.0), np.inf)

    @property
    def is_quotable(self) -> BoolArray:
        """Whether a setting is so far from saturation that small errors change latencies little."""
        is_close = self.offered_load_ratio > self.allowed_offered_load
        is_close |= self.amplification_ratio > _MOST_AMPLIFICATION
        return np.asarray(self.is_stable & ~is_close)

    @property
    def allowed_offered_load(self) -> Array:
        """Maximum offered load of each setting: theory.md (P3)."""
        return allowed_offered_load(self.relative_noise)

    def batch_duration_mean_s(self) -> Array:
        """Mean batch duration [s]; ``inf`` where unstable."""
        return self.mean_duration_s

    def batch_duration_cdf(self, x_s: Numeric) -> Array:
        """Share of batches that take at most ``x_s``; 0 where unstable."""
        mean_s, cv = self._lognormal()
        return np.where(self.is_stable, lognormal_cdf(x_s, mean_s, cv), 0.0)

    def batch_duration_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the batch duration [s]; ``inf`` where unstable."""
        return np.where(
            self.is_stable, lognormal_quantile(open_probability(q), *self._lognormal()), np.inf
        )

    def tuple_latency_mean_s(self) -> Array:
        """Mean tuple latency [s]; ``inf`` where unstable."""
        return tuple_latency_mean(self)

    def tuple_latency_cdf(self, x_s: Numeric) -> Array:
        """Share of rows with a latency of at most ``x_s``."""
        return tuple_latency_cdf(self, x_s)

    def tuple_latency_quantile_s(self, q: Numeric) -> Array:
        """Quantile of the tuple latency [s]; ``inf`` where unstable."""
        return tuple_latency_quantile(self, q)

    def take(self, selection: NDArray[np.intp] | BoolArray) -> SettingLaw:
        """The distributions at some of the settings."""
        return SettingLaw(*(values[selection] for values in values_of(self)))

    def _lognormal(self) -> tuple[Array, Array]:
        """Mean and coefficient of variation of the durations."""
        stable = self.is_stable
        mean_s = np.where(stable, self.mean_duration_s, 1.0)
        return mean_s, np.where(stable, self.sd_duration_s, 0.0) / mean_s


def joined_laws(laws: Sequence[SettingLaw]) -> SettingLaw:
    """The distributions at several rows of settings as those at one (B3)."""
    return SettingLaw(*map(np.concatenate, zip(*map(values_of, laws), strict=True)))


def duration_model(
    profile: JobProfile, num_slots: int, shuffle_partitions: int, batch_rows: float | None = None
) -> DurationModel:
    """Mean batch duration by rows at a number of slots and partitions.

    Parameters
    ----------
    num_slots, shuffle_partitions : int, >= 1
    batch_rows : float, >= 0, optional, of the batch whose tasks stages have that follow the rows

    **(T1)** A batch of `n` rows takes `D(n) = Σ_j d_j + Σ_ℓ M_ℓ(n)` on average: the mean times
    `d_j` of the driver's phases, and one makespan per level of stages, since a level begins when
    the one before has ended. The rest of Spark's `addBatch`, without its stages, counts as a driver
    phase. The phases after the sink's commit are part of `D`, but no row waits for them; their sum
    is `after_commit_s`.

    **(T10)** In local mode, the slots are threads of one machine: tasks wait for its processors,
    which they share with the driver, the compiler and the collector, and for its disk. With
    `C < C_0` slots, fewer than in any profiled run, the waits are taken to be in proportion to the
    tasks that share: task times are `1-ω(1-C/C_0)` times as long, with `ω` the share of the time of
    a stage's tasks that is neither computing nor collecting garbage. Stages that run code of the
    user are left alone, since that may wait for anything. Executors of a cluster are machines of
    their own.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> float(duration_model(profile, 2, 8).mean_s(16_000.0))
    0.290
    """
    stages, size = stages_on(profile, num_slots), (num_slots, shuffle_partitions)
    levels = level_spans(stages, *size, profile.num_held_rows, batch_rows)
    if not state_follows_rate(profile):
        return DurationModel(profile.driver_s, levels)
    without, full = (
        level_spans(stages, *size, num_rows, batch_rows)
        for num_rows in (0.0, profile.held_rows_at(profile.profiled_rate_per_s))
    )
    return DurationModel(profile.driver_s, with_state_times(profile, levels, without, full))


def stages_on(profile: JobProfile, num_slots: int) -> tuple[StageProfile, ...]:
    """The stages with the waits of so many slots: theory.md (T10).

    Parameters
    ----------
    num_slots : int, >= 1

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> stages_on(profile, 2) == profile.stages
    True
    """
    if not (profile.application.is_local and profile.settings):
        return profile.stages
    profiled_slots = min(setting.configuration.num_slots for setting in profile.settings)
    if num_slots >= profiled_slots:
        return profile.stages
    idle_ratio = 1.0 - num_slots / profiled_slots
    return tuple(stage.with_fewer_waits(idle_ratio) for stage in profile.stages)


def after_commit_s(profile: JobProfile) -> float:
    """Time of a batch that passes after its rows are committed: no row waits for it [s] (T1).

    >>> from headway.formats.profile_file import load_profile
    >>> after_commit_s(load_profile("examples/word-count.profile.yaml"))
    0.0
    """
    return sum(phase.mean_s for phase in profile.driver_phases if phase.name in AFTER_COMMIT_PHASES)


def settled_batch_rows(
    model: DurationModel, rate_per_s: Numeric, trigger_s: Numeric, factor: Numeric = 1.0
) -> Array:
    r"""Rows of a batch that takes just as long as its rows took to arrive.

    They are very many where batches grow without bound.

    Parameters
    ----------
    rate_per_s, trigger_s : float or (n,) array
    factor : float or (n,) array, > 0, multiplies every duration

    **(T3)** Settled rows: `n = λ max(B, fD(n))`, with `f` a factor on all durations. `D` is
    concave, so Newton's rule converges from above to the largest solution. Where `λ fD'(n) ≥ 1`,
    the rows are quadrupled instead; beyond `10^15` there is no solution. Where tasks
    follow the rows (T7), (T9), `D` also has bends upwards: each step then stays between the sizes
    that were too small and too large, or halves their distance.

    >>> settled_batch_rows(DurationModel(0.2, ()), 1000.0, [1.0, 0.0])
    array([1000.,  200.])
    """
    rate, trigger, factors = together(rate_per_s, trigger_s, factor)
    if rate.size == 1:
        values = (array.item() for array in (rate, trigger, factors))
        return _settled_rows_of_one(Identity(model), rate.shape, *values)
    return _settled_rows(model, rate, trigger, factors)


@lru_cache(maxsize=256)  # a plan evaluates the setting that it prints many times
def _settled_rows_of_one(of_model: Identity, shape: tuple[int, ...], *values: float) -> Array:
    rows = _settled_rows(*of_model.nouns, *(np.full(shape, value) for value in values))
    rows.flags.writeable = False
    return rows


def _settled_rows(model: DurationModel, rate: Array, trigger: Array, factors: Array) -> Array:
    rows = rate * np.maximum(trigger, factors * model.mean_s(np.ones_like(rate)))
    low, high = np.zeros_like(rows), np.full_like(rows, np.inf)
    for _ in range(60):
        duration_s, slope_s = factors * model.mean_s(rows), factors * model.tangent_s(rows)
        converging = rate * slope_s < 1.0
        newton = (
            rate * (duration_s - slope_s * rows) / np.where(converging, 1.0 - rate * slope_s, 1.0)
        )
        grown = np.where(converging, newton, 4.0 * np.maximum(rows, 1.0))
        new_rows = np.minimum(np.maximum(rate * trigger, grown), MOST_BATCH_ROWS)
        if model.is_bent:
            is_large = rows >= rate * np.maximum(trigger, duration_s)
            new_rows, low, high = step_between(rows, new_rows, is_large, low, high)
        is_settled = bool(_are_equal(new_rows, rows).all())
        rows = new_rows
        if is_settled:
            break
    return np.asarray(rows)


def step_between(
    rows: Array, new_rows: Array, is_large: BoolArray, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """Newton's step, or half the way between two bounds if it leads to one; and the bounds (T3).

    Parameters
    ----------
    rows, new_rows : (n,) array, >= 0, sizes of batches, and where the rule leads from there
    is_large : (n,) array, whether the sizes are too large
    low, high : (n,) array, sizes that were too small and too large before; ``inf`` if none was

    >>> rows, low, high = np.full(2, 4.0), np.full(2, 2.0), np.full(2, np.inf)
    >>> step_between(rows, np.array([3.5, 2.0]), np.array([True, True]), low, high)[0]
    array([3.5, 3. ])
    """
    low, high = np.where(is_large, low, rows), np.where(is_large, rows, high)
    is_between = (new_rows > low) & (new_rows < high)
    is_taken = is_between | np.isinf(high) | _are_equal(new_rows, rows)
    return np.where(is_taken, new_rows, 0.5 * (low + high)), low, high


def _are_equal(rows: Array, rows_before: Array) -> BoolArray:
    return np.asarray(np.abs(rows - rows_before) <= 1e-9 * (1.0 + rows_before))


def setting_law(
    profile: JobProfile,
    model: DurationModel,
    *,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric = 1.0,
    rows: Array | None = None,
) -> SettingLaw:
    """Latency distribution at many rates, triggers, duration factors, slots and partitions.

    Parameters
    ----------
    model : DurationModel, mean duration by rows at the slots and partitions, or a stack of them
    rate_per_s, trigger_s, factor : float or (n,) array, the factor multiplies every duration
    rows : (n,) array, optional, those of `settled_batch_rows`, if they were computed already

    **(T6)** The distributions of a configuration are those of (B1)-(B6) and (B15) with the tangent
    of `fD` at the settled rows: `b = fD'(n)`, `a = fD(n) - bn`. The share `ρ` (`autocorrelation`)
    of the noise variance lasts, and `ψ` of that (`persistence_ratio`) remains from a batch to the
    next. Searches use these distributions; printed figures are certified by the chain (T4) of the
    same line and noise.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> model = duration_model(profile, 2, 8)
    >>> law = setting_law(profile, model, rate_per_s=16e3, trigger_s=np.array([1.0, 2.0]))
    >>> law.tuple_latency_mean_s().round(2)
    array([0.78, 1.38])
    """
    rate, trigger, factors = together(rate_per_s, trigger_s, factor)
    if rate.size == 1:
        values = (array.item() for array in (rate, trigger, factors))
        return _law_of_one(Identity(profile, model), rate.shape, *values)
    rows = settled_batch_rows(model, rate, trigger, factors) if rows is None else rows
    return _law(profile, model, rows, rate, trigger, factors)


@lru_cache(maxsize=256)
def _law_of_one(of_job: Identity, shape: tuple[int, ...], *values: float) -> SettingLaw:
    profile, model = of_job.nouns
    at = [np.full(shape, value) for value in values]
    return _law(profile, model, settled_batch_rows(model, *at), *at)


def _law(profile: JobProfile, model: DurationModel, rows: Array, *at: Array) -> SettingLaw:
    rate, trigger, factors = at
    slope_s = factors * model.slope_s(rows)
    fixed_s = np.maximum(factors * model.mean_s(rows) - slope_s * rows, 1e-6)
    state = steady_state(
        AffineDuration(
            fixed_s=fixed_s,
            per_row_s=slope_s,
            relative_noise=profile.noise.batch_ratio,
            additive_sd_s=profile.noise.added_sd_s,
            after_commit_s=np.minimum(factors * after_commit_s(profile), fixed_s),
            lasting_share=profile.noise.autocorrelation,
            persistence_ratio=profile.noise.persistence_ratio,
        ),
        rate,
        trigger,
        profile.arrivals.dispersion_ratio,
    )
    return SettingLaw.of(state)


def load_ratio(
    profile: JobProfile,
    model: DurationModel,
    *,
    rate_per_s: Numeric,
    trigger_s: Numeric,
    factor: Numeric,
    rows: Array | None = None,
    highest_offered_load: float = HIGHEST_QUOTED_UTILIZATION_RATIO.value,
) -> Array:
    """Processing time that one second of input adds, over the allowed maximum (P3).

    Up to 1 the backlog stays bounded. If batches outgrow the trigger interval they run back to
    back, and by (B8) their variance is finite if ``r^2 (1 + c^2) < 1``. This does not use the fixed
    point of (B3), which converges slowly where it barely exists.

    Parameters
    ----------
    profile, model, rate_per_s, trigger_s, factor, rows: as in :func:`setting_law`
    highest_offered_load : float, > 0 and <= 1, maximum processing time per second of input

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> model = duration_model(profile, 2, 8)
    >>> load_ratio(profile, model, rate_per_s=[8e3, 16e3], trigger_s=2.0, factor=1.0).round(2)
    array([0.06, 0.11])
    """
    rate, trigger, factors = together(rate_per_s, trigger_s, factor)
    if rows is None:
        rows = settled_batch_rows(model, rate, trigger, factors)
    offered_load = rate * factors * model.slope_s(rows)
    allowed = allowed_offered_load(profile.noise.batch_ratio, highest_offered_load)
    return np.asarray(offered_load / allowed)


def allowed_offered_load(
    relative_noise: Numeric, highest_offered_load: float = HIGHEST_QUOTED_UTILIZATION_RATIO.value
) -> Array:
    """The processing time per second of input at which `load_ratio` is 1 [s/s] (P3).

    It is at most ``highest_offered_load``, above 0 and at most 1, and at most a bound that follows
    from ``relative_noise``, the coefficient of variation of a batch's duration.

    >>> allowed_offered_load([0.1, 0.6]).round(3)
    array([0.9  , 0.857])
    """
    noise = np.asarray(relative_noise, dtype=np.float64)
    return np.minimum(highest_offered_load, 1.0 / np.sqrt(1.0 + noise**2))
