"""Runs of many queries in one application: what is run, what is kept of it, and the page."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import driver_page
import driver_runs
import pytest
import zstandard
from driver_runs import Split
from result_lines import lines_of

from headway.assumptions.resources import COMPILER_CORE_S, DRIVER_CPU_RATIO
from headway.domain import Application
from headway.formats.profile_file import dump_profile
from tests.factories import a_configuration, a_profile

DOCS = Path(__file__).parents[2] / "docs"


def line(num_queries: int, *, on_time: float, repeat: int = 1) -> dict[str, Any]:
    """A run of queries that take 0.1 s of the driver's cores each."""
    batches = round(36 * num_queries * on_time)
    durations = {"num_batches": 36, "p50_s": 0.12, "p95_s": 0.2}
    return {
        "run": f"{num_queries:02d}-queries-{repeat}", "day": "2026-11-29", "machine_cores": 2,
        "num_queries": num_queries, "repeat": repeat, "cores": 2, "trigger_s": 1.0,
        "window_s": 36.0, "num_batches": batches, "batches_per_s": batches / 36.0,
        "machine_cpu_s": 0.16 * batches,
        "on_time_ratio": on_time, "jvm_cpu_s": 0.15 * batches,
        "thread_cpu_s": {"Executo": 0.04 * batches, "C2 Comp": 0.01 * batches},
        "num_tasks": 3 * batches, "tasks_per_s": 3 * batches / 36.0, "heap_bytes": 2**28,
        "num_batches_ever": batches, "queries": [durations] * num_queries,
    }  # fmt: skip


def page(lines: list[dict[str, Any]], profiles: list[dict[str, str]], folder: Path) -> str:
    results, kept = folder / "runs.jsonl", folder / "profiles.jsonl"
    for file, rows in ((results, lines), (kept, profiles)):
        file.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    given = argparse.Namespace(results=results, profiles=kept, folder=None)
    text = driver_page.text(given)
    assert text is not None
    return text


def test_runs_of_few_queries_are_fitted_and_all_others_judged() -> None:
    settings, runs = Split().settings, list(Split().runs())
    assert max(settings["fitted"]) == 4 < min(settings["judged"])
    assert max(settings["judged"]) == 40
    assert len({run.name for run in runs}) == len(runs) == 11
    assert [run.num_queries for run in runs if run.repeat == 2] == settings["repeated"]
    assert sum(map(Split().needed_s, runs)) < 16 * 60


def test_the_tasks_of_the_window_are_counted(tmp_path: Path) -> None:
    def task(finished_s: float) -> bytes:
        event = {
            "Event": "SparkListenerTaskEnd",
            "Task Info": {"Finish Time": round(1000 * finished_s)},
            "Task Metrics": {
                "Executor Run Time": 30, "Executor Deserialize Time": 10,
                "Executor CPU Time": 5_000_000, "Executor Deserialize CPU Time": 1_000_000,
            },
        }  # fmt: skip
        return json.dumps(event, separators=(",", ":")).encode() + b"\n"

    folder = tmp_path / "eventlog_v2_local-1"
    folder.mkdir()
    packed = [zstandard.compress(task(at_s)) for at_s in (99.9, 100.0, 104.0, 110.0)]
    (folder / "events_1_local-1.zstd").write_bytes(b"".join(packed[:2]))
    (folder / "events_2_local-1.zstd").write_bytes(b"".join(packed[2:]))
    counted = driver_runs._tasks_of(tmp_path, (100.0, 110.0))
    assert counted["num_tasks"] == 2
    assert counted["tasks_per_s"] == pytest.approx(0.2)
    assert counted["task_s"] == pytest.approx(0.08)
    assert counted["task_cpu_s"] == pytest.approx(0.012)


def test_cpu_times_are_read_off_the_system() -> None:
    stat = Path("/proc/self/stat")
    first = driver_runs._cpu_s(stat)
    total = sum(number * number for number in range(2_000_000))
    assert total > 0
    assert 0.02 <= driver_runs._cpu_s(stat) - first < 60.0


def test_the_page_compares_the_knee_with_saturated_runs(tmp_path: Path) -> None:
    # Phases of 81 ms, and 2 x 20 ms of tasks: see `tests/models/job/test_driver_load.py`.
    configuration = a_configuration(executors=1, cores_per_executor=2, shuffle_partitions=2)
    profile = a_profile()
    local = replace(
        profile,
        applications=(Application(id="local-1", name="a", spark_version="4.3.0"),),
        settings=(replace(profile.settings[0], configuration=configuration, rate_per_s=20.0),),
        arrivals=replace(profile.arrivals, rate_per_s=20.0),
        stages=(replace(profile.stages[0], num_source_tasks=2, task_fixed_s=0.02,
                        task_per_row_s=0.0, task_per_partition_s=0.0),),
    )  # fmt: skip
    core_s = DRIVER_CPU_RATIO.value * 0.081 + 2 / 4500 + 0.04
    lines = [
        line(1, on_time=1.0),
        *(line(number, on_time=min(1.0, 20.0 / number)) for number in (8, 24, 32, 40)),
    ]
    kept = [{"run": "01-queries-1", "query": "query-00", "profile": dump_profile(local)}]
    text = page(lines, kept, tmp_path)
    assert "Runs of 24, 32, 40 queries were saturated: they started 20.0 batches" in text
    knee = (2.0 - COMPILER_CORE_S.value / 300.0) / core_s
    assert f"| a run of 1 query | {knee:.1f} |" in text
    # Core time of the machine without the compiler, 0.15 s a batch: of 2 cores less 0.01.
    assert f"| {(2.0 - 0.01) / 0.15:.1f} |" in text
    assert f"{knee / 20.0 - 1.0:+.1%} |" in text
    assert "| 8 | 1 | 100% |" in text
    # 0.15 s of the JVM without 0.04 s of tasks and 0.01 s of the compiler.
    assert "| 100 ms |" in text


def test_the_page_says_what_is_missing(tmp_path: Path) -> None:
    assert "Not measured yet" in page([], [], tmp_path)
    assert "the knee is above 12 queries" in page([line(12, on_time=1.0)], [], tmp_path)


def test_the_page_is_that_of_the_committed_results() -> None:
    given = argparse.Namespace(
        results=driver_runs.RESULTS, profiles=driver_page.PROFILES, folder=None
    )
    assert (DOCS / "driver.md").read_text(encoding="utf-8") == driver_page.text(given)
    names = {run.name for run in Split().runs()}
    assert {one["run"] for one in lines_of(driver_runs.RESULTS)} <= names
