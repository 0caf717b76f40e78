"""Formulas for the batch time of windows: counted directly, by keys, by panes, fused, by a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from headway.domain import Configuration, JobProfile
from headway.domain.checks import require_not_negative
from headway.domain.window_set import WindowSet
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model
from headway.models.sharing.consolidation import present_keys
from headway.units import ms_to_s, s_to_ms

_TOO_ALIKE = 1e-3
"""Settings whose rows and state rows differ by less of their product yield only one cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchKeys:
    """Distinct keys in a batch and in a pane, and the event time that a batch spans, > 0 [s]."""

    batch_keys: float
    pane_keys: float
    batch_s: float

    def __post_init__(self) -> None:
        require_not_negative("keys", batch_keys=self.batch_keys, pane_keys=self.pane_keys)
        if not 0.0 < self.batch_s < math.inf:
            raise ValueError(f"batch_s is {self.batch_s}; expected a positive number of seconds")


def windows_touched(windows: WindowSet, span_s: float) -> float:
    """Mean number of windows that a span of event time touches: the sum of (H2).

    >>> windows_touched(WindowSet.parse(["60s every 5s"]), 1.0)
    12.2
    """
    return sum(
        (ms_to_s(spec.size_ms) + span_s) / ms_to_s(spec.slide_ms) for spec in windows.windows
    )


def direct_state_writes(keys: BatchKeys, windows: WindowSet) -> float:
    r"""State rows that the direct query writes: one per key and window that a batch touches.

    They are the same in every batch.

    **(H2)** State rows written by a batch with `K_b` keys and event time `T`, if each window is
    counted separately: `U_0 = K_b Σ_i (s_i + T)/l_i` with sizes `s_i` and slides `l_i`. Enorm 2016,
    doi:10.1145/2933267.2933315, applied to Spark's state.

    >>> keys = BatchKeys(batch_keys=1000.0, pane_keys=1000.0, batch_s=1.0)
    >>> direct_state_writes(keys, WindowSet.parse(["60s every 5s"]))
    12200.0
    """
    return keys.batch_keys * windows_touched(windows, keys.batch_s)


def shared_state_writes(keys: BatchKeys, windows: WindowSet) -> tuple[float, float]:
    r"""State rows that panes write in every batch, and additional ones if a batch closes a pane.

    A key is written in its pane, and in every window when a pane closes. If the batch is longer
    than a pane, closing rows are those of all panes that it closes.

    **(H3)** State rows written by a batch with panes of length `g`:
    `U_1 = K_b (1 + T/g) + K_g m T/g` on average, with `m` windows per row and `K_g` keys of a pane.
    Enorm 2016, doi:10.1145/2933267.2933315.

    >>> keys = BatchKeys(batch_keys=1000.0, pane_keys=1000.0, batch_s=1.0)
    >>> shared_state_writes(keys, WindowSet.parse(["60s every 5s"]))
    (1200.0, 12000.0)
    """
    panes = keys.batch_s / ms_to_s(windows.pane_ms)
    closing = keys.pane_keys * windows.num_copies * max(panes, 1.0)
    return keys.batch_keys * (1.0 + panes), closing


