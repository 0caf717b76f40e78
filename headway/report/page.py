"""One self-contained HTML page: the common parts of all pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from headway.domain import ApplicationProfile, JobProfile
from headway.redaction import one_line
from headway.report.glossary import Glossary
from headway.report.wording import APPLIES, brief_setting_text
from headway.units import counted, format_duration, format_rate
from headway.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_NAME = 200  # letters of a name that a page shows
_MOST_APPLICATIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Source of a page: label and text, as shown in its last section."""

    rows: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        *,
        files: Sequence[str] = (),
        profile: JobProfile | ApplicationProfile | None = None,
        spark_version: str | None = None,
        made_at: datetime | None = None,
    ) -> Origin:
        """From the files that a page was made from, and the profile behind it."""
        rows = [("made", _made_text(made_at))]
        rows += [("from", shortened(one_line(name))) for name in files]
        if profile is not None:
            rows += _profile_rows(profile)
        elif spark_version is not None:
            rows.append(("Spark", spark_version))
        return cls(rows=tuple(rows))


def _made_text(made_at: datetime | None) -> str:
    by = f"by Headway {__version__}"
    return by if made_at is None else f"{made_at:%Y-%m-%d %H:%M %Z}".strip() + f", {by}"


def _profile_rows(profile: JobProfile | ApplicationProfile) -> list[tuple[str, str]]:
    latest = profile.applications[-_MOST_APPLICATIONS:]
    num_earlier = len(profile.applications) - len(latest)
    rows = [
        ("job", shortened(f"{application.name} ({application.id})")) for application in latest
    ] + ([("job", f"and {num_earlier} earlier")] if num_earlier else [])
    versions = dict.fromkeys(
        f"Spark {application.spark_version}"
        + (f", Java {application.java_version}" if application.java_version else "")
        for application in latest
    )
    rows.append(("versions", "; ".join(map(shortened, versions))))
    return [*rows, ("profile", f"{profile.provenance}, by Headway {profile.headway_version}")]


def shortened(text: str) -> str:
    """A user's name for something, shortened to one line.

    Examples
    --------
    >>> shortened("orders"), len(shortened("x" * 10_000))
    ('orders', 200)
    """
    line = " ".join(text.split())
    return line if len(line) <= _MOST_NAME else f"{line[: _MOST_NAME - 1]}…"


def page_text(template: str, *, origin: Origin | None = None, **shown: object) -> str:
    """A page from a template that extends ``layout.jinja``; ``shown`` are its variables."""
    # Imported when a page is made: the commands that make none start faster without.

    glossary = Glossary()
    templates = environment()
    script, _, _ = (
        templates.loader.get_source(templates, "page.js") if templates.loader else ("", None, None)
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    defaults: dict[str, object] = {
        "verdict": None,
        "cautions": (),
        "facts": (),
        "key_figures": (),
        "notes": (),
        "origin": origin or Origin.of(),
        "glossary": glossary,
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
    }
    # The filter belongs to the page: it remembers which terms the page used.
    page_environment = templates.overlay()
    page_environment.filters = {**templates.filters, "explained": glossary.explained}
    return page_environment.get_template(template).render(defaults | shown)


def embedded(json_text: str) -> Markup:
    """JSON inside a script element, which no name with a closing tag can end."""

    return Markup(json_text.replace("<", "\\u003c"))


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
        applies=APPLIES.__getitem__,
        counted=counted,
        duration=format_duration,
        rate=format_rate,
        setting=brief_setting_text,
        place=_place,
        explained=str,
    )
    return environment


def _place(place_percent: float) -> str:
    return f"{place_percent:.2f}%"
