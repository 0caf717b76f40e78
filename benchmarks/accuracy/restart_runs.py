"""Queries that are stopped and start again in a new JVM, at three sizes of state in three stores.

Of each size and store a query is built: it reads every key, waits for a snapshot of its state, and
reads some batches more. It is then started again from copies of its checkpoint. What is on record
is not run again; event logs stay in the folder.

    python benchmarks/run.py restart_runs FOLDER --minutes 20
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keyed_states import (
    STATE,
    Line,
    Split,
    batch_facts,
    conf_of,
    deliver,
    missing_runs,
    remove,
    runner_options,
    started,
    state_files,
    versions,
    wait_for_batches,
    write_input,
)
from result_lines import keep, this_machine

from headway.errors import HeadwayError
from headway.profiler.spark.session import embedded_session
from headway.runtime.measure import progress_events

RESULTS = Path(__file__).parent / "results" / "restart-runs.jsonl"
_SNAPSHOT_OF_STORE = {"default": "snapshot", "RocksDB": "zip", "RocksDB, changelog": "zip"}
_LEAST_SNAPSHOT_VERSION = 10
_MOST_SNAPSHOT_S = 20.0
_SPLIT = Split()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRun:
    """A query of a size of state in a store: its build if ``repeat`` is 0, else a restart."""

    size: str
    store: str
    repeat: int

    @property
    def name(self) -> str:
        """Its name in the results."""
        return f"{self.query}/{f'restart-{self.repeat}' if self.repeat else 'build'}"

    @property
    def query(self) -> str:
        """The query that is built and started again."""
        return f"{self.size}/{self.store.lower().replace(', ', '-')}"


def all_runs() -> Iterator[RestartRun]:
    """Every run: builds before their restarts, the profiled size first."""
    profiled = _SPLIT.said["profiled"]["size"]
    for size in sorted(_SPLIT.keys, key=lambda size: size != profiled):
        for store in _SPLIT.said["stores"]:
            for repeat in range(_SPLIT.said["repeats"] + 1):
                yield RestartRun(size=size, store=store, repeat=repeat)


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    runner_options(parser, minutes=25.0, results=RESULTS)


def run(given: argparse.Namespace) -> None:
    """Run what is missing from the results, and say what is left."""
    folder, restarts = given.folder.resolve(), {restart.name: restart for restart in all_runs()}
    for name, names_left in missing_runs(given, [*restarts]):
        restart = restarts[name]
        keep(given.results, _measured(restart, folder))
        if not any(restarts[left].query == restart.query for left in names_left):
            # The copies of its checkpoint are made; its logs stay.
            remove(_place(restart, folder) / "checkpoint")


def _place(restart: RestartRun, folder: Path) -> Path:
    return folder / restart.query


def _measured(restart: RestartRun, folder: Path) -> Line:
    batches = list(_SPLIT.batches(restart.size))
    files = write_input(folder / "input" / restart.size, _SPLIT.keys[restart.size], batches)
    facts = _restarted(restart, folder, files) if restart.repeat else _built(restart, folder, files)
    return {
        "run": restart.name,
        "size": restart.size,
        "store": restart.store,
        "keys": _SPLIT.keys[restart.size],
        "repeat": restart.repeat,
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": this_machine(),
        **facts,
    }


def _built(restart: RestartRun, folder: Path, files: list[Path]) -> Line:
    """Read every key, wait for a snapshot, and read the batches after it."""
    own = _place(restart, folder)
    remove(own)
    num_filling = _SPLIT.said["filling_batches"]
    deliver(files[:num_filling], own / "read")
    conf = conf_of(
        restart.store, _SPLIT.said["partitions"], **{f"{STATE}.maintenanceInterval": "2s"}
    )
    begun_s = time.time()
    with embedded_session(
        app_name=restart.name,
        master=f"local[{_SPLIT.said['cores']}]",
        event_log_dir=own / "build" / "log",
        driver_memory=_SPLIT.said["driver_memory"],
        extra_conf=conf,
    ) as spark:
        session_s = time.time()
        query = started(spark, "totals", own / "read", own / "checkpoint")
        query_s = time.time()
        wait_for_batches(query, num_filling)
        waited_s = _wait_for_snapshot(restart, own / "checkpoint")
        deliver(files[num_filling : _SPLIT.num_built], own / "read")
        events = wait_for_batches(query, _SPLIT.num_built)
        query.stop()
        application_s = spark.sparkContext.startTime / 1000.0
    return {
        "application_s": application_s - begun_s,
        "session_s": session_s - begun_s,
        "query_s": query_s - begun_s,
        "snapshot_waited_s": waited_s,
        "batches": [batch_facts(events[index], begun_s) for index in (0, -1)],
        "state_files": state_files(own / "checkpoint"),
        "log": str((own / "build" / "log").relative_to(folder)),
    }


def _wait_for_snapshot(restart: RestartRun, checkpoint: Path) -> float:
    """Until maintenance has written one of a late version in each partition, or for a while."""
    begun_s = time.monotonic()
    kind = _SNAPSHOT_OF_STORE[restart.store]
    while (waited_s := time.monotonic() - begun_s) < _MOST_SNAPSHOT_S:
        newest = [max(of_kind, default=0) for of_kind in versions(checkpoint, kind)]
        if min(newest) >= _LEAST_SNAPSHOT_VERSION:
            break
        time.sleep(0.25)
    return waited_s


def _restarted(restart: RestartRun, folder: Path, files: list[Path]) -> Line:
    """Start it again from a copy of its checkpoint, with a backlog of some files."""
    own = _place(restart, folder)
    place = own / f"restart-{restart.repeat}"
    remove(place)
    if not (own / "checkpoint").exists():
        raise HeadwayError(
            f"{own / 'checkpoint'}: no checkpoint of {restart.query}; give the folder in which it "
            "was built, or remove the line of its build from the results"
        )
    shutil.copytree(own / "checkpoint", place / "checkpoint")
    files_at_start = state_files(place / "checkpoint")
    deliver(files, own / "read")
    begun_s = time.time()
    with embedded_session(
        app_name=restart.name,
        master=f"local[{_SPLIT.said['cores']}]",
        event_log_dir=place / "log",
        driver_memory=_SPLIT.said["driver_memory"],
        extra_conf=conf_of(restart.store, _SPLIT.said["partitions"]),
    ) as spark:
        session_s = time.time()
        query = started(spark, "totals", own / "read", place / "checkpoint")
        query_s = time.time()
        wait_for_batches(query, _SPLIT.said["batches_after_the_restart"])
        events = progress_events(query)
        query.stop()
        application_s = spark.sparkContext.startTime / 1000.0
    remove(place / "checkpoint")
    return {
        "application_s": application_s - begun_s,
        "session_s": session_s - begun_s,
        "query_s": query_s - begun_s,
        "batches": [batch_facts(event, begun_s) for event in events],
        "state_files": files_at_start,
        "log": str((place / "log").relative_to(folder)),
    }
