"""The latency that a target is on: its law at settings, and its lower bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headway.domain import DuringBurst, JobProfile, Metric, Promise, Target
from headway.errors import InputError
from headway.lazy_classes import dataclass
from headway.models.arrays import Array, Numeric
from headway.models.batches.windows import why_no_window_law, window_law
from headway.models.job.setting import SettingLaw, after_commit_s
from headway.planner.question import burst_of
from headway.units import format_rate
from headway.words import words_of

_WINDOW_MODES_WITHOUT_WAIT = ("update", "complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedLatency:
    """One target on one job; if on windows, one that :func:`require_predictable` accepts."""

    profile: JobProfile
    target: Target

    def cdf(self, law: SettingLaw, x_s: Numeric) -> Array:
        """Share of latencies of at most ``x_s``."""
        _, cdf, _ = self._measured(law)
        return cdf(x_s)

    def statistic_s(self, law: SettingLaw) -> Array:
        """The mean or the quantile of the target [s]; ``inf`` if unstable."""
        mean_s, _, quantile_s = self._measured(law)
        return mean_s() if self.target.quantile is None else quantile_s(self.target.quantile)

    def log_excess(self, law: SettingLaw, least_tail: float) -> Array:
        """Distance of each setting from the target: increases with the latency, 0 at the limit.

        The logarithm of the mean over its limit, or of the share beyond the limit over the allowed
        share. This needs one value of the distribution function instead of the ten of a quantile.
        """
        limit_s, (mean_s, cdf, _) = self.target.limit_s, self._measured(law)
        if self.target.quantile is None:
            # The mean latency of session windows may be negative.
            stable_s = np.where(law.is_stable, np.maximum(mean_s(), least_tail), limit_s)
            return np.asarray(np.log(stable_s / limit_s))
        beyond = np.maximum(1.0 - cdf(limit_s), least_tail)
        return np.asarray(np.log(beyond / (1.0 - self.target.quantile)))

    def _measured(
        self, law: SettingLaw
    ) -> tuple[Callable[[], Array], Callable[[Numeric], Array], Callable[[Numeric], Array]]:
        """Mean, distribution function and quantile of what the target is on."""
        if self.target.metric is Metric.BATCH:
            return law.batch_duration_mean_s, law.batch_duration_cdf, law.batch_duration_quantile_s
        if self.target.metric is Metric.WINDOW:
            windows = window_law(self.profile, law)
            assert windows is not None  # checked by require_predictable
            return lambda: windows.mean_s, windows.cdf, windows.quantile_s
        return law.tuple_latency_mean_s, law.tuple_latency_cdf, law.tuple_latency_quantile_s

    @property
    def wait_weight(self) -> float:
        """Minimum wait in trigger intervals, as a bound without noise: theory.md (P5), (P7).

        Rows wait half an interval on average and a share ``q`` of it at a
        quantile. Windows in append mode wait one whole interval for the batch that emits.
        """
        if self.target.metric is Metric.BATCH:
            return 0.0
        if self.target.metric is Metric.WINDOW:
            return 1.0 if self._waits_for_watermark else 0.0
        return 0.5 if self.target.quantile is None else self.target.quantile

    @property
    def after_commit_s(self) -> float:
        """Time of a batch after the end of what the target measures [s]."""
        return 0.0 if self.target.metric is Metric.BATCH else after_commit_s(self.profile)

    @property
    def shift_s(self) -> float:
        """Latency that does not depend on batches: watermark delay and lag of the rows [s]."""
        if self.target.metric is not Metric.WINDOW:
            return 0.0
        return window_shift_s(self.profile)

    @property
    def watermark_s(self) -> float:
        """The part of `shift_s` that is the watermark delay [s]."""
        delay_s = self.profile.shape.watermark_delay_s or 0.0
        return min(delay_s, max(self.shift_s, 0.0)) if self._waits_for_watermark else 0.0

    @property
    def held_back_s(self) -> float:
        """The part of `shift_s` by which joins hold the watermark back [s]: theory.md (T8)."""
        behind_s = self.profile.shape.watermark_behind_s or 0.0
        later_s = max(self.shift_s, 0.0) - self.watermark_s
        return min(behind_s, later_s) if self._waits_for_watermark else 0.0

    @property
    def _waits_for_watermark(self) -> bool:
        mode = self.profile.shape.output_mode
        return self.target.metric is Metric.WINDOW and mode not in _WINDOW_MODES_WITHOUT_WAIT


def window_shift_s(profile: JobProfile) -> float:
    """Minimum time from a window's end until its last row has been read [s]: theory.md (P7).

    **(P7)** Window targets use (T5) instead of (B6). Without noise, there is a lower bound: `w + δ`
    (update mode: the largest lag) does not depend on the batches; of several `δ`, the least counts.
    Append mode then waits for one whole interval and a batch, `max(B, D) + D`, update mode for a
    batch only, since `ξ ≥ 0`. So (P5) holds with `L - w - δ` in place of `L` and the weight 1 or 0
    in place of `q`. If a faster batch falls just before a window's end instead of just after it,
    the latency is not monotone in the rate: a target that is met at the requested rate is met at
    that rate, which implies nothing for lower rates.
    """
    shape, arrivals = profile.shape, profile.observed_arrivals
    lags = () if arrivals is None else arrivals.lags
    lag_s = min((lag.lag_s for lag in lags), default=0.0)
    if shape.output_mode in _WINDOW_MODES_WITHOUT_WAIT:
        window = max(shape.emitted_windows, key=lambda window: window.slide_s or 0.0)
        return lag_s - (window.size_s if window.kind == "session" else 0.0)
    assert shape.windows_wait_s is not None  # checked by require_predictable
    return shape.windows_wait_s + lag_s


def require_predictable(profile: JobProfile, promise: Promise) -> None:
    """Reject a target on windows of which the profile says too little, and too low a burst."""
    burst, rate_per_s = burst_of(promise), profile.arrivals.rate_per_s
    if burst is not None and burst.rate_per_s <= rate_per_s:
        raise InputError(
            f"target '{promise}': the rate of the burst is not above the input rate of "
            f"{format_rate(rate_per_s)}; give the total rate during the burst"
        )
    target = promise.target if isinstance(promise, DuringBurst) else promise
    if not isinstance(target, Target) or target.metric is not Metric.WINDOW:
        return
    if not profile.shape.windows:
        raise InputError(
            f"target '{target}': the profiled query has no windows; "
            "use a target on tuple latency, e.g. 'p99 <= 3s'"
        )
    unavailable = why_no_window_law(profile)
    if unavailable is not None:
        raise InputError(
            f"target '{target}': {words_of(unavailable)}; use a target on tuple latency"
        )
