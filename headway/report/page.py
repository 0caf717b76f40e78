"""Sheets as self-contained HTML pages, and as the first screen of a notebook."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from headway.domain import ApplicationProfile, JobProfile
from headway.domain.sheet import Section, Sheet
from headway.redaction import one_line, printable
from headway.report.glossary import DEFINITIONS, explained
from headway.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_NAME = 200  # letters of a name that a page shows
_MOST_LETTERS = 1_000  # of a sentence
_MOST_APPLICATIONS = 5
_MOST_ROWS = 20  # of a table in a notebook


def _origin_rows(
    made: str,
    files: Sequence[str],
    profile: JobProfile | ApplicationProfile | None,
    spark_version: str | None,
) -> list[tuple[str, str]]:
    """The files that a page was made from, and the profile behind it: labels and texts."""
    by = f"by Headway {__version__}"
    rows = [("made", f"{made}, {by}" if made else by)]
    rows += [("from", shortened(one_line(name))) for name in files]
    if profile is not None:
        rows += _profile_rows(profile)
    elif spark_version is not None:
        rows.append(("Spark", spark_version))
    return rows


def _job_name(
    name: str, files: Sequence[str], profile: JobProfile | ApplicationProfile | None
) -> str:
    """What a page calls its job: by a given name, its application or its file; may be empty."""
    if name:
        return shortened(one_line(name))
    if profile is not None and profile.applications[-1].name_in_log:
        return shortened(profile.applications[-1].name_in_log)
    return shortened(one_line(Path(files[0]).name)) if files else ""


def _profile_rows(profile: JobProfile | ApplicationProfile) -> list[tuple[str, str]]:
    latest = profile.applications[-_MOST_APPLICATIONS:]
    num_earlier = len(profile.applications) - len(latest)
    rows = [("job", shortened(f"{application.name} ({application.id})")) for application in latest]
    if num_earlier:
        rows.append(("job", f"and {num_earlier} earlier"))
    versions = dict.fromkeys(
        f"Spark {application.spark_version}"
        + (f", Java {application.java_version}" if application.java_version else "")
        for application in latest
    )
    rows.append(("versions", "; ".join(map(shortened, versions))))
    return [*rows, ("profile", f"{profile.provenance}, by Headway {profile.headway_version}")]


def shortened(text: str, most: int = _MOST_NAME) -> str:
    """A user's name for something, shortened to one line of so many letters.

    >>> shortened("orders"), len(shortened("x" * 10_000))
    ('orders', 200)
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


#: A target, and a number with what it counts, stay on one line where the headline has to wrap.
_UNBROKEN = re.compile(r" (?=<=)|(?<=<=) |(?<=\d) (?=[A-Za-z])")


def sheet_page(
    sheet: Sheet,
    *,
    name: str = "",
    files: Sequence[str] = (),
    profile: JobProfile | ApplicationProfile | None = None,
    spark_version: str | None = None,
    made_at: datetime | None = None,
    data_json: str = "",
) -> str:
    """A sheet as a page: it loads nothing, and follows the reader's light or dark scheme.

    Its title and first line name the job, by ``name`` if it is given, and its last section says
    what it was made from: ``files``, the ``profile`` behind it, or at least Spark's version.
    ``data_json`` is embedded for programs that read it.
    """
    templates, headline = environment(), _one_line(sheet.headline)
    assert templates.loader is not None
    script, _, _ = templates.loader.get_source(templates, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The filter belongs to the page: it adds the terms that the page uses.
    used_terms: list[str] = []
    page_environment = templates.overlay()
    job = _job_name(name, files, profile)
    # The headline of a profile begins with the name itself.
    title = headline if job and headline.startswith(job) else f"{job or 'Headway'}: {headline}"
    made = "" if made_at is None else f"{made_at:%Y-%m-%d %H:%M %Z}".strip()
    page_environment.filters = {**templates.filters, "explained": partial(explained, used_terms)}
    return page_environment.get_template("sheet.html.jinja").render(
        sheet=sheet,
        about=" · ".join(filter(None, (_one_line(sheet.about), job, made))),
        title=title,
        headline=_UNBROKEN.sub("\u00a0", _capitalised(headline)),
        origin=_origin_rows(made, files, profile, spark_version),
        used_terms=used_terms,
        definitions=DEFINITIONS,
        # Inside a script element, which no name with a closing tag can end.
        data_json=Markup(data_json.replace("<", "\\u003c")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


def sheet_screen(sheet: Sheet, charts: Sequence[Any] = ()) -> str:
    """The answer, cautions, facts, first table, a chart and what to copy, for a notebook.

    What has neither facts nor a table shows its texts.
    """
    charts = charts or [chart for section in sheet.sections for chart in section.charts]
    chart = ""
    if charts:
        lines = environment().get_template("screen.html.jinja").render(chart=charts[0]).splitlines()
        chart = "\n".join(filter(None, map(str.strip, lines)))
    tables = (section for section in sheet.sections if section.rows and not section.only_on_pages)
    main = next(tables, Section())
    num_more = len(main.rows) - _MOST_ROWS
    code = "\n".join(line for section in sheet.sections for line in section.code)
    parts = [
        f"<p><strong>{escape(sheet.headline)}</strong></p>",
        *(f"<p>{escape(printable(caution))}</p>" for caution in sheet.cautions),
        _html_table((), sheet.facts),
        _html_table(main.head, main.rows[:_MOST_ROWS]),
        "" if sheet.facts or main.rows else "".join(map(_html_texts, sheet.sections)),
        f"<p>{num_more} more rows</p>" if num_more > 0 else "",
        chart,
        preformatted(code) if code else "",
    ]
    return f'<div class="headway">{"".join(parts)}</div>'


def preformatted(text: str) -> str:
    """Text as it is printed, as HTML for a notebook."""
    return f"<pre>{escape(text)}</pre>"


def _html_texts(section: Section) -> str:
    title = f"<strong>{escape(section.title)}</strong>" if section.title else ""
    lead = f"{section.lead}: " if section.lead else ""
    texts = (escape(f"{lead}{printable(text)}") for text in section.texts)
    return f"<p>{'<br>'.join(filter(None, (title, *texts)))}</p>" if section.texts else ""


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in others)}</tr>"
        for first, *others in rows
    )
    head_row = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table>{head_row}<tbody>{body}</tbody></table>"


def _one_line(text: str) -> str:
    """A text of a page on one line, limited where nobody reads on."""
    return shortened(text, most=_MOST_LETTERS)


def _capitalised(text: str) -> str:
    """With a capital, but for statistics and names, behind which a colon or a bracket stands.

    >>> _capitalised("one node"), _capitalised("p99 <= 1 s is met"), _capitalised("orders: ok")
    ('One node', 'p99 <= 1 s is met', 'orders: ok')
    """
    first, _, others = text.partition(" ")
    is_word = first.isalpha() and not others.startswith("(")
    is_word = is_word or first in ("infeasible:", "frontier:")
    return text[:1].upper() + text[1:] if is_word else text


def _signed(text: str) -> str:
    """A verdict with its sign: colour alone does not show it."""
    sign = {"met": "✓ ", "missed": "✗ "}.get(text.partition(",")[0], "")
    return f"{sign}{text}"


@cache
def environment() -> Environment:
    """The templates of all pages, with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("headway.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        place="{:.2f}%".format,
        explained=str,
        shortened=_one_line,
        capitalised=_capitalised,
        signed=_signed,
    )
    return environment
