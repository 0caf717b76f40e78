"""What a person sees: the width there is, nothing cut, colour, what to type next."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.cli.main import run
from headway.cli.overview import COMMANDS as ALL_COMMANDS
from headway.demo.run import PREDICTED, PROFILED, DemoOutcome, _plans, _predict
from headway.demo.story import story
from headway.domain import Explored, LatencyDistribution
from headway.formats.as_json import json_text, plan_json
from headway.report.columns import USUAL_WIDTH, aligned, fitted, set_width, width
from headway.report.comparison import compared
from headway.runtime.measure import MeasuredRun
from headway.spec.spec_file import scaffold
from tests.cli.test_options import kitchen  # noqa: F401  # a fixture
from tests.cli.test_pipelines import small
from tests.factories import a_plan, a_profile
from tests.live_logs import a_log as a_recording
from tests.seeds import first_of

ROOT = Path(__file__).parents[2]
PROFILE = str(ROOT / "examples/word-count.profile.yaml")
ASKED = ("--rate", "24k/s", "--target", "p99 <= 2s")
TRACE = ("--rate-trace", "burst.csv")
WATCHED = ("--profile", "orders.profile.yaml", "--target", "p99 <= 3s", "--once")
COMMANDS: dict[str, tuple[Sequence[str], int]] = {
    "plan": (("plan", "job.yaml", *ASKED), 0),
    "plan, infeasible": (("plan", "job.yaml", "--rate", "24k/s", "--target", "p99 <= 100ms"), 3),
    "plan, infeasible, in full": (
        ("plan", "job.yaml", "--rate", "24k/s", "--target", "p99 <= 100ms", "--verbose"),
        3,
    ),
    "plan, quiet": (("plan", "job.yaml", *ASKED, "--quiet"), 0),
    "plan, verbose": (("plan", "job.yaml", *ASKED, "--verbose"), 0),
    "plan on node types": (("plan", "job.yaml", *ASKED, "--node-type", "m6i.xlarge"), 0),
    "plan of a batch job": (("plan", "nightly.profile.yaml", "--target", "deadline <= 150s"), 0),
    "plan of a spec": (("plan", "orders.yaml", "--rate", "6k/s"), 0),
    "plan of a pipeline": (
        ("plan", "pipeline.yaml", "--target", "p99 <= 5s", "--max-nodes", "3"),
        0,
    ),
    "plan of operators": (("plan", "operators.yaml"), 0),
    "predict": (("predict", "job.yaml", "--rate", "12k/s"), 0),
    "predict of a pipeline": (("predict", "pipeline.yaml"), 0),
    "predict of operators": (("predict", "operators.yaml"), 0),
    "simulate": (("simulate", "plan.json", *TRACE, "--runs", "2"), 0),
    "simulate of policies": (
        ("simulate", "job.json", *TRACE, "--policy", "headway,static", "--profile", "job.yaml"),
        0,
    ),
    "simulate of a pipeline": (("simulate", "pipeline.yaml", "--runs", "1", "--for", "3s"), 0),
    "explain": (("explain", "job.json"), 0),
    "explain an equation": (("explain", "--equation", "P4"), 0),
    "diff": (("diff", "plan.json", "orders.yaml"), 0),
    "diff of profiles": (("diff", "job.yaml", "log"), 0),
    "check": (("check", "orders.yaml"), 0),
    "check, locked": (("check", "orders.yaml", "--baseline", "dear.lock"), 4),
    "lock": (("lock", "orders.yaml"), 0),
    "validate": (("validate", "orders.yaml"), 0),
    "capacity": (("capacity", str(ROOT / "configs/fleet.yaml")), 0),
    "profile, survey": (("profile", "log", "--check"), 0),
    "profile, advice": (("profile", "log", "--advise"), 0),
    "backtest": (("backtest", "log"), 0),
    "schedule": (("schedule", "queries.yaml"), 0),
    "windows": (
        ("windows", "windows.profile.yaml", "--rate", "150k/s", "--explain", "plan.txt"),
        0,
    ),
    "ordered": (("ordered", "orders.profile.yaml", "--keys", "keys.csv"), 0),
    "watch": (("watch", "orders.headway.jsonl", *WATCHED), 0),
    "tune": (("tune", "tuning.yaml", "--off"), 0),
    "explore": (("explore", "tuning.yaml"), 0),
    "demo": (("demo",), 0),
}
#: Their answer is a file for others, as wide as it is: no line of it may be broken.
OF_OTHERS = ("emit", "init", "mcp", "report", "schema")
#: What takes long and does not depend on the width, computed once for all widths.
HEAVY = (
    "headway.cli.plan.plan_job",
    "headway.api.specs.plan_file",
    "headway.cli.predict.predict_job",
    "headway.cli.simulate.run_simulation",
    "headway.cli.diff.diff",
    "headway.api.check.check",
    "headway.cli.lock.lock",
    "headway.api.capacity.capacity",
    "headway.cli.backtest.backtest",
    "headway.api.advise.advise",
    "headway.cli.schedule.schedule_verdict",
    "headway.cli.windows.windows",
    "headway.cli.ordered.ordered_plan",
)
#: Lines that are copied as they are: Spark's settings, options of a query, code.
COPIED = re.compile(r"\s+(spark\.|trigger  |max\w+PerTrigger)|[\w.]+\(|\w+ = | {10}|import |from p")
_KNOWN: dict[tuple[str, str], Any] = {}


@pytest.fixture(scope="module")
def folder(kitchen: Path) -> Path:  # noqa: F811
    """What the commands of the table read."""
    shutil.copy(PROFILE, kitchen / "job.yaml")
    shutil.copy(ROOT / "examples/burst.csv", kitchen / "burst.csv")
    plan = headway.plan(PROFILE, rate="24k/s", target="p99 <= 2s")
    (kitchen / "job.json").write_text(json_text(plan_json(plan)))
    Path(small(kitchen)).rename(kitchen / "pipeline.yaml")
    shutil.copy(ROOT / "examples/pipelines/sessions.yaml", kitchen / "operators.yaml")
    (kitchen / "tuning.yaml").write_text(scaffold("Tuning", name="orders", file="tuning.yaml"))
    shutil.copy(ROOT / "examples/exploring/counts.py", kitchen / "counts.py")
    (kitchen / "orders.headway.jsonl").write_text(a_recording())
    return kitchen


@pytest.fixture(scope="module")
def demonstrated() -> DemoOutcome:
    """The outcome of a demonstration on a busy machine, without running it."""
    profile = headway.load_profile(PROFILE)
    plans = _plans(profile, is_busy=True)
    latency = LatencyDistribution(mean_s=0.8, p50_s=0.7, p95_s=1.2, p99_s=2.2)
    return DemoOutcome(
        folder=Path("headway-demo-20261122-214005"),
        profile=profile,
        predictions={name: _predict(profile, one) for name, one in PREDICTED.items()},
        plans=tuple(plans),
        comparisons=tuple(
            compared(f"the plan: {one}", latency, latency)
            for one in (*PROFILED.values(), *PREDICTED.values())
        ),
        measured=MeasuredRun(
            query_id="1", name="planned", num_batches=10, num_rows=10, rows_per_batch=1.0,
            rate_per_s=1.0, kept_up=True, tuple_latency=latency, batch_duration=latency,
        ),
        promise_kept=True,
        was_busy=True,
    )  # fmt: skip


@pytest.fixture
def printed(
    folder: Path,
    demonstrated: DemoOutcome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[[str, int | None], str]]:
    """What a command of the table prints, in a terminal of so many columns or in a pipe."""
    explored = Explored(
        folder=Path("exploration"), profile=a_profile(), plan=a_plan(), num_runs=6, spent_s=180.0,
        width_ratio=0.23,
    )  # fmt: skip
    monkeypatch.setattr("headway.cli.explore.explore_spec", lambda *_, **__: explored)
    monkeypatch.setattr("headway.demo.run.run_demo", lambda *_, **__: demonstrated)
    monkeypatch.setattr("headway.demo.run.busy_note", lambda: None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def text(name: str, columns: int | None) -> str:
        monkeypatch.setattr("headway.cli.terminal.is_terminal", lambda: columns is not None)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        for place in HEAVY:
            _once(place, name, monkeypatch)
        words, exit_code = COMMANDS[name]
        with contextlib.chdir(folder):
            assert run(words) == exit_code, capsys.readouterr().err
        return capsys.readouterr().out

    yield text
    set_width(USUAL_WIDTH)


def _once(place: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, name = place.rpartition(".")
    function = getattr(importlib.import_module(module), name)

    def known(*arguments: Any, **named: Any) -> Any:
        if (place, case) not in _KNOWN:
            _KNOWN[place, case] = function(*arguments, **named)
        return _KNOWN[place, case]

    monkeypatch.setattr(place, known)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).removeprefix("✓ ").removeprefix("✗ ")


def said(text: str) -> set[str]:
    """The words of a text; bars are as long as there is room."""
    return {word for word in plain(text).split() if not set(word) <= set("▏▎▍▌▋▊▉█")}


def test_every_command_that_prints_for_people_is_in_the_table() -> None:
    assert {words[0] for words, _ in COMMANDS.values()} | set(OF_OTHERS) == set(ALL_COMMANDS)


@pytest.mark.parametrize(
    "columns", first_of([60, None, 80, 120], 2), ids=lambda it: str(it or "pipe")
)
@pytest.mark.parametrize(
    "name",
    # That of fleets solves for half a minute.
    [
        pytest.param(name, marks=pytest.mark.statistical) if name == "capacity" else name
        for name in COMMANDS
    ],
)
def test_a_command_fits_and_says_all(
    name: str, columns: int | None, printed: Callable[[str, int | None], str]
) -> None:
    """No line is too wide, no word of what a pipe gets is cut, and the same comes first."""
    in_a_pipe = printed(name, None)
    assert "\x1b" not in in_a_pipe
    assert not in_a_pipe.startswith(("✓", "✗"))
    text = in_a_pipe if columns is None else printed(name, columns)
    for line in plain(text).splitlines():
        if not COPIED.match(line):
            assert len(line) <= (columns or USUAL_WIDTH), line
    assert said(text) == said(in_a_pipe)
    assert plain(text).split()[:4] == in_a_pipe.split()[:4]


@pytest.mark.parametrize("columns", [60, 80, 120, None], ids=lambda it: str(it or "pipe"))
@pytest.mark.parametrize("command", ["", *ALL_COMMANDS])
def test_help_fits(
    command: str,
    columns: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if columns is not None:
        monkeypatch.setattr("headway.cli.terminal.is_terminal", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
    try:
        assert run([*([command] if command else []), "--help"]) == 0
    finally:
        set_width(USUAL_WIDTH)
    for line in capsys.readouterr().out.splitlines():
        # A word, such as the figures of a node type, is never broken, nor is code.
        whole = len(line.rstrip(" \\").split()) <= 2 or COPIED.match(line.lstrip())
        assert len(line) <= (columns or USUAL_WIDTH) or whole, line


WIDE = [
    ("query", "rate", "p99", "setting"),
    ("orders", "50k/s", "1.50 s", "2 x 4 cores, 8 shuffle partitions, every 2 s"),
    ("a-query-with-a-long-name", "9k/s", "900 ms", "1 x 2 cores, as fast as possible"),
]


def at(columns: int, rows: Sequence[Sequence[str]], **how: Any) -> list[str]:
    set_width(columns)
    try:
        found = aligned(rows, **how)
        assert all(len(line) <= width() for line in found)
    finally:
        set_width(USUAL_WIDTH)
    return found


@pytest.mark.parametrize("columns", range(30, 110, 7))
def test_a_row_that_is_too_wide_folds_and_its_cells_stay_whole(columns: int) -> None:
    lines = at(columns, WIDE, right=(1, 2))
    for row in WIDE:
        for cell in row:
            whole = len(cell) <= columns - 8
            assert any(cell in line for line in lines) or not whole, cell


def test_a_row_that_fits_stays_on_its_line() -> None:
    assert at(60, WIDE, right=(1, 2)) == [
        "  query                      rate     p99  setting",
        "  orders                    50k/s  1.50 s",
        "        2 x 4 cores, 8 shuffle partitions, every 2 s",
        "  a-query-with-a-long-name   9k/s  900 ms",
        "        1 x 2 cores, as fast as possible",
    ]


def test_a_text_behind_a_name_continues_under_its_beginning() -> None:
    sentence = "a sentence that is longer than what is left of the line beside its name"
    lines = at(60, [("binding", sentence), ("why", "short")])
    assert lines == [
        "  binding  a sentence that is longer than what is left of",
        "           the line beside its name",
        "  why      short",
    ]


def test_a_name_of_ten_thousand_characters_breaks_nothing() -> None:
    lines = at(60, [("name", "nodes", "rate"), ("x" * 10_000, "2", "80k/s")], right=(1, 2))
    assert "".join(lines).count("x") == 10_000
    assert lines[-1].split() == ["2", "80k/s"]


def test_what_is_copied_is_not_broken() -> None:
    line = f"  spark.executor.extraJavaOptions  {'-Dx=y ' * 30}".rstrip()
    assert fitted(line) == line


def test_what_is_infeasible_takes_less_than_25_lines(
    printed: Callable[[str, int | None], str],
) -> None:
    short = printed("plan, infeasible", None)
    assert len(short.splitlines()) < 25
    assert short.index("p99 <= 100 ms") < short.index("nearest feasible targets")
    assert "Spark configuration" in printed("plan, infeasible, in full", None)


def test_quiet_prints_the_answer_only(printed: Callable[[str, int | None], str]) -> None:
    out = printed("plan, quiet", None)
    assert out.startswith("1 node meets p99 <= 2.00 s at 24k/s\n")
    assert len(out.splitlines()) < 10


def test_the_demonstration_takes_less_than_60_lines(demonstrated: DemoOutcome) -> None:
    text = story(demonstrated)
    assert len(text.splitlines()) < 60
    assert "comparison.txt" in text


@pytest.mark.parametrize("without", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}], ids=str)
def test_a_real_terminal_has_colour_unless_it_is_refused(without: dict[str, str]) -> None:
    seen, _ = in_a_terminal(["--no-color"] if not without else [], 80, without)
    assert "\x1b[" not in seen
    assert seen.startswith("✓ 1 node meets")


def test_a_real_terminal_shows_the_verdict_and_what_to_type_next() -> None:
    seen, beside = in_a_terminal([], 80, {})
    assert seen.startswith("\x1b[32m\x1b[1m✓ 1 node meets p99 <= 2.00 s at 24k/s\x1b[0m")
    assert "next: " in beside
    lines = [line for line in plain(seen).splitlines() if not COPIED.match(line)]
    assert max(map(len, lines)) <= 80


def in_a_terminal(
    options: Sequence[str], columns: int, environment: dict[str, str]
) -> tuple[str, str]:
    """What the plan prints in a terminal of so many columns, and what it says beside it."""
    (out, theirs_out), (err, theirs_err) = pty.openpty(), pty.openpty()
    for theirs in (theirs_out, theirs_err):
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", *options, "plan", PROFILE, *ASKED],
        stdin=theirs_out,
        stdout=theirs_out,
        stderr=theirs_err,
        env={**known, "TERM": "xterm", **environment},
    )
    os.close(theirs_out)
    os.close(theirs_err)
    with ThreadPoolExecutor() as readers:
        texts = list(readers.map(_read_all, (out, err)))
    assert process.wait(timeout=60) == 0
    return texts[0], texts[1]


def _read_all(ours: int) -> str:
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux tells that the other end was closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")
