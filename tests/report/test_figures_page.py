"""Results that have no page of their own, as pages of their figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headway.cli.main import run
from headway.formats.figures_read import KINDS, figures_read
from headway.report.figures_page import figures_page

HOSTILE = (
    "</td><script>alert('x')</script>",
    '" onmouseover="alert(1)',
    "x" * 10_000,
    "\u202etxt.exe",
    "🔥🔥",
)


def a_page(**data: object) -> str:
    return figures_page(figures_read(data, "Headway verdict on a schedule"))


def test_the_answer_comes_first_then_figures_with_units_then_tables() -> None:
    page = a_page(
        headline="taking turns pays: policy promise",
        pays=True,
        gain_ratio=0.5,
        latency_s={"mean": 0.34},
        policies=[{"name": "promise", "mean_s": 1.5, "rate_per_s": 5e4}],
    )
    body = page.partition("<body")[2]
    assert body.index("Taking turns pays") < body.index("50%") < body.index(">promise<")
    for text in ("340 ms", "1.50 s", "50k/s", "latency mean"):
        assert text in page


def test_rows_by_name_make_a_table() -> None:
    found = figures_read({"schedulers": {"CT": {"mean_s": 1.0}, "LP": {"mean_s": 2.0}}}, "x")
    (table,) = found.tables
    assert table.rows == (("CT", 1.0), ("LP", 2.0))
    assert found.figures == ()


@pytest.mark.parametrize("name", HOSTILE, ids=lambda text: text[:12])
def test_names_of_others_stay_text(name: str) -> None:
    page = a_page(headline=name, query=name, queries=[{name: name, "mean_s": 1.0}])
    body = page.partition("<body")[2]
    assert "alert(" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", body, re.DOTALL))
    assert "</td><script>" not in page
    assert '" onmouseover="' not in page
    assert len(page) < 250_000


@pytest.mark.parametrize("schema", KINDS)
def test_every_kind_is_taken_by_the_command(schema: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"schema": schema, "feasible": False}))
    assert run(["report", str(tmp_path / "a.json"), "-o", str(tmp_path / "a.html")]) == 0
    assert KINDS[schema] in (tmp_path / "a.html").read_text(encoding="utf-8")
