"""Sheets: what they refuse, and how text, page and notebook set them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from headway.api.result_kinds import _MODULES
from headway.cli.main import run
from headway.domain.sheet import Section, Sheet
from headway.errors import InputError
from headway.formats.from_json import load_result
from headway.report.page import sheet_page, sheet_screen
from headway.report.sheet_text import sheet_text
from tests.factories import a_profile

HOSTILE = (
    "</td><script>alert('x')</script>",
    '" onmouseover="alert(1)',
    "x" * 10_000,
    "\u202etxt.exe",
    "🔥🔥",
)
FRONTIER = Section(
    title="by nodes",
    head=("nodes", "target"),
    rows=(("1", "missed"), ("2", "met"), ("3", "met")),
    right=(0,),
    marks=("", ">", ""),
)


def a_sheet(*sections: Section) -> Sheet:
    return Sheet(about="Headway plan", headline="2 nodes", verdict=True, sections=sections)


def hostile(name: str) -> Sheet:
    section = Section(
        title=name, texts=(name, name), head=(name, name), rows=((name, name),), code=(name,)
    )
    return Sheet(
        about=name, headline=name, cautions=(name,), facts=((name, name),),
        key_figures=((name, name, name),), sections=(section, Section(lead=name, texts=(name,))),
    )  # fmt: skip


def test_the_answer_comes_first_and_the_plan_is_marked() -> None:
    assert sheet_text(a_sheet(FRONTIER)).splitlines() == [
        "2 nodes",
        "",
        "by nodes",
        "     nodes  target",
        "         1  missed",
        "  >      2  met",
        "         3  met",
    ]
    body = sheet_page(a_sheet(FRONTIER)).partition("<body")[2]
    assert body.index("2\u00a0nodes") < body.index("By nodes") < body.index("2, the plan")
    assert "✓ met" in body
    assert "✗ missed" in body


def test_text_has_some_rows_of_a_long_table_and_the_marked_one() -> None:
    rows = tuple((str(number),) for number in range(50))
    marks = tuple(">" if number == 7 else "" for number in range(50))
    lines = sheet_text(a_sheet(Section(rows=rows, marks=marks, text_rows=10))).splitlines()
    assert [line.split()[-1] for line in lines[2:6]] == ["0", "5", "7", "10"]
    assert len(lines) == 13
    page = sheet_page(a_sheet(Section(rows=rows)))
    assert all(f">{row}<" in page for (row,) in rows)


def test_bars_take_what_is_left_of_a_line() -> None:
    section = Section(rows=(("wait", "1 s"), ("rest", "500 ms")), bar_share=(1.0, 0.5))
    first, second = sheet_text(a_sheet(section)).splitlines()[2:]
    assert (first.count("█"), second.count("█")) == (30, 15)


def test_what_is_for_pages_is_not_in_the_text() -> None:
    sheet = a_sheet(Section(title="jobs", rows=(("orders",),), only_on_pages=True))
    assert sheet_text(sheet) == "2 nodes"
    assert "orders" in sheet_page(sheet)


def test_what_marks_mean_is_not_on_pages_which_name_the_marked_rows() -> None:
    legend = Section(texts=("> the planned one",), only_in_text=True)
    sheet = Sheet(about="A plan", headline="2 nodes", sections=(legend,))
    assert "the planned one" in sheet_text(sheet)
    assert "the planned one" not in sheet_page(sheet)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"rows": (("a",), ("b", "c"))}, "a row has 2 cells; expected 1"),
        ({"rows": (("a",),), "marks": (">", ">")}, "2 marks; expected one for each of 1 rows"),
        ({"rows": (("a",),), "bar_share": (0.1, 0.2)}, "2 bar_share; expected one for each"),
    ],
)
def test_a_table_is_whole(section: dict[str, tuple[str, ...]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Section(**section)  # type: ignore[arg-type]


def test_facts_are_pairs() -> None:
    with pytest.raises(ValueError, match="facts: expected 2 texts in each"):
        Sheet(about="", headline="", facts=(("label",),))


@pytest.mark.parametrize(
    ("name", "job"),
    [("orders", "orders"), ("</title>", "&lt;/title&gt;"), ("unknown", "job.yaml")],
)
def test_title_and_first_line_name_the_job(name: str, job: str) -> None:
    profile = a_profile()
    profile = replace(profile, applications=(replace(profile.applications[-1], name=name),))
    made_at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    page = sheet_page(a_sheet(), files=["logs/job.yaml"], profile=profile, made_at=made_at)
    assert f"<title>{job}: 2 nodes</title>" in page
    assert f"Headway plan · {job} · 2026-03-01 09:30 UTC" in page


def test_a_title_names_the_job_once() -> None:
    page = sheet_page(replace(a_sheet(), headline="orders on Spark 4.1.0"), name="orders")
    assert "<title>orders on Spark 4.1.0</title>" in page


@pytest.mark.parametrize("name", HOSTILE, ids=lambda text: text[:12])
def test_names_of_others_stay_text(name: str) -> None:
    page = sheet_page(hostile(name))
    body = page.partition("<body")[2]
    assert "alert(" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", body, re.DOTALL))
    for text in (page, sheet_screen(hostile(name))):
        assert "</td><script>" not in text
        assert '" onmouseover="' not in text
    assert len(page) < 250_000


def test_every_kind_names_the_module_that_shows_it() -> None:
    for kind, module in _MODULES.items():
        assert kind in import_module(module).KINDS
    modules = [import_module(module) for module in sorted({*_MODULES.values()})]
    assert sorted(kind for module in modules for kind in module.KINDS) == sorted(_MODULES)


@pytest.mark.parametrize(
    ("sheet", "why"),
    [
        ({}, "about: missing"),
        ({"about": "a", "headline": 1}, "headline: got 1; expected text"),
        ({"about": "a", "headline": "b", "facts": [["c"]]}, "facts: expected 2 texts in each"),
    ],
)
def test_a_damaged_sheet_is_refused(sheet: object, why: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"schema": "headway.schedule/v1", "sheet": sheet}))
    with pytest.raises(InputError, match=why):
        load_result(file)


def test_what_holds_no_sheet_and_is_not_read_otherwise_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"schema": "headway.schedule/v1", "pays": True}))
    assert run(["report", str(file), "-o", str(tmp_path / "a.html")]) == 2
    assert "schema headway.schedule/v1" in capsys.readouterr().err
