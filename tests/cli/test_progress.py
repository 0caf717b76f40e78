"""Progress appears on a terminal once something takes long, and not before."""

from __future__ import annotations

import sys
import time

import pytest

from headway.cli import progress
from headway.cli.progress import Progress


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    return monkeypatch


def test_what_is_short_shows_nothing_and_loads_nothing(on_terminal: pytest.MonkeyPatch) -> None:
    on_terminal.setattr(progress, "_rich_bar", lambda: pytest.fail("a bar was made"))
    with Progress() as shown:
        shown.step("planning")
        shown.share(0.5)
    time.sleep(0.02)


def test_what_takes_long_is_shown_until_it_is_done(on_terminal: pytest.MonkeyPatch) -> None:
    on_terminal.setattr(progress, "_SHOWN_AFTER_S", 0.01)
    with Progress() as shown:
        shown.step("planning")
        until_s = time.monotonic() + 10.0
        while shown._bar is None and time.monotonic() < until_s:
            time.sleep(0.01)
        assert shown._bar is not None
        shown.tell("planning", 0.25)
        (task,) = shown._bar.tasks
        assert (task.description, task.completed, task.total) == ("planning", 0.25, 1.0)
        shown.step("writing")
        (task,) = shown._bar.tasks
        assert (task.description, task.total) == ("writing", None)
    assert shown._bar.finished or not shown._bar.live.is_started


def test_off_a_terminal_long_commands_tell_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(plain=True) as shown:
        shown.step("starting Spark")
        shown.share(0.5)
    with Progress() as shown:
        shown.step("planning")
    assert capsys.readouterr().err == "[    0 s] starting Spark\n"


def test_off_a_terminal_a_step_that_lasts_is_printed_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_REPEATED_AFTER_S", 0.05)
    printed = ""
    with Progress(plain=True) as shown:
        shown.step("running warm-up")
        shown.share(0.5)
        until_s = time.monotonic() + 10.0
        while printed.count("\n") < 3 and time.monotonic() < until_s:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert printed.splitlines()[:3] == [
        "[    0 s] running warm-up",
        *["[    0 s] running warm-up, 50%"] * 2,
    ]
