"""The documentation site: every link and command line in it is right, and it can be built."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
import yaml

import headway
from headway.cli.main import cli
from headway.cli.overview import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name != "theory.in.md")
WRITTEN = [ROOT / "README.md", *PAGES]
#: Columns of a block of code of the site in a window of 1,280 pixels.
_WIDEST_CODE = 95
_LINK = re.compile(r"\[[^\]\n]*\]\((?P<to>[^)\s]+)\)")
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def names(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as the generator makes them."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", head).strip().lower() for head in heads)
    return {re.sub(r"[-\s]+", "-", head) for head in plain}


def test_links_lead_somewhere() -> None:
    for page in WRITTEN:
        for match in _LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
            to, _, anchor = match["to"].partition("#")
            if re.match(r"[a-z]+:", match["to"]):
                continue
            target = (page.parent / to).resolve() if to else page
            assert target.exists(), f"{names(page)}: {match['to']}"
            if anchor and target.suffix == ".md":
                assert anchor in anchors(target), f"{names(page)}: {match['to']}"


def blocks(page: Path, *languages: str) -> list[str]:
    found = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [match["code"] for match in found if match["language"] in languages]


def command_lines(page: Path) -> list[str]:
    """Headway's command lines in blocks of a shell, continued lines put together."""
    text = "\n".join(blocks(page, "sh", "console", "bash")).replace("\\\n", " ")
    lines = (line.removeprefix("$ ").strip() for line in text.splitlines())
    return [line for line in lines if line.startswith("headway ")]


def test_command_lines_name_commands_and_options_that_there_are() -> None:
    for page in WRITTEN:
        for line in command_lines(page):
            words = shlex.split(line.split(" | ")[0].split(" > ")[0], comments=True)
            name = words[1]
            if name not in COMMANDS:
                assert (ROOT / name).exists(), f"{names(page)}: {line}"  # 'headway FILE'
                continue
            command = cli.get_command(click.Context(cli), name)
            assert command is not None
            known = {spelling for each in command.params for spelling in each.opts}
            known |= {"--help", "--help-all", "-h"}
            used = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-zA-Z]", word)}
            assert not used - known, f"{names(page)}: {line}"


def test_python_blocks_can_be_read_and_name_what_there_is() -> None:
    for page in WRITTEN:
        for code in blocks(page, "python"):
            compile(code, str(page), "exec")
            for name in re.findall(r"\bheadway\.(\w+)\(", code):
                assert name in headway.__all__ or find_spec(f"headway.{name}"), (
                    f"{names(page)}: {name}"
                )


def navigation() -> dict[str, list[str]]:
    """The pages of each section of the sidebar, by its name."""

    def listed(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        assert isinstance(values, list) or hasattr(values, "__iter__")
        return [path for value in values for path in listed(value)]

    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    return {name: listed(pages) for section in sections for name, pages in section.items()}


NAVIGATION = navigation()
IN_SIDEBAR = [page for pages in NAVIGATION.values() for page in pages]
BESIDE_EVIDENCE = [page for name in NAVIGATION if name != "Evidence" for page in NAVIGATION[name]]


def linked_from(pages: set[str]) -> set[str]:
    """Pages that these pages link to, below docs."""
    return {
        target.relative_to(DOCS).as_posix()
        for page in pages
        for match in _LINK.finditer(without_code((DOCS / page).read_text(encoding="utf-8")))
        if (target := (DOCS / page).parent.joinpath(match["to"].split("#")[0]).resolve()) in PAGES
    }


def test_every_page_is_in_the_sidebar_or_linked_from_there() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in PAGES}
    left_out = pages - set(IN_SIDEBAR)
    patterns = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["not_in_nav"].split()
    assert len(IN_SIDEBAR) == len(set(IN_SIDEBAR))
    assert set(IN_SIDEBAR) <= pages
    assert all(any(f"/{page}".startswith(pattern) for pattern in patterns) for page in left_out)
    lists = left_out & linked_from(set(IN_SIDEBAR))
    assert left_out == lists | (left_out & linked_from(lists))


def test_the_sidebar_has_at_most_thirty_pages_besides_the_evidence() -> None:
    assert list(NAVIGATION) == ["Start", "How to", "Reference", "How it works", "Evidence"]
    assert len(BESIDE_EVIDENCE) <= 30
    assert 12 <= len(NAVIGATION["How to"]) <= 15


def test_a_page_has_an_example() -> None:
    for page in sorted({*BESIDE_EVIDENCE} - {"glossary.md", "theory.md"}):
        assert _FENCE.search((DOCS / page).read_text(encoding="utf-8")), page


