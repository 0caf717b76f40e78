"""The paper's Table 4 and its halves are whole, and the page says what the costs give."""

from __future__ import annotations

from pathlib import Path

import pytest
from scalla_costs import JOBS, Cell, chosen_costs, predicted_s, score, table_4

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
    found = score(cells, predicted_s(cells, chosen_costs()))
    assert f"| all | {found} |" in PAGE.read_text(encoding="utf-8")
