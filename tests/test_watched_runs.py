"""Recorded real runs, watched with a profile of themselves and with one of other runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.domain import JobProfile
from headway.domain.live import Look
from headway.profiler.recording.growing_log import GrowingLog
from tests.seeds import first_of
from tests.shared_data import GROUND_TRUTH, RECORDED, needs


def looks_at(log: Path, profile: JobProfile, queries: list[str]) -> dict[str, Look]:
    """One look at each query, after its last batch."""
    return {
        name: headway.watch(log, profile=profile, target="p99 <= 60s", query=name).look()
        for name in queries
    }


def without_tasks(log: Path, folder: Path) -> Path:
    """The log without the lines of its tasks: most of it, and a look passes them over."""
    kept = [
        line
        for line in GrowingLog(log).new_lines()
        if not line.startswith(b'{"Event":"SparkListenerTask')
    ]
    (folder / "log").write_bytes(b"\n".join([*kept, b""]))
    return folder / "log"


def alarms(looks: dict[str, Look]) -> dict[str, float]:
    """Those with a drift, and how much longer their batches take."""
    return {
        name: look.drift.duration_ratio
        for name, look in looks.items()
        if look.drift is not None and look.drift.is_alarm
    }


def truths(folder: Path) -> list[str]:
    """Queries of a folder of ground truth, in order of time."""
    lines = (folder / "truth.jsonl").read_text().splitlines()
    known: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [one["query_id"] for one in known]


def test_the_runs_that_a_profile_is_of_are_no_drift() -> None:
    (log,) = RECORDED.glob("eventlog_v2_*")
    names = [one["name"] for one in json.loads((RECORDED / "truth.json").read_text())]
    profile = headway.profile(log, queries=names[:2])
    looks = looks_at(log, profile, names)
    assert sum(look.drift is not None for look in looks.values()) >= 2
    assert not alarms(looks)


@needs(
    GROUND_TRUTH,
    stand_in="tests/test_watched_runs.py::test_the_runs_that_a_profile_is_of_are_no_drift",
)
@pytest.mark.parametrize("name", first_of(["sha_agg_local1", "sha_agg_local2"], 1))
def test_runs_of_one_machine_raise_no_alarm(name: str, tmp_path: Path) -> None:
    """28 runs of a quarter of a minute: one false alarm in a hundred of them is stated."""
    folder = GROUND_TRUTH / name
    (log,) = folder.glob("eventlog_v2_*")
    queries = truths(folder)
    own = headway.profile(log, queries=queries)
    short = without_tasks(log, tmp_path)
    looks = looks_at(short, own, queries)
    whole = looks_at(log, own, queries[:1])[queries[0]]
    for seen in ("num_batches", "configuration", "prediction", "latency", "drift"):
        assert getattr(looks[queries[0]], seen) == getattr(whole, seen), seen
    assert sum(look.drift is not None for look in looks.values()) >= 0.7 * len(queries)
    assert not alarms(looks)
    of_others = headway.profile(log, queries=queries[::2])
    assert len(alarms(looks_at(short, of_others, queries[1::2]))) <= 1
