"""Every block of code in README and documentation is run, or a comment before it says why not.

Blocks of a console, and of Python with output behind them, are run by the scripts ``refresh_docs``
and ``refresh_readme``; the others here, among files of the names that the pages use.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import headway
from headway.cli.main import run
from headway.formats.as_json import json_text, plan_json
from tests.cli.test_options import BUNDLE, MANIFEST
from tests.factories import a_profile
from tests.live_logs import a_log
from tests.planner.test_dstreams import FITTED, profiled
from tests.profiler.event_log import AppLog, Query, write_rolling

if TYPE_CHECKING:
    from headway.pytest_plugin import Planner

pytestmark = pytest.mark.usefixtures("small_pages")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (?P<kind>not run|run by):? (?P<text>[^>]+?) -->\s*\Z")
_OUTPUT_BEHIND = re.compile(r"\s*```text\n")
#: Of a console the output stands there too; text is what something printed, or a file of data.
_RUN_ELSEWHERE, _NO_CODE = ("console",), ("text",)
#: Files of others' machines, by the names that they have among ours.
_STANDS_FOR = {
    "/var/log/spark-events/": "",
    "/var/lib/node_exporter/": "",
    "old-log new-log": "logs/eventlog_v2_app-1 logs/eventlog_v2_app-2",
}
_TRACE = "time,rate\n0s,20k/s\n10m,60k/s\n15m,20k/s\n70m,20k/s\n"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code, where it stands, and what the comment before it says."""

    place: str
    language: str
    code: str
    is_run_elsewhere: bool
    comment: re.Match[str] | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            place=f"{page.relative_to(ROOT)}:{text[: found.start()].count(chr(10)) + 1}",
            language=found["language"],
            code=found["code"],
            is_run_elsewhere=found["language"] in _RUN_ELSEWHERE
            or (
                found["language"] == "python"
                and _OUTPUT_BEHIND.match(text[found.end() :]) is not None
            ),
            comment=_COMMENT.search(text[: found.start()]),
        )
        for found in _FENCE.finditer(text)
        if found["language"] not in _NO_CODE
    ]


BLOCKS = [block for page in PAGES if page.name != "theory.in.md" for block in blocks(page)]
OURS = [block for block in BLOCKS if not block.is_run_elsewhere and block.comment is None]


def test_comments_name_what_there_is() -> None:
    for block in BLOCKS:
        if block.comment is not None:
            assert not block.is_run_elsewhere, f"{block.place} is run"
            for path in re.findall(r"tests/[\w/.]+", block.comment["text"]):
                assert (ROOT / path).exists(), f"{block.place}: {path}"
    assert len(OURS) > 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the names that the pages use."""
    folder = tmp_path_factory.mktemp("pages")
    for name in ("configs", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "examples/word-count.profile.yaml", folder / "job.profile.yaml")
    shutil.copy(ROOT / "examples/exploring/counts.py", folder / "counts.py")
    for name in ("orders", "p", "new", "monday", "friday"):
        headway.save_profile(a_profile(), folder / f"{name}.profile.yaml")
    (folder / "p.profile.yaml").rename(folder / "p.yaml")
    headway.save_profile(profiled(FITTED), folder / "app.profile.yaml")
    (folder / "logs").mkdir()
    for number, rate_per_s in ((1, 20_000.0), (2, 30_000.0)):
        lines = AppLog().add(Query(num_batches=40, rate_per_s=rate_per_s)).lines
        log = write_rolling(lines, folder / "logs" / f"eventlog_v2_app-{number}", numbers=(40, 41))
        shutil.copytree(log, folder / log.name)
    (folder / "orders.headway.jsonl").write_text(a_log())
    (folder / "day.csv").write_text(_TRACE)
    (folder / "keys.csv").write_text("key,count\na,70\nb,30\nc,20\n")
    (folder / "databricks.yml").write_text(BUNDLE)
    (folder / "orders-application.yaml").write_text(MANIFEST)
    plan = headway.plan(folder / "job.profile.yaml", rate="50k/s", target="p99 <= 3s")
    (folder / "plan.json").write_text(json_text(plan_json(plan)))
    return folder


@pytest.mark.parametrize("block", OURS, ids=lambda block: block.place)
def test_a_block_runs(
    block: Block,
    folder: Path,
    headway_plan: Planner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with contextlib.chdir(folder):
        if block.language == "sh":
            for line in block.code.replace("\\\n", " ").splitlines():
                _run_line(line, block, capsys)
        elif block.language == "python":
            names: dict[str, Any] = {"__name__": "page"}
            exec(compile(block.code, block.place, "exec"), names)
            for name in [one for one in names if one.startswith("test_")]:
                names[name](headway_plan)
        elif block.language == "yaml":
            assert yaml.safe_load(block.code)
            (folder / "page.yaml").write_text(block.code)
            assert run(["validate", "page.yaml"]) == 0, capsys.readouterr().out
        else:
            pytest.fail(f"{block.place}: a block of {block.language or 'no language'} is not run")


def _run_line(line: str, block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    for theirs, ours in _STANDS_FOR.items():
        line = line.replace(theirs, ours)
    words, _, file = line.partition(" > ")
    name, *arguments = shlex.split(words, comments=True)
    assert name == "headway", f"{block.place}: {line}: run it here, or say why not"
    capsys.readouterr()
    code = run(arguments)
    printed = capsys.readouterr()
    # What the files of a page stand for may be infeasible, or differ.
    assert code in (0, 3, 4), f"{block.place}: {line}: {printed.err}"
    if file:
        Path(file.strip()).write_text(printed.out)