def closing_share(batch_s: float, windows: WindowSet) -> float:
    """Share of batches in which a pane closes, at most 1; ``batch_s`` is the event time of a batch.

    Enorm 2016 (doi:10.1145/2933267.2933315): one batch in g/T has more work.

    >>> closing_share(1.0, WindowSet.parse(["60s every 5s"]))
    0.2
    """
    return min(batch_s / ms_to_s(windows.pane_ms), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """Costs that sharing changes, in wall time of a batch.

    ``copy_s``: copying a row for one window. ``state_row_s``: a state row that rows of the batch
    write, including its shuffle. ``second_stage_s``: a stage with state that does nothing;
    ``second_state_s``: a second state in the last stage.
    ``held_row_s``, part of ``state_row_s``: reading a state row that is not written.
    ``closing_row_s``: a state row that a pane writes when it closes; ``state_row_s`` if None.
    ``raw_shuffle_s``: a row that is shuffled without having been combined. ``log_batch_s``: the
    files of a log; ``log_read_s``: a job that reads them; ``log_row_s``: a row of partial windows.
    """

    copy_s: float
    state_row_s: float
    second_stage_s: float
    held_row_s: float = 0.0
    closing_row_s: float | None = None
    second_state_s: float = 0.0
    raw_shuffle_s: float = 0.0
    log_batch_s: float = 0.0
    log_read_s: float = 0.0
    log_row_s: float = 0.0

    def __post_init__(self) -> None:
        require_not_negative("costs", **asdict(self) | {"closing_row_s": self.closing_s})

    @property
    def closing_s(self) -> float:
        """Wall time of a state row that a pane writes when it closes."""
        return self.state_row_s if self.closing_row_s is None else self.closing_row_s


BatchTime: TypeAlias = tuple[float, float]
"""Wall time in every batch, and additional time in one that closes a pane. [s]"""


def shared_state_time(
    costs: UnitCosts, keys: BatchKeys, windows: WindowSet, *, row_s: float
) -> BatchTime:
    r"""Wall time for the state of panes: in every batch, and in addition if a pane closes. [s]

    ``row_s`` is the wall time of a state row that rows of the batch write.

    **(H11)** The state of panes takes `(u - h) K_b (1 + T/g) + h U_0` in every batch, and
    additionally `u_c K_g m` in a batch that closes a pane. In each batch, Spark's state store reads
    all rows that it holds, to find those that the watermark has passed and to create the next
    version. Panes hold the same windows as the direct query, in which reading takes `h` of the time
    `u` per row. After Enorm 2016, doi:10.1145/2933267.2933315.

    >>> costs = UnitCosts(copy_s=0.0, state_row_s=3e-6, second_stage_s=0.0, held_row_s=1e-6)
    >>> keys = BatchKeys(batch_keys=1000.0, pane_keys=1000.0, batch_s=1.0)
    >>> shared_state_time(costs, keys, WindowSet.parse(["60s every 5s"]), row_s=3e-6)
    (0.0146, 0.036)
    """
    every_batch_rows, closing_rows = shared_state_writes(keys, windows)
    held_s = costs.held_row_s * direct_state_writes(keys, windows)
    written_s = max(row_s - costs.held_row_s, 0.0) * every_batch_rows
    return written_s + held_s, costs.closing_s * closing_rows


def panes_change_s(num_rows: float, costs: UnitCosts, keys: BatchKeys, windows: WindowSet) -> float:
    r"""Mean batch time with panes minus that of the direct query, negative if panes are faster. [s]

    ``num_rows`` are the rows of a batch.

    **(H4)** Panes change the time of a batch of `n` rows by `G - b_c (m - 1) n - u (U_0 - U_1)`:
    they add a second stage `G`, and save the copies for `m - 1` windows at `b_c` each and state
    rows at `u` each. The profile of the direct query is sufficient to compute this. If state rows
    differ in cost, `u U_1` is replaced by the mean of (H11). After Enorm 2016,
    doi:10.1145/2933267.2933315.

    >>> costs = UnitCosts(copy_s=5e-8, state_row_s=6e-6, second_stage_s=0.096)
    >>> keys = BatchKeys(batch_keys=1e4, pane_keys=1e4, batch_s=1.0)
    >>> panes_change_s(100_000, costs, keys, WindowSet.parse(["60s every 5s"]))
    -0.475
    """
    before_s = costs.state_row_s * direct_state_writes(keys, windows)
    every_batch_s, closing_s = shared_state_time(costs, keys, windows, row_s=costs.state_row_s)
    after_s = every_batch_s + closing_share(keys.batch_s, windows) * closing_s
    copies_s = costs.copy_s * (windows.num_copies - 1.0) * num_rows
    return costs.second_stage_s - copies_s - (before_s - after_s)


def break_even_rows(costs: UnitCosts, keys: BatchKeys, windows: WindowSet) -> float:
    r"""Number of rows per batch from which panes are faster, for the given keys.

    0 if they always are, ``inf`` if they never are.

    **(H5)** Panes are faster from `n = (G - u (U_0 - U_1))/(b_c (m - 1))` rows on. After Enorm
    2016, doi:10.1145/2933267.2933315. If this is fewer rows than keys, it is only the zero of a
    line, since a batch cannot contain all keys.

    >>> costs = UnitCosts(copy_s=5e-8, state_row_s=6e-6, second_stage_s=0.096)
    >>> windows = WindowSet.parse(["60s every 5s"])
    >>> [round(break_even_rows(costs, BatchKeys(batch_keys=k, pane_keys=k, batch_s=1.0), windows))
    ...     for k in (100.0, 1000.0, 10_000.0)]
    [165164, 80727, 0]
    """
    at_none_s = panes_change_s(0.0, costs, keys, windows)
    per_row_s = costs.copy_s * (windows.num_copies - 1.0)
    if at_none_s <= 0.0:
        return 0.0
    return at_none_s / per_row_s if per_row_s > 0.0 else math.inf


def break_even_keys(
    num_rows: float, costs: UnitCosts, keys: BatchKeys, windows: WindowSet
) -> float:
    r"""Number of keys per batch from which panes are faster, for the given rows (H4).

    0 if they always are, ``inf`` if they never are. The change is linear in the number of keys.

    Parameters
    ----------
    num_rows : float, >= 0, rows of a batch
    keys : BatchKeys, the ratio to the keys of a pane is kept

    >>> costs = UnitCosts(copy_s=5e-8, state_row_s=6e-6, second_stage_s=0.096)
    >>> keys = BatchKeys(batch_keys=100.0, pane_keys=100.0, batch_s=1.0)
    >>> round(break_even_keys(50_000, costs, keys, WindowSet.parse(["60s every 5s"])))
    1328
    """
    pane_keys = keys.pane_keys / keys.batch_keys if keys.batch_keys > 0 else 1.0
    one_key = replace(keys, batch_keys=1.0, pane_keys=pane_keys)
    no_keys = replace(keys, batch_keys=0.0, pane_keys=0.0)
    without_s = panes_change_s(num_rows, costs, no_keys, windows)
    per_key_s = without_s - panes_change_s(num_rows, costs, one_key, windows)
    if without_s <= 0.0:
        return 0.0
    return without_s / per_key_s if per_key_s > 0.0 else math.inf


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
    points = _points(profile)
    if not points:
        return None
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


def _points(profile: JobProfile) -> list[tuple[float, float]]:
    """Rows and state rows of batches at the profiled slots, over their time beyond an empty one."""
    model = duration_model(profile, *profile.baseline.size)
    fixed_s = model.driver_s + sum(float(level.fixed_s) for level in model.levels)
    points = []
    for setting in profile.settings:
        if setting.updated_rows is not None and setting.configuration.size == profile.baseline.size:
            duration_s = setting.batch_duration_mean_s
            left_s = max(duration_s - fixed_s, 0.01 * duration_s)
            points.append((setting.rows_per_batch_middle / left_s, setting.updated_rows / left_s))
    return points


def measured_state_row_s(profile: JobProfile, configuration: Configuration) -> float | None:
    """Wall time of a state row as Spark's state store measured it, over the tasks at a time.

    The `v` of (H10), for updates and commits only.
    """
    if profile.state is None or profile.state.updated_row_s is None:
        return None
    return profile.state.updated_row_s / min(configuration.size)


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
