"""Memory of the profiled run, from its application's settings, Spark's defaults, its stores."""

from __future__ import annotations

from collections.abc import Mapping

from headway.assumptions.resources import DEFAULT_HEAP_BYTES
from headway.domain import Application, JobProfile
from headway.lazy_classes import dataclass
from headway.models.job.batch_files import commit_files, num_state_stores
from headway.models.job.rocksdb_memory import StateInRocksDb
from headway.sparkconf import knob_of
from headway.sparkconf.container import (
    HEAP_KEY,
    OFF_HEAP_KEY,
    OFF_HEAP_SIZE_KEY,
    OVERHEAD_KEY,
    PYTHON_MEMORY_KEY,
    memory_setting_bytes,
    off_heap_setting_bytes,
    overhead_factor,
    overhead_setting_bytes,
)
from headway.sparkconf.rocksdb import cache_bytes
from headway.units import spark_memory_bytes, spark_memory_text

_DYNAMIC = "spark.dynamicAllocation.enabled"
# Keys without a default: absent means not set. The absence of other keys is not conclusive.
_UNSET = (OVERHEAD_KEY, PYTHON_MEMORY_KEY, OFF_HEAP_KEY, OFF_HEAP_SIZE_KEY)
_DRIVER_KEY = "spark.driver.memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledMemory:
    """Memory of an executor of the profiled run [bytes]; None where it was not set.

    ``heap_bytes`` is the heap that it ran with, possibly Spark's default. ``is_local`` means that
    driver and executor were one JVM, so neither has peaks of its own; the heap was the driver's.
    """

    heap_bytes: int
    is_heap_set: bool
    is_local: bool
    overhead_bytes: int | None
    overhead_ratio: float | None
    python_bytes: int | None
    off_heap_bytes: int

    @property
    def heap_words(self) -> str:
        """Origin of the heap size, as text."""
        if self.is_local:
            return "heap of the local JVM in the profiled run"
        return "as in the profiled run" if self.is_heap_set else "Spark's default, as profiled"


def profiled_memory(application: Application) -> ProfiledMemory:
    """Memory of an application's executors.

    >>> bare = Application(id="app-1", name="a", spark_version="4.0.1")
    >>> profiled_memory(bare).heap_bytes == 2**30, profiled_memory(bare).is_heap_set
    (True, False)
    """
    properties = application.properties
    driver_bytes = (
        memory_setting_bytes(properties.get(_DRIVER_KEY)) if application.is_local else None
    )
    heap_bytes = memory_setting_bytes(application.executor_memory)
    configured_bytes = [size for size in (heap_bytes, driver_bytes) if size is not None]
    return ProfiledMemory(
        heap_bytes=max(configured_bytes, default=DEFAULT_HEAP_BYTES.value),
        is_heap_set=bool(configured_bytes),
        is_local=application.is_local,
        overhead_bytes=overhead_setting_bytes(properties),
        overhead_ratio=overhead_factor(properties),
        python_bytes=memory_setting_bytes(properties.get(PYTHON_MEMORY_KEY)),
        off_heap_bytes=off_heap_setting_bytes(properties),
    )


def profiled_sizes(application: Application) -> dict[str, str]:
    """Memory and dynamic allocation of an application, as it ran, by Spark's key."""
    memory = profiled_memory(application)
    return {
        HEAP_KEY: spark_memory_text(memory.heap_bytes),
        _DYNAMIC: application.properties.get(_DYNAMIC, "false").strip().lower(),
        **beside_heap_conf(application),
    }


def beside_heap_conf(application: Application) -> dict[str, str]:
    """Settings of an application for its executors besides the heap, by Spark's key."""
    memory = profiled_memory(application)
    sizes = (
        (OVERHEAD_KEY, memory.overhead_bytes),
        (PYTHON_MEMORY_KEY, memory.python_bytes),
        (OFF_HEAP_SIZE_KEY, memory.off_heap_bytes or None),
    )
    size_conf = {key: spark_memory_text(size) for key, size in sizes if size is not None}
    return {**({OFF_HEAP_KEY: "true"} if memory.off_heap_bytes else {}), **size_conf}


def same_value(key: str, before: str | None, after: str) -> bool:
    """Whether two values of a key are equal, even if written differently.

    >>> same_value("spark.executor.memory", "8192m", "8g"), same_value("trigger", None, "1 second")
    (True, False)
    """
    if before is None or before == after:
        return before is not None
    if knob_of(key).unit != "bytes":
        return False
    return spark_memory_bytes(before) == spark_memory_bytes(after)


def before_words(key: str, profiled_conf: Mapping[str, str]) -> str:
    """Value of a key in the profiled run, as text."""
    return profiled_conf.get(key) or ("not set" if key in _UNSET else "not recorded")


def state_in_rocksdb(profile: JobProfile, executors: int) -> StateInRocksDb | None:
    """What one of several executors keeps of a job's state; None if not RocksDB, or not recorded.

    The profile has the bytes that its stores wrote, which Spark reports since 3.2. The bytes of a
    row are those written per write. The memory for blocks is that of the profiled run, so that the
    plan keeps its hit ratio: `blockCacheSizeMB` of each store, or of a run with a bound what its
    write buffers left of that: theory.md (Z1).

    >>> from headway.formats.profile_file import load_profile
    >>> state_in_rocksdb(load_profile("examples/word-count.profile.yaml"), 1) is None
    True
    """
    state = profile.state
    if state is None or not profile.is_rocksdb or not profile.num_state_rows:
        return None
    totals = {
        name: sum(operator.store_metrics.get(name, 0.0) for operator in state.operators)
        for name in ("rocksdbPutCount", "rocksdbTotalBytesWritten")
    }
    num_writes, written_bytes = totals.values()
    if not (num_writes > 0 and written_bytes > 0 and state.updated_rows):
        return None
    files = commit_files(profile)
    rate_ratio = profile.arrivals.rate_per_s / profile.settings[-1].rate_per_s
    num_stores = float(num_state_stores(profile, profile.baseline.shuffle_partitions))
    row_bytes = written_bytes / num_writes
    cached_bytes = cache_bytes(
        profile.application.properties, num_stores, profile.baseline.executors
    )
    return StateInRocksDb(
        rows=profile.num_state_rows / executors,
        row_bytes=row_bytes,
        num_stores=max(num_stores / executors, 1.0),
        rows_per_batch=rate_ratio * state.updated_rows / executors,
        batches_per_flush=files.commits_per_snapshot if files.keeps_changes else 1,
        data_hit_ratio=min(cached_bytes / (profile.num_state_rows * row_bytes), 1.0),
    )
