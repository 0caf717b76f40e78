"""A result in words, made once: as text, as a page and in a notebook it says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias

from headway.lazy_classes import dataclass

#: A label and what it says.
Pair: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Part of a sheet: texts, then charts, a table, and lines to copy.

    ``lead`` precedes each text, e.g. "note". ``right`` are the columns of numbers. ``marks``
    precede the rows: ">" marks that of the plan itself, "~" that of the nearest one. ``charts`` are
    drawn on pages; ``bar_share`` are the lengths of bars that text draws behind the rows.

    Text has an empty line before a section, unless it is ``close``; lines under a title are
    indented, unless ``indent`` says otherwise; of a long table it has about ``text_rows``, if
    given; and it leaves out what is ``only_on_pages``, and a ``detail`` where the answer has to fit
    one screen. Pages name what a row is, so that the meaning of marks is ``only_in_text``.

    >>> Section(head=("nodes", "rate"), rows=(("2",),))
    Traceback (most recent call last):
    ...
    ValueError: a row has 1 cells; expected 2
    """

    title: str = ""
    texts: tuple[str, ...] = ()
    lead: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    bar_share: tuple[float, ...] = ()
    code: tuple[str, ...] = ()
    charts: tuple[Any, ...] = field(default=(), metadata={"key": None})
    close: bool = False
    indent: int | None = None
    text_rows: int | None = None
    only_on_pages: bool = False
    only_in_text: bool = False
    detail: bool = False

    def __post_init__(self) -> None:
        width = len(self.head or (self.rows[0] if self.rows else ()))
        for row in self.rows:
            if len(row) != width:
                raise ValueError(f"a row has {len(row)} cells; expected {width}")
        for name in ("marks", "bar_share"):
            number = len(getattr(self, name))
            if number not in (0, len(self.rows)):
                raise ValueError(f"{number} {name}; expected one for each of {len(self.rows)} rows")

    @property
    def is_empty(self) -> bool:
        return not (self.texts or self.rows or self.code or self.charts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a result says: the answer first, then why, and what to copy last.

    ``verdict`` is whether the answer is as hoped for, None if nothing was. ``key_figures``, on
    pages only, are label, figure and remark.
    """

    about: str
    headline: str
    verdict: bool | None = None
    cautions: tuple[str, ...] = ()
    facts: tuple[Pair, ...] = ()
    key_figures: tuple[tuple[str, ...], ...] = ()
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        for name, width in (("facts", 2), ("key_figures", 3)):
            if any(len(row) != width for row in getattr(self, name)):
                raise ValueError(f"{name}: expected {width} texts in each")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How results of one kind are shown: as a sheet, as data, as a table.

    ``headline`` is for sheets that take long; ``brief`` is a sheet for terminals, by default the
    sheet without its details. ``main`` is the path of keys to the list in the data that is the
    table, or the function that makes the rows; empty if every figure is a row. ``tables`` are
    further ones by name, made of a result and of the profile behind it, if given. ``charts`` are
    drawn in notebooks. With ``is_read_back`` the data become a result again; those of others
    contain the sheet.
    """

    sheet: Callable[[Any], Sheet]
    data: Callable[[Any], Mapping[str, object]]
    main: str | Callable[[Any], Iterable[Mapping[str, object]]] = ""
    tables: Mapping[str, Callable[[Any, Any], Iterable[Mapping[str, object]]]] = field(
        default_factory=dict
    )
    charts: Callable[[Any], tuple[Any, ...]] | None = None
    headline: Callable[[Any], str] | None = None
    brief: Callable[[Any], Sheet] | None = None
    is_read_back: bool = False
    endings: tuple[str, ...] = (".json", ".html")


def in_brief(sheet: Sheet) -> Sheet:
    """A sheet for one screen: without its details, which ``--verbose`` shows."""
    sections = tuple(section for section in sheet.sections if not section.detail)
    if not any(section.detail and not section.is_empty for section in sheet.sections):
        return replace(sheet, sections=sections)
    return replace(sheet, sections=(*sections, Section(texts=("--verbose shows the details",))))


def setting_lines(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Names and values to copy, a line each.

    >>> setting_lines({"spark.executor.cores": "2", "trigger": "1 second"})
    ('spark.executor.cores  2', 'trigger               1 second')
    """
    widest = max(map(len, settings), default=0)
    return tuple(f"{name:<{widest}}  {text}" for name, text in settings.items())
