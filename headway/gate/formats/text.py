"""A report for terminals."""

from __future__ import annotations

from headway.gate.formats.figures import changed, locked_today_text, rows
from headway.gate.nouns import Held, Level, Report
from headway.redaction import harmless

_SIGNS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}


def report_text(report: Report) -> str:
    """The outcome first, then each job with its figures and what was found."""
    lines = [report.headline]
    for held in report.jobs:
        lines += ["", *_job_lines(held)]
    for finding in report.others:
        lines += ["", f"{_SIGNS[finding.level]}: {harmless(finding.message)} ({finding.rule})"]
    return "\n".join(lines)


def _job_lines(held: Held) -> list[str]:
    state = "FAILED" if held.failed else "ok"
    figures = ", ".join(
        " ".join(filter(None, (name, unit, changed(then, now))))
        for name, unit, then, now in rows(held)
    )
    lines = [f"{held.name}: {state}; {' and '.join(held.now.targets)}", f"  {figures}"]
    today = locked_today_text(held)
    if today:
        lines.append(f"  the locked setting {today}")
    for finding in held.findings:
        location = f"{finding.file}:{finding.line}:{finding.column}"
        message = f"{harmless(finding.message)} ({finding.rule})"
        lines.append(f"  {location}: {_SIGNS[finding.level]}: {message}")
    return lines
