"""A query that counts windows, at one setting: its rows, keys, and costs by what is shared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import compress
from typing import NamedTuple

import numpy as np

from headway.assumptions import sharing
from headway.domain import Configuration, JobProfile
from headway.domain.window_set import WindowSet, WindowSpec
from headway.limits import SHORTEST_TRIGGER_S
from headway.models.job.duration import DurationModel
from headway.models.job.setting import MOST_BATCH_ROWS, duration_model, settled_batch_rows
from headway.models.sharing.gain import (
    BatchKeys,
    UnitCosts,
    direct_state_writes,
    keyed_costs,
    keyed_model,
    measured_state_row_s,
    stream_keys,
    windows_touched,
)
from headway.units import format_duration, ms_to_s, s_to_ms

_STAGES_PHASE = "add_batch"
"""The driver's part of Spark's running of a batch, outside of its stages."""


class WindowSetting(NamedTuple):
    profile: JobProfile
    configuration: Configuration
    windows: WindowSet
    rate_per_s: float
    model: DurationModel
    num_rows: float
    keys: BatchKeys
    num_keys: float | None = None
    state_row_s: float | None = None

    @property
    def trigger_s(self) -> float:
        """Trigger interval of the configuration. [s]"""
        return self.configuration.trigger_s

    @property
    def is_update(self) -> bool:
        """Whether the query emits intermediate results of windows repeatedly."""
        return self.profile.shape.output_mode == "update"

    def with_rows(self, num_rows: float) -> WindowSetting:
        """The setting with batches of other rows, and the keys of these: (T1), (H10)."""
        profile, windows = self.profile, self.windows
        batch_s = max(num_rows / self.rate_per_s, 1e-3)
        if self.num_keys is None:
            keys = _keys(profile, num_rows, batch_s, windows)
            return self._replace(num_rows=num_rows, keys=keys)
        keys = stream_keys(self.num_keys, num_rows, batch_s, windows)
        model, state_row_s = _model_of_keys(profile, self.configuration, windows, keys)
        return self._replace(num_rows=num_rows, keys=keys, model=model, state_row_s=state_row_s)


def windows_of(profile: JobProfile) -> WindowSet | None:
    """The windows of a profiled query, if they can be shared.

    None if it has none, or has session windows, which have no panes.

    Notes
    -----
    Enorm 2016, section 4.2 (doi:10.1145/2933267.2933315): windows of a start, a length, a slide.

    >>> windows_of.__name__
    'windows_of'
    """
    emitted = profile.shape.emitted_windows
    if not emitted or any(window.kind == "session" for window in emitted):
        return None
    by_size = {s_to_ms(window.size_s): window for window in emitted}
    return WindowSet.of(
        WindowSpec(size_ms=size_ms, slide_ms=s_to_ms(window.slide_s or window.size_s))
        for size_ms, window in by_size.items()
    )


def setting_of(
    profile: JobProfile,
    configuration: Configuration,
    windows: WindowSet,
    rate_per_s: float,
    num_keys: float | None = None,
) -> WindowSetting:
    """Rows and keys of a batch at one setting, and the direct query's duration by its rows.

    By (T1) and (T3), and (H10) if keys are given. ``num_keys`` are the keys of the stream; by
    default they grow with the rows as in the profile.
    """
    model, state_row_s = _direct_model(profile, configuration, windows), None
    num_rows = _batch_rows(profile, configuration, model, rate_per_s)
    batch_s = max(num_rows / rate_per_s, 1e-3)
    keys = _keys(profile, num_rows, batch_s, windows)
    if num_keys is not None:
        # Once for the keys of a batch, and once more for the rows of a batch with those keys.
        for _ in range(2):
            keys = stream_keys(num_keys, num_rows, batch_s, windows)
            model, state_row_s = _model_of_keys(profile, configuration, windows, keys)
            num_rows = _batch_rows(profile, configuration, model, rate_per_s)
            batch_s = max(num_rows / rate_per_s, 1e-3)
    return WindowSetting(
        profile, configuration, windows, rate_per_s, model, num_rows, keys, num_keys, state_row_s
    )


def _batch_rows(
    profile: JobProfile, configuration: Configuration, model: DurationModel, rate_per_s: float
) -> float:
    """Rows of a batch of the direct query; if it cannot keep up, those of one that would.

    These are the rows of a trigger interval, and without one those that take as long to arrive as
    the rows of the last profiled batches took.
    """
    trigger_s, limit = configuration.trigger_s, configuration.max_offsets_per_trigger or math.inf
    num_rows = float(settled_batch_rows(model, rate_per_s, trigger_s))
    if num_rows >= MOST_BATCH_ROWS:
        span_s = trigger_s
        if span_s == 0.0 and profile.settings:
            last_setting = profile.settings[-1]
            span_s = last_setting.rows_per_batch_middle / last_setting.rate_per_s
        num_rows = rate_per_s * max(span_s, SHORTEST_TRIGGER_S)
    return min(num_rows, limit)


def _model_of_keys(
    profile: JobProfile, configuration: Configuration, windows: WindowSet, keys: BatchKeys
) -> tuple[DurationModel, float]:
    """Batch time by (H10) at other slots, too, and the wall time of a state row."""
    costs = keyed_costs(profile)
    if costs is None:
        raise ValueError("the profile has no state rows on record")
    row_s, state_row_s = costs
    baseline, profile_windows = profile.baseline, windows_of(profile) or windows
    profiled = duration_model(profile, *baseline.size)
    model = duration_model(profile, *configuration.size)
    slopes_s = [[float(level.slope_at(1.0)) for level in of.levels] for of in (model, profiled)]
    slower = [
        slope_s / profiled_s if profiled_s > 0.0 else 1.0
        for slope_s, profiled_s in zip(*slopes_s, strict=True)
    ]
    state_row_s *= slower[-1]
    keyed = keyed_model(
        model,
        _are_sources(profile),
        row_s=row_s * slower[0] * _rows_ratio(windows, profile_windows),
        state_rows_s=state_row_s * direct_state_writes(keys, windows),
    )
    return keyed, state_row_s


def _rows_ratio(windows: WindowSet, profile_windows: WindowSet) -> float:
    """Time of a row with the copies of other windows, over that with the profiled windows."""
    return 1.0 + sharing.COPIES_SHARE_RATIO.value[0] * (
        windows.num_copies / profile_windows.num_copies - 1.0
    )


def _direct_model(
    profile: JobProfile, configuration: Configuration, windows: WindowSet
) -> DurationModel:
    """The profiled query, with copies and state rows scaled if the windows differ."""
    model = duration_model(profile, *configuration.size)
    profile_windows = windows_of(profile)
    if profile_windows is None or profile_windows == windows:
        return model
    ratio = windows.num_copies / profile_windows.num_copies
    of_rows = _rows_ratio(windows, profile_windows)
    levels = tuple(
        level._replace(
            stage_terms=tuple(
                (per_row_s * (of_rows if is_source else ratio), scale, exponent)
                for per_row_s, scale, exponent in level.stage_terms
            )
        )
        for level, is_source in zip(model.levels, _are_sources(profile), strict=True)
    )
    return model._replace(levels=levels)


def _are_sources(profile: JobProfile) -> list[bool]:
    sources = {stage.level for stage in profile.stages if stage.tasks_rule == "source"}
    return [level in sources for level in dict.fromkeys(stage.level for stage in profile.stages)]


def _keys(profile: JobProfile, num_rows: float, batch_s: float, windows: WindowSet) -> BatchKeys:
    """Keys from the rows that the last stage reads, which are one per map task, key and window."""
    profile_windows = windows_of(profile) or windows
    pane_s = ms_to_s(windows.pane_ms)

    def at(rows: float, span_s: float) -> float:
        state, settings = profile.state, profile.settings
        reduce = profile.stages[-1]
        maps = max((s.num_source_tasks or 1 for s in profile.stages if s.reads_source), default=1)
        if state is not None and state.updated_rows is not None and settings:
            last_setting = settings[-1]
            seen_rows = last_setting.rows_per_batch_middle
            seen_s = max(seen_rows / last_setting.rate_per_s, 1e-3)
            keys = state.updated_rows / windows_touched(profile_windows, seen_s)
            grown = reduce.rows.rows(rows) / max(reduce.rows.rows(seen_rows), 1e-12)
            return min(keys * grown, rows)
        touched = windows_touched(profile_windows, span_s)
        return min(reduce.rows.rows(rows) / maps / touched, rows)

    return BatchKeys(
        batch_keys=at(num_rows, batch_s),
        pane_keys=at(num_rows * pane_s / batch_s, pane_s),
        batch_s=batch_s,
    )


def cost_cases(setting: WindowSetting) -> Iterator[UnitCosts]:
    """Costs with the assumed values of those that the profile does not contain, then the extremes.

    They are in wall time of a batch.

    The time of a state row is as measured: updates and commits per written row, over the tasks that
    run at a time. If keys are given, it follows from (H10), and is as measured for rows that no row
    of the batch writes. A second state in a stage takes as long as tasks of the last stage without
    rows. Assumed costs were measured once, in 2026, on two cores of one machine.
    """
    slots = setting.configuration.num_slots
    per_copy_s = _source_slope_s(setting) / setting.windows.num_copies
    measured_s = measured_state_row_s(setting.profile, setting.configuration)
    state_s = _state_row_s(setting, measured_s)
    stage_s = _second_stage_s(setting)

    def case(share: float, factor: float, state_row_s: float) -> UnitCosts:
        closing_s = state_row_s if measured_s is None else min(measured_s, state_row_s)
        return UnitCosts(
            copy_s=share * per_copy_s,
            state_row_s=state_row_s,
            second_stage_s=stage_s,
            held_row_s=sharing.HELD_ROW_RATIO.value * closing_s,
            closing_row_s=closing_s,
            second_state_s=float(setting.model.levels[-1].fixed_s),
            raw_shuffle_s=factor * sharing.RAW_SHUFFLE_S.value / slots,
            log_batch_s=factor * sharing.LOG_BATCH_S.value,
            log_read_s=factor * sharing.LOG_READ_S.value,
            log_row_s=factor * sharing.LOG_ROW_S.value / slots,
        )

    expected, lowest, highest = sharing.COPIES_SHARE_RATIO.value
    yield case(expected, 1.0, state_s)
    lowest_s = 0.0 if measured_s is None else state_s
    for share in (lowest, highest):
        for factor in (1.0 / sharing.EITHER_WAY_RATIO.value, sharing.EITHER_WAY_RATIO.value):
            for state_row_s in {lowest_s, state_s}:
                yield case(share, factor, state_row_s)


def _second_stage_s(setting: WindowSetting) -> float:
    """A stage with state that does nothing: its tasks, and the driver's part of a stage."""
    on_driver_s = sum(p.mean_s for p in setting.profile.driver_phases if p.name == _STAGES_PHASE)
    levels = setting.model.levels
    return float(levels[-1].fixed_s) + on_driver_s / len(levels)


