"""Sheets as text for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.domain.sheet import Section, Sheet
from headway.redaction import printable
from headway.report.columns import aligned, bar, paragraph, paragraphs, width

_BAR_WIDTH, _LEAST_BAR_WIDTH = 30, 8
_GAP = 2


def sheet_text(sheet: Sheet) -> str:
    """A sheet as lines of at most the set width, the answer first and what to copy last.

    Lines to copy are never broken, however long.

    >>> rules = Section(title="rules", head=("name", "nodes"), rows=(("ours", "2"),), right=(1,))
    >>> print(sheet_text(Sheet(about="A plan", headline="2 nodes", sections=(rules,))))
    2 nodes
    <BLANKLINE>
    rules
      name  nodes
      ours      2
    """
    head = [*paragraph(sheet.headline), *paragraphs(*sheet.cautions), *aligned(sheet.facts)]
    return "\n".join([*head, *_lines_of(sheet.sections)])


def text_of_sections(sections: Sequence[Section]) -> str:
    """Sections without a sheet, as lines."""
    return "\n".join(_lines_of(sections)).lstrip("\n")


def _lines_of(sections: Sequence[Section]) -> Iterator[str]:
    for section in sections:
        lines = section_lines(section)
        if lines and not section.close:
            yield ""
        yield from lines


def section_lines(section: Section) -> list[str]:
    """The lines of a section; none if it is for pages."""
    if section.only_on_pages:
        return []
    indent = (2 if section.title else 0) if section.indent is None else section.indent
    lead = f"{section.lead}: " if section.lead else " " * indent
    lines = paragraphs(*section.texts, lead=lead)
    lines += _table_lines(section, indent)
    lines += [f"{' ' * indent}{printable(line)}".rstrip() for line in section.code]
    return [*paragraph(section.title), *lines] if section.title and lines else lines


def _table_lines(section: Section, indent: int) -> list[str]:
    """The rows under their heading, between their marks and their bars."""
    if not section.rows:
        return []
    bars = _bars(section, width() - indent)
    rows = [
        (*section.marks[index : index + 1], *section.rows[index], *bars[index : index + 1])
        for index in _shown_rows(section)
    ]
    if section.head:
        before, behind = ("",) if section.marks else (), ("",) if bars else ()
        rows.insert(0, (*before, *section.head, *behind))
    first = 1 if section.marks else 0
    return aligned(rows, right={first + column for column in section.right}, indent=indent)


def _bars(section: Section, room: int) -> list[str]:
    """A bar for each row, in what its cells leave of the line."""
    if not section.bar_share:
        return []
    columns = zip(*filter(None, (section.head, *section.rows)), strict=True)
    room -= sum(max(map(len, cells)) + _GAP for cells in columns)
    bar_width = min(max(room, _LEAST_BAR_WIDTH), _BAR_WIDTH)
    return [bar(share, width=bar_width) for share in section.bar_share]


def _shown_rows(section: Section) -> list[int]:
    """Rows of a long table that text has: some of them, and those with a mark."""
    step = -(-len(section.rows) // section.text_rows) if section.text_rows else 1
    marks = section.marks or ("",) * len(section.rows)
    return [index for index, mark in enumerate(marks) if index % step == 0 or mark]
