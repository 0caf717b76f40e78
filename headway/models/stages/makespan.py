"""How long a stage of T equal tasks takes on C cores, each core taking the next task in line."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np

from headway.models.arrays import Array, Numeric
from headway.models.laws.distributions import (
    MeanAndSd,
    lognormal_cdf,
    lognormal_partial_expectation,
    max_lognormal,
)
from headway.models.laws.normal import ndtr, ndtri

_DAMPING = 18.0  # e^-18: values that wrap around the transform are damped to 1.5e-8
_SMALLEST_CV = 0.01  # below, the spread of the makespan is proportional to cv
_NEGLIGIBLE = 1e-9
_MOST_CELLS = 8192

#: The step of a lattice of times, the completions of a core expected around each multiple of it,
#: and the variance of their number up to the upper edge of each cell.
_Completions: TypeAlias = tuple[float, Array, Array]


def makespan_moments(num_tasks: int, num_cores: int, cv: float) -> MeanAndSd:
    r"""Mean and standard deviation of the makespan of independent tasks on identical cores.

    Both are in units of the mean task time.

    Parameters
    ----------
    num_tasks, num_cores : int, >= 1, `T` and `C`; all cores are free at the start
    cv : float, 0 to 10
        Coefficient of variation of one task time, taken as lognormal. Rounded to three
        significant digits, so that nearby values share one cached result.

    **(M1)** Exact cases: for `T ≤ C`, (X2) with `n = T`; for `C = 1`, mean `T` and variance
    `T cv^2`; for `cv = 0`, `⌈ T/C⌉`. Below `cv = 0.01` waves of tasks do not mix, and noise adds to
    mean and standard deviation in proportion to `cv`.

    All other cases are a renewal approximation: mean within 2.5%, standard deviation within 35% of
    a simulation for cv 0.05 to 2, 2 to 64 cores and 1.25 to 10 tasks per core.

    >>> makespan_moments(25, 8, 0.0)
    MeanAndSd(mean=4.0, sd=0.0)
    >>> makespan_moments(24, 16, 0.3)
    MeanAndSd(mean=2.29, sd=0.29)
    """
    if num_tasks < 1 or num_cores < 1:
        raise ValueError(f"need at least 1 task and 1 core, got {num_tasks} and {num_cores}")
    if not 0.0 <= cv <= 10.0:
        raise ValueError(f"cv must lie in 0..10, got {cv}")
    return _cached_moments(int(num_tasks), int(num_cores), float(f"{cv:.2e}"))


def makespan_lower_bound(num_tasks: Numeric, num_cores: Numeric) -> Array:
    r"""Lower bound of the mean makespan, in mean task times: one task, or the work evenly divided.

    Parameters
    ----------
    num_tasks, num_cores : float or (n,) array, >= 1

    **(M6)** Lower bound of the mean makespan, whatever the cv: `M ≥ max(1, T/C)`.

    Cheap enough to prune a search before (M1)-(M5) are evaluated.

    >>> float(makespan_lower_bound(24, 16))
    1.5
    """
    tasks = np.asarray(num_tasks, dtype=np.float64)
    cores = np.asarray(num_cores, dtype=np.float64)
    if not (np.all(tasks >= 1.0) and np.all(cores >= 1.0)):
        raise ValueError("num_tasks and num_cores must be at least 1")
    return np.maximum(1.0, tasks / cores)


def mean_first_idle(num_tasks: int, num_cores: int, cv: float) -> float:
    r"""Mean time from which on a core is free for work after the stage, over the mean task time.

    It is 0 if there are more cores than tasks, else the start of one more task (M3), (M5), which
    does not depend on how long that task takes. All cores are free at the start; ``cv`` is from 0
    to 10, as in `makespan_moments`.

    **(M3)** The last task starts when the cores together have completed `T - C` tasks:
    `P(τ > t) = Φ((T-C-1/2-C m(t))/(sqrt(C Var N(t))) )`, made non-increasing. It is set to 0 or 1
    at times when every core has completed one of two possible numbers of tasks and these decide it.
    Mean and variance of `τ` follow by summation.

    >>> mean_first_idle(25, 8, 0.0), mean_first_idle(7, 8, 0.3)
    (3.0, 0.0)
    """
    mean = makespan_moments(num_tasks, num_cores, cv).mean  # also checks the arguments
    return min(_cached_first_idle(int(num_tasks), int(num_cores), float(f"{cv:.2e}")), mean)


@lru_cache(maxsize=65536)
def _cached_first_idle(num_tasks: int, num_cores: int, cv: float) -> float:
    if num_tasks < num_cores or num_cores == 1 or cv == 0.0:
        return float(num_tasks // num_cores)
    if cv < _SMALLEST_CV:
        waves = num_tasks // num_cores
        at_smallest = _cached_first_idle(num_tasks, num_cores, _SMALLEST_CV)
        return waves + cv / _SMALLEST_CV * (at_smallest - waves)
    if _cores_are_desynchronised(num_tasks + 1, num_cores, cv):
        return (num_tasks - (num_cores - 1) * (1.0 + cv * cv) / 2.0) / num_cores
    completions = _completions(num_tasks + 1, num_cores, cv)
    return _last_start(completions, num_tasks + 1, num_cores)[0]


@lru_cache(maxsize=65536)
def _cached_moments(num_tasks: int, num_cores: int, cv: float) -> MeanAndSd:
    if cv == 0.0:
        return MeanAndSd(float(-(-num_tasks // num_cores)), 0.0)
    if num_cores == 1:
        return MeanAndSd(float(num_tasks), cv * float(np.sqrt(num_tasks)))
    if num_tasks <= num_cores:
        return max_lognormal(num_tasks, cv)
    if cv < _SMALLEST_CV:
        # While waves do not overlap, the effect of noise is proportional to its size.
        waves, share = -(-num_tasks // num_cores), cv / _SMALLEST_CV
        at_smallest = _cached_moments(num_tasks, num_cores, _SMALLEST_CV)
        return MeanAndSd(waves + share * (at_smallest.mean - waves), share * at_smallest.sd)
    if _cores_are_desynchronised(num_tasks, num_cores, cv):
        return _desynchronised_moments(num_tasks, num_cores, cv)
    # All cores began together, and waves of tasks are still distinct.
    completions = _completions(num_tasks, num_cores, cv)
    start_mean, start_variance = _last_start(completions, num_tasks, num_cores)
    rest_mean, rest_variance = _rest_after(start_mean, completions, num_cores, cv)
    return MeanAndSd(start_mean + rest_mean, float(np.sqrt(start_variance + rest_variance)))


def _cores_are_desynchronised(num_tasks: int, num_cores: int, cv: float) -> bool:
    """Whether the common start no longer matters when the last task begins."""
    tasks_per_core = num_tasks / num_cores
    # The influence of the start lasts in proportion to the mean residual task time.
    long_enough = tasks_per_core > 5.0 * (1.0 + cv * cv)
    return long_enough and cv * float(np.sqrt(2.0 * tasks_per_core)) > 1.2


def _desynchronised_moments(num_tasks: int, num_cores: int, cv: float) -> MeanAndSd:
    """(M5): the tasks on the other cores are at stationary random positions.

    **(M5)** For `T/C > 5(1+cv^2)` and `cv sqrt(2T/C) > 1.2` the common start no longer matters:
    `H(t) = ∫_0^(t-τ)(1-F)`, `τ = (T-1-(C-1) E[R])/C`, `E[R] = (1+cv^2)/2`, and `T cv^2/C^2` is
    added to the variance.
    """
    mean_residual = (1.0 + cv * cv) / 2.0
    last_start = (num_tasks - 1 - (num_cores - 1) * mean_residual) / num_cores
    reach = _highest_task_time(cv, num_cores)
    after = np.concatenate([np.linspace(0.0, 2.0, 120), np.geomspace(2.0, max(4.0, reach), 80)[1:]])
    finished_others = after - lognormal_partial_expectation(after, 1.0, cv)
    last_finished = lognormal_cdf(after, 1.0, cv)
    mean, variance = _moments_from_cdf(
        after, last_finished * np.clip(finished_others, 0.0, 1.0) ** (num_cores - 1)
    )
    variance += num_tasks * cv * cv / num_cores**2
    return MeanAndSd(last_start + mean, float(np.sqrt(variance)))


def _completions(num_tasks: int, num_cores: int, cv: float) -> _Completions:
    """Tasks that one core completes from a synchronised start, by damped Fourier transform.

    **(M2)** A core that starts at 0 completes `N(t)` tasks. On a lattice, `m̂ = f̂/(1-f̂)` gives the
    expected completions per cell and `m̂^2` the expected ordered pairs, hence
    `Var N(t) = m(t) + 2 (m*dm)(t) - m(t)^2`. The transform is damped by `e^(-18i/N)`, which removes
    the pole at frequency 0 and keeps wrap-around below `10^-7`.
    """
    waves = num_tasks / num_cores
    spread = max(min(cv, 1.0), cv / float(np.sqrt(num_cores))) * float(np.sqrt(waves))
    horizon = waves + 5.0 * spread + (0.5 if cv <= 0.5 else 2.5)
    step = min(cv / 8.0, 0.05)
    # Rounding to the lattice adds step^2/12 to the variance of a task: 15% at the limit.
    step = min(max(step, horizon / _MOST_CELLS), cv / 0.75)
    num_cells = 1 << int(np.ceil(np.log2(horizon / step)))

    num_likely = min(num_cells, int(_highest_task_time(cv, 1) / step) + 2)
    task = np.zeros(num_cells)
    task[:num_likely] = np.diff(
        lognormal_cdf(step * (np.arange(num_likely, dtype=np.float64) + 0.5), 1.0, cv), prepend=0.0
    )
    damping = np.exp(-_DAMPING / num_cells * np.arange(num_cells))
    transform = np.fft.rfft(task * damping)
    renewal = transform / (1.0 - transform)
    per_cell = np.maximum(np.fft.irfft(renewal, num_cells) / damping, 0.0)
    ordered_pairs = np.cumsum(np.fft.irfft(renewal * renewal, num_cells) / damping)
    mean_count = np.cumsum(per_cell)
    variance = np.maximum(mean_count + 2.0 * ordered_pairs - mean_count**2, _NEGLIGIBLE)
    return step, per_cell, variance


def _last_start(completions: _Completions, num_tasks: int, num_cores: int) -> tuple[float, float]:
    """Mean and variance of the start of the last task, by (M3)."""
    step, per_cell, count_variance = completions
    mean_count = np.cumsum(per_cell)
    missing = num_tasks - num_cores - 0.5 - num_cores * mean_count
    not_started = ndtr(missing / np.sqrt(num_cores * count_variance))
    # While waves do not overlap, every core is at one of two counts; the normal approximation must
    # not reach beyond them.
    fewest = np.floor(mean_count)
    two_counts = (mean_count - fewest) * (1.0 - mean_count + fewest)
    waves_apart = count_variance <= 1.02 * two_counts + 10.0 * _NEGLIGIBLE
    not_started[waves_apart & (num_cores * (fewest + 1.0) < num_tasks - num_cores)] = 1.0
    not_started[waves_apart & (num_cores * fewest >= num_tasks - num_cores)] = 0.0
    # The number of completions never decreases; the normal approximation does not ensure that.
    not_started = np.minimum.accumulate(not_started)
    edge = step * (np.arange(len(not_started), dtype=np.float64) + 0.5)
    mean = step * float(not_started.sum())
    second = 2.0 * step * float(edge @ not_started)
    return mean, max(second - mean * mean, 0.0)


def _rest_after(
    last_start: float, completions: _Completions, num_cores: int, cv: float
) -> tuple[float, float]:
    """Mean and variance of what remains once the last task has started.

    **(M4)** The last task starts at `τ = E[τ]`: `P(M ≤ t) = F(t-τ) H(t)^(C-1)` with
    `1 - H(t) = 1 - F(t) + ∫_0^τ(1-F(t-s)) dm(s)`. The variance of `τ` is added.
    """
    step, per_cell, _ = completions
    cell, fraction = divmod(last_start / step + 0.5, 1.0)
    begun = per_cell[: int(cell) + 1].copy()  # tasks that begin before the last one
    begun[-1] *= fraction
    num_ages = min(len(begun), int(_highest_task_time(cv, 1) / step) + 1)
    after = step * np.arange(int(_highest_task_time(cv, num_cores) / step) + 2, dtype=np.float64)
    age = last_start - step * cell + step * np.arange(num_ages + len(after) - 1, dtype=np.float64)
    still_running = 1.0 - lognormal_cdf(age, 1.0, cv)
    others_running = np.correlate(still_running, begun[::-1][:num_ages], mode="valid")
    others_running += 1.0 - lognormal_cdf(last_start + after, 1.0, cv)  # still at the first task
    others_finished = np.clip(1.0 - others_running, 0.0, 1.0)
    return _moments_from_cdf(
        after, lognormal_cdf(after, 1.0, cv) * others_finished ** (num_cores - 1)
    )


def _moments_from_cdf(time: Array, cdf: Array) -> tuple[float, float]:
    """Mean and variance of a non-negative time from its distribution function."""
    remaining = 1.0 - cdf
    mean = _integral(remaining, time)
    second = _integral(2.0 * time * remaining, time)
    return mean, max(second - mean * mean, 0.0)


def _integral(values: Array, time: Array) -> float:
    """Trapezoid rule."""
    return float(0.5 * (values[1:] + values[:-1]) @ np.diff(time))


def _highest_task_time(cv: float, num_cores: int) -> float:
    """A time that the largest of ``num_cores`` task times practically never exceeds."""
    log_variance = float(np.log1p(cv * cv))
    rare = _NEGLIGIBLE if num_cores == 1 else 1e-5 / num_cores
    return float(np.exp(np.sqrt(log_variance) * -ndtri(rare) - log_variance / 2.0))
