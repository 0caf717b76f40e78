"""Output for people: text in the available width, on terminals with colour and the next step."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from headway.redaction import harmless_lines, one_line, printable
from headway.report.columns import USUAL_WIDTH, fitted, set_width, width

if TYPE_CHECKING:
    import click

    from headway.domain.result import Result
    from headway.domain.sheet import Sheet

_NARROWEST, _WIDEST = 60, 120
_HELP_WIDTH, _NARROWEST_HELP, _WIDEST_HELP = 78, 50, 98
_NO_COLOUR = "headway.no_color"
_EXAMPLE = r"( +)(headway \S.*)"
_REMARK = r" {3,}(?=\S)"


def is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


def fit_width() -> None:
    """Print in the terminal's width; in files and pipes in that of COLUMNS, or the usual one."""
    set_width(min(max(_columns(USUAL_WIDTH), _NARROWEST), _WIDEST))


def help_width() -> int:
    """Width of help, as click chooses it: two columns less than there are."""
    return min(max(_columns(_HELP_WIDTH + 2) - 2, _NARROWEST_HELP), _WIDEST_HELP)


def _columns(usual: int) -> int:
    """Columns of the terminal; of files and pipes those of COLUMNS, or the usual ones."""
    if not (is_terminal() or "COLUMNS" in os.environ):
        return usual
    import shutil  # it brings what unpacks archives, for nothing where nobody looks

    return shutil.get_terminal_size((usual, 24)).columns


def show(text: str, *, is_met: bool | None = None) -> None:
    """Print an answer for people, with no line wider than the terminal, and no character that
    moves its cursor.

    With ``is_met`` its first line is a verdict and has a sign and a colour on a terminal.
    """
    has_verdict = is_met is not None and is_terminal()
    if has_verdict:
        text = f"{'✓' if is_met else '✗'} {text}"
    text = fitted(harmless_lines(text))
    if has_verdict:
        first, line_end, remaining_lines = text.partition("\n")
        text = _coloured(first, "green" if is_met else "red") + line_end + remaining_lines
    _print(text)


def answer(result: Result, *, as_json: bool, sheet: Sheet | None = None) -> None:
    """Print a result: as JSON, or for people; ``sheet`` is what they get instead of the usual."""
    # Help is shown without what shows results.
    from headway.api.result_kinds import brief_of
    from headway.api.results import as_data
    from headway.formats.as_json import json_text
    from headway.report.sheet_text import sheet_text

    if as_json:
        _print(json_text(as_data(result)))
    else:
        sheet = sheet or brief_of(result)
        show(sheet_text(sheet), is_met=sheet.verdict)


def event(text: str) -> None:
    """Print an event: for people in the available width, in a file as one line."""
    if is_terminal():
        show(text)
    else:
        _print(harmless_lines(text))


def remark(text: str) -> None:
    """Print a message besides the answer, on stderr: in the available width, or as one line."""
    text = harmless_lines(text)
    _print(fitted(text) if sys.stderr.isatty() else text, err=True)


def suggest(text: str) -> None:
    """Name the likely next command, on a terminal only."""
    if is_terminal() and sys.stderr.isatty():
        _print(f"\n{fitted(f'next: {printable(text)}')}", err=True)


def _print(text: str, *, ends: str = "\n", err: bool = False) -> None:
    import click  # the overview is printed without

    click.echo(text + ends, nl=False, err=err)


def refuse_colour(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Remember that colour is not wanted."""
    if value:
        context.find_root().meta[_NO_COLOUR] = True


def _coloured(text: str, colour: str) -> str:
    """A text in bold and in a colour, unless it is refused."""
    import click

    context = click.get_current_context(silent=True)
    refused = context is not None and context.find_root().meta.get(_NO_COLOUR, False)
    if refused or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=colour, bold=True)


def fitted_help(text: str) -> str:
    """A help text whose examples and choices are no wider than the terminal.

    The remark on a long example is put above it, and an example that is still too long continues
    with a backslash.

    >>> set_width(60)
    >>> print(fitted_help("  headway diff a b      a plan and a spec file, which is planned first"))
      # a plan and a spec file, which is planned first
      headway diff a b
    >>> print(fitted_help("  headway plan a.yaml --rate 50k/s --target 'p99 <= 3s' --verbose"))
      headway plan a.yaml --rate 50k/s --target 'p99 <= 3s' \\
          --verbose
    >>> set_width(USUAL_WIDTH)
    """
    return "\n".join(
        wrapped_line for line in text.split("\n") for wrapped_line in _help_lines(line)
    )


def _help_lines(line: str) -> list[str]:
    if len(line) <= width():
        return [line]
    start = line[: len(line) - len(line.lstrip())]
    example = re.fullmatch(_EXAMPLE, line)
    if example is None:
        return _broken_at(line, "|", start + "  ", "")
    command, *remarks = re.split(_REMARK, example[2], maxsplit=1)
    above = [line for text in remarks for line in fitted(f"{start}# {text}").split("\n")]
    return [*above, *_broken_at(start + command, " --", start + "    ", " \\")]


def _broken_at(line: str, mark: str, start: str, end: str) -> list[str]:
    """A line that is broken before a mark, as often as needed."""
    break_at = line.rfind(mark, len(start) + 1, width() - len(end))
    if len(line) <= width() or break_at < 0:
        return [line]
    continuation = start + line[break_at:].lstrip()
    return [line[:break_at] + end, *_broken_at(continuation, mark, start, end)]


def show_patched(file: str, before: str, after: str, *, is_written: bool, state: str) -> None:
    """Print a patched file, or write it and say so; ``state`` is that of one without changes."""
    if not is_written:
        _print(after, ends="")
    elif after == before:
        _print(f"{one_line(file)}: already {state}", err=True)
    else:
        # Help is shown without what writes files.
        from headway.formats.text_file import write_text

        write_text(file, after, label="the patched file")
        _print(f"{one_line(file)}: patched", err=True)
