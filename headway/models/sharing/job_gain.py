"""Sharing the windows of a profiled query: batch time, window latency and state of each way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from headway.assumptions.sharing import LEAST_SAVED_RATIO, TRIGGER_RATIOS
from headway.domain import Configuration, EventTimeWindow, JobProfile
from headway.domain.sharing import QueryWindows, SharingGain, SharingWay, WindowsHow
from headway.domain.window_set import WindowSet
from headway.limits import SHORTEST_TRIGGER_S
from headway.models.arrays import Array, Numeric
from headway.models.batches.windows import (
    WindowLatency,
    newest_row_lags,
    update_window_latency,
    why_no_window_law,
    window_law,
)
from headway.models.job.duration import DurationModel
from headway.models.job.setting import MOST_BATCH_ROWS, SettingLaw, setting_law
from headway.models.laws.inverse import averaged_quantile_s
from headway.models.sharing import gain, modes, way_costs
from headway.models.sharing.consolidation import (
    MergePlan,
    present_keys,
    steady_horizon_ms,
    with_rollups,
)
from headway.models.sharing.profiled_windows import (
    WindowSetting,
    assumptions,
    cost_cases,
    setting_of,
)
from headway.units import ms_to_s

_ON_TIME_RATIO = 1.0 + 1e-6  # rows of a batch over those of a trigger interval
_CLOSE_ENOUGH = 1.02


def sharing_gain(
    profile: JobProfile,
    configuration: Configuration,
    windows: WindowSet,
    *,
    rate_per_s: float | None = None,
    num_keys: float | None = None,
    queries: Mapping[str, WindowSet] | None = None,
) -> SharingGain:
    r"""Predicted effect of counting windows in a shared way, from the direct query's profile.

    Every way at the trigger, and the combination of way, trigger and roll-ups with the lowest
    utilisation whose window latency is no higher than that of the direct query.

    Parameters
    ----------
    profile : JobProfile, the direct query, which may count other windows than ``windows``
    configuration : Configuration, slots, shuffle partitions and trigger
    windows : WindowSet
        The windows to count. Costs per copy and state row are assumed to be the same for them.
    rate_per_s : float, optional, as profiled by default [rows/s]
    num_keys : float, optional, of the stream; by default they grow with the rows as profiled
    queries : mapping of str to WindowSet, optional, those that count these windows today, by name

    Notes
    -----
    Enorm 2016 (doi:10.1145/2933267.2933315) on Spark. Panes save copies and state rows, and add a
    second stage (:func:`~headway.models.sharing.gain.panes_change_s`). Fused windows have no second
    stage, but all rows are shuffled. A log has no state, but files. One batch in g/T closes a pane
    and takes longer: p99 is that of the mixture, and windows wait for the longer batches.

    >>> sharing_gain.__name__
    'sharing_gain'
    """
    rate = profile.arrivals.rate_per_s if rate_per_s is None else rate_per_s
    setting = setting_of(profile, configuration, windows, rate, num_keys)
    merges = _merge_plan(setting)
    ways = tuple(_ways(setting, merges))
    horizon_ms = steady_horizon_ms(merges)
    costs = next(cost_cases(setting))
    work_by_mode_s, break_even_windows_ratio, pause_by_mode_s = modes.mode_work(setting, merges)
    busiest_ratio, moved_ratio = modes.partition_deal(setting)
    return SharingGain(
        windows=windows,
        rate_per_s=rate,
        batch_rows=setting.num_rows,
        batch_keys=setting.keys.batch_keys,
        ways=ways,
        best=_best(setting, merges, ways[0])
        if windows.num_copies > 1.0 or not ways[0].is_stable
        else ways[0],
        break_even_rows=gain.break_even_rows(costs, setting.keys, windows),
        break_even_keys=gain.break_even_keys(setting.num_rows, costs, setting.keys, windows),
        rollups=tuple(map(str, merges.rollups)),
        merges_ratio=merges.total_cost(horizon_ms) / merges.naive_cost(horizon_ms),
        work_by_mode_s=work_by_mode_s,
        break_even_windows_ratio=break_even_windows_ratio,
        pause_by_mode_s=pause_by_mode_s,
        busiest_ratio=busiest_ratio,
        moved_ratio=moved_ratio,
        assumed=tuple(assumptions(profile)),
        is_update=setting.is_update,
        queries=tuple(_queries(setting, queries or {})),
    )


def sharing_ways(
    profile: JobProfile, configuration: Configuration, windows: WindowSet, rate_per_s: float
) -> tuple[SharingWay, ...]:
    """Every way at one setting, the direct query first; the log is without roll-ups.

    Parameters
    ----------
    profile, configuration, windows, rate_per_s : as in :func:`sharing_gain`

    Notes
    -----
    Enorm 2016 (doi:10.1145/2933267.2933315), as :func:`sharing_gain`.

    >>> sharing_ways.__name__
    'sharing_ways'
    """
    setting = setting_of(profile, configuration, windows, rate_per_s)
    # Roll-ups save little of a batch, and finding them takes longer than everything else.
    return tuple(_ways(setting, MergePlan(windows=windows, pane_ms=windows.pane_ms)))


def _queries(setting: WindowSetting, queries: Mapping[str, WindowSet]) -> Iterator[QueryWindows]:
    for name, windows in queries.items():
        law = _law(_changed(setting, windows, setting.trigger_s), 0.0)
        yield QueryWindows(
            name=name,
            windows=windows,
            batch_mean_s=float(law.batch_duration_mean_s()),
            utilization_ratio=float(law.utilization_ratio),
        )


def _changed(setting: WindowSetting, windows: WindowSet, trigger_s: float) -> WindowSetting:
    """The setting with other windows, or at another trigger."""
    configuration = replace(setting.configuration, trigger_s=trigger_s)
    return setting_of(setting.profile, configuration, windows, setting.rate_per_s, setting.num_keys)


def _merge_plan(setting: WindowSetting) -> MergePlan:
    rows_per_ms = setting.rate_per_s / 1000.0
    plan = MergePlan(
        windows=setting.windows,
        pane_ms=setting.windows.pane_ms,
        weight=present_keys(max(setting.keys.pane_keys, 1.0), rows_per_ms),
    )
    return with_rollups(plan)


def _ways(setting: WindowSetting, merges: MergePlan) -> Iterator[SharingWay]:
    # Otherwise batches of a way have other rows than those of the direct query.
    is_on_time = setting.num_rows <= setting.rate_per_s * setting.trigger_s * _ON_TIME_RATIO
    has_same_rows = is_on_time and bool(_law(setting, 0.0).is_stable)
    for how in way_costs.ways_of(setting):
        way_setting = (
            setting if has_same_rows or how == "direct" else _settled(how, setting, merges)
        )
        plan = way_costs.cheapest_merges(way_setting, merges)
        cases = cost_cases(way_setting)
        changes = [way_costs.batch_change(how, way_setting, case, plan) for case in cases]
        yield _way(how, way_setting, changes, plan)


def _settled(how: WindowsHow, setting: WindowSetting, merges: MergePlan) -> WindowSetting:
    """The setting with batches of the size at which a way just keeps up, if there is one.

    They are at least those of a trigger interval.
    """

    def keeps_up(num_rows: float) -> bool:
        way_setting = setting.with_rows(num_rows)
        plan = way_costs.cheapest_merges(way_setting, merges)
        costs = next(cost_cases(way_setting))
        every_batch_s, closing_s = way_costs.batch_change(how, way_setting, costs, plan)
        share = gain.closing_share(way_setting.keys.batch_s, setting.windows)
        batch_s = float(way_setting.model.mean_s(num_rows)) + every_batch_s + share * closing_s
        return batch_s <= num_rows / setting.rate_per_s

    enough_rows = setting.rate_per_s * max(setting.trigger_s, SHORTEST_TRIGGER_S)
    few_rows = enough_rows
    while not keeps_up(enough_rows):
        few_rows, enough_rows = enough_rows, 2.0 * enough_rows
        if enough_rows > MOST_BATCH_ROWS:
            return setting
    while enough_rows > few_rows * _CLOSE_ENOUGH:
        halfway_rows = math.sqrt(few_rows * enough_rows)
        if keeps_up(halfway_rows):
            enough_rows = halfway_rows
        else:
            few_rows = halfway_rows
    return setting.with_rows(enough_rows)


def _way(
    how: WindowsHow, setting: WindowSetting, changes: list[gain.BatchTime], plan: MergePlan
) -> SharingWay:
    share = gain.closing_share(setting.keys.batch_s, setting.windows)
    savings_s = [0.0 - (every_batch_s + share * closing_s) for every_batch_s, closing_s in changes]
    every_batch_s, closing_s = changes[0]
    light = _law(setting, every_batch_s)
    # A pane takes its time once, whatever the rows of its batch; several panes are as many as rows.
    heavy = (
        _law(setting, every_batch_s, closing_s)
        if share < 1.0
        else _law(setting, every_batch_s + closing_s)
    )
    is_stable = light.is_stable & heavy.is_stable

    def mixed(of_light: float, of_heavy: float) -> float:
        # No batch is a light one if each closes a pane, whether or not light ones would be stable.
        return of_heavy if share == 1.0 else (1.0 - share) * of_light + share * of_heavy

    def cdf(x_s: Numeric) -> Array:
        return np.asarray(
            (1.0 - share) * light.batch_duration_cdf(x_s) + share * heavy.batch_duration_cdf(x_s)
        )

    mean_s = mixed(float(light.batch_duration_mean_s()), float(heavy.batch_duration_mean_s()))
    return SharingWay(
        how=how,
        trigger_s=setting.trigger_s,
        batch_mean_s=mean_s,
        batch_p99_s=float(averaged_quantile_s(cdf, np.asarray(mean_s), 0.99, is_stable)),
        saved_s=savings_s[0],
        saved_low_s=min(savings_s),
        saved_high_s=max(savings_s),
        utilization_ratio=mixed(float(light.utilization_ratio), float(heavy.utilization_ratio)),
        window_p99_s=_window_p99_s(how, setting, heavy),
        state_rows=_state_rows(how, setting),
        log_rows=_log_rows(setting) if how == "log" else 0.0,
        rollups=tuple(map(str, plan.rollups)) if how == "log" else (),
        is_stable=bool(is_stable),
    )


def _law(setting: WindowSetting, change_s: float, fixed_s: float = 0.0) -> SettingLaw:
    """Latency law of the direct query with batches that are longer or shorter by a given time.

    ``fixed_s`` is added whatever their rows.
    """
    model = setting.model
    if change_s != 0.0:
        # Savings for rows and state are in proportion to the rows.
        at_rows_s = float(model.mean_s(setting.num_rows))
        ratio = max(1.0 + change_s / at_rows_s, 0.05)
        levels = tuple(level.times(ratio) for level in model.levels)
        model = DurationModel(model.driver_s * ratio, levels)
    model = model._replace(driver_s=model.driver_s + fixed_s)
    return setting_law(
        setting.profile, model, rate_per_s=setting.rate_per_s, trigger_s=setting.trigger_s
    )


def _window_p99_s(how: WindowsHow, setting: WindowSetting, heavy: SettingLaw) -> float | None:
    profile = setting.profile
    counted_shape = profile.shape.with_windows(tuple(_event_time_windows(setting.windows)))
    shape = replace(counted_shape, output_mode="update" if setting.is_update else "append")
    windowed = replace(profile, shape=shape)
    if why_no_window_law(windowed) is not None:
        return None
    if how == "log" and not setting.is_update:
        # emit="early": the batch that moves the watermark computes the windows itself.
        assert profile.observed_arrivals is not None
        assert shape.windows_wait_s is not None
        slide_s = ms_to_s(setting.windows.windows[-1].slide_ms)
        lags = newest_row_lags(profile.observed_arrivals, shape.windows_wait_s)
        law: WindowLatency | None = update_window_latency(heavy, slide_s, lags)
    else:
        law = window_law(windowed, heavy)
    return None if law is None else float(law.quantile_s(0.99))


def _event_time_windows(windows: WindowSet) -> Iterator[EventTimeWindow]:
    for spec in windows.windows:
        yield EventTimeWindow(
            kind="tumbling" if spec.slide_ms == spec.size_ms else "sliding",
            size_s=ms_to_s(spec.size_ms),
            slide_s=ms_to_s(spec.slide_ms),
        )


def _open_s(setting: WindowSetting) -> float:
    """Event time before the newest row whose windows are still open, in addition to the windows."""
    return (setting.profile.shape.watermark_delay_s or 0.0) + setting.keys.batch_s


def _state_rows(how: WindowsHow, setting: WindowSetting) -> float:
    """Rows in Spark's state: keys of open windows, and of open panes."""
    if how == "log":
        return 0.0
    rows = setting.keys.pane_keys * gain.windows_touched(setting.windows, _open_s(setting))
    if how != "direct":
        rows += setting.keys.pane_keys * (1.0 + _open_s(setting) / ms_to_s(setting.windows.pane_ms))
    return rows


