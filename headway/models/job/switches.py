"""What turning a switch of Spark changes, from what the log knows of phases, commits and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headway.assumptions.files import COMMITS_PER_SNAPSHOT
from headway.assumptions.resources import ADVISORY_PARTITION_BYTES, LEAST_PARTITION_BYTES
from headway.assumptions.switches import (
    CHECKSUM_RATIO,
    COMMIT_LEFT_RATIO,
    COPIED_ROW_S,
    LOG_LEFT_RATIO,
    ROCKSDB_ROW_S,
    ROCKSDB_TASK_S,
)
from headway.domain import Coalescing, JobProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.recorded import StateOperatorProfile
from headway.domain.switches import Switch
from headway.models.job.turned import TimesSaved, TurnedJob, task_rows, turned_job
from headway.units import ms_to_s

# Spark's names of what RocksDB does in a commit, all in milliseconds.
_SNAPSHOT_METRICS = ("rocksdbCommitFlushLatency", "rocksdbCommitCheckpointLatency")
_UPLOAD_METRIC = "rocksdbCommitFileSyncLatencyMs"
_LOAD_METRIC = "rocksdbLoadLatencyMs"


def turned(profile: JobProfile, switch: Switch) -> TurnedJob | str:
    """The job with a switch turned (Y1), or in words why the log does not show its gain.

    Whether the switch can be turned at all is asked elsewhere.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> round(turned(profile, Switch.ASYNC_PROGRESS).expected.driver_s, 4)
    0.0588
    >>> turned(profile, Switch.CHANGELOG)
    'the log shows no state'
    """
    if profile.declared is not None:
        return "nothing of the job was measured"
    return _TURNS[switch](profile)


def file_time_s(profile: JobProfile) -> float:
    """Time to write a small file to the checkpoint [s].

    **(Y2)** Asynchronous progress tracking takes the phases `w` (`walCommit`) and `c`
    (`commitOffsets`) out of the batch: the gain is `w + c`, of which rows wait for `w`. Both write
    one small file, so the time of a file is taken to be `f = (w + c)/2`.

    >>> from headway.formats.profile_file import load_profile
    >>> round(file_time_s(load_profile("examples/word-count.profile.yaml")), 4)
    0.0092
    """
    return 0.5 * sum(_log_phases_s(profile).values())


def _log_phases_s(profile: JobProfile) -> Mapping[str, float]:
    return {
        phase.name: phase.mean_s
        for phase in profile.driver_phases
        if phase.name in CHECKPOINT_PHASES
    }


def _async_progress(profile: JobProfile) -> TurnedJob | str:
    phases_s = _log_phases_s(profile)
    if not sum(phases_s.values()):
        return "the log shows no times of the offset and commit logs"
    saved = phases_s, dict[int, float]()
    return turned_job(profile, saved, saved, saved)


def _changelog(profile: JobProfile) -> TurnedJob | str:
    """RocksDB commits a file of changes instead of a snapshot.

    **(Y3)** Without changelog, a commit of RocksDB flushes (`a`), makes a checkpoint of its files
    (`b`) and uploads them (`u`), as the log says for each operator. With it, a commit writes a file
    of changes, and flushes once in `k` commits; maintenance uploads beside the batch. The gain is
    `(1-1/k)(a+b) + u - v`, with `v` the time of a file: `min(f, u/2)`, since an upload is of
    two files or more. It is at least that with `v = u`, and at most that with `v = 0`. Each task
    that holds state saves what its stores save.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str):
        return operators
    if not any(_UPLOAD_METRIC in operator.store_metrics for operator, _ in operators):
        return "the log does not say what commits of RocksDB do"
    fewer_ratio = 1.0 - 1.0 / COMMITS_PER_SNAPSHOT.value

    def saved(file_s: float, of_upload_ratio: float) -> TimesSaved:
        def of_store_s(operator: StateOperatorProfile) -> float:
            upload_s = _per_store_s(operator, _UPLOAD_METRIC)
            snapshot_s = sum(_per_store_s(operator, name) for name in _SNAPSHOT_METRICS)
            return fewer_ratio * snapshot_s + upload_s - min(file_s, of_upload_ratio * upload_s)

        return {}, _per_task_s(profile, of_store_s)

    file_s, any_s = file_time_s(profile), float("inf")
    return turned_job(profile, saved(file_s, 0.5), saved(any_s, 1.0), saved(0.0, 1.0))


