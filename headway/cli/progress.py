"""Progress on stderr: on a terminal a bar if something takes long, otherwise a line per step."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_SHOWN_AFTER_S = 0.5
_REPEATED_AFTER_S = 15.0


class Progress:
    """Shows the current step and its progress.

    On a terminal it appears after half a second: shorter steps show nothing, and load nothing for
    it. ``plain`` also prints a line per step without a terminal, and again every 15 seconds, for
    commands that take minutes; short commands print nothing there.
    """

    def __init__(self, text: str = "", *, plain: bool = False) -> None:
        self._plain = plain
        self._text = text
        self._done: float | None = None
        self._started_s = time.monotonic()
        self._bar: RichProgress | None = None
        self._printed_s = self._started_s
        self._over = threading.Event()
        self._lock = threading.RLock()
        self._timer = threading.Timer(_SHOWN_AFTER_S, self._appear)
        self._timer.daemon = True
        self._repeater = threading.Thread(target=self._repeat, name="headway-progress", daemon=True)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._timer.start()
        elif self._plain:
            self._repeater.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over.set()
            if self._bar is not None:
                self._bar.stop()

    def step(self, text: str) -> None:
        """A new step begins."""
        with self._lock:
            self._text, self._done = text, None
            self._update()
            if self._plain and not sys.stderr.isatty():
                self._print()

    def tell(self, text: str, done: float | None = None) -> None:
        """The current step, and its completed share if known."""
        if text != self._text and (done is None or self._bar is None):
            self.step(text)
        self._text = text  # of the same step, said again
        if done is not None:
            self.share(done)

    def share(self, done: float) -> None:
        """Set the completed share of the step, 0 to 1."""
        with self._lock:
            self._done = done
            self._update()

    def _print(self) -> None:
        self._printed_s = time.monotonic()
        share = "" if self._done is None else f", {self._done:.0%}"
        passed_s = self._printed_s - self._started_s
        click.echo(f"[{passed_s:5.0f} s] {self._text}{share}", err=True)

    def _repeat(self) -> None:
        """Print the step again while it lasts, in a thread of its own."""
        while not self._over.wait(self._printed_s + _REPEATED_AFTER_S - time.monotonic()):
            with self._lock:
                if time.monotonic() >= self._printed_s + _REPEATED_AFTER_S:
                    self._print()

    def _appear(self) -> None:
        """Show the bar, in the timer's thread."""
        bar = _rich_bar()
        with self._lock:
            if self._over.is_set():
                return
            self._bar = bar
            bar.add_task("", total=None)
            self._update()
            bar.start()

    def _update(self) -> None:
        if self._bar is None:
            return
        (task,) = self._bar.task_ids
        if self._done is None:
            self._bar.remove_task(task)  # a task that had a total keeps it
            self._bar.add_task(self._text, total=None)
        else:
            self._bar.update(task, description=self._text, completed=self._done, total=1.0)


def _rich_bar() -> RichProgress:
    # Imported here: rich is for terminals only.
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
