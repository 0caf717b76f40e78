"""State in RocksDB within the memory that is planned for it, and within half of it.

There is no control group that can be written here without touching what runs the machine: version
2 has no memory controller, and systemd does not run. So the memory of the JVM and of every process
that it starts is looked at ten times a second, and they are ended when it exceeds the bound; a peak
between two looks is known to the kernel, and counts as well.

    python benchmarks/run.py rocksdb_memory FOLDER --minutes 8
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from keyed_states import (
    Line,
    Split,
    batch_facts,
    conf_of,
    deliver,
    missing_runs,
    remove,
    runner_options,
    started,
    write_input,
)
from result_lines import keep, this_machine

from headway.assumptions.files import COMMITS_PER_SNAPSHOT
from headway.domain import RocksDbMemory
from headway.errors import HeadwayError
from headway.models.job.rocksdb_memory import StateInRocksDb, rocksdb_memory
from headway.planner.memory import overhead_bytes
from headway.profiler.spark.session import embedded_session
from headway.runtime.measure import Json, progress_events
from headway.sparkconf.rocksdb import rocksdb_conf
from headway.units import spark_memory_bytes

RESULTS = Path(__file__).parent / "results" / "rocksdb-memory.jsonl"
_LOOK_EVERY_S = 0.1
_MOST_S = 120.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SPLIT = Split()
_SAID = _SPLIT.said["memory"]


def planned() -> RocksDbMemory:
    """What is planned for the query's state, from its keys and the rows of its batches."""
    return rocksdb_memory(
        StateInRocksDb(
            rows=_SAID["keys"],
            row_bytes=_SAID["state_row_bytes"],
            num_stores=_SPLIT.said["partitions"],
            rows_per_batch=_SAID["rows_of_a_batch"],
            batches_per_flush=COMMITS_PER_SNAPSHOT.value,
            data_hit_ratio=_SAID["data_hit_ratio"],
        )
    )


def bound_bytes() -> int:
    """Heap, overhead and native memory of the one process that is driver and executor."""
    heap_bytes = spark_memory_bytes(_SAID["heap"])
    return heap_bytes + overhead_bytes(heap_bytes, planned().native_bytes)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    runner_options(parser, minutes=10.0, results=RESULTS)


def run(given: argparse.Namespace) -> None:
    """Run what is missing from the results, and say what is left."""
    shares = dict(_all_runs())
    for name, _ in missing_runs(given, [*shares]):
        keep(given.results, _measured(name, shares[name], given.folder.resolve()))


def _all_runs() -> Iterator[tuple[str, float]]:
    for number in range(1, _SAID["runs_at_the_bound"] + 1):
        yield f"bound/{number}", 1.0
    for number in range(1, _SAID["runs_at_half_of_it"] + 1):
        yield f"half/{number}", 0.5


def _measured(name: str, share: float, folder: Path) -> Line:
    bound = round(share * bound_bytes())
    place = folder / "memory" / name
    remove(place)
    num_batches = _SAID["batches"]
    batches = [None] * num_batches + [_SAID["rows_of_a_batch"]] * num_batches
    deliver(write_input(folder / "input" / "memory", _SAID["keys"], batches), place / "read")
    watched, events = _run_within(bound, place, 2 * num_batches)
    remove(place / "checkpoint")
    remove(place / "read")
    return {
        "run": name,
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": this_machine(),
        "bound_bytes": bound,
        "heap_bytes": spark_memory_bytes(_SAID["heap"]),
        "planned": asdict(planned()),
        "peak_bytes": watched.peak_bytes,
        "was_killed": watched.was_killed,
        "num_batches": len(events),
        "batches": [batch_facts(event, watched.begun_epoch_s) for event in events[-1:]],
        "hits": sum(_metric(event, "rocksdbReadBlockCacheHitCount") for event in events),
        "misses": sum(_metric(event, "rocksdbReadBlockCacheMissCount") for event in events),
        "memory_used_bytes": [event["stateOperators"][0]["memoryUsedBytes"] for event in events],
        "log": str((place / "log").relative_to(folder)),
    }


def _metric(event: Json, name: str) -> int:
    return int(event["stateOperators"][0]["customMetrics"].get(name, 0))


class Watched:
    """Ends the processes of a JVM as soon as their memory exceeds a bound."""

    def __init__(self, session_id: int, bound: int) -> None:
        self.session_id, self.bound = session_id, bound
        self.begun_epoch_s = time.time()
        self.peak_bytes, self.was_killed = 0, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch-memory", daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            resident_bytes, jvm_peak_bytes = self._memory_bytes()
            self.peak_bytes = max(self.peak_bytes, resident_bytes, jvm_peak_bytes)
            if self.peak_bytes > self.bound:
                self.was_killed = True
                # The JVM leads a session of its own, so these are its processes and no others.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.session_id, signal.SIGKILL)
                return
            self._stop.wait(_LOOK_EVERY_S)

    def _memory_bytes(self) -> tuple[int, int]:
        """Resident memory of the processes now, and the peak of the JVM alone."""
        resident_bytes = jvm_peak_bytes = 0
        leader = _command_of(self.session_id)
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                with contextlib.suppress(OSError):
                    # A child that the JVM is about to start still has the memory of the JVM, and
                    # its command, and would count all of it twice. The command is read first: it
                    # may start its program between the two looks.
                    is_copy = _command_of(int(process.name)) == leader
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                    is_leader = int(process.name) == self.session_id
                    if int(fields[3]) == self.session_id and (is_leader or not is_copy):
                        resident_bytes += int(fields[21]) * _PAGE_BYTES
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.session_id}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    jvm_peak_bytes = 1024 * int(line.split()[1])
        return resident_bytes, jvm_peak_bytes


def _command_of(pid: int) -> bytes:
    """Its command line; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _run_within(bound: int, place: Path, num_batches: int) -> tuple[Watched, list[Json]]:
    """Run the query within a bound: what was watched, and the progress that it made."""
    conf = conf_of("RocksDB, changelog", _SPLIT.said["partitions"], **rocksdb_conf(planned()))
    watched: Watched | None = None
    events: list[Json] = []
    try:
        with embedded_session(
            app_name="headway memory",
            master=f"local[{_SPLIT.said['cores']}]",
            event_log_dir=place / "log",
            driver_memory=_SAID["heap"],
            extra_conf=conf,
        ) as spark:
            with Watched(_process_of_session(), bound) as watched:
                query = started(spark, "totals", place / "read", place / "checkpoint")
                ends_s = time.monotonic() + _MOST_S
                while len(events) < num_batches and time.monotonic() < ends_s:
                    events = [event for event in progress_events(query) if event["numInputRows"]]
                    time.sleep(0.2)
            query.stop()
    except Exception:
        # The connection to a JVM that was ended breaks in many ways.
        if watched is None or not watched.was_killed:
            raise
    assert watched is not None
    if not watched.was_killed and len(events) < num_batches:
        raise HeadwayError(f"{place}: {len(events)} of {num_batches} batches in {_MOST_S:g} s")
    return watched, events


def _process_of_session() -> int:
    """The JVM, which leads the session of its processes."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)
