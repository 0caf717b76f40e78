"""The direct query's batch time by rows and state rows, for numbers of keys not profiled."""

from __future__ import annotations

from collections.abc import Sequence

from headway.domain import Configuration, JobProfile, ObservedSetting
from headway.domain.window_set import WindowSet
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model
from headway.models.sharing.consolidation import present_keys
from headway.models.sharing.gain import BatchKeys
from headway.units import s_to_ms

_TOO_ALIKE = 1e-3
"""Settings whose rows and state rows differ by less of their product yield only one cost."""


def keyed_costs(profile: JobProfile) -> tuple[float, float] | None:
    r"""Wall time of a row of the batch, and of a state row that it writes, at the profiled slots.

    From all profiled settings; None without state rows.

    **(H10)** A batch of the direct query takes `D = a + b n + v U_0` for `n` rows and `U_0` state
    rows of (H2). `a` is the time of the driver and of the stages without rows; `b` and `v` follow
    by least squares of the relative errors over the settings, neither below 0. If all settings
    wrote equally many state rows per row, `v` is the time of updates and commits only.

    >>> keyed_costs.__name__
    'keyed_costs'
    """
    settings = [setting for setting in profile.settings if _is_alike(setting, profile.baseline)]
    if not settings:
        return None
    points = [_point(profile, setting) for setting in settings]
    nn, nu = sum(n * n for n, _ in points), sum(n * u for n, u in points)
    uu = sum(u * u for _, u in points)
    n1, u1 = sum(n for n, _ in points), sum(u for _, u in points)
    determinant = nn * uu - nu * nu
    if determinant > _TOO_ALIKE * nn * uu:
        row_s, state_s = (n1 * uu - u1 * nu) / determinant, (u1 * nn - n1 * nu) / determinant
        if row_s >= 0.0 and state_s >= 0.0:
            return row_s, state_s
        return (n1 / nn, 0.0) if state_s < 0.0 else (0.0, u1 / uu)
    state_s = measured_state_row_s(profile, profile.baseline) or 0.0
    return max(n1 - state_s * nu, 0.0) / nn, state_s


def _is_alike(setting: ObservedSetting, baseline: Configuration) -> bool:
    """Whether a setting has recorded state rows, with the slots that the costs are for."""
    configuration = setting.configuration
    return (
        setting.updated_rows is not None
        and configuration.num_slots == baseline.num_slots
        and configuration.shuffle_partitions == baseline.shuffle_partitions
    )


def _point(profile: JobProfile, setting: ObservedSetting) -> tuple[float, float]:
    """Rows and state rows of a setting's batch, over its time beyond that of an empty batch."""
    configuration = setting.configuration
    model = duration_model(profile, *configuration.size)
    fixed_s = model.driver_s + sum(float(level.fixed_s) for level in model.levels)
    left_s = max(setting.batch_duration_mean_s - fixed_s, 0.01 * setting.batch_duration_mean_s)
    rows = setting.rows_per_batch_middle
    return rows / left_s, (setting.updated_rows or 0.0) / left_s


def measured_state_row_s(profile: JobProfile, configuration: Configuration) -> float | None:
    """Wall time of a state row as Spark's state store measured it, over the tasks at a time.

    The `v` of (H10), for updates and commits only.
    """
    if profile.state is None or profile.state.updated_row_s is None:
        return None
    tasks_at_a_time = min(configuration.num_slots, configuration.shuffle_partitions)
    return profile.state.updated_row_s / tasks_at_a_time


def stream_keys(num_keys: float, num_rows: float, batch_s: float, windows: WindowSet) -> BatchKeys:
    """Keys of a batch and a pane, for a stream whose ``num_keys`` keys are equally frequent (H1).

    ``batch_s`` is the event time that a batch of ``num_rows`` spans.

    >>> stream_keys(1000.0, 1000.0, 1.0, WindowSet.parse(["60s every 5s"]))
    BatchKeys(batch_keys=632.1..., pane_keys=993.2..., batch_s=1.0)
    """
    batch_ms = max(s_to_ms(batch_s), 1)
    keys = present_keys(num_keys, num_rows / batch_ms)
    return BatchKeys(batch_keys=keys(batch_ms), pane_keys=keys(windows.pane_ms), batch_s=batch_s)


def keyed_model(
    model: DurationModel, sources: Sequence[bool], *, row_s: float, state_rows_s: float
) -> DurationModel:
    """The model with different costs for rows in the first stage and state rows in the last one.

    They are those of (H10). ``sources`` says which levels of the model read the source. ``row_s``
    is the wall time of a row, ``state_rows_s`` that of all state rows of a batch. Terms that do not
    depend on rows are unchanged.

    >>> from headway.models.job.duration import LevelSpan
    >>> stages = (LevelSpan("read", 0.0, ((2e-6, 1.0, 1.0),)), LevelSpan("write", 0.1, ()))
    >>> float(keyed_model(DurationModel(0.2, stages), (True, False), row_s=1e-6,
    ...     state_rows_s=0.05).mean_s(1e5))
    0.45
    """
    first, last = list(sources).index(True) if True in sources else 0, len(model.levels) - 1
    terms: dict[int, tuple[tuple[float, float, float], ...]] = {}
    terms[first] = ((row_s, 1.0, 1.0),)
    terms[last] = (*terms.get(last, ()), (state_rows_s, 1.0, 0.0))
    levels = tuple(
        level._replace(stage_terms=terms.get(index, ())) for index, level in enumerate(model.levels)
    )
    return model._replace(levels=levels)
