"""A report in words."""

from __future__ import annotations

from collections.abc import Iterator

from headway.ci.formats.figures import HEAD, changed, job_row, locked_today_text, rows
from headway.ci.formats.machine import check_json
from headway.ci.nouns import Held, Report
from headway.domain.sheet import Kind, Section, Sheet
from headway.redaction import printable


def report_sheet(report: Report) -> Sheet:
    """The outcome first, then each job with its figures and what was found."""
    against = "" if report.baseline is None else f" against {report.baseline}"
    return Sheet(
        about=f"Headway check{against}",
        headline=report.headline,
        verdict=not report.errors,
        sections=(
            Section(
                title="jobs",
                head=(*HEAD, ""),
                rows=tuple((*job_row(held), _state(held)) for held in report.jobs),
                only_on_pages=True,
            ),
            *(
                Section(
                    title=f"{held.name}: {_state(held)}; {' and '.join(held.now.targets)}",
                    texts=tuple(_job_texts(held)),
                )
                for held in report.jobs
            ),
            *(
                Section(lead=str(gone.level), texts=(f"{printable(gone.message)} ({gone.rule})",))
                for gone in report.others
            ),
        ),
    )


def _state(held: Held) -> str:
    return "FAILED" if held.failed else "ok"


def _job_texts(held: Held) -> Iterator[str]:
    yield ", ".join(
        " ".join(filter(None, (name, unit, changed(then, now))))
        for name, unit, then, now in rows(held)
    )
    today = locked_today_text(held)
    if today:
        yield f"the locked setting {today}"
    yield from (finding.text for finding in held.findings)


KINDS = {"check": Kind(sheet=report_sheet, data=check_json, main="findings")}
