"""The paper's Table 4 and its halves are whole, and the page says what the costs give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scalla_costs import JOBS, Cell, chosen_costs, fitted_costs, predicted_s, score, table_4
from scalla_fit import loss

PAGE = Path(__file__).parents[2] / "docs" / "scalla.md"


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return table_4()


def test_the_table_has_ten_cells_of_each_job_in_two_halves(cells: list[Cell]) -> None:
    assert len({(one.job, one.mappers, one.shuffle_s, one.poll_s) for one in cells}) == 30
    for job in JOBS:
        own = [one for one in cells if one.job == job]
        assert len(own) == 10
        for half in (True, False):
            values = [one.mean_s is not None for one in own if one.is_fitted is half]
            assert 4 <= len(values) <= 6
            assert any(values) and not all(values)


def test_the_page_has_the_score(cells: list[Cell]) -> None:
    scores = [score(cells, predicted_s(cells, costs)) for costs in (chosen_costs(), fitted_costs())]
    assert f"| all | {scores[0]} | {scores[1]} |" in PAGE.read_text(encoding="utf-8")


def test_cells_that_come_out_lose_nothing(cells: list[Cell]) -> None:
    costs = chosen_costs()
    true = [
        replace(cell, mean_s=float(mean_s) if np.isfinite(mean_s) else None)
        for cell, mean_s in zip(cells, predicted_s(cells, costs), strict=True)
    ]
    assert loss(true, costs) == pytest.approx(0.0)
    slower = costs | {"tweet.map_s": 1.1 * costs["tweet.map_s"]}
    assert loss(true, slower) > 0.0


def test_a_wrong_verdict_loses_more_than_any_value(cells: list[Cell]) -> None:
    (cell,) = [c for c in cells if c.job == "word-count" and c.poll_s == 1.0 and c.shuffle_s == 0.1]
    costs = chosen_costs()
    far_off, unbounded = replace(cell, mean_s=1e6), replace(cell, mean_s=None)
    assert loss([far_off], costs) == pytest.approx(2.0)
    assert loss([unbounded], costs) >= 4.0
