"""Measuring steps in order resumes where it stopped; the page says what was measured."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import ordered_runs
import ordered_speed
import pytest
from result_lines import lines_of


def page(lines: list[dict[str, Any]], folder: Path) -> str:
    results = folder / "runs.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = ordered_speed.text(
        argparse.Namespace(
            results=results,
            state_results=results.with_name("none"),
            measure=False,
            short=False,
        )
    )
    assert text is not None
    return text


def test_the_page_compares_ways_and_predicts_stages(tmp_path: Path) -> None:
    ways = {"buckets": 0.2, "pandas by key": 1.0, "rows by key": 0.6}
    lines: list[dict[str, Any]] = [
        {"run": way, "way": way, "keys": 1000, "rows": 20000, "repeat": 0, "batches_s": [seconds]}
        for way, seconds in ways.items()
    ]
    even = ordered_runs.TableRun(0.0, 4000, 50, 2, True)
    skewed = ordered_runs.TableRun(1.2, 4000, 50, 2, True)
    for one in (even, skewed):
        rows = one.rows_of_tasks()
        assert sum(rows) == 4000
        tasks_s = {str(at): 0.05 + 1e-4 * count for at, count in enumerate(rows)}
        lines.append({
            "run": f"table {one.exponent}", "exponent": one.exponent, "partitions": 2,
            "rows": 4000, "keys": 50, "placed": True,
            "rows_of_tasks": {str(at): n for at, n in enumerate(rows)},
            "predicted_rows": rows, "tasks_s": tasks_s, "stage_s": max(tasks_s.values()),
        })  # fmt: skip
    text = page(lines, tmp_path)
    assert "| 1,000 | 20,000 | 200 ms | 1 s | 600 ms | 3.0 |" in text.replace("1.00 s", "1 s")
    largest = f"{max(skewed.rows_of_tasks()):,}"
    assert f"| 1.2 | 2 | placed | {largest} | {largest} |" in text
    assert "+0.0% | 0% |" in text
    assert (
        "buckets at least 2 times as fast as by key, 1,000 keys | 3.0 at 20,000 rows |  | met"
        in text
    )
    assert "rows of every task exact, including the largest | 1 of 1 runs |  | met |" in text
    assert "duration of the stage within 5% | 1 of 1 cells, median error 0.0% |  | met |" in text
    assert "Not measured yet" in page([], tmp_path)


def test_the_page_says_what_groups_cost_and_what_is_left_without_them(tmp_path: Path) -> None:
    measured = {
        100: {"buckets": 0.3, "pandas by key": 0.55},
        1000: {"buckets": 0.3, "pandas by key": 1.0, "rows by key": 0.6},
    }
    text = page(
        [
            {"run": f"{way} {keys}", "way": way, "keys": keys, "rows": 20000, "repeat": 0,
             "batches_s": [seconds]}
            for keys, ways in measured.items()
            for way, seconds in ways.items()
        ],
        tmp_path,
    )  # fmt: skip
    assert "`pandas by key` takes 500 us for each group" in text
    assert "Without groups, a batch of `pandas by key` would take 500 ms" in text
    assert "such a pass is therefore at most 1.2 times as fast as Spark's best." in text


def test_a_cell_is_judged_by_the_median_of_its_repeats_and_beside_them(tmp_path: Path) -> None:
    even, skewed = (ordered_runs.TableRun(one, 4000, 50, 2, one == 0.0) for one in (0.0, 1.2))
    lines: list[dict[str, Any]] = []
    for one, factors in ((even, (1.0,)), (skewed, (1.0, 1.1, 1.2))):
        rows = one.rows_of_tasks()
        assert sum(rows) == 4000
        tasks_s = {str(at): 0.05 + 1e-4 * count for at, count in enumerate(rows)}
        for repeat, factor in enumerate(factors):
            lines.append({
                "run": f"{one.exponent}, {repeat}", "exponent": one.exponent, "partitions": 2,
                "rows": 4000, "keys": 50, "placed": one.placed, "predicted_rows": None,
                "rows_of_tasks": {str(at): n for at, n in enumerate(rows)}, "tasks_s": tasks_s,
                "stage_s": factor * max(tasks_s.values()),
            })  # fmt: skip
    lines[-1]["rows_of_tasks"] = {"0": 4000}
    text = page(lines, tmp_path)
    # 1 over 1.1; of the repeats 1 over 1.15, 1.1 over 1.1 and 1.2 over 1.05.
    assert "0 of 1 cells, median error 9.1% | 1 of 3, median 13.0% | missed |" in text
    assert "| 2 of 3 runs |  | missed |" in text
    assert f"| 1.2 | 2 | by hash | {max(skewed.rows_of_tasks()):,} |" in text
    assert "| -9.1% | 20% |" in text


def test_rows_by_hash_are_those_that_spark_dealt_out() -> None:
    # As tasks of Spark 4.3.0 counted them: benchmarks/ordered/results/runs.jsonl.
    by_hash = ordered_runs.TableRun(1.2, 200_000, 1_000, 4, False)
    assert by_hash.rows_of_tasks() == [69_143, 41_547, 48_684, 40_626]


def test_what_is_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, asked = tmp_path / "runs.jsonl", []

    class Session:
        def __init__(self, conf: Any) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            pass

    def batches_s(spark: Any, way: str, *rest: Any) -> list[float]:
        asked.append(way)
        return [1.0]

    monkeypatch.setattr(ordered_runs, "session", Session)
    monkeypatch.setattr(ordered_runs, "_batches_s", batches_s)
    monkeypatch.setattr(ordered_runs, "_run_tables", lambda *given: None)
    ordered_runs.measure(results, ordered_runs.SHORT)
    assert len(asked) == 3
    whole = results.read_text()
    results.write_text(whole[:-7])
    ordered_runs.measure(results, ordered_runs.SHORT)
    assert len(asked) == 4
    assert asked[3] == asked[2]
    runs = [line["run"] for line in lines_of(results)]
    assert len(runs) == len(set(runs)) == 3


def test_the_sizes_of_the_claims_are_measured() -> None:
    amount = ordered_runs.Amount()
    assert (min(amount.keys), max(amount.keys)) == (100, 100_000)
    assert 1000 in amount.keys
    assert (amount.repeats, amount.batches) == (3, 60)
    assert ordered_runs.makespan_s([1.0, 1.0, 1.0], 2) == 2.0