def test_a_page_is_for_people_who_do_not_know_the_tests() -> None:
    for page in sorted({*BESIDE_EVIDENCE} - {"theory.md"}):  # made of docstrings
        text = re.sub(r"<!--.*?-->", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(
            r"tests/\w+|\ba test \w+s\b|\bthe campaign\b|\bADR\b", without_code(text)
        )
        assert found == [], page


def test_no_line_of_code_is_cut() -> None:
    for page in WRITTEN:
        code = "".join(match["code"] for match in _FENCE.finditer(page.read_text(encoding="utf-8")))
        assert [line for line in code.splitlines() if len(line) > _WIDEST_CODE] == [], page


def test_a_link_that_leaves_the_site_becomes_a_name() -> None:
    inside = runpy.run_path(str(ROOT / "scripts" / "site_links.py"))["inside"]
    page = DOCS / "ci.md"
    assert inside("[plan](planning.md) [a](../README.md)", page) == (
        "[plan](planning.md) a (`README.md`)"
    )
    with pytest.raises(FileNotFoundError, match="nowhere"):
        inside("[a](../nowhere.md)", page)


def figures(text: str) -> dict[str, list[str]]:
    """Rows of the tables of the accuracy page, numbers without their blanks, by first cell."""
    rows = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| "))
    return {row[0]: [cell.strip().replace(" %", "%") for cell in row[1:]] for row in rows}


def test_the_accuracy_in_short_is_that_of_the_results() -> None:
    full = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    short = figures((DOCS / "accuracy-in-short.md").read_text(encoding="utf-8"))
    table = figures(full)
    mean, p99 = table["tuple latency, mean"], table["tuple latency, p99"]
    assert short["mean tuple latency"] == [mean[0], f"{mean[1]} of the runs within 10%"]
    assert short["p99 tuple latency"] == [p99[0], f"{p99[2]} of the runs within 15%"]
    window, batch = table["window latency, mean"], table["batch duration, mean"]
    assert short["mean window latency"] == [window[0], f"{window[1]} within 10%"]
    assert short["mean batch duration"] == [batch[0], f"{batch[1]} within 10%"]
    text = " ".join((DOCS / "accuracy-in-short.md").read_text(encoding="utf-8").split())
    judged = re.search(r"(\d+) judged settings, (\d+) judged runs", full)
    held = re.search(r"mean and p99 held (\d+ of \d+ times \(\d+)%\)", full)
    assert judged is not None
    assert held is not None
    assert f"at {judged[1]} configurations" in text
    assert f"{judged[2]} judged runs" in text
    assert f"held {held[1]}%)" in text
    assert f"{mean[4]} for the mean and {p99[4]} for the p99" in text
    assert f"For windows it is {window[4]}, and {window[5]} within 10%" in text
    backlogs = re.search(r"(\d+ of \d+) are within 10%", full)
    assert backlogs is not None
    assert f"within 10% for {backlogs[1]} workloads" in text
    # Of plans, the first table with these rows; the other one is of random promises.
    plans = figures(full[full.index("## Plans that were run") : full.index("## Calibration")])
    kept, unclear, refused = (
        [int(cell) for cell in plans[name]]
        for name in ("keeps it", "too close to tell", "does not keep it")
    )
    assert f"Of {sum(kept + unclear + refused)} random targets" in text
    assert f"{sum(kept)} were called met: {kept[0]} of them were" in text
    assert f"{sum(refused)} were called missed: {refused[0]} of them were met" in text
    assert f"{sum(unclear)} were called too close to tell: {unclear[0]} of them were met" in text


def test_each_row_of_the_comparison_has_its_source_and_the_day_it_was_read() -> None:
    text = (DOCS / "comparison.md").read_text(encoding="utf-8")
    _, *rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    for row in rows:
        source = row.strip("| ").split(" | ")[-1]
        assert re.search(r"\]\(https://[^)]+\)", source), row
        assert re.search(r", 20\d\d-\d\d-\d\d$", source), row


def test_the_readme_states_the_accuracy_of_the_results() -> None:
    table = figures((DOCS / "accuracy.md").read_text(encoding="utf-8"))
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    mean, p99 = table["tuple latency, mean"], table["tuple latency, p99"]
    assert f"median error of {mean[0]} for the mean and {p99[0]} for the p99" in text


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra 'site'")
def test_the_site_can_be_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "start.html").read_text(encoding="utf-8")
    assert "Five minutes" in page
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', page)
    assert not [address for address in loaded if "canonical" not in address]
    # Search of a page that was opened as a file: the index as a script, and what runs the worker.
    index = (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ")
    assert "how-to/my-stream-lags.html" in index
    assert page.index("assets/iframe-worker.js") < page.index("assets/javascripts/bundle")