def _rocksdb(profile: JobProfile) -> TurnedJob | str:
    """State leaves the heap, and its rows cost what RocksDB takes for them.

    **(Y4)** The default store keeps `S` rows of state on the heap: its stages spend a share `g` of
    their time in collections, and copy all rows for each batch, `t_3 S/T` per task, with `t_3` as
    usual if it could not be fitted (T2). RocksDB has neither, but takes `r` for each of the `n_u`
    rows of state that a batch writes, instead of the `r_0` that the log says, and `q` per task. The
    first row of each of the `s` stores of a task makes a file of `f` in both. A task saves
    `g t/2 + t_3 S/T + max(r_0 n_u/T - s f, 0) - r n_u/T - q`; at least none of the collections, and
    at most all of them with `f = 0`, and `t_3`, `r` and `q` at their ends.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str):
        return operators
    state = profile.state
    if state is None or state.updated_rows is None or state.updated_row_s is None:
        return "the log does not say how many rows of state a batch writes"
    file_s, stores = file_time_s(profile), _per_task_s(profile, lambda _operator: 1.0)
    saved: list[TimesSaved] = []
    for end, gc_share, file_share in ((1, 0.5, 1.0), (2, 0.0, 1.0), (0, 1.0, 0.0)):
        tasks_s = {}
        for index, num_stores in stores.items():
            stage = profile.stages[index]
            gc_ratio = 0.0 if stage.observed is None else stage.observed.gc_ratio
            share = 1.0 / len(stores) / stage.num_tasks(profile.baseline.shuffle_partitions)
            copied_row_s = 0.0 if stage.task_per_state_row_s else COPIED_ROW_S.value[2 - end]
            updates_s = share * state.updated_rows * state.updated_row_s
            tasks_s[index] = (
                gc_share * gc_ratio * _task_s(profile, index)
                + copied_row_s * share * state.rows
                + max(updates_s - file_share * num_stores * file_s, 0.0)
                - share * state.updated_rows * ROCKSDB_ROW_S.value[end]
                - ROCKSDB_TASK_S.value[end]
            )
        saved.append(({}, tasks_s))
    stages = tuple(replace(stage, task_per_state_row_s=0.0) for stage in profile.stages)
    return turned_job(replace(profile, stages=stages), *saved)


def _task_s(profile: JobProfile, index: int) -> float:
    """Mean time of a task of a stage in the last profiled run, but for copies of state [s]."""
    stage = profile.stages[index]
    return stage.task_fixed_s + stage.task_per_row_s * task_rows(profile, stage)


def _file_manager(profile: JobProfile) -> TurnedJob | str:
    """Files of a mounted disk are renamed by the JVM itself.

    **(Y5)** Without Hadoop's native library, Spark's default file manager starts processes for each
    file that it writes to a local file system. The one that renames within a file system leaves a
    share `η` of `w` and `c`, and a smaller one of each commit of a state store.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str) and profile.shape.stateful_operators:
        return operators
    saved: list[TimesSaved] = []
    for log_ratio, commit_ratio in zip(LOG_LEFT_RATIO.value, COMMIT_LEFT_RATIO.value, strict=True):
        phases_s = _log_phases_s(profile)
        logs_s = {name: (1.0 - log_ratio) * time_s for name, time_s in phases_s.items()}
        saved.append((logs_s, _commits_s(profile, 1.0 - commit_ratio)))
    most, expected, least = saved
    return turned_job(profile, expected, least, most)


def _no_checksums(profile: JobProfile) -> TurnedJob | str:
    """Files of state without checksums beside them.

    **(Y6)** Spark writes a file of state and its checksum at the same time, so that checksums take
    a small share `κ` of a commit. The files of state become half as many (F1).
    """
    low_s, expected_s, high_s = (_commits_s(profile, ratio) for ratio in CHECKSUM_RATIO.value)
    return turned_job(profile, ({}, expected_s), ({}, low_s), ({}, high_s))


def _commits_s(profile: JobProfile, ratio: float) -> dict[int, float]:
    """A share of the commits of a task, by the index of its stage [s]."""
    return _per_task_s(profile, lambda state: ratio * state.commit_s / max(state.num_stores, 1))


def _per_task_s(
    profile: JobProfile, of_store_s: Callable[[StateOperatorProfile], float]
) -> dict[int, float]:
    """What a task spends on its stores, by the index of its stage [s]."""
    operators = _operators_by_stage(profile)
    profiled = profile.state_partitions or profile.baseline.shuffle_partitions
    tasks_s: dict[int, float] = {}
    for operator, index in () if isinstance(operators, str) else operators:
        more_s = of_store_s(operator) * max(operator.num_stores / profiled, 1.0)
        tasks_s[index] = tasks_s.get(index, 0.0) + more_s
    return tasks_s


