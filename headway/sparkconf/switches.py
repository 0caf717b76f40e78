"""The switches in Spark's terms: what each sets where, and what is given up for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headway.domain.switches import Switch, SwitchSetting
from headway.sparkconf.knobs import (
    ADAPTIVE_KEY,
    ASYNC_PROGRESS_KEY,
    CHANGELOG_KEY,
    CHECKSUMS_KEY,
    COALESCE_KEY,
    EMPTY_BATCHES_KEY,
    FILE_MANAGER_KEY,
    PROVIDER_KEY,
    ROCKSDB_PROVIDER,
    STATELESS_ADAPTIVE_KEY,
    UNLOAD_KEY,
)

# The package of the file managers of a checkpoint since Spark 4.1, and before.
_MANAGERS_SINCE = (4, 1)
_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
_MANAGERS_BEFORE = "org.apache.spark.sql.execution.streaming"
#: Options that a plan may set at the writer of a query, not at its reader.
WRITER_OPTIONS = frozenset((ASYNC_PROGRESS_KEY,))

_TABLE = (
    SwitchSetting(
        switch=Switch.ASYNC_PROGRESS,
        label="asynchronous progress tracking",
        writer_options={ASYNC_PROGRESS_KEY: "true"},
        caution="after a failure the rows of the last second or more are written again",
    ),
    SwitchSetting(
        switch=Switch.CHANGELOG,
        label="changelog checkpointing",
        conf={CHANGELOG_KEY: "true"},
        caution="a restart replays the changes since the last snapshot",
    ),
    SwitchSetting(
        switch=Switch.ROCKSDB,
        label="RocksDB with changelog checkpointing",
        conf={PROVIDER_KEY: ROCKSDB_PROVIDER, CHANGELOG_KEY: "true"},
        caution="memory beside the heap is needed",
    ),
    SwitchSetting(
        switch=Switch.FILE_MANAGER,
        label="the file manager that renames within a file system",
        caution="for checkpoints on a mounted disk only",
    ),
    SwitchSetting(
        switch=Switch.NO_CHECKSUMS,
        label="checkpoint files without checksums",
        conf={CHECKSUMS_KEY: "false"},
        caution="damaged files of the checkpoint are not noticed",
    ),
    SwitchSetting(
        switch=Switch.KEEP_LOADED,
        label="state that stays loaded between batches",
        conf={UNLOAD_KEY: "false"},
        caution="executors keep the state in memory",
    ),
    SwitchSetting(
        switch=Switch.NO_EMPTY_BATCHES,
        label="no batches without rows",
        conf={EMPTY_BATCHES_KEY: "false"},
        caution="a window that no later row follows is not emitted",
    ),
    SwitchSetting(
        switch=Switch.ADAPTIVE,
        label="adaptive execution",
        conf={ADAPTIVE_KEY: "true", COALESCE_KEY: "true", STATELESS_ADAPTIVE_KEY: "true"},
    ),
    SwitchSetting(
        switch=Switch.NO_COALESCING,
        label="exchanges without coalescing",
        conf={COALESCE_KEY: "false"},
    ),
)
_SETTINGS: Mapping[Switch, SwitchSetting] = {setting.switch: setting for setting in _TABLE}


def switch_setting(switch: Switch, release: tuple[int, int]) -> SwitchSetting:
    """What turning a switch takes in a release of Spark.

    >>> switch_setting(Switch.CHANGELOG, (4, 3)).conf
    {'spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled': 'true'}
    >>> manager = switch_setting(Switch.FILE_MANAGER, (3, 5)).conf
    >>> manager["spark.sql.streaming.checkpointFileManagerClass"].rpartition(".")
    ('org.apache.spark.sql.execution.streaming', '.', 'FileSystemBasedCheckpointFileManager')
    """
    setting = _SETTINGS[switch]
    if switch is not Switch.FILE_MANAGER:
        return setting
    package = _MANAGERS_BEFORE if (0, 0) < release < _MANAGERS_SINCE else _MANAGERS
    manager = f"{package}.FileSystemBasedCheckpointFileManager"
    return replace(setting, conf={FILE_MANAGER_KEY: manager})
