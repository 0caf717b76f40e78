"""What only a person at a terminal sees: its width, colour, and the likely next command."""

from __future__ import annotations

import os
import shutil
import sys

import click

from headway.report.columns import USUAL_WIDTH, set_width

_NARROWEST, _WIDEST = 60, 120
_NO_COLOUR = "headway.no_color"


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def fit_width() -> None:
    """Print as wide as the terminal is; in files and pipes as wide as usual."""
    columns = shutil.get_terminal_size((USUAL_WIDTH, 24)).columns if is_terminal() else USUAL_WIDTH
    set_width(min(max(columns, _NARROWEST), _WIDEST))


def refuse_colour(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Remember that colour is not wanted."""
    if value:
        context.find_root().meta[_NO_COLOUR] = True


def verdict(text: str, *, is_met: bool) -> str:
    """A text whose first line is a verdict: with its sign and colour on a terminal."""
    if not is_terminal():
        return text
    first, line, rest = text.partition("\n")
    first = f"{'✓' if is_met else '✗'} {first}"
    context = click.get_current_context(silent=True)
    refused = context is not None and context.find_root().meta.get(_NO_COLOUR, False)
    if not (refused or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"):
        first = click.style(first, fg="green" if is_met else "red", bold=True)
    return f"{first}{line}{rest}"


def suggest(text: str) -> None:
    """Name the likely next command, on a terminal only."""
    if is_terminal() and sys.stderr.isatty():
        click.echo(f"\nnext: {text}", err=True)
