"""Aligned columns of plain text for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

WIDTH = 100
_GAP = "  "
_LEAST_LAST_WIDTH = 20
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: int = 2
) -> list[str]:
    """Rows of equally many cells as lines of at most ``WIDTH`` columns.

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
    room = WIDTH - indent - _LEAST_LAST_WIDTH - len(_GAP) * len(first)
    columns = []
    fits = sum(max(map(len, cells)) for cells in first) <= room
    most = WIDTH if fits or not first else room // len(first)
    for place, cells in enumerate(first):
        short = [cell if len(cell) <= most else f"{cell[: most - 1]}…" for cell in cells]
        width = max(map(len, short))
        columns.append([f"{cell:{'>' if place in right else '<'}{width}}" for cell in short])
    starts = [
        " " * indent + "".join(cell + _GAP for cell in cells)
        for cells in zip(*columns, strict=True)
    ]
    starts = starts or [" " * indent] * len(rows)
    width = min(max(map(len, last)), WIDTH - len(starts[0]))
    lines = []
    for start, cell in zip(starts, last, strict=True):
        pieces = textwrap.wrap(cell, width) if width else []
        if len(first) in right:
            pieces = [f"{piece:>{width}}" for piece in pieces]
        lines.append((start + (pieces[0] if pieces else "")).rstrip())
        lines += [" " * len(start) + piece for piece in pieces[1:]]
    return lines


def paragraph(text: str, *, lead: str = "") -> list[str]:
    """A text behind a lead, wrapped with its further lines under the first.

    Examples
    --------
    >>> paragraph("close to saturation", lead="note: ")
    ['note: close to saturation']
    """
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)
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