def _log_rows(setting: WindowSetting) -> float:
    """Rows of the store once panes are compacted."""
    kept_s = ms_to_s(setting.windows.longest_ms) + _open_s(setting)
    return setting.keys.pane_keys * (1.0 + kept_s / ms_to_s(setting.windows.pane_ms))


def _best(setting: WindowSetting, merges: MergePlan, direct: SharingWay) -> SharingWay:
    """The way and trigger with the lowest utilisation, of those that delay no window.

    As fast as possible, the one with the shortest batches.
    """
    best, least_ratio = direct, LEAST_SAVED_RATIO.value
    for factor in TRIGGER_RATIOS.value if setting.trigger_s > 0.0 else (1.0,):
        if 0.0 < factor * setting.trigger_s < SHORTEST_TRIGGER_S:
            continue
        candidate = setting
        if factor != 1.0:
            candidate = _changed(setting, setting.windows, factor * setting.trigger_s)
        for way in _ways(candidate, merges):
            late = (
                direct.window_p99_s is not None
                and (way.window_p99_s or 0.0) > (1.0 + least_ratio) * direct.window_p99_s
            )
            longer = direct.window_p99_s is None and factor > 1.0
            # As fast as possible, a query is always busy, with batches of any length.
            less_busy = (1.0 - least_ratio) * _busy(best)
            is_less_busy = not best.is_stable or _busy(way) < less_busy
            if way.is_stable and is_less_busy and not late and not longer:
                best = way
    return best


def _busy(way: SharingWay) -> float:
    """What the ways at one trigger are compared by."""
    return way.utilization_ratio if way.trigger_s > 0.0 else way.batch_mean_s
