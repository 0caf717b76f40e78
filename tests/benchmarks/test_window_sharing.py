"""The paper's figures as the models simulate them: which shapes come out, and which do not."""

from __future__ import annotations

import json
from pathlib import Path

import enorm_figures as figures
import pytest
import window_kafka_section
import window_section
from window_measured import Cell, Interval


def test_the_number_of_windows_hardly_matters_and_two_components_lose_more_with_keys() -> None:
    cells = {(each.keys, each.sizes): each for each in figures.throughput()}
    for keys in figures.KEYS:
        two, six = cells[keys, 2], cells[keys, 6]
        assert six.combined_per_s == pytest.approx(two.combined_per_s, rel=0.02)
        assert six.split_per_s == pytest.approx(two.split_per_s, rel=0.02)
        assert two.split_per_s < two.combined_per_s
    lost = [cells[k, 2].combined_per_s - cells[k, 2].split_per_s for k in figures.KEYS]
    assert lost == sorted(lost)


def test_only_disruptive_moves_pause_and_all_moves_cost_the_same_work() -> None:
    for keys, instant_s, disruptive_s, smooth_s in figures.pauses():
        assert instant_s == 0.0 < disruptive_s
        assert disruptive_s == pytest.approx(keys * figures.COPY_S)
        assert smooth_s == 600.0
    for _, instant, disruptive in figures.moved_work():
        assert instant == pytest.approx(disruptive, rel=0.05)


def test_moves_without_a_pause_keep_rows_from_waiting() -> None:
    every_5, every_1, instant_s = (
        figures.overload_latency_s(period, pause)
        for period, pause in ((300, 2.5), (60, 2.5), (1, 0.0))
    )
    assert every_5 > every_1 >= 5 * instant_s


def test_the_score_by_rows_leaves_the_fewest_rows() -> None:
    found = figures.fusion(50, 20)
    assert found["COMM"][1] < found["PA"][1] < found["baseline"][1]
    assert found["PA"][0] < found["COMM"][0] < found["baseline"][0]


def test_two_components_cost_more_but_less_than_the_paper_measured() -> None:
    assert 1.0 < figures.split_ratio(10_000) < figures.split_ratio(100_000) < 1.05
    assert figures.fast_job(3.0)[0] > 3.0


def test_the_page_is_fresh() -> None:
    import argparse

    import window_sharing

    page = Path(__file__).parents[2] / "docs" / "window-sharing.md"
    given = argparse.Namespace(results=window_sharing.RESULTS, pictures=None, measure=False)
    assert page.read_text() == window_sharing.text(given)


def test_the_baseline_makes_no_more_components_where_it_may_join_others() -> None:
    taken, joining = (reading for reading in (figures.READINGS[0], figures.READINGS[-1]))
    assert not taken.joins and joining.joins
    alone, joined = (figures.fusion(50, 20, reading) for reading in (taken, joining))
    assert alone["baseline"][0] > 1.2 * alone["COMM"][0]
    assert joined["baseline"][0] == pytest.approx(joined["COMM"][0], rel=0.05)
    assert joined["COMM"] == alone["COMM"]
    shares = [figures.narrow_share(50, 20, reading) for reading in figures.READINGS]
    assert max(shares) == figures.narrow_share(50, 20, figures.Reading("", most=15))


def cell(how: str, predicted_s: float, *repeats_s: float, keys: int = 10_000) -> Cell:
    return Cell(
        keys, 100_000, ("60 seconds every 5 seconds",), "", how,
        Interval(predicted_s, 0.9 * predicted_s, 1.2 * predicted_s), repeats_s,
    )  # fmt: skip


def test_the_section_counts_errors_signs_and_what_is_left_out() -> None:
    cells = [
        cell("direct", 1.0, 0.8, 1.0, 1.2),
        cell("panes", 0.6, 0.5, 0.5, 0.5),
        cell("log", 1.1, 0.4, 0.4),
        cell("by hand", 0.6, 0.5, 0.5, 0.5),
    ]
    text = "\n".join(window_section.section(cells))
    assert "log 2.50 times as fast as the direct query (goal 2: met), panes 2.00 times" in text
    assert "over 3 combinations of way and setting: median 20.0% (goal 10%: missed; a" in text
    assert "differs from the median of the others of its cell by 0.0% in the median)" in text
    blind = "\n".join(window_section.section(cells, None, cells[:2]))
    assert "**The third repeat alone**, from which nothing was derived: median error 10.0%" in blind
    assert "wrong signs 0 of 1" in blind
    assert "Wrong signs: 1 of 2 gains" in text
    assert "* wrong sign: log at 10,000 keys, 100,000 rows, 12 windows: -10%, measured +60%" in text
    assert "Missing: 7 settings of 8 not run; 1 cell of 4 with fewer than 3 repeats" in text


def test_pictures_are_the_same_twice(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra 'benchmarks'")
    from window_pictures import GAINS, TIMES, draw

    cells = [cell("direct", 1.0, 0.8, 1.0), cell("panes", 0.6, 0.5)]
    for folder in ("one", "two"):
        draw(cells, tmp_path / folder)
    for name in (TIMES, GAINS):
        one, two = (tmp_path / folder / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_a_kafka_run_is_a_row_of_the_page(tmp_path: Path) -> None:
    assert "Not measured yet" in "\n".join(window_kafka_section.section(tmp_path / "none"))
    line = {
        "how": "direct", "made": "2026-11-22", "window": "60 seconds every 5 seconds",
        "rate_per_s": 12_000.0, "profiled": [[6000.0, 1.0]], "trigger_s": 1.0,
        "predicted_batch_s": 0.5, "predicted_window_p99_s": None, "batches_s": [0.4, 0.6],
        "windows_s": [1.0, 2.5], "num_rows": 10, "num_missing": 0, "num_beyond": 0,
    }  # fmt: skip
    path = tmp_path / "kafka.jsonl"
    shared = line | {"how": "log", "predicted_window_p99_s": 2.0, "batches_s": [0.25]}
    path.write_text(f"{json.dumps(line)}\n{json.dumps(shared)}\n")
    text = "\n".join(window_kafka_section.section(path))
    assert "| direct | 500 ms | 500 ms | +0% | unavailable | 2.50 s | - | 2 | 10 | 0 | 0 |" in text
    assert "| 2.00 s | 2.50 s | -20% |" in text
    assert "log is 2.00 times as fast as the direct query." in text
