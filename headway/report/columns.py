"""Text that fits the width: sentences are wrapped, tables are folded, nothing is cut off."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from contextvars import ContextVar

from headway.redaction import printable

USUAL_WIDTH = 100
_width: ContextVar[int] = ContextVar("width", default=USUAL_WIDTH)
_GAP = "  "
_FOLD = "      "  # before cells that go on a further line of their row
_LEAST_TEXT_WIDTH = 24  # a sentence in fewer columns is read better on lines of its own
_EIGHTHS = " ▏▎▍▌▋▊▉█"
#: Lines that are copied into files stay whole: code, Spark's properties, options of a query.
COPIED = re.compile(r" {4,}|\s*(spark\.|trigger  |max\w+PerTrigger|[\w.]+\(|\w+ = )")


def width() -> int:
    """Maximum width of a line."""
    return _width.get()


def set_width(columns: int) -> None:
    """Set the width of everything that is printed from here on."""
    _width.set(columns)


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: int = 2
) -> list[str]:
    """Rows with the same number of cells as lines of at most `width` columns; no cell is cut off.

    The last cells of a wider row go to a further line. A text behind a name, and one that alone is
    longer than a line, continues under its own beginning. Columns that are ``right`` are aligned at
    their right edge, as numbers are.

    >>> print("\\n".join(aligned([("nodes", "rate"), ("2", "80k/s")], right=(0,))))
      nodes  rate
          2  80k/s
    """
    if not rows:
        return []
    texts = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    room = width() - indent
    last_width = room - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    is_text = len(widths) <= 2 or widths[-1] > room - len(_FOLD)
    if is_text and _LEAST_TEXT_WIDTH <= last_width < widths[-1]:
        widths[-1] = last_width
    lines: list[str] = []
    bands = _bands(widths, room)
    for cells in texts:
        fits_one_line = bands[0].stop >= len(widths) - 1 and len(cells[-1]) <= last_width
        for band in [range(len(widths))] if fits_one_line else bands:
            start = " " * indent + (_FOLD if band.start else "")
            row_lines = _laid(start, cells, widths, band, right)
            lines += filter(None, row_lines) if band.start else row_lines
    return lines


def _bands(widths: Sequence[int], room: int) -> list[range]:
    """Columns that are on the same line, for each line of a row.

    >>> _bands([4, 10, 6], 24), _bands([4, 10, 6], 20)
    ([range(0, 3)], [range(0, 2), range(2, 3)])
    """
    bands, first = [], 0
    for column in range(1, len(widths) + 1):
        band_width = sum(widths[first : column + 1]) + len(_GAP) * (column - first)
        if column == len(widths) or band_width > room - (len(_FOLD) if first else 0):
            bands.append(range(first, column))
            first = column
    return bands


def _laid(
    start: str, cells: Sequence[str], widths: Sequence[int], band: range, right: Collection[int]
) -> list[str]:
    """Some cells of a row side by side; the last of them is wrapped if it is too long."""

    def padded(text: str, column: int, cell_width: int) -> str:
        return f"{text:{'>' if column in right else '<'}{cell_width}}"

    *before, last = band
    cells_before = (padded(cells[column], column, widths[column]) for column in before)
    lead = start + "".join(f"{cell}{_GAP}" for cell in cells_before)
    last_width = max(min(widths[last], width() - len(lead)), 1)
    texts = textwrap.wrap(cells[last], last_width, break_on_hyphens=False)
    pieces = [padded(text, last, last_width) for text in texts]
    further = (" " * len(lead) + piece for piece in pieces[1:])
    return [line.rstrip() for line in (lead + (pieces[0] if pieces else ""), *further)]


def paragraph(text: str, *, lead: str = "") -> list[str]:
    """A text behind a lead, wrapped with its further lines under the first.

    >>> paragraph("close to saturation", lead="note: ")
    ['note: close to saturation']
    """
    lines = textwrap.wrap(
        printable(text),
        width(),
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_on_hyphens=False,
    )
    return lines or [lead.rstrip()]


def paragraphs(*texts: str, lead: str = "  ") -> list[str]:
    """Texts one below the other, each behind the same lead."""
    return [line for text in texts for line in paragraph(text, lead=lead)]


def fitted(text: str) -> str:
    """A text whose lines are at most `width` wide: longer ones continue, further indented.

    Lines to copy stay whole, and so do words, such as the name of a file.

    >>> fitted("word " * 21) == "word " * 19 + "word\\n  word"
    True
    """
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> list[str]:
    if len(line) <= width() or COPIED.match(line):
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + _GAP
    return textwrap.wrap(
        line, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def bar(share_ratio: float, *, width: int) -> str:
    """A bar of block characters, ``width`` of them for a share of 1, to an eighth of one.

    >>> bar(0.5, width=5)
    '██▌'
    """
    eighths = round(min(max(share_ratio, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
