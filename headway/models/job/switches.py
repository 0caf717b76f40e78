"""What turning a switch of Spark changes, from what the log knows of phases, commits and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headway.assumptions.files import COMMITS_PER_SNAPSHOT
from headway.assumptions.resources import ADVISORY_PARTITION_BYTES, LEAST_PARTITION_BYTES
from headway.assumptions.switches import (
    CHECKSUM_RATIO,
    COMMIT_LEFT_RATIO,
    LOG_LEFT_RATIO,
    ROCKSDB_ROW_S,
    ROCKSDB_TASK_S,
)
from headway.domain import Coalescing, JobProfile, TasksRule
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.recorded import StateOperatorProfile
from headway.domain.switches import Switch
from headway.models.job.turned import TimesSaved, TurnedJob, task_rows, turned_job
from headway.units import ms_to_s

# Spark's names of what RocksDB does in a commit, all in milliseconds.
_SNAPSHOT_METRICS = ("rocksdbCommitFlushLatency", "rocksdbCommitCheckpointLatency")
_UPLOAD_METRIC = "rocksdbCommitFileSyncLatencyMs"
_LOAD_METRIC = "rocksdbLoadLatencyMs"
_NO_STATE = "the log shows no state"


def turned(profile: JobProfile, switch: Switch) -> TurnedJob | str:
    """The job with a switch turned; in words why its gain is unknown, where the log cannot tell.

    Whether the switch can be turned at all is asked elsewhere.

    Parameters
    ----------
    profile : JobProfile
        The job, by its log.
    switch : Switch
        What is turned.

    Returns
    -------
    TurnedJob or str

    Notes
    -----
    theory.md (Y1)-(Y9).

    Examples
    --------
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> async_job = turned(profile, Switch.ASYNC_PROGRESS)
    >>> sum(phase.mean_s for phase in async_job.expected.driver_phases).__round__(4)
    0.0588
    >>> turned(profile, Switch.CHANGELOG)
    'the log shows no state'
    """
    if profile.declared is not None:
        return "nothing of the job was measured"
    return _TURNS[switch](profile)


def file_time_s(profile: JobProfile) -> float:
    """Time to write a small file to the checkpoint [s].

    Parameters
    ----------
    profile : JobProfile
        The job, by its log.

    Returns
    -------
    float

    Notes
    -----
    **(Y2)** Asynchronous progress tracking takes the phases `w` (`walCommit`) and `c`
    (`commitOffsets`) out of the batch: the gain is `w + c`, of which rows wait for `w`. Both write
    one small file, so the time of a file is taken to be `f = (w + c)/2`.

    Examples
    --------
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
    saved = TimesSaved(_log_phases_s(profile), {})
    if not sum(saved.phases_s.values()):
        return "the log shows no times of the offset and commit logs"
    return turned_job(profile, saved, saved, saved)


