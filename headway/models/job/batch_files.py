"""What a query writes to its checkpoint and sink: files of a batch, requests, bytes that stay."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headway.assumptions import files
from headway.assumptions.switches import ASYNC_LOG_INTERVAL_S
from headway.domain import JobProfile
from headway.domain.writes import StorePrice
from headway.errors import InputError
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel
from headway.models.job.setting import settled_batch_rows
from headway.units import S_PER_DAY, ms_to_s, parse_duration_s

_STATE = "spark.sql.streaming.stateStore"
_ASYNC_PROGRESS = "asyncProgressTrackingEnabled"  # an option of the writer
_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
# A stream-stream join keeps rows and their numbers, of both sides.
_STORES_OF_JOIN = 4
LEAST_INTERVAL_S = 1e-3
_FILE_SOURCE, FILE_SINK = "FileStreamSource", "FileSink"
_SINKS_WITHOUT_FILES = ("kafka", "console", "memory", "noop")
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_SYSTEM_MANAGER = "FileSystemBasedCheckpointFileManager"
_STREAMING = "spark.sql.streaming"
_TABLES_METRIC, _UPLOADED_METRIC = "rocksdbSstFileSize", "rocksdbBytesCopied"


class Files(NamedTuple):
    """Files per batch by how they come to be: named when they are complete, or written in place."""

    renamed: Array
    in_place: Array

    @property
    def total(self) -> Array:
        """All of them."""
        return self.renamed + self.in_place

    def requests(self, price: StorePrice) -> Array:
        """Requests that they take at a store, charged as writes; those that list are among them."""
        renamed = price.requests_renamed + price.lists_renamed
        in_place = price.requests_in_place + price.lists_in_place
        return renamed * self.renamed + in_place * self.in_place

    def lists(self, price: StorePrice) -> Array:
        """Those of the requests that list a folder, or look for a file in it."""
        return price.lists_renamed * self.renamed + price.lists_in_place * self.in_place


class CommitFiles(NamedTuple):
    """How a state store commits a batch."""

    keeps_changes: bool  # in a file per commit, snapshots by maintenance only; else each is one
    tables: float  # files of RocksDB itself that come with each snapshot
    commits_per_snapshot: int  # by maintenance, at least
    maintenance_s: float  # between snapshots, at most
    checksums: int  # files beside each file that is renamed, 0 or 1


def batch_interval_s(model: DurationModel, rate_per_s: Numeric, trigger_s: Numeric) -> Array:
    """Expected time between two batches [s], `max(B, D, 1/λ)`: (T3), and none without a row.

    Parameters
    ----------
    model : DurationModel, mean duration by rows
    rate_per_s, trigger_s : float or (n,) array

    >>> [float(batch_interval_s(DurationModel(0.2, ()), 1000.0, every_s)) for every_s in (1.0, 0.0)]
    [1.0, 0.2]
    """
    rows = settled_batch_rows(model, rate_per_s, trigger_s)
    busy_s = np.maximum(model.mean_s(rows), trigger_s)
    return np.asarray(np.maximum(busy_s, 1.0 / np.asarray(rate_per_s)))


def store_files(commits: CommitFiles, interval_s: Numeric) -> Files:
    """Files that one state store writes per batch.

    **(F1)** Files of a state store. A commit writes a file of changes, and maintenance a snapshot
    every `M` at most and after `k` commits at least: `s = min(1/k, T/M)` snapshots per batch.
    The default store counts commits when it is maintained: `s = T/(M ⌈k T/M⌉)`. With a snapshot
    come `t` files of RocksDB's own, and with `h = 1` a checksum beside each file that is not one of
    those: `(1+h) (1+s) + s t` files. Without changes every commit is a snapshot: `1+h+t`. The
    default store has `t = 0`.

    Source: Spark's ``HDFSBackedStateStoreProvider``, ``RocksDB`` and ``RocksDBFileManager`` (4.3,
    2026).

    >>> default = CommitFiles(True, 0.0, 11, 60.0, checksums=0)
    >>> float(store_files(default, 1.0).total.round(3)), float(store_files(default, 10.0).total)
    (1.017, 1.0833333333333333)
    """
    snapshots = snapshots_per_batch(commits, interval_s)
    num_named = snapshots + (1.0 if commits.keeps_changes else 0.0)
    return Files((1.0 + commits.checksums) * num_named, commits.tables * snapshots)


def snapshots_per_batch(commits: CommitFiles, interval_s: Numeric) -> Array:
    """Snapshots that one state store writes per batch (F1).

    >>> float(snapshots_per_batch(CommitFiles(True, 0.0, 11, 60.0, checksums=0), 30.0))
    0.08333333333333333
    """
    interval = np.asarray(interval_s, dtype=np.float64)
    per_interval = interval / commits.maintenance_s
    if not commits.keeps_changes:
        return np.ones_like(interval)
    if commits.tables:
        return np.minimum(1.0 / commits.commits_per_snapshot, per_interval)
    return np.asarray(per_interval / np.ceil(commits.commits_per_snapshot * per_interval))


def checkpoint_files(
    profile: JobProfile, shuffle_partitions: Numeric, interval_s: Numeric
) -> Files:
    """Files that a batch writes to the checkpoint.

    Parameters
    ----------
    profile : JobProfile, the job: its state, its sources, and the settings of its state store
    shuffle_partitions, interval_s : float or (n,) array, > 0

    **(F2)** Files of the checkpoint: one of offsets, one of commits, one of each source of files,
    and those of every state store (F1). An operator has a store in each shuffle partition, as many
    as recorded: four for a stream-stream join in the default store. An aggregation without keys has
    one in all. Asynchronous progress tracking writes one file of offsets and one of commits per
    second at most: `min(T/1 s, 1)` of each.

    Source: Spark's ``MicroBatchExecution``, ``StatefulOperator`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> bool(checkpoint_files(profile, 8, 2.0).total > checkpoint_files(profile, 4, 2.0).total > 6)
    True
    """
    of_store = store_files(commit_files(profile), interval_s)
    stores = num_state_stores(profile, shuffle_partitions)
    num_logs = np.full_like(np.asarray(interval_s, dtype=np.float64), 2.0)
    if profile.application.properties.get(_ASYNC_PROGRESS) == "true":
        # Not every batch writes files of offsets and commits.
        num_logs *= np.minimum(np.asarray(interval_s) / ASYNC_LOG_INTERVAL_S.value, 1.0)
    num_logs += sum(source.startswith(_FILE_SOURCE) for source in profile.shape.sources)
    return Files(num_logs + stores * of_store.renamed, stores * of_store.in_place)


def sink_files(profile: JobProfile, num_writers: Numeric) -> Files | None:
    """Files that a batch writes to its sink; None if the log does not show what the sink writes.

    Parameters
    ----------
    num_writers : float or (n,) array, tasks of the stage that writes

    **(F3)** Files of the sink: each task of the last stage writes a file at least, one for each
    partition of the table of which it has rows, and the log of Spark's own file sink gets one more.
    Sinks such as Kafka write none. Files that actions of foreachBatch wrote are on record; their
    number is in proportion to the tasks of the last stage. Of sinks of other projects nothing is
    known.

    Source: Spark's ``FileStreamSink``, ``FileFormatWriter`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> float(sink_files(load_profile("examples/word-count.profile.yaml"), 4).total)
    0.0
    """
    writers = np.asarray(num_writers, dtype=np.float64)
    if profile.shape.sink.startswith(FILE_SINK):
        return Files(np.ones_like(writers), writers)
    if profile.shape.sink.lower().startswith(_SINKS_WITHOUT_FILES):
        return Files(np.zeros_like(writers), np.zeros_like(writers))
    written = profile.settings[-1].written_files_per_batch if profile.settings else None
    if written is None:
        return None
    profiled_writers = profile.stages[-1].num_tasks(profile.baseline.shuffle_partitions)
    return Files(written / profiled_writers * writers, np.zeros_like(writers))


def commit_files(profile: JobProfile) -> CommitFiles:
    """How the state stores of a job commit, by the settings on record and Spark's defaults (F1).

    Checksums count if the log shows that they are on: runs of Spark 4.3 wrote none.

    >>> from headway.formats.profile_file import load_profile
    >>> commit_files(load_profile("examples/word-count.profile.yaml")).tables
    0.0
    """
    properties = profile.application.properties
    has_changelog = properties.get(f"{_STATE}.rocksdb.changelogCheckpointing.enabled") == "true"
    commits = properties.get(f"{_STATE}.minDeltasForSnapshot", "")
    num_commits = max(int(commits), 1) if commits.isdecimal() else files.COMMITS_PER_SNAPSHOT.value
    return CommitFiles(
        keeps_changes=has_changelog or not profile.is_rocksdb,
        tables=files.TABLES_PER_SNAPSHOT.value if profile.is_rocksdb else 0.0,
        # The default store wants more changes than stated, RocksDB as many.
        commits_per_snapshot=num_commits + (0 if profile.is_rocksdb else 1),
        maintenance_s=duration_setting_s(
            properties.get(f"{_STATE}.maintenanceInterval"), files.MAINTENANCE_INTERVAL_S.value
        ),
        checksums=int(properties.get(_CHECKSUMS) == "true"),
    )


def num_state_stores(profile: JobProfile, shuffle_partitions: Numeric) -> Array:
    """State stores of a job, over all operators and partitions (F2).

    Parameters
    ----------
    profile : JobProfile, the job: the stores of its operators on record
    shuffle_partitions : float or (n,) array, > 0

    >>> from headway.formats.profile_file import load_profile
    >>> float(num_state_stores(load_profile("examples/word-count.profile.yaml"), 16))
    16.0
    """
    partitions = np.asarray(shuffle_partitions, dtype=np.float64)
    operators = () if profile.state is None else profile.state.operators
    if not operators:
        return partitions * sum(
            _STORES_OF_JOIN if "Join" in name else 1 for name in profile.shape.stateful_operators
        )
    profiled = profile.state_partitions or profile.baseline.shuffle_partitions
    counts = [operator.num_stores for operator in operators]
    single = sum(count for count in counts if count < profiled)
    per_partition = sum(math.ceil(count / profiled) for count in counts if count >= profiled)
    return np.asarray(single + per_partition * partitions)


def duration_setting_s(text: str | None, default_s: float) -> float:
    """A time of Spark's settings (F1), in milliseconds without a unit; else the default.

    No batch is shorter than a millisecond.

    >>> duration_setting_s("5000", 60.0), duration_setting_s("2m", 60.0)
    (5.0, 120.0)
    """
    if text is None:
        return default_s
    try:
        stated_s = ms_to_s(int(text)) if text.isdecimal() else parse_duration_s(text)
    except InputError:
        return default_s
    return max(stated_s, LEAST_INTERVAL_S)


def price_of_job(profile: JobProfile, price: StorePrice) -> StorePrice:
    """What a store charges a job, by how Spark gives the files of its checkpoint their names.

    **(F7)** LIST requests. Before a file is written, renamed or deleted, Hadoop asks whether its
    name, its new name and its folder are folders. An object store has none, so each question is a
    LIST, which S3 charges like a write. By `FileContext`, Spark's usual manager of checkpoint
    files, the same is asked at three levels, by `FileSystemBasedCheckpointFileManager` at one.

    Source: Hadoop's ``AbstractFileSystem``, ``DelegateToFileSystem``, ``FileSystem`` and
    ``S3AFileSystem`` (3.5, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> price = StorePrice(
    ...     store="s3", price_per_write=5e-6, requests_in_place=1, requests_renamed=2,
    ...     date="2026-11-29", lists_renamed=10, lists_by_file_system=5,
    ... )
    >>> price_of_job(load_profile("examples/word-count.profile.yaml"), price).lists_renamed
    10
    """
    manager = profile.application.properties.get(_FILE_MANAGER, "")
    if price.lists_by_file_system is None or not manager.endswith(_FILE_SYSTEM_MANAGER):
        return price
    return replace(price, lists_renamed=price.lists_by_file_system)


def checkpoint_bytes(profile: JobProfile, interval_s: Numeric, batch_rows: Numeric) -> Array | None:
    """Bytes of state that the checkpoint keeps; None if the log does not show the state's size.

    Parameters
    ----------
    profile : JobProfile, with its state at the rate in question
    interval_s, batch_rows : float or (n,) array, > 0, time between two batches [s], and their rows

    **(F5)** Bytes that a checkpoint keeps. Spark keeps what is needed to go back `K` batches
    (`minBatchesToRetain`, 100): the last snapshot before them and all later ones, with `s`
    snapshots per batch (F1) `1 + K s`, and the changes since that snapshot, of
    `K + 1/(2 s)` batches. Of a state of `n` rows in `S` bytes, a batch changes `u` rows:
    `S (1 + K s + (K + 1/(2 s)) u/n)`. Snapshots of RocksDB share their tables: with `w` bytes
    uploaded per batch they take `S + K w`, changelogs beside. `S` are the tables of RocksDB as
    reported, else the memory of the state on the heap, which is more than its compressed files
    take: an upper end. Files of offsets and commits are left out.

    Source: Spark's ``HDFSBackedStateStoreProvider`` and ``RocksDBFileManager`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> checkpoint_bytes(load_profile("examples/word-count.profile.yaml"), 1.0, 1000.0) is None
    True
    """
    state, num_rows = profile.state, profile.num_state_rows
    if state is None or not num_rows or not profile.settings:
        return None
    commits, rows_ratio = commit_files(profile), num_rows / max(state.rows, 1)
    interval = np.asarray(interval_s, dtype=np.float64)
    retained = _count(profile, "minBatchesToRetain", files.RETAINED_BATCHES.value)
    last = profile.settings[-1]
    per_row = np.asarray(batch_rows) / last.rows_per_batch_middle
    reported_bytes = _reported(profile, _TABLES_METRIC) if commits.tables else state.memory_bytes
    if not reported_bytes:
        return None
    state_bytes = rows_ratio * reported_bytes
    changed_rows = np.minimum(per_row * (state.updated_rows or 0.0), num_rows)
    snapshots = snapshots_per_batch(commits, interval)
    kept_bytes = np.full_like(interval, state_bytes)
    if commits.tables:
        uploaded_bytes = _reported(profile, _UPLOADED_METRIC)
        kept_bytes += retained * uploaded_bytes * per_row
    else:
        kept_bytes += state_bytes * retained * snapshots
    if commits.keeps_changes:
        num_changes = retained + 0.5 / snapshots
        kept_bytes += state_bytes * num_changes * changed_rows / num_rows
    return kept_bytes


def sink_log_bytes_per_day(
    profile: JobProfile, interval_s: Numeric, files_per_batch: Numeric
) -> Array | None:
    """Bytes by which the log of Spark's own file sink grows in a day; None for other sinks.

    Parameters
    ----------
    profile : JobProfile, the job: its sink, and the settings of the sink's log
    interval_s : float or (n,) array, > 0, time between two batches [s]
    files_per_batch : float or (n,) array, files of rows that a batch writes

    **(F6)** Growth of a sink's log. It has an entry of `b` bytes for each of the `w` files of a
    batch, of all batches ever. Compaction writes all of them into one file every `c` batches, and
    files are deleted when they are `d` old (10 minutes unless set otherwise), so `1 + d/(c T)` of
    the compacted ones are kept. In a day these grow by `86400/T w b (1 + d/(c T))`.

    Source: Spark's ``CompactibleFileStreamLog`` (4.3, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> sink_log_bytes_per_day(load_profile("examples/word-count.profile.yaml"), 1.0, 2.0) is None
    True
    """
    if not profile.shape.sink.startswith(FILE_SINK):
        return None
    interval = np.asarray(interval_s, dtype=np.float64)
    entries_per_day = S_PER_DAY / interval * np.asarray(files_per_batch)
    batches = _count(profile, "fileSink.log.compactInterval", files.COMPACTION_BATCHES.value)
    delay = profile.application.properties.get(f"{_STREAMING}.fileSink.log.cleanupDelay")
    delay_s = duration_setting_s(delay, files.SINK_LOG_DELAY_S.value)
    kept_copies = 1.0 + delay_s / (batches * interval)
    return np.asarray(entries_per_day * files.SINK_ENTRY_BYTES.value * kept_copies)


def _reported(profile: JobProfile, metric: str) -> float:
    """A mean per batch that the state stores report, all together; 0 if they do not."""
    operators = () if profile.state is None else profile.state.operators
    return sum(operator.store_metrics.get(metric, 0.0) for operator in operators)


def _count(profile: JobProfile, name: str, default: int) -> int:
    """A number of batches among the settings of streams."""
    text = profile.application.properties.get(f"{_STREAMING}.{name}", "")
    return max(int(text), 1) if text.isdecimal() else default