def _source_slope_s(setting: WindowSetting) -> float:
    """Wall time per row of the batch in the stages that read the source."""
    levels = compress(setting.model.levels, _are_sources(setting.profile))
    return sum(float(level.slope_at(np.asarray(setting.num_rows))) for level in levels)


def _state_row_s(setting: WindowSetting, measured_s: float | None) -> float:
    """Wall time of a state row: as measured, or the total cost of rows in the last stage."""
    if setting.state_row_s is not None:
        return setting.state_row_s
    if measured_s is not None:
        return measured_s
    last = setting.model.levels[-1]
    in_rows_s = float(last.at(np.asarray(setting.num_rows))) - float(last.fixed_s)
    written = direct_state_writes(setting.keys, setting.windows)
    return max(in_rows_s, 0.0) / written if written > 0 else 0.0


def assumptions(profile: JobProfile) -> Iterator[str]:
    """Descriptions of what is assumed since the profile does not contain it.

    Notes
    -----
    :mod:`headway.assumptions.sharing`: measured once each, 2026.

    >>> assumptions.__name__
    'assumptions'
    """
    expected, lowest, highest = sharing.COPIES_SHARE_RATIO.value
    yield f"copies take {expected:.0%} of the time per row ({lowest:.0%} to {highest:.0%})"
    if profile.state is None or profile.state.updated_row_s is None:
        yield "the time of a state row, from 0 to all that a row costs in the last stage"
    yield (
        f"fused: {sharing.RAW_SHUFFLE_S.value * 1e6:.1f} us a shuffled row and slot; log: "
        f"{format_duration(sharing.LOG_BATCH_S.value)} a batch, "
        f"{format_duration(sharing.LOG_READ_S.value)} where windows are due (each half to twice)"
    )