def _changelog(profile: JobProfile) -> TurnedJob | str:
    """RocksDB commits a file of changes instead of a snapshot.

    Notes
    -----
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
    commits = COMMITS_PER_SNAPSHOT.value
    file_s, saved = file_time_s(profile), []
    for share in (None, 1.0, 0.0):
        tasks_s: dict[int, float] = {}
        for operator, index in operators:
            upload_s = _per_store_s(operator, _UPLOAD_METRIC)
            snapshot_s = sum(_per_store_s(operator, name) for name in _SNAPSHOT_METRICS)
            written_s = min(file_s, 0.5 * upload_s) if share is None else share * upload_s
            saved_s = (1.0 - 1.0 / commits) * snapshot_s + upload_s - written_s
            tasks_s[index] = tasks_s.get(index, 0.0) + saved_s * _stores_per_task(profile, operator)
        saved.append(TimesSaved({}, tasks_s))
    return turned_job(profile, *saved)


def _rocksdb(profile: JobProfile) -> TurnedJob | str:
    """State leaves the heap, and its rows cost what RocksDB takes for them.

    Notes
    -----
    **(Y4)** The default store keeps state on the heap: its stages spend a share `g` of their time
    in collections, and copy `t_3 S/T` of state per task if that could be fitted (T2). RocksDB has
    neither, but takes `r` for each of the `n_u` rows of state that a batch writes, instead of the
    `r_0` that the log says, and `q` per task. A task saves `g t/2 + t_3 S/T + (r_0-r) n_u/T - q`;
    at least it saves none of the collections, with `r` and `q` at their upper ends, and at most all
    of them, with both at their lower ends.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str):
        return operators
    state = profile.state
    if state is None or state.updated_rows is None or state.updated_row_s is None:
        return "the log does not say how many rows of state a batch writes"
    stages = sorted({index for _, index in operators})
    partitions = profile.baseline.shuffle_partitions
    saved = []
    for end, gc_share in ((1, 0.5), (2, 0.0), (0, 1.0)):
        row_s = ROCKSDB_ROW_S.value[end] - state.updated_row_s
        tasks_s = {}
        for index in stages:
            stage = profile.stages[index]
            num_tasks = stage.num_tasks(partitions)
            gc_ratio = 0.0 if stage.observed is None else stage.observed.gc_ratio
            task_s = stage.task_fixed_s + stage.task_per_row_s * task_rows(profile, stage)
            tasks_s[index] = (
                gc_share * gc_ratio * task_s
                - row_s * state.updated_rows / len(stages) / num_tasks
                - ROCKSDB_TASK_S.value[end]
            )
        saved.append(TimesSaved({}, tasks_s))
    without_copies = replace(
        profile,
        stages=tuple(replace(stage, task_per_state_row_s=0.0) for stage in profile.stages),
    )
    return turned_job(without_copies, *saved)


