"""Predicts restarts from the logs of ``restart_runs``: of each store, from the profiled ones alone.

python benchmarks/run.py judge_restarts FOLDER
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

from keyed_states import Line, Split
from pages import made_by
from restart_runs import RESULTS, RestartRun
from result_lines import keep, lines_of

import headway
from headway.domain import JobProfile, Restart
from headway.models.job.restart import restart_of

PREDICTIONS = Path(__file__).parent / "results" / "restart-predictions.jsonl"
_SNAPSHOTS, _CHANGES = ("snapshot", "zip"), ("delta", "changelog")
_SPLIT = Split()


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="where restart_runs kept the event logs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="lines of the runs")
    parser.add_argument("--predictions", type=Path, default=PREDICTIONS, help="written anew")


def run(given: argparse.Namespace) -> None:
    """Predict every restart that is on record."""
    lines = {line["run"]: line for line in lines_of(given.results)}
    given.predictions.unlink(missing_ok=True)
    keep(given.predictions, {"made": made_by("make restarts", "pyspark")})
    for store in _SPLIT.said["stores"]:
        profiled = _profiled(store)
        if profiled.name not in lines:
            print(f"{store}: {profiled.name} is not on record, so nothing is predicted")
            continue
        build = replace(profiled, repeat=0)
        logs = [given.folder / lines[restart.name]["log"] for restart in (build, profiled)]
        with_restart = headway.profile(logs, queries=["totals"])
        without = headway.profile(logs[0])
        assert isinstance(with_restart, JobProfile)
        assert isinstance(without, JobProfile)
        for line in lines.values():
            if line["store"] == store and line["repeat"]:
                keep(given.predictions, _judged(line, with_restart, without, profiled.name))
    print(given.predictions)


def _profiled(store: str) -> RestartRun:
    """The restart of a store that is profiled."""
    return RestartRun(store=store, **_SPLIT.said["profiled"])


def _judged(line: Line, with_restart: JobProfile, without: JobProfile, profiled: str) -> Line:
    first = line["batches"][0]
    replayed = replayed_batches(line["state_files"])
    predicted = _predicted(with_restart, line, replayed)
    usual = _predicted(without, line, replayed)
    return {
        "run": line["run"],
        "size": line["size"],
        "store": line["store"],
        "keys": line["keys"],
        "repeat": line["repeat"],
        "day": line["day"],
        "is_profiled": line["run"] == profiled,
        "replayed_batches": replayed,
        "snapshot_bytes": snapshot_bytes(line),
        "measured_s": first["begun_s"] + first["phases_ms"]["triggerExecution"] / 1000.0,
        "begun_s": first["begun_s"],
        "predicted": asdict(predicted),
        "predicted_s": predicted.total_s,
        "usual_s": usual.total_s,
    }


def _predicted(profile: JobProfile, line: Line, replayed: float) -> Restart:
    """From the profile, with the size of the state and the batches since its snapshot."""
    assert profile.state is not None
    state = replace(profile.state, rows=line["keys"], rate_exponent=0.0)
    restart = restart_of(
        replace(profile, state=state),
        profile.baseline,
        float(line["batches"][0]["rows"]),
        replayed_batches=replayed,
    )
    assert restart is not None, f"{line['run']}: its log has no start of a JVM"
    return restart


def replayed_batches(partitions: list[Line]) -> float:
    """Versions after the newest snapshot, the mean of the partitions."""
    counts = []
    for kinds in partitions:
        versions = {kind: max(files["versions"], default=0) for kind, files in kinds.items()}
        newest = max(versions.get(kind, 0) for kind in (*_SNAPSHOTS, *_CHANGES))
        counts.append(newest - max(versions.get(kind, 0) for kind in _SNAPSHOTS))
    return sum(counts) / len(counts)


def snapshot_bytes(line: Line) -> int:
    """Bytes of the newest snapshot of the default store; of RocksDB those of its tables."""
    if line["store"] != "default":
        (operator,) = line["batches"][0]["state"]
        return int(operator["customMetrics"].get("rocksdbSstFileSize", 0))
    return sum(
        max(zip(files["versions"], files["bytes"], strict=True))[1]
        for kinds in line["state_files"]
        if (files := kinds.get("snapshot")) is not None
    )
