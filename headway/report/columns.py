"""Aligned columns of plain text for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from contextvars import ContextVar

USUAL_WIDTH = 100
_width: ContextVar[int] = ContextVar("width", default=USUAL_WIDTH)
_GAP = "  "
_LEAST_LAST_WIDTH = 14
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def width() -> int:
    """Columns that a line may have."""
    return _width.get()


def set_width(columns: int) -> None:
    """Say how many columns there are, for everything that is printed from here on."""
    _width.set(columns)


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: int = 2
) -> list[str]:
    """Rows of equally many cells as lines of at most `width` columns.

    The last cell continues on further lines where it is too long, the others are cut if need be.

    Parameters
    ----------
    rows : sequence of sequences of str
        The cells.
    right : collection of int
        Columns that are aligned at their right edge, as numbers are.
    indent : int, >= 0
        Blanks before the first column.

    Examples
    --------
    >>> print("\\n".join(aligned([("nodes", "rate"), ("2", "80k/s")], right=(0,))))
      nodes  rate
          2  80k/s
    """
    if not rows:
        return []
    *first, last = zip(*([printable(cell) for cell in row] for row in rows), strict=True)
    least = min(_LEAST_LAST_WIDTH, max(map(len, last)))
    room = width() - indent - least - len(_GAP) * len(first)
    columns = []
    most = _widest([max(map(len, cells)) for cells in first], room)
    for place, cells in enumerate(first):
        short = [cell if len(cell) <= most else f"{cell[: most - 1]}…" for cell in cells]
        wide = max(map(len, short))
        columns.append([f"{cell:{'>' if place in right else '<'}{wide}}" for cell in short])
    starts = [
        " " * indent + "".join(cell + _GAP for cell in cells)
        for cells in zip(*columns, strict=True)
    ]
    starts = starts or [" " * indent] * len(rows)
    last_width = min(max(map(len, last)), max(width() - len(starts[0]), least))
    lines = []
    for start, cell in zip(starts, last, strict=True):
        pieces = textwrap.wrap(cell, last_width) if last_width else []
        if len(first) in right:
            pieces = [f"{piece:>{last_width}}" for piece in pieces]
        lines.append((start + (pieces[0] if pieces else "")).rstrip())
        lines += [" " * len(start) + piece for piece in pieces[1:]]
    return lines


def _widest(widths: Sequence[int], room: int) -> int:
    """How wide a column may be so that all fit: what narrow ones leave goes to wide ones.

    Examples
    --------
    >>> _widest([4, 10], 20), _widest([4, 30], 20), _widest([30, 30], 20)
    (10, 16, 10)
    """
    left = room
    for place, wide in enumerate(sorted(widths)):
        fair = left // (len(widths) - place)
        if wide > fair:
            return max(fair, 1)
        left -= wide
    return max(widths, default=room)


def paragraph(text: str, *, lead: str = "") -> list[str]:
    """A text behind a lead, wrapped with its further lines under the first.

    Examples
    --------
    >>> paragraph("close to saturation", lead="note: ")
    ['note: close to saturation']
    """
    return textwrap.wrap(
        printable(text), width(), initial_indent=lead, subsequent_indent=" " * len(lead)
    ) or [lead.rstrip()]


def bar(share_ratio: float, *, width: int) -> str:
    """A bar of block characters, ``width`` of them for a share of 1, to an eighth of one.

    Examples
    --------
    >>> bar(0.5, width=5)
    '██▌'
    """
    eighths = round(min(max(share_ratio, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def printable(text: str) -> str:
    """The text with a blank for each control character: logs may hold terminal commands.

    Examples
    --------
    >>> printable("two\\nlines")
    'two lines'
    """
    return "".join(char if char.isprintable() else " " for char in text)
