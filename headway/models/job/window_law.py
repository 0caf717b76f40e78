"""Window latency of a profiled job, from its plan and its rows, at an array of settings."""

from __future__ import annotations

import numpy as np

from headway.domain import (
    EventTimeWindow,
    Finding,
    FindingCode,
    JobProfile,
    ObservedArrivals,
)
from headway.models.batches.windows import (
    Lags,
    WindowLatency,
    append_window_latency,
    update_window_latency,
)
from headway.models.job.setting import SettingLaw

_FINAL_IN_ONE_BATCH = ("update", "complete")
# Spark's watermark counts whole milliseconds, and a window that ends on it has ended.
_HALF_A_MILLISECOND_S = 0.0005


def why_no_window_law(profile: JobProfile) -> Finding | None:
    """What the profile lacks on its windows; None if it has none, or lacks nothing (T5).

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> hourly = (EventTimeWindow(kind="tumbling", size_s=3600.0, slide_s=3600.0),)
    >>> why_no_window_law(replace(profile, shape=replace(profile.shape, windows=hourly))).code.value
    'no_output_mode'
    """
    shape, arrivals = profile.shape, profile.observed_arrivals
    if not shape.windows:
        return None
    is_append = shape.output_mode == "append"
    lacks = (
        (shape.output_mode is None, FindingCode.NO_OUTPUT_MODE),
        (is_append and shape.watermark_delay_s is None, FindingCode.NO_WATERMARK_DELAY),
        (not shape.emitted_windows, FindingCode.NO_EMITTED_WINDOWS),
        (is_append and shape.watermark_behind_s is None, FindingCode.WATERMARK_BEHIND_UNKNOWN),
        (arrivals is None or not arrivals.lags, FindingCode.NO_EVENT_TIMES),
    )
    return next((Finding(code=code) for is_lacking, code in lacks if is_lacking), None)


def window_law(profile: JobProfile, law: SettingLaw) -> WindowLatency | None:
    """The window latency at the settings of a law, if the profile has all that windows need.

    **(T5)** The window latency of a profiled job is (W2) or (W3) with the slide, watermark delay
    and output mode of its plan. The lags are the distances from the newest event times of batches
    to their triggers, which include the gap between rows, with the shares of batches that had them:
    all runs on a trigger weigh the same, and more than 12 lags are put together in groups of equal
    shares. A lag is negative if a batch still reads rows that arrive while it queries its sources;
    a window whose end plus delay coincides with a trigger is then not missed. Spark's watermark
    counts whole milliseconds and treats a window that ends on it as ended, so half a millisecond is
    subtracted from the lags. Sessions end anywhere on the grid; in update mode their last row
    arrives one gap before their end.

    Of several windows, the one with the longest slide counts. Windows are taken to end on the epoch
    grid of their slide, as Spark's do without an offset.

    **(T8)** Several stateful operators in append mode (since Spark 3.5): the windows are those of
    the last aggregation, and its watermark is `H` behind the query's, so `w + H` takes the place of
    `w` in (W2). A join of two streams adds `max(0, W - min(W_l, W_r))` to `H`, with the watermarks
    `W_l` and `W_r` by which it removes rows of its sides at a watermark `W`: the longer reach of
    its range of event time plus a millisecond, or 0 without a range. Aggregations, sessions and
    deduplications add nothing, and no operator adds a batch: each reads what the one before it
    emits in the same batch, and then emits what its own watermark has passed.

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> from headway.models.job.setting import duration_model, setting_law
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> minutes = (EventTimeWindow(kind="tumbling", size_s=60.0, slide_s=60.0),)
    >>> arrivals = ObservedArrivals(
    ...     counted="rows", rate_p05_per_s=16e3, rate_p50_per_s=16e3, rate_p95_per_s=16e3,
    ...     rate_max_per_s=16e3, event_time_lag_s=0.2,
    ... )
    >>> shape = replace(profile.shape, windows=minutes, output_mode="update")
    >>> windowed = replace(profile, shape=shape, observed_arrivals=arrivals)
    >>> model = duration_model(windowed, 2, 8)
    >>> batches = setting_law(windowed, model, rate_per_s=16e3, trigger_s=2.0)
    >>> float(window_law(windowed, batches).mean_s)
    2.381
    """
    shape, arrivals = profile.shape, profile.observed_arrivals
    if not shape.windows or why_no_window_law(profile) is not None:
        return None
    assert arrivals is not None
    window = max(shape.emitted_windows, key=_slide_s)
    slide_s = _slide_s(window)
    if shape.output_mode in _FINAL_IN_ONE_BATCH:
        # The last row of a session arrives one gap before its end.
        gap_s = window.size_s if window.kind == "session" else 0.0
        lags = newest_row_lags(arrivals, -gap_s)
        return update_window_latency(law, slide_s, lags)
    assert shape.windows_wait_s is not None
    lags = newest_row_lags(arrivals)
    return append_window_latency(law, slide_s, shape.windows_wait_s, lags)


def newest_row_lags(arrivals: ObservedArrivals, more_s: float = 0.0) -> Lags:
    """The lags of a profiled job as its windows count them: theory.md (T5).

    Parameters
    ----------
    arrivals : ObservedArrivals, with event times
    more_s : float, optional, added to each lag [s]

    >>> arrivals = ObservedArrivals(
    ...     counted="rows", rate_p05_per_s=16e3, rate_p50_per_s=16e3, rate_p95_per_s=16e3,
    ...     rate_max_per_s=16e3, event_time_lag_s=0.2,
    ... )
    >>> newest_row_lags(arrivals, 1.0)
    (array([1.1995]), array([1.]))
    """
    lags = arrivals.lags
    lag_s = np.array([lag.lag_s for lag in lags]) - _HALF_A_MILLISECOND_S + more_s
    share = np.array([lag.batch_share for lag in lags])
    return lag_s, share / share.sum()


def _slide_s(window: EventTimeWindow) -> float:
    """Distance of two ends; 0 for sessions, which end anywhere."""
    return window.slide_s or 0.0
