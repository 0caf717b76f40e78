"""The first batches of runs: which are a warm-up, and in fresh JVMs the cost of a restart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.assumptions.files import COMMITS_PER_SNAPSHOT
from headway.domain import Z90, StateLoad, WarmUp
from headway.domain.profile import is_rocksdb
from headway.models.estimation.warm_up import falling_ratios, slower_start_length
from headway.models.job.calibration import doublings_outside, widened
from headway.models.job.restart import share_of_a_slot, usual_load_speed
from headway.profiler.streaming.fit import DurationFit
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.units import ms_to_s

_LOAD, _FROM_SNAPSHOT = "rocksdbLoadLatencyMs", "rocksdbLoadFromSnapshotLatencyMs"
_REPLAY, _REPLAYED_FILES = "rocksdbReplayChangeLogLatencyMs", "rocksdbNumReplayChangelogFiles"


def num_warm_up_by_rows(samples: Sequence[BatchSample], steady: QueryRun, fit: DurationFit) -> int:
    """Batches of the warm-up of a run under a changing load: theory.md (E1).

    ``fit`` is that of ``steady``, a first guess of the part without warm-up. It is less certain for
    fewer or more rows than that has (P2).
    """
    rows = np.array([float(sample.num_rows) for sample in samples])
    durations_s = np.array([sample.duration_s for sample in samples])
    steady_rows = [float(batch.num_rows) for batch in steady.batches]
    expected_s = np.asarray(fit.model(steady.configuration).mean_s(rows), dtype=np.float64)
    tolerance = Z90 * widened(0.0, doublings_outside(rows, min(steady_rows), max(steady_rows)))
    return slower_start_length(np.log(durations_s / expected_s), tolerance)


def warm_up_of(runs: Sequence[QueryRun], fit: DurationFit) -> WarmUp | None:
    """Excess of the first batches over the fit (E30); None if no fresh JVM is recorded.

    The first query of each application counts, if it started within 30 s.
    """
    fresh_runs = [
        (run, modelled_s)
        for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        if run.early and run.began_in_fresh_jvm
    ]
    if not fresh_runs:
        return None
    loaded = _state_load_of([run for run, _ in fresh_runs])
    first_extra_s, ages_s, ratios = list[float](), list[float](), list[float]()
    for run, modelled_s in fresh_runs:
        model = fit.model(run.configuration)
        # A deviation of this run as a whole is not warm-up.
        run_ratio = float(np.mean([batch.duration_s for batch in run.batches])) / modelled_s
        expected_s = [run_ratio * float(model.mean_s(float(batch.num_rows))) for batch in run.early]
        first_s = run.early[0].duration_s - _load_in_batch_s(run, loaded)
        first_extra_s.append(max(first_s - expected_s[0], 0.0))
        ages_s += [batch.jvm_age_s for batch in run.early[1:]]
        ratios += [
            batch.duration_s / usual_s
            for batch, usual_s in zip(run.early[1:], expected_s[1:], strict=True)
        ]
    points = falling_ratios(np.array(ages_s), np.array(ratios))
    start_age_s = float(np.mean([run.early[0].jvm_age_s for run, _ in fresh_runs]))
    return WarmUp(
        start_age_s=min([start_age_s, *(point.jvm_age_s for point in points)]),
        first_batch_extra_s=float(np.mean(first_extra_s)),
        steady_age_s=max(run.batches[0].jvm_age_s for run, _ in fresh_runs),
        points=points,
        loaded=loaded,
        executor_wait_s=float(np.mean([run.executor_wait_s for run, _ in fresh_runs])),
    )


def _loading_batch(run: QueryRun) -> BatchSample | None:
    """The first batch of a run if it loaded state, by its number and its stores; else None."""
    first = run.first
    has_loaded = first is not None and first.batch_id > 0 and first.state.num_stores > 0
    return first if has_loaded else None


def _state_load_of(fresh_runs: Sequence[QueryRun]) -> StateLoad | None:
    """The last loading of state on record (Z2); None if it is not known apart from the rest.

    Spark reports the last loading of a store in a batch, and an aggregation loads each twice: what
    took no time to load from a snapshot was there already, and says nothing. The tasks of a first
    batch load classes, too, so that their excess counts only if it is at least twice that of a
    first batch without state.
    """
    restarted = [(run, first) for run in fresh_runs if (first := _loading_batch(run)) is not None]
    if not restarted:
        return None
    run, first = restarted[-1]
    if _metrics(first).get(_FROM_SNAPSHOT, 0.0) > 0.0:
        return _reported(run, first)
    without_state_s = [
        _excess_s(fresh, fresh.first)
        for fresh in fresh_runs
        if fresh.first is not None and fresh.first.batch_id == 0
    ]
    if not without_state_s:
        return None
    usual_s = float(np.mean(without_state_s))
    load_s = _excess_s(run, first) - usual_s
    if load_s <= max(usual_s, 0.0):
        return None
    return StateLoad(
        rows=first.state.num_rows,
        num_stores=first.state.num_stores,
        replayed_rows=_usual_replayed_rows(run, first),
        load_s=load_s,
    )


def _load_in_batch_s(run: QueryRun, load: StateLoad | None) -> float:
    """How much longer the first batch of a run took for its state [s]; 0 if it loaded none.

    By the recorded loading, else by the usual one.
    """
    first = _loading_batch(run)
    if first is None:
        return 0.0
    if load is None:
        usual = usual_load_speed(run.state_store)
        replayed_rows = _usual_replayed_rows(run, first)
        load_s = float(usual.task_s(first.state.num_stores, first.state.num_rows, replayed_rows))
    else:
        load_s = load.load_s
    configuration = run.configuration
    slots, partitions = configuration.size
    return float(share_of_a_slot(slots, partitions)) * load_s


def _reported(run: QueryRun, first: BatchSample) -> StateLoad:
    """What the store itself says."""
    metrics = _metrics(first)
    stores = first.state.num_stores
    replay_s = metrics.get(_REPLAY)
    replayed_batches = metrics.get(_REPLAYED_FILES, 0.0) / stores
    return StateLoad(
        rows=first.state.num_rows,
        num_stores=stores,
        replayed_rows=replayed_batches * _changed_rows(run),
        load_s=ms_to_s(metrics.get(_LOAD, metrics[_FROM_SNAPSHOT])),
        replay_s=None if replay_s is None else ms_to_s(replay_s),
    )


def _metrics(batch: BatchSample) -> dict[str, float]:
    """What the stores of all operators report of a batch, together."""
    names = {name for operator in batch.state.operators for name in operator.store_metrics}
    return {
        name: sum(operator.store_metrics.get(name, 0.0) for operator in batch.state.operators)
        for name in names
    }


def _excess_s(run: QueryRun, first: BatchSample) -> float:
    """Time by which the tasks behind exchanges of the first batch exceeded the usual ones [s]."""
    usual_s = float(np.mean([_behind_exchanges_s(batch) for batch in run.batches]))
    return _behind_exchanges_s(first) - usual_s


def _behind_exchanges_s(batch: BatchSample) -> float:
    return sum(stage.run_s for stage in batch.stages if stage.has_parents)


def _usual_replayed_rows(run: QueryRun, first: BatchSample) -> float:
    """Rows changed since the snapshot, if half as many batches passed as there are between two."""
    if is_rocksdb(run.state_store) and not run.has_changelog:
        return 0.0
    return 0.5 * min(COMMITS_PER_SNAPSHOT.value + 1, first.batch_id) * _changed_rows(run)


def _changed_rows(run: QueryRun) -> float:
    """State rows that a batch of the run changed."""
    return float(np.mean([batch.state.num_updated for batch in run.batches]))
