"""Plans of skewed jobs: what is reckoned is counted, and the page judges what was run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import skewed_plans
from result_lines import lines_of
from skewed_jobs import BY_KEY, PLACED, CountedKey, last_stages, rows_of_partitions
from skewed_runs import SPLIT, Amount, run_name, split_digest

from headway.domain.ordered import KeyPlacement
from headway.domain.plan_parts import PartitionChoice
from headway.errors import HeadwayError


def task_end(stage: int, index: int, rows: int, ended_ms: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task Info": {
            "Index": index, "Launch Time": 1_000, "Finish Time": ended_ms, "Failed": False,
            "Killed": False,
        },
        "Task Metrics": {"Shuffle Read Metrics": {"Total Records Read": rows}},
    }  # fmt: skip


def test_of_a_batch_the_last_stage_counts_once_it_is_done(tmp_path: Path) -> None:
    of_query = {"sql.streaming.queryId": "a", "streaming.sql.batchId": "0"}
    events: list[dict[str, Any]] = [
        {"Event": "SparkListenerJobStart", "Stage IDs": [0, 1], "Properties": of_query},
        {"Event": "SparkListenerJobStart", "Stage IDs": [2],
         "Properties": {**of_query, "sql.streaming.queryId": "b"}},
        {"Event": "SparkListenerJobStart", "Stage IDs": [3, 4],
         "Properties": {**of_query, "streaming.sql.batchId": "1"}},
        task_end(0, 0, 0, 1_200), task_end(1, 0, 30, 1_500), task_end(1, 1, 12, 1_300),
        {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 1}},
        task_end(4, 0, 7, 1_500),
    ]  # fmt: skip
    text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    (tmp_path / "events_1_x").write_text(text + '{"Event":"SparkListenerTaskEnd"')
    (only,) = last_stages(tmp_path, "a")
    assert (only.batch, only.rows_of_tasks) == (0, {0: 30, 1: 12})
    assert only.took_s == pytest.approx(0.5)


def test_rows_by_hash_and_by_bucket() -> None:
    counts = {"a": CountedKey(5, -7), "b": CountedKey(3, 11)}
    assert sum(rows_of_partitions(counts, 4, None)) == 8
    choice = PartitionChoice(shuffle_partitions=2, largest_share=0.6, mean_s=1.0, p99_s=1.0)
    placed = KeyPlacement(
        keys=("a",), key_share=(0.6,), buckets=(2,), spread_ids=(2, 0), choice=choice
    )
    # Spark sends 2 to partition 0 of 2, and 0 to partition 1; 11 mod 2 is the second id.
    assert rows_of_partitions(counts, 2, placed) == [5, 3]


def run(
    job: str, way: str, repeat: int, *, predicted_s: float, measured_s: float
) -> dict[str, Any]:
    latency = {"mean": measured_s / 2, "p50": measured_s / 2, "p95": measured_s, "p99": measured_s}
    expected = {"mean": predicted_s / 2, "p99": predicted_s}
    return {
        "run": f"{job}/{way}/{repeat}", "job": job, "way": way, "repeat": repeat,
        "split": split_digest(), "target": "p99 <= 2s", "limit_s": 2.0, "feasible": True,
        "rate_per_s": 1e4, "trigger_s": 0.5, "partitions": 2,
        "predicted": {
            "largest_share": 0.6, "stage": expected, "promised_s": predicted_s,
            "latency": expected if way == BY_KEY else None,
            "duration": expected if way == BY_KEY else None,
        },
        "stage_s": [measured_s] * 5, "rows_of_tasks": [6, 4], "reckoned_rows": [6, 4],
        "truth": {"latency": latency, "duration": latency},
    }  # fmt: skip


def page(lines: list[dict[str, Any]], folder: Path) -> str:
    results = folder / "lines.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = argparse.Namespace(results=results, measure=False, short=False, output=None)
    text = skewed_plans.text(given)
    assert text is not None
    return text


def test_the_page_judges_p99_beside_its_floor(tmp_path: Path) -> None:
    lines = [
        run("one", BY_KEY, 1, predicted_s=1.04, measured_s=1.0),
        run("one", BY_KEY, 2, predicted_s=1.04, measured_s=1.25),
        run("one", PLACED, 1, predicted_s=0.8, measured_s=0.8),
        run("two", BY_KEY, 1, predicted_s=0.95, measured_s=1.0),
    ]
    text = page(lines, tmp_path)
    # 4%, 16.8% and 5%; 20% and 25% of one repeat against the other.
    assert "median error at most 6% | 5.0% over 3 runs | 22.5% | met |" in text
    exact = "rows of every task exact, also with placed keys | 4 of 4 runs, 40 rows |  | met |"
    assert exact in text
    assert "one 1.41" in text
    lines[0]["rows_of_tasks"] = [5, 5]
    assert "3 of 4 runs, 40 rows |  | missed |" in page(lines, tmp_path)
    assert "Not measured yet" in page([], tmp_path)


def test_results_of_another_split_are_refused(tmp_path: Path) -> None:
    line = run("one", BY_KEY, 1, predicted_s=1.0, measured_s=1.0) | {"split": "another"}
    with pytest.raises(HeadwayError, match="of split another"):
        page([line], tmp_path)


def test_the_split_is_what_the_claim_names() -> None:
    amount = Amount.of_split()
    assert len(amount.jobs) == 4
    assert amount.batches >= 60
    assert len(amount.fitted) == 2
    names = [
        run_name(job, way, repeat)
        for job in amount.jobs for way in (BY_KEY, PLACED) for repeat in range(amount.repeats)
    ]  # fmt: skip
    assert len(names) == len(set(names)) == 4 * 2 * amount.repeats
    committed = lines_of(SPLIT.parent / "results" / "skewed-plans.jsonl")
    assert {line["split"] for line in committed} <= {split_digest()}
