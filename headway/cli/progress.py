"""Progress on stderr: a spinner and bars on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class Progress:
    """Tells what is being done and how far it is.

    ``plain`` also tells it where there is no terminal, a line per step; commands that take
    minutes want that, short ones stay silent there.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._text = ""
        self._started_s = time.monotonic()
        self._bar = _rich_bar() if sys.stderr.isatty() else None
        self._task = self._bar.add_task("", total=None) if self._bar else None

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def step(self, text: str) -> None:
        """A new step begins."""
        if self._bar and self._task is not None:
            self._bar.reset(self._task, description=text, total=None)
        elif self._plain:
            click.echo(f"[{time.monotonic() - self._started_s:5.0f} s] {text}", err=True)

    def tell(self, text: str, done: float | None = None) -> None:
        """What is being done, and to which share where that is known."""
        if done is not None and self._bar and self._task is not None:
            # The same step, said anew.
            self._bar.update(self._task, description=text)
        elif text != self._text:
            self._text = text
            self.step(text)
        if done is not None:
            self.share(done)

    def share(self, done: float) -> None:
        """The step is done to a share, 0 to 1."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=1.0)


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
