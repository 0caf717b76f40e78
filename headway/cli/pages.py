"""Results written as pages, with progress."""

from __future__ import annotations

from collections.abc import Sequence

from headway.api.page import page
from headway.cli.progress import Progress
from headway.cli.terminal import remark
from headway.domain import JobProfile
from headway.domain.result import Result
from headway.domain.sheet import Section, Sheet
from headway.formats.text_file import write_text


def write_page(
    output: str,
    shown: Result | Sheet | str,
    *,
    profile: JobProfile | str | None = None,
    profile_file: str | None = None,
    name: str = "",
    files: Sequence[str] = (),
    runs: Sequence[Section] = (),
) -> None:
    """Write a result as an HTML page, and say so."""
    with Progress() as progress:
        text = page(
            shown,
            profile=profile,
            profile_file=profile_file,
            name=name,
            files=files,
            runs=runs,
            tell=progress.tell,
        )
    write_text(output, text, label="the page")
    remark(f"wrote {output}")