def _keep_loaded(profile: JobProfile) -> TurnedJob | str:
    """State that is not loaded again for each batch.

    **(Y7)** If stores are unloaded at each commit (`unloadOnCommit`), each batch opens them anew
    from the checkpoint, and closes them; the load `l` that Spark reports is that of an open store.
    A task saves what it takes beyond its updates, its commits `C` and a task without state, `t_0`:
    `max(t - (r_0 n_u + C)/T - t_0, l)`; at least `l`, and at most `t_0` more.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str):
        return operators
    state, commits_s = profile.state, _commits_s(profile, 1.0)
    updates_s = (state.updated_rows or 0.0) * (state.updated_row_s or 0.0) if state else 0.0
    stateless = [index for index in range(len(profile.stages)) if index not in commits_s]
    stateless_s = min((_task_s(profile, index) for index in stateless), default=0.0)
    least = _per_task_s(profile, lambda operator: _per_store_s(operator, _LOAD_METRIC))
    expected, most = {}, {}
    for index, commit_s in commits_s.items():
        num_tasks = profile.stages[index].num_tasks(profile.baseline.shuffle_partitions)
        stores_s = commit_s + updates_s / len(commits_s) / num_tasks
        expected[index] = max(_task_s(profile, index) - stores_s - stateless_s, least[index])
        most[index] = expected[index] + stateless_s
    return turned_job(profile, ({}, expected), ({}, least), ({}, most))


def _no_empty_batches(profile: JobProfile) -> TurnedJob | str:
    """Windows wait for the next batch with rows.

    **(Y9)** Without empty batches (`noDataMicroBatches`), the windows that these emitted in the
    profiled run, a share `p` of all, are emitted by the next batch with rows: they wait for `p t`
    more on average, with `t` the time until that is committed, less what the empty one held it up.
    A batch of `n` rows that began when an empty one of length `e` ended would have begun `e/(n+1)`
    after that did, when its first row came on average, or at the next trigger. Its length is as
    before; files and requests are those of batches with rows only.
    """
    if profile.empty_batches is None:
        return "the log shows no batches without rows"
    job = replace(profile, empty_batches=None)
    return TurnedJob(job, job, job)


def _adaptive(profile: JobProfile) -> TurnedJob | str:
    """Exchanges of queries without state, whose partitions are merged.

    **(Y8)** Adaptive execution merges the shuffle partitions behind an exchange without state by
    their bytes (T7), with Spark's default sizes and the bytes per row on record. Switching merging
    off gives each partition a task of its own.
    """
    if profile.shape.stateful_operators:
        return "it leaves stages of queries with state as they are"
    merged = [stage for stage in profile.stages if stage.tasks_rule == "shuffle"]
    if not merged:
        return "the log shows no exchange"
    if any(stage.observed is None for stage in merged):
        return "the log does not show how many bytes an exchange has"
    partitions = profile.baseline.shuffle_partitions
    stages = tuple(
        replace(
            stage,
            tasks_rule="coalesced",
            num_source_tasks=partitions,
            coalescing=Coalescing(
                exchange_bytes_per_row=stage.observed.shuffle_read_bytes_per_row,
                advisory_bytes=ADVISORY_PARTITION_BYTES.value,
                smallest_bytes=LEAST_PARTITION_BYTES.value,
                task_cpus=profile.baseline.task_cpus,
            ),
        )
        if stage.tasks_rule == "shuffle" and stage.observed is not None
        else stage
        for stage in profile.stages
    )
    nothing: TimesSaved = {}, {}
    return turned_job(replace(profile, stages=stages), nothing, nothing, nothing)


def without_coalescing(profile: JobProfile) -> JobProfile:
    """The job with a task for each shuffle partition where adaptive execution coalesces them (Y8).

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> without_coalescing(profile) == profile
    True
    """
    stages = tuple(
        replace(stage, tasks_rule="shuffle", num_source_tasks=None, coalescing=None)
        if stage.coalescing
        else stage
        for stage in profile.stages
    )
    return replace(profile, stages=stages)


def _no_coalescing(profile: JobProfile) -> TurnedJob | str:
    if not any(stage.coalescing for stage in profile.stages):
        return "the log shows no exchange whose partitions are merged"
    job = without_coalescing(profile)
    return TurnedJob(job, job, job)


def _operators_by_stage(profile: JobProfile) -> list[tuple[StateOperatorProfile, int]] | str:
    """Each operator with state and the index of the stage that holds it; or why it is unknown.

    Spark lists operators from the sink on, and stages are listed from the source on.
    """
    operators = () if profile.state is None else profile.state.operators
    if not operators:
        return "the log shows no state"
    stages = [index for index, stage in enumerate(profile.stages) if stage.tasks_rule == "shuffle"]
    if len(stages) == 1:
        return [(operator, stages[0]) for operator in operators]
    if len(stages) == len(operators):
        return list(zip(operators, reversed(stages), strict=True))
    return "the log does not show which stage holds which state"


def _per_store_s(operator: StateOperatorProfile, name: str) -> float:
    """What a store reports of a batch, in milliseconds over all stores, for one of them [s]."""
    return ms_to_s(operator.store_metrics.get(name, 0.0)) / max(operator.num_stores, 1)


_TURNS: Mapping[Switch, Callable[[JobProfile], TurnedJob | str]] = {
    Switch.ASYNC_PROGRESS: _async_progress,
    Switch.CHANGELOG: _changelog,
    Switch.ROCKSDB: _rocksdb,
    Switch.FILE_MANAGER: _file_manager,
    Switch.NO_CHECKSUMS: _no_checksums,
    Switch.KEEP_LOADED: _keep_loaded,
    Switch.NO_EMPTY_BATCHES: _no_empty_batches,
    Switch.ADAPTIVE: _adaptive,
    Switch.NO_COALESCING: _no_coalescing,
}
