"""How long a query takes to start again: the JVM, the session, its state, and its first batch."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headway.assumptions import resources
from headway.domain import Configuration, JobProfile, Restart
from headway.domain.profile import is_rocksdb
from headway.models.arrays import Array, Numeric
from headway.models.job.batch_files import LEAST_INTERVAL_S, commit_files, num_state_stores
from headway.models.job.setting import duration_model, settled_batch_rows


class LoadSpeed(NamedTuple):
    """Time of a task to open a store, and for a row of its snapshot or of its changes since [s]."""

    store_s: float
    row_s: float
    replayed_row_s: float

    def task_s(self, num_stores: Numeric, rows: Numeric, replayed_rows: Numeric) -> Array:
        """Time of tasks to load stores with so many rows together [s]."""
        return np.asarray(
            np.multiply(self.store_s, num_stores)
            + np.multiply(self.row_s, rows)
            + np.multiply(self.replayed_row_s, replayed_rows)
        )


class StartAgain(NamedTuple):
    """What starting again adds to the usual batches [s]."""

    jvm_s: float = 0.0  # before the first batch begins
    session_s: float = 0.0  # likewise
    extra_s: Numeric = 0.0  # of the first batch, for what is done only once
    load_s: Numeric = 0.0  # of the first batch, for its state
    replay_s: Numeric = 0.0  # likewise

    @property
    def before_s(self) -> float:
        """From the start of the process to that of the first batch."""
        return self.jvm_s + self.session_s

    @property
    def longer_s(self) -> Array:
        """How much longer the first batch takes than its rows do."""
        return np.asarray(self.extra_s + self.load_s + self.replay_s)

    def slowed(self, factor: Numeric) -> StartAgain:
        """The same with a first batch that takes ``factor`` times as long (P4)."""
        return self._replace(
            extra_s=np.multiply(factor, self.extra_s),
            load_s=np.multiply(factor, self.load_s),
            replay_s=np.multiply(factor, self.replay_s),
        )


def usual_load_speed(state_store: str | None) -> LoadSpeed:
    """The speed of a kind of state store if none is on record (Z2).

    Parameters
    ----------
    state_store : str or None, the class of its provider; None is Spark's default

    >>> usual_load_speed("RocksDBStateStoreProvider").row_s < usual_load_speed(None).row_s
    True
    """
    if is_rocksdb(state_store):
        return LoadSpeed(
            resources.ROCKSDB_LOADED_STORE_S.value,
            resources.ROCKSDB_LOADED_ROW_S.value,
            resources.ROCKSDB_REPLAYED_ROW_S.value,
        )
    return LoadSpeed(
        resources.LOADED_STORE_S.value, resources.LOADED_ROW_S.value, resources.REPLAYED_ROW_S.value
    )


def load_speed(profile: JobProfile) -> LoadSpeed:
    """The speed at which the state of a job is loaded: as on record, else the usual one (Z2).

    A record has one size of state, so it does not tell what a store takes from what a row takes:
    the usual speed is multiplied by one ratio, or by one for the snapshot and one for the changes
    if the store reports these apart, as RocksDB does since Spark 4.
    """
    usual = usual_load_speed(profile.state_store)
    loaded = None if profile.warm_up is None else profile.warm_up.loaded
    if loaded is None:
        return usual
    if loaded.replay_s is None:
        usual_s = float(usual.task_s(loaded.num_stores, loaded.rows, loaded.replayed_rows))
        ratio = replay_ratio = loaded.load_s / usual_s
    else:
        snapshot_s = max(loaded.load_s - loaded.replay_s, 0.0)
        ratio = snapshot_s / float(usual.task_s(loaded.num_stores, loaded.rows, 0.0))
        usual_s = float(usual.task_s(0.0, 0.0, loaded.replayed_rows))
        replay_ratio = loaded.replay_s / usual_s if usual_s > 0.0 else ratio
    return LoadSpeed(
        ratio * usual.store_s, ratio * usual.row_s, replay_ratio * usual.replayed_row_s
    )


def most_replayed_batches(profile: JobProfile, interval_s: Numeric) -> Array:
    """The most batches whose changes are replayed: those until the next snapshot (Z2).

    There are none if every commit is a snapshot.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> most_replayed_batches(profile, 1.0), most_replayed_batches(profile, 10.0)
    (array(60.), array(11.))
    """
    files = commit_files(profile)
    if not files.keeps_changes:
        return np.zeros_like(np.asarray(interval_s, dtype=np.float64))
    by_maintenance = files.maintenance_s / np.maximum(interval_s, LEAST_INTERVAL_S)
    return np.asarray(np.maximum(by_maintenance, float(files.commits_per_snapshot)))


def start_again(
    profile: JobProfile,
    size: tuple[Numeric, Numeric],
    *,
    interval_s: Numeric,
    batch_rows: Numeric,
    replayed_batches: Numeric | None = None,
    rate_per_s: Numeric | None = None,
) -> StartAgain | None:
    """What a job takes longer when it starts again in a new JVM; None if no start is on record.

    Parameters
    ----------
    size : two int or (n,) arrays, >= 1, task slots, and shuffle partitions
    interval_s, batch_rows : float or (n,) array, > 0, time between two batches [s], and their rows
    replayed_batches : float or (n,) array, optional, since the snapshot; by default the most
    rate_per_s : float or (n,) array, optional, whose state is loaded (E36); by default the arrivals

    **(Z2)** Starting again: `R = a_J + a_S + L + f(D(n) + x)`, from the start of the process to the
    end of the first batch. `a_J` is the time until an executor is there: what a JVM takes until the
    application begins, and the recorded wait for an executor after that. `a_S` is the recorded time
    from then to the first batch, which opens the session and plans the query; `n` are the rows that
    wait by then, `f` is the factor of (P4), and `x` what the recorded first batch took beyond its
    rows (E30) and its state. The state of `S` rows is in `P` partitions, with `m` stores together,
    each with its snapshot and `k` batches of `u` changed rows since. Tasks load it on `c` slots:
    `L = ⌈P/c⌉/P (m l_0 + S l_1 + k u l_2)`. For RocksDB without changelogs `k = 0`. Otherwise
    snapshots are made by maintenance, after `minDeltasForSnapshot` batches at least, so that `k` is
    at most the larger of that number and the maintenance interval over that of batches. `u` is
    proportional to the rows of a batch, and at most `S`. `l_0`, `l_1` and `l_2` are the usual ones
    of the kind of store, times a ratio from the first batch of a run that went on from a
    checkpoint: what RocksDB reports, if it reports any loading from a snapshot; else the time by
    which the tasks behind exchanges exceeded the usual ones, minus the same of a batch without
    state, if that is the smaller part. The ratio is 1 if neither is on record.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> start_again(profile, (2, 8), interval_s=1.0, batch_rows=1000.0) is None
    True
    """
    warm_up = profile.warm_up
    if warm_up is None:
        return None
    extra = StartAgain(
        resources.JVM_START_S.value + warm_up.executor_wait_s,
        warm_up.start_age_s,
        warm_up.first_batch_extra_s,
    )
    state = profile.state
    if state is None or not profile.num_state_rows:
        return extra
    if replayed_batches is None:
        replayed_batches = most_replayed_batches(profile, interval_s)
    # State rows that a batch changes, in proportion to its rows; all of them if not recorded.
    changed_rows = np.asarray(batch_rows, dtype=np.float64)
    if state.updated_rows is not None and profile.settings:
        last_rows = profile.settings[-1].rows_per_batch_middle
        changed_rows = changed_rows * state.updated_rows / last_rows
    rate_per_s = profile.arrivals.rate_per_s if rate_per_s is None else rate_per_s
    state_rows = state.rows_at(np.asarray(rate_per_s) / profile.profiled_rate_per_s)
    changed_rows = np.minimum(changed_rows, state_rows)
    speed, share = load_speed(profile), share_of_a_slot(*size)
    stores = num_state_stores(profile, size[1])
    return extra._replace(
        load_s=share * speed.task_s(stores, state_rows, 0.0),
        replay_s=share * speed.task_s(0.0, 0.0, replayed_batches * changed_rows),
    )


def share_of_a_slot(num_slots: Numeric, partitions: Numeric) -> Array:
    """Share of the time of all tasks that passes while the busiest slot runs its own (Z2).

    Parameters
    ----------
    num_slots, partitions : int or (n,) array, >= 1

    >>> float(share_of_a_slot(2, 4)), float(share_of_a_slot(8, 4))
    (0.5, 0.25)
    """
    return np.asarray(np.ceil(np.divide(partitions, num_slots)) / partitions)


def restart_of(
    profile: JobProfile,
    configuration: Configuration,
    batch_rows: float,
    *,
    usual_rows: float | None = None,
    factor: float = 1.0,
    replayed_batches: float | None = None,
) -> Restart | None:
    """From the start of the process to the end of the first batch; None if none is on record (Z2).

    ``usual_rows`` are those of the batches before, by default as many; ``factor`` multiplies what
    is not known before (P4); ``replayed_batches`` are since the snapshot, by default the most.
    """
    model = duration_model(profile, *configuration.size)
    usual_rows = batch_rows if usual_rows is None else usual_rows
    start = start_again(
        profile,
        configuration.size,
        interval_s=max(configuration.trigger_s, float(model.mean_s(usual_rows))),
        batch_rows=usual_rows,
        replayed_batches=replayed_batches,
    )
    if start is None:
        return None
    return Restart(
        jvm_s=start.jvm_s,
        session_s=start.session_s,
        load_s=factor * float(start.load_s),
        replay_s=factor * float(start.replay_s),
        first_batch_s=factor * (float(model.mean_s(batch_rows)) + float(start.extra_s)),
    )


def restart_at(
    profile: JobProfile, configuration: Configuration, factor: float = 1.0
) -> Restart | None:
    """The same with the rows that wait for the first batch at the rate of the profile (Z2).

    Parameters
    ----------
    profile : JobProfile, with the arrivals in question
    configuration : Configuration, a stable one; its rate limit is that of the first batch
    factor : float, optional, multiplier of what is not known before: (P4)

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> restart_at(profile, profile.baseline) is None
    True
    """
    model = duration_model(profile, *configuration.size)
    rate_per_s = profile.arrivals.rate_per_s
    usual_rows = float(settled_batch_rows(model, rate_per_s, configuration.trigger_s, factor))
    usual = restart_of(profile, configuration, usual_rows)
    if usual is None:
        return None
    most_rows = configuration.max_offsets_per_trigger or math.inf
    first_rows = min(rate_per_s * (usual.jvm_s + usual.session_s), most_rows)
    return restart_of(profile, configuration, first_rows, usual_rows=usual_rows, factor=factor)
