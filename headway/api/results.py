"""Results as a line, a notebook view, data, a table and a file: behind their methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.api.result_kinds import brief_of, headline_of, kind_of
from headway.domain.result import Result
from headway.errors import InputError, require_packages
from headway.formats.as_json import json_text
from headway.formats.codec import EXACT, data_of
from headway.formats.profile_file import save_profile
from headway.redaction import printable
from headway.report.sheet_text import sheet_text

if TYPE_CHECKING:
    from headway.domain import JobProfile


def in_short(result: Result) -> str:
    """A result in one line."""
    return f"<{type(result).__name__}: {printable(headline_of(result))}>"


def as_text(result: Result) -> str:
    """A result as its command prints it for people."""
    return sheet_text(brief_of(result))


def as_data(result: Result) -> dict[str, Any]:
    """A result as its command prints it with ``--json``; a profile as in its file."""
    kind, data = kind_of(result), figures_of(result)
    if not kind.is_read_back:
        sheet = kind.sheet(result)
        sections = tuple(section for section in sheet.sections if not section.is_empty)
        data["sheet"] = _without_empty(data_of(replace(sheet, sections=sections)))
    return data


def figures_of(result: Result) -> dict[str, Any]:
    """The same without its sheet: what a schema of its own does not begin with is its headline."""
    data: dict[str, Any] = data_of(kind_of(result).data(result), EXACT)
    if "schema" in data:
        return data
    schema = f"headway.{result.result_kind}/v1"
    return {"schema": schema, "headline": headline_of(result), **data}


def _without_empty(data: Any) -> Any:
    """Data of a sheet without the many parts that it does not have."""
    if isinstance(data, dict):
        return {
            key: _without_empty(value)
            for key, value in data.items()
            if key == "verdict" or not (value is False or value in ("", [], None))
        }
    return [_without_empty(value) for value in data] if isinstance(data, list) else data


def as_table(
    result: Result, table: str = "", *, profile: JobProfile | str | Path | None = None
) -> Any:
    """A table of a result, by default its main one."""
    require_packages("logs", "a table for pandas", "pandas")
    from pandas import DataFrame  # type: ignore[import-untyped]

    return DataFrame([flat(row) for row in _rows(result, table, profile)])


def _rows(
    result: Result, table: str, profile: JobProfile | str | Path | None
) -> Iterable[Mapping[str, object]]:
    """The rows of a table."""
    kind = kind_of(result)
    if table in kind.tables:
        from headway.api.arguments import job_from

        return kind.tables[table](result, None if profile is None else job_from(profile))
    if profile is not None:
        raise InputError("profile: only the table 'what_if' of a streaming job's plan needs one")
    path = table or kind.main
    if callable(path):
        return path(result)
    content = figures_of(result)
    if not path:
        figures = flat(content).items()
        return [{"name": name, "value": value} for name, value in figures if value != []]
    node: Any = content
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
        node = {} if node is None else node
    if table and not (node and isinstance(node, Mapping)) and not _is_list_of_rows(node):
        names = (*kind.tables, *_table_names(content))
        raise InputError(f"table: {table!r}; expected one of {', '.join(dict.fromkeys(names))}")
    if isinstance(node, Mapping):
        return [
            {"name": name, **(row if isinstance(row, Mapping) else {"value": row})}
            for name, row in node.items()
        ]
    rows: Iterable[Mapping[str, object]] = node
    return rows


def _is_list_of_rows(node: object) -> bool:
    """Whether a part of a result's data is a list of figures by name; it may be empty."""
    return isinstance(node, list) and all(isinstance(row, Mapping) for row in node)


def _table_names(content: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """The paths of all lists that have rows."""
    for key, node in content.items():
        if node and _is_list_of_rows(node):
            yield f"{prefix}{key}"
        if isinstance(node, Mapping):
            yield from _table_names(node, f"{prefix}{key}.")


def flat(row: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested values under names with a dot."""
    columns: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            columns |= flat(value, f"{prefix}{key}.")
        else:
            columns[f"{prefix}{key}"] = value
    return columns


def first_screen(result: Result) -> str:
    """The answer, its facts, its main table and a chart, as HTML for a notebook."""
    from headway.report.page import sheet_screen

    charts = kind_of(result).charts
    return sheet_screen(brief_of(result), () if charts is None else charts(result))


def save(result: Result, path: str | Path) -> Path:
    """Write a result to a file, in the format given by the extension of its name."""
    # It brings the standard library's hashes along, for nothing where no file is written.
    from headway.formats.text_file import write_text

    file, ending, endings = Path(path), Path(path).suffix.lower(), kind_of(result).endings
    if ending not in endings:
        expected = " or ".join(endings)
        raise InputError(f"{path}: the name ends in {ending or 'nothing'}; expected {expected}")
    if ending == ".html":
        from headway.api.page import page

        write_text(file, page(result), label="the page")
    elif ending == ".json":
        write_text(file, f"{json_text(as_data(result))}\n", label="the result")
    else:
        save_profile(result, file)  # type: ignore[arg-type]  # profiles alone end so
    return file
