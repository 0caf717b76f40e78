"""The paper's figures as the models simulate them: which shapes come out, and which do not."""

from __future__ import annotations

from pathlib import Path

import enorm_figures as figures
import pytest


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
