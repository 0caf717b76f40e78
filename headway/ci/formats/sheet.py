"""A report in words."""

from __future__ import annotations

from collections.abc import Iterator

from headway.ci.formats.figures import HEAD, changes, job_row, locked_today_text
from headway.ci.formats.machine import check_json
from headway.ci.nouns import Finding, Held, Report, Rule
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
            *map(_other_section, report.others),
        ),
    )


def _other_section(finding: Finding) -> Section:
    """A finding about no job: of a fault its position, too, of a job that is gone there is none."""
    if finding.rule is Rule.INVALID:
        return Section(texts=(finding.text,))
    return Section(
        lead=str(finding.level), texts=(f"{printable(finding.message)} ({finding.rule})",)
    )


def _state(held: Held) -> str:
    return "FAILED" if held.failed else "ok"


def _job_texts(held: Held) -> Iterator[str]:
    figures = ", ".join(" ".join(filter(None, figure)) for figure in changes(held))
    if figures:
        yield figures
    today = locked_today_text(held)
    if today:
        yield f"the locked setting {today}"
    yield from (finding.text for finding in held.findings)


KINDS = {"check": Kind(sheet=report_sheet, data=check_json, main="findings")}
