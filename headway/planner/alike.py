"""Settings of a streaming query of which one says what another one can do."""

from __future__ import annotations

import numpy as np

from headway.assumptions.predictions import LEAST_CERTIFIED_OVERRUN_RATIO
from headway.models.arrays import Array
from headway.models.job.setting import SettingLaw
from headway.planner.candidates import BoolArray, Candidates, Indices

# A trigger interval that so many batches overrun changes nothing that a count depends on.
_NEARLY_ALL, _NUM_DIGITS = 0.9999, 6
_ROUNDED = 1.0 - 1e-9


def distinct(settings: Candidates, law: SettingLaw) -> Indices:
    """The first of those settings that differ by a trigger only that batches overrun at a rate.

    ``law`` is that of the settings at the rate.
    """
    is_back_to_back = law.is_stable & (law.overrun_probability > _NEARLY_ALL)
    trigger_s = np.where(is_back_to_back, 0.0, settings.trigger_s)
    columns = np.column_stack([_all_but_trigger(settings, law), trigger_s])
    _, firsts = np.unique(columns, axis=0, return_index=True)
    return np.sort(firsts)


def shortest_trigger_first(settings: Candidates, law: SettingLaw) -> Indices:
    """An order in which of those that differ by their trigger only the shortest one comes first."""
    columns = _all_but_trigger(settings, law)
    _, firsts, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return np.lexsort((settings.trigger_s, firsts[inverse.reshape(-1)]))


def is_slower(settings: Candidates, law: SettingLaw, index: int) -> BoolArray:
    """Which settings surely have no lower latency by (T4) at a rate than the one at an index.

    ``law`` is that of the settings at the rate.

    Batches with more time for rows, a longer trigger interval, and more time after an interval of
    that length make intervals and the batches that follow them longer, whatever the noise is:
    `a+r max(B, D)` of (T4) increases in the duration before, and no interval is shorter than `B`.
    So does the latency of a row, unless more of its last batch passes after the commit. That says
    nothing of latencies by moments, of outages and bursts, and of what settings miss besides.
    """
    is_chained = law.overrun_probability > LEAST_CERTIFIED_OVERRUN_RATIO.value
    if settings.question.of_change or not is_chained[index]:
        return np.zeros(len(settings), dtype=np.bool_)
    trigger_s, load = settings.trigger_s, law.offered_load_ratio
    until_end_s = law.fixed_s + load * trigger_s
    until_end_of_index_s = law.fixed_s[index] + load[index] * trigger_s
    until_commit_s = until_end_s - law.after_commit_s
    until_commit_of_index_s = until_end_of_index_s - law.after_commit_s[index]
    not_below = [
        values >= _ROUNDED * of_index
        for values, of_index in (
            (trigger_s, trigger_s[index]),
            (load, load[index]),
            (until_end_s, until_end_of_index_s),
            (until_commit_s, until_commit_of_index_s),
        )
    ]
    return np.asarray(np.logical_and.reduce([is_chained, *not_below]))


def _all_but_trigger(settings: Candidates, law: SettingLaw) -> Array:
    """What settings that differ by their trigger only have in common, in rows."""
    # A trigger may also decide at which rate and upper end a setting is planned: (P4).
    planned = np.round([law.offered_load_ratio, law.fixed_s], _NUM_DIGITS)
    return np.column_stack([settings.nodes, settings.partitions, *planned])
