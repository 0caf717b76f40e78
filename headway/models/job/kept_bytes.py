"""Bytes that a query keeps in its checkpoint, and those by which the log of its sink grows."""

from __future__ import annotations

import numpy as np

from headway.assumptions import files
from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric
from headway.models.job.batch_files import (
    FILE_SINK,
    commit_files,
    duration_setting_s,
    snapshots_per_batch,
)
from headway.units import S_PER_DAY

_STREAMING = "spark.sql.streaming"
_TABLES_METRIC, _UPLOADED_METRIC = "rocksdbSstFileSize", "rocksdbBytesCopied"


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
