"""How far the newest rows of batches are behind the triggers that read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.assumptions.logs import ON_TIME_RATIO
from headway.domain import EventTimeLag
from headway.models.arrays import Array
from headway.profiler.streaming.samples import QueryRun

_MOST_LAGS = 12
_DIGITS_OF_MS = 3


def event_time_lags(runs: Sequence[QueryRun]) -> tuple[EventTimeLag, ...]:
    """The lags of all batches, in groups of equal shares if they are many: theory.md (T5).

    Runs weigh the same, however many batches they have. Runs without a trigger count only if none
    has one: their batches start at any time, so a millisecond decides nothing.
    """
    lags_of_runs_s = [_lags_s(run) for run in runs]
    on_trigger_s = [
        lags_s for run, lags_s in zip(runs, lags_of_runs_s, strict=True) if _trigger_s(run) > 0
    ]
    return _by_share(on_trigger_s or lags_of_runs_s)


def typical_lag_s(run: QueryRun) -> float | None:
    """Median lag of a run [s], since a single row may be from another time; None without any."""
    lags_s = _lags_s(run)
    return float(np.median(lags_s)) if len(lags_s) else None


def _by_share(lags_of_runs_s: Sequence[Array]) -> tuple[EventTimeLag, ...]:
    """Each lag with its share of the batches; runs weigh the same."""
    lags_of_runs_s = [lags_s for lags_s in lags_of_runs_s if len(lags_s)]
    if not lags_of_runs_s:
        return ()
    weights = [np.full(len(lags_s), 1.0 / len(lags_s)) for lags_s in lags_of_runs_s]
    lag_s, lag_index = np.unique(np.concatenate(lags_of_runs_s), return_inverse=True)
    weight = np.bincount(lag_index, np.concatenate(weights))
    share = np.asarray(weight / weight.sum())
    if len(lag_s) > _MOST_LAGS:
        lag_s, share = _in_groups(lag_s, share)
    return tuple(
        EventTimeLag(lag_s=lag_of_group_s, batch_share=min(share_of_group, 1.0))
        for lag_of_group_s, share_of_group in zip(lag_s.tolist(), share.tolist(), strict=True)
    )


def _in_groups(lag_s: Array, share: Array) -> tuple[Array, Array]:
    """Means of consecutive lags that have about the same share together."""
    middle = np.cumsum(share) - 0.5 * share
    _, group = np.unique(np.floor(_MOST_LAGS * middle), return_inverse=True)
    group_share = np.asarray(np.bincount(group, share), dtype=np.float64)
    return np.bincount(group, share * lag_s) / group_share, group_share


def _lags_s(run: QueryRun) -> Array:
    """Of each batch, from its trigger, after which it starts by a few milliseconds."""
    trigger_s = _trigger_s(run)
    lags_s = [
        batch.event_time_lag_s - _behind_trigger_s(batch.started_s, trigger_s)
        for batch in run.batches
        if batch.event_time_lag_s is not None
    ]
    # Spark writes times in whole milliseconds.
    return np.asarray(np.round(lags_s, _DIGITS_OF_MS), dtype=np.float64)


def _trigger_s(run: QueryRun) -> float:
    return 0.0 if run.is_gated else run.configuration.trigger_s


def _behind_trigger_s(started_s: float, trigger_s: float) -> float:
    """How long after its trigger a batch started; 0 for batches not started by a trigger."""
    behind_s = started_s % trigger_s if trigger_s > 0 else 0.0
    return behind_s if behind_s < ON_TIME_RATIO.value * trigger_s else 0.0