def _file_manager(profile: JobProfile) -> TurnedJob | str:
    """Files of a mounted disk are renamed by the JVM itself.

    Notes
    -----
    **(Y5)** Without Hadoop's native library, Spark's default file manager starts processes for each
    file that it writes to a local file system. The one that renames within a file system leaves a
    share `η` of `w` and `c`, and a smaller one of each commit of a state store.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str) and profile.shape.stateful_operators:
        return operators
    saved = []
    for log_ratio, commit_ratio in zip(LOG_LEFT_RATIO.value, COMMIT_LEFT_RATIO.value, strict=True):
        logs = TimesSaved(_log_phases_s(profile), {}).times(1.0 - log_ratio)
        saved.append(logs._replace(tasks_s=_commits_s(profile, 1.0 - commit_ratio)))
    most, expected, least = saved
    return turned_job(profile, expected, least, most)


def _no_checksums(profile: JobProfile) -> TurnedJob | str:
    """Files of state without checksums beside them.

    Notes
    -----
    **(Y6)** Spark writes a file of state and its checksum at the same time, so that checksums take
    a small share `κ` of a commit. The files of state become half as many (F1).
    """
    low, expected, high = (
        TimesSaved({}, _commits_s(profile, ratio)) for ratio in CHECKSUM_RATIO.value
    )
    return turned_job(profile, expected, low, high)


def _commits_s(profile: JobProfile, ratio: float) -> dict[int, float]:
    """A share of the commits of a task, by the index of its stage [s]."""
    operators = _operators_by_stage(profile)
    tasks_s: dict[int, float] = {}
    for operator, index in () if isinstance(operators, str) else operators:
        commit_s = operator.commit_s / max(operator.num_stores, 1)
        more_s = ratio * commit_s * _stores_per_task(profile, operator)
        tasks_s[index] = tasks_s.get(index, 0.0) + more_s
    return tasks_s


def _keep_loaded(profile: JobProfile) -> TurnedJob | str:
    """State that is not loaded again for each batch.

    Notes
    -----
    **(Y7)** If stores are unloaded at each commit (`unloadOnCommit`), each batch loads them from
    the checkpoint. RocksDB reports how long that takes, and a task saves it for its stores. The
    default store reports no times.
    """
    operators = _operators_by_stage(profile)
    if isinstance(operators, str):
        return operators
    if not any(_LOAD_METRIC in operator.store_metrics for operator, _ in operators):
        return "the state store does not report how long it loads"
    tasks_s: dict[int, float] = {}
    for operator, index in operators:
        load_s = _per_store_s(operator, _LOAD_METRIC) * _stores_per_task(profile, operator)
        tasks_s[index] = tasks_s.get(index, 0.0) + load_s
    saved = TimesSaved({}, tasks_s)
    return turned_job(profile, saved, saved, saved)


def _no_empty_batches(profile: JobProfile) -> TurnedJob | str:
    """Windows wait for the next batch with rows.

    Notes
    -----
    **(Y9)** Without empty batches (`noDataMicroBatches`), the windows that these emitted in the
    profiled run, a share `p` of all, are emitted by the next batch with rows, which was committed a
    mean of `t` later: windows wait for `p t` more on average, and batches with rows take as long as
    before. Files and requests are those of batches with rows only.
    """
    if profile.empty_batches is None:
        return "the log shows no batches without rows"
    job = replace(profile, empty_batches=None)
    return TurnedJob(job, job, job)


def _adaptive(profile: JobProfile) -> TurnedJob | str:
    """Exchanges of queries without state, whose partitions are merged.

    Notes
    -----
    **(Y8)** Adaptive execution merges the shuffle partitions behind an exchange without state by
    their bytes (T7), with Spark's default sizes and the bytes per row on record. Switching merging
    off gives each partition a task of its own.
    """
    if profile.shape.stateful_operators:
        return "it leaves stages of queries with state as they are"
    merged = [stage for stage in profile.stages if stage.tasks_rule is TasksRule.SHUFFLE]
    if not merged:
        return "the log shows no exchange"
    if any(stage.observed is None for stage in merged):
        return "the log does not show how many bytes an exchange has"
    partitions = profile.baseline.shuffle_partitions
    stages = tuple(
        replace(
            stage,
            tasks_rule=TasksRule.COALESCED,
            num_source_tasks=partitions,
            coalescing=Coalescing(
                exchange_bytes_per_row=stage.observed.shuffle_read_bytes_per_row,
                advisory_bytes=ADVISORY_PARTITION_BYTES.value,
                smallest_bytes=LEAST_PARTITION_BYTES.value,
                task_cpus=profile.baseline.task_cpus,
            ),
        )
        if stage.tasks_rule is TasksRule.SHUFFLE and stage.observed is not None
        else stage
        for stage in profile.stages
    )
    nothing = TimesSaved({}, {})
    return turned_job(replace(profile, stages=stages), nothing, nothing, nothing)


def without_coalescing(profile: JobProfile) -> JobProfile:
    """The job with a task for each shuffle partition where adaptive execution coalesces them.

    Parameters
    ----------
    profile : JobProfile
        The job.

    Returns
    -------
    JobProfile

    Notes
    -----
    theory.md (Y8).

    Examples
    --------
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> without_coalescing(profile) == profile
    True
    """
    stages = tuple(
        replace(stage, tasks_rule=TasksRule.SHUFFLE, num_source_tasks=None, coalescing=None)
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


def _operators_by_stage(
    profile: JobProfile,
) -> list[tuple[StateOperatorProfile, int]] | str:
    """Each operator with state and the index of the stage that holds it; or why it is unknown.

    Spark lists operators from the sink on, and stages are listed from the source on.
    """
    operators = () if profile.state is None else profile.state.operators
    if not operators:
        return _NO_STATE
    stages = [
        index for index, stage in enumerate(profile.stages) if stage.tasks_rule is TasksRule.SHUFFLE
    ]
    if len(stages) == 1:
        return [(operator, stages[0]) for operator in operators]
    if len(stages) == len(operators):
        return list(zip(operators, reversed(stages), strict=True))
    return "the log does not show which stage holds which state"


def _stores_per_task(profile: JobProfile, operator: StateOperatorProfile) -> float:
    """State stores of an operator that a task commits."""
    profiled = profile.pins.state_partitions or profile.baseline.shuffle_partitions
    return max(operator.num_stores / profiled, 1.0)


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
