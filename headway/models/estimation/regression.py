"""From measurements to parameters: least squares, robust lines, power laws, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.assumptions import fits, predictions
from headway.domain import RowsLaw
from headway.few_numbers import distinct, median_of
from headway.models.arrays import Array
from headway.models.laws.normal import MAD_TO_SD

_MOST_ROUNDS = 3
# Of columns of length one; with less, the coefficients would be rounding errors.
_LEAST_PIVOT = 1e-6


def nonnegative_least_squares(terms: Array, y: Array, weights: Array) -> Array:
    r"""Non-negative coefficients of a sum of terms, by weighted least squares.

    ``terms`` (n, k) has a column per coefficient, and ``y`` (n,) is what their sum should be. The
    weights of the squared residuals, 0 or more, need no normalisation. The coefficient of a column
    of zeros is 0.

    theory.md (E3); Lawson and Hanson (1974). Columns are scaled to one length, since counts of rows
    are mixed with ones.

    >>> terms = np.column_stack([np.ones(3), [0.0, 1e6, 2e6]])
    >>> nonnegative_least_squares(terms, np.array([1.0, 3.0, 5.0]), np.ones(3))
    array([1.0e+00, 2.0e-06])
    """
    root = np.sqrt(weights)
    weighted = terms * root[:, np.newaxis]
    scale = np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)
    # As few rows as columns, with the same solution.
    num_terms = terms.shape[1]
    columns = np.column_stack([weighted / scale, y * root])
    reduced = np.asarray(np.linalg.qr(columns, mode="r"))[:num_terms]
    triangular, reduced_y = reduced[:, :num_terms], reduced[:, num_terms]
    unconstrained = _solved(triangular, reduced_y)
    if unconstrained is not None and unconstrained.min() >= 0.0:
        return np.asarray(unconstrained / scale)
    return np.asarray(_active_set(triangular, reduced_y) / scale)


def _solved(triangular: Array, y: Array) -> Array | None:
    """Coefficients of any sign; None if the terms do not determine all of them."""
    diagonal = np.abs(triangular.diagonal())
    if len(triangular) < triangular.shape[1] or diagonal.min() < _LEAST_PIVOT:
        return None
    return np.asarray(np.linalg.solve(triangular, y))


def _active_set(terms: Array, y: Array) -> Array:
    """Free the coefficient that gains most, one by one; fix at 0 those that would be negative.

    Loading ``scipy.optimize`` for it takes longer than all fits of a profile.
    """
    num_terms = terms.shape[1]
    tolerance = 10 * max(terms.shape) * np.finfo(np.float64).eps * np.abs(terms).sum(axis=0).max()
    coefficients = np.zeros(num_terms)
    is_free = np.zeros(num_terms, dtype=bool)
    for _ in range(_MOST_ROUNDS * num_terms):
        gain = np.where(is_free, -np.inf, terms.T @ (y - terms @ coefficients))
        if gain.max() <= tolerance:
            break
        is_free[int(gain.argmax())] = True
        unconstrained = _least_squares(terms, y, is_free)
        while unconstrained[is_free].min(initial=0.0) < 0:
            falling = is_free & (unconstrained < 0)
            shares = np.full(num_terms, np.inf)
            shares[falling] = coefficients[falling] / (
                coefficients[falling] - unconstrained[falling]
            )
            coefficients += shares.min() * (unconstrained - coefficients)
            # Rounding must not leave the first one to reach 0 slightly off it.
            coefficients[shares == shares.min()] = 0.0
            is_free &= coefficients > tolerance
            unconstrained = _least_squares(terms, y, is_free)
        coefficients = unconstrained
    return coefficients


def _least_squares(terms: Array, y: Array, is_free: NDArray[np.bool_]) -> Array:
    coefficients = np.zeros(terms.shape[1])
    coefficients[is_free] = np.linalg.lstsq(terms[:, is_free], y, rcond=None)[0]
    return coefficients


def is_spread(values: Array) -> bool:
    """Whether batches differ enough in size to separate a slope from an intercept.

    Parameters
    ----------
    values : (n,) array, sizes of batches, none below 0

    **(E2)** A slope is estimated from batches only if their sizes have a coefficient of variation
    of at least 0.25 (two loads of ratio 5/3), else from the tasks within batches by the same rule,
    else from the parts of a task that Spark reports. A single load cannot separate `a` from `b`,
    and a free-running query confounds them: a slow batch makes the next one large, (E47). Tasks
    within a batch are not used where code of the user runs, which may be called for each key: those
    of a key with many rows are cheaper.

    >>> is_spread(np.array([1.0, 1.2, 0.8])), is_spread(np.array([1.0, 3.0]))
    (False, True)
    """
    mean = float(np.mean(values))
    return mean > 0 and float(np.std(values)) / mean >= fits.LEAST_SPREAD_RATIO.value


def is_spread_within(variances: Array, means: Array) -> bool:
    """Whether the tasks of a batch differ enough in size, on average over batches (E2).

    Parameters
    ----------
    variances, means : (n,) arrays, of the rows of the tasks of each batch

    >>> is_spread_within(np.array([9.0]), np.array([10.0]))
    True
    """
    mean = float(np.mean(means))
    return mean > 0 and float(np.sqrt(np.mean(variances))) / mean >= fits.LEAST_SPREAD_RATIO.value


#: Prior mean and deviation of coefficients, each a (k,) array; inf if nothing is known.
Prior: TypeAlias = tuple[Array, Array]


def relative_huber(terms: Array, y: Array, weights: Array, prior: Prior | None = None) -> Array:
    """Non-negative coefficients of a sum of terms, by a robust fit of relative residuals.

    Parameters
    ----------
    terms : (n, k) array, one column per coefficient
    y, weights : (n,) arrays, ``y > 0``; with a prior, the weights of a run sum to 1
    prior : Prior, optional
        Pulls coefficients towards prior values, the more the less the data determine them.

    **(E3)** Coefficients `θ ≥ 0` minimise `Σ_i w_i h(y_i/x_iᵀ θ-1)`, where `h` is Huber's function
    with the bend at 1.345 spreads, and the spread is 1.4826 median absolute residuals. Solved by
    iterated non-negative least squares with weights `w_i ψ_i/(x_iᵀ θ)^2`. The denominator is the
    fit, not the data, which would pull the fit down by about `2c^2`. Columns are scaled to one
    length. If the tasks of several configurations are fitted, a prior is used. The time without
    rows is that of batches that read none, (E32), or else, of Spark's own operators, that of (E46),
    or else what Spark reports of it (launch, deserialization, state commit) give or take 15 ms, 30
    ms with Python workers. A partition costs 0.5 ms, give or take as much. If the data clearly
    contradict the prior, it counts less, as outliers do. In units in which a run as a whole, whose
    batches together have weight 1, is off by a tenth, the prior adds `(0.1/σ_j)^2(θ_j-μ_j)^2`.

    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> relative_huber(np.column_stack([np.ones(4), x]), 2.0 + 0.5 * x, np.ones(4))
    array([2. , 0.5])
    """
    prior_rows = slice(len(y), None)
    least_spread = 1e-9
    if prior is not None:
        prior_mean, prior_sd = prior
        least_spread = fits.RUN_NOISE_RATIO.value
        terms = np.vstack([terms, np.eye(terms.shape[1])])
        y = np.concatenate([y, prior_mean])
        weights = np.concatenate([weights, np.square(fits.RUN_NOISE_RATIO.value / prior_sd)])
    scale = np.square(y)
    scale[prior_rows] = 1.0
    coefficients = nonnegative_least_squares(terms, y, weights / scale)
    for _ in range(50):
        fit = np.maximum(terms @ coefficients, 1e-12)
        residual = y / fit - 1.0
        spread = max(MAD_TO_SD * median_of(np.abs(residual[: prior_rows.start])), least_spread)
        bend = fits.HUBER_SCORE.value * spread
        scale = np.square(fit) / np.minimum(1.0, bend / np.maximum(np.abs(residual), 1e-300))
        if prior is not None:
            # The prior yields where the data clearly contradict it.
            surprise = np.abs(coefficients - prior_mean) / prior_sd
            scale[prior_rows] = np.maximum(surprise / fits.HUBER_SCORE.value, 1.0)
        step = nonnegative_least_squares(terms, y, weights / scale)
        converged = (np.abs(step - coefficients) <= 1e-9 * np.abs(coefficients)).all()
        coefficients = step
        if converged:
            break
    return coefficients


def power_law(x: Array, y: Array, weights: Array) -> RowsLaw:
    """Scale and exponent (0 to 1) of ``y = scale * x ** exponent`` by weighted logarithms.

    If the points do not determine the exponent, it is taken as 1 (proportional), which
    overestimates when it is used for larger ``x``.

    Parameters
    ----------
    x, y : (n,) arrays, > 0
    weights : (n,) array, > 0

    **(E4)** `y = k x^e` by weighted least squares of the logarithms, with `e` kept in `[0, 1]`.
    Rows that a stage reads do not depend on how long it takes, so even batches of nearly one size
    show `e` if `y` follows `x` closely, as behind a partial aggregate: `e = 1` if `x` is not spread
    by (E2), unless ten points or more have a standard error of `e` of at most 0.1. Its variance is
    that of MacKinnon and White (1985, doi:10.1016/0304-4076(85)90158-7), in which a point that the
    line follows counts less, from squared residuals plus those of rounding to whole rows,
    `1/(12y^2)`.

    >>> power_law(np.array([1.0, 4.0]), np.array([3.0, 6.0]), np.ones(2))
    RowsLaw(scale=3.0, exponent=0.5, static_rows=0.0)
    """
    log_x, log_y = np.log(x), np.log(y)
    centred = log_x - np.average(log_x, weights=weights)
    exponent, spread = 1.0, float(np.sum(weights * np.square(centred)))
    if spread > 0.0:
        slope = float(np.sum(weights * centred * log_y)) / spread
        residual = log_y - np.average(log_y, weights=weights) - slope * centred
        # A batch that alone differs in size draws the line to itself.
        own_share = weights * (1.0 / np.sum(weights) + np.square(centred) / spread)
        variance = np.square(residual) + 1.0 / (12.0 * np.square(y))
        variance /= np.square(np.maximum(1.0 - own_share, 1e-6))
        error = float(np.sqrt(np.sum(np.square(weights * centred) * variance))) / spread
        is_exact = error <= fits.MOST_EXPONENT_ERROR.value
        if (is_exact and len(x) >= fits.LEAST_BATCHES_TO_CUT.value) or is_spread(x):
            exponent = min(max(slope, 0.0), 1.0)
    scale = float(np.exp(np.average(log_y - exponent * log_x, weights=weights)))
    return RowsLaw(scale=scale, exponent=exponent)


def lag_one_correlation(residuals: Sequence[Array]) -> float:
    """Correlation of a batch's deviation with that of the batch before, pooled over runs.

    Parameters
    ----------
    residuals : sequence of (n_k,) arrays, deviations of the batches of each run, in order of time

    **(E7)** Lag-one correlation of the residuals, pooled over runs, plus `(1+3 ρ)/N` per run to
    correct its bias (Kendall 1954, doi:10.1093/biomet/41.3-4.403). Kept in `[0, 0.9]`; 0 below ten
    pairs.

    >>> slow = np.sin(np.arange(200) / 20.0)
    >>> lag_one_correlation([slow]) > 0.8
    True
    """
    pairs = sum(len(values) - 1 for values in residuals)
    if pairs < fits.LEAST_BATCHES_TO_CUT.value:
        return 0.0
    product = sum(float(np.sum(values[1:] * values[:-1])) for values in residuals)
    square = sum(float(np.sum(np.square(values))) for values in residuals)
    num_values = sum(len(values) for values in residuals)
    raw = product / square * num_values / pairs if square > 0 else 0.0
    bias = (1.0 + 3.0 * max(raw, 0.0)) * len(residuals) / num_values
    return float(np.clip(raw + bias, 0.0, 0.9))


def drift_exponent(
    log_ratio: Array, log_age: Array, run: NDArray[np.int_], is_fresh: NDArray[np.bool_]
) -> float:
    """How fast durations fall with age: ``duration ~ age ** -exponent``.

    Parameters
    ----------
    log_ratio, log_age : (n,) arrays, logarithms of observed over modelled duration, and of age
    run : (n,) array of int, which run each batch belongs to
    is_fresh : (m,) array of bool, of each run by its number: whether it began in a fresh JVM

    **(E6)** Durations fall with the age of the JVM, `D ∝ age^(-γ)`. `γ` is estimated from
    logarithms with an effect per run. The evidence within runs, `Σ(x̃ỹ)/s^2` with deviations from
    the means of the run and their variance `s^2`, is added to that between at least five runs,
    `Σ(x̄-x̄̄) ȳ/0.08^2`, and to a normal prior of mean 0 and standard deviation 0.2. Runs
    that did not begin in a JVM of at most 30 s are no evidence within: their first minutes are
    compilation of their own code, with which the age of the JVM has little to do. Kept in
    `[0, 0.5]`. Beyond the oldest profiled age `t_0` the factor continues as `1 - γ(1-t_0/t)`, with
    the same slope at `t_0`: `1/t` instead of a power.

    >>> log_age = np.log(np.arange(1.0, 101.0))
    >>> drift_exponent(-0.2 * log_age, log_age, np.zeros(100, dtype=int), np.array([True]))
    0.2
    """
    runs = distinct(run)
    ratio_means = np.array([log_ratio[run == number].mean() for number in runs])
    age_means = np.array([log_age[run == number].mean() for number in runs])
    run_index = np.searchsorted(runs, run)
    ratio_within, age_within = log_ratio - ratio_means[run_index], log_age - age_means[run_index]
    variance = max(float(np.mean(np.square(ratio_within))), 1e-6)
    weight = is_fresh[run_index] / variance
    certainty = np.sum(weight * np.square(age_within))
    evidence = np.sum(weight * age_within * ratio_within)
    # With fewer runs, the other parameters of the model explain their differences.
    if len(runs) >= fits.LEAST_RUNS_TO_COMPARE.value:
        age_deviation = age_means - age_means.mean()
        between_runs = predictions.USUAL_RUN_TO_RUN_RATIO.value**2
        certainty += np.sum(np.square(age_deviation)) / between_runs
        evidence += np.sum(age_deviation * ratio_means) / between_runs
    certainty += 1.0 / fits.USUAL_DRIFT.value**2
    return float(np.clip(-evidence / certainty, 0.0, fits.STEEPEST_DRIFT.value))


def driver_drift_exponent(log_driver: Array, log_age: Array) -> float:
    """How fast times of the driver fall with the age of the JVM.

    Parameters
    ----------
    log_driver, log_age : (m,) arrays, of each run: logarithms of the driver's mean time and age

    **(E35)** Drift of the driver: planning, bookkeeping and job submission run a few times per
    batch, and are compiled long after the loops of the tasks. In addition to (E6), their time is
    `d ∝ age^(-δ)`, without the time for checkpoint files. `δ` is estimated from the means `y` of
    runs, which differ by 12% as those of other jobs do, and a normal prior of mean 0.1 and standard
    deviation 0.1: `δ = (10 - Σ x̃ỹ/0.12^2)/(100 + Σ x̃^2/0.12^2)`, with `x̃` and `ỹ` the deviations
    of the logarithms of age and time from their means. Kept in `[0, 0.5]`. Beyond the oldest
    profiled age it continues as in (E6).

    >>> age = np.log([100.0, 300.0, 900.0])
    >>> driver_drift_exponent(-0.3 * age, age)
    0.225
    >>> driver_drift_exponent(np.zeros(1), np.zeros(1))
    0.1
    """
    driver_off, age_off = log_driver - log_driver.mean(), log_age - log_age.mean()
    certainty = 1.0 / fits.USUAL_DRIVER_DRIFT_SD.value**2
    evidence = fits.USUAL_DRIVER_DRIFT.value * certainty
    certainty += float(np.sum(np.square(age_off))) / predictions.POOLED_SPREAD_RATIO.value**2
    evidence -= float(np.sum(age_off * driver_off)) / predictions.POOLED_SPREAD_RATIO.value**2
    return float(np.clip(evidence / certainty, 0.0, fits.STEEPEST_DRIFT.value))


def run_to_run_ratio(
    log_ratios: Array, num_parameters: int, batch_ratio: float, num_effective: float
) -> float:
    """Spread between runs of one setting: the observed one, drawn towards the usual one.

    Parameters
    ----------
    log_ratios : (m,) array, logarithm of observed over modelled mean duration, one per run
    num_parameters : int, parameters that were fitted on those runs
    batch_ratio : float, coefficient of variation of the batches of one run
    num_effective : float, > 0, effective batches of a run by (E18): correlated batches count less

    **(E5)** Spread between runs of one configuration, with `m` runs, `p` fitted parameters and log
    ratios `g_i` of observed over modelled means: `sqrt((3s_0^2+Σ g_i^2)/(3+max(m-p, 0)))` with
    `s_0 = sqrt(0.08^2+c^2/N)`, where `c` is the coefficient of variation of batches within a run
    and `N` its effective batches by (E18). The usual spread between runs thus counts as three runs,
    and the mean of few batches also varies by chance. The spread `s` of few residuals is itself
    half noise, so the spread in fits of other jobs counts as four more runs: with the
    `M = 3+max(m-p, 0)` runs that `s` stands for, it becomes `sqrt((4·0.12^2+Ms^2)/(4+M))`.

    **(E18)** Noise with correlation `φ^k` at lag `k`: the variance of the mean of `N` batches is
    `v = (1+φ)/(1-φ) - (2 φ(1-φ^N))/(N(1-φ)^2)` times that of independent batches, so `N/v` batches
    are effective.

    Repeats of one setting in one warmed JVM differed by 8% (standard deviation) in the published
    runs that Headway was first compared with.

    >>> run_to_run_ratio(np.array([0.02]), 3, batch_ratio=0.06, num_effective=1.0)
    0.112
    >>> run_to_run_ratio(np.array([0.02]), 3, batch_ratio=0.06, num_effective=1e6)
    0.105
    """
    usual_ratio = predictions.USUAL_RUN_TO_RUN_RATIO.value
    prior_ratio = math.hypot(usual_ratio, batch_ratio / math.sqrt(num_effective))
    spare_runs = max(len(log_ratios) - num_parameters, 0)
    # Residuals count even with as many parameters as runs, since the fit was kept from following.
    residual_square_sum = float(np.sum(np.square(log_ratios)))
    pooled = predictions.POOLED_RUNS.value * predictions.POOLED_SPREAD_RATIO.value**2
    num_runs = predictions.PRIOR_RUNS.value + spare_runs
    run_square_sum = predictions.PRIOR_RUNS.value * prior_ratio**2 + residual_square_sum
    return math.sqrt((pooled + run_square_sum) / (predictions.POOLED_RUNS.value + num_runs))
