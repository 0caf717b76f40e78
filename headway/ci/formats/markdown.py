"""A report as Markdown for the comment of a pull request."""

from __future__ import annotations

import re

from headway.ci.formats.figures import HEAD, job_row
from headway.ci.nouns import Finding, Held, Level, Report
from headway.redaction import harmless
from headway.version import __version__

#: Marks the comment as ours: whoever posts it finds the one to replace.
MARKER = "<!-- headway:check -->"
_SIGNS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTE: "ℹ️"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def markdown_text(report: Report) -> str:
    """The outcome, a table of the jobs, what was found, and a hidden marker on top."""
    lines = [MARKER, f"**Headway: {_escaped(report.headline)}**", ""]
    if report.jobs:
        lines += [
            f"| {' | '.join(HEAD)} | |",
            "|---|---|---|---|---|---|---|",
            *map(_row, report.jobs),
            "",
        ]
    bad = [finding for finding in report.findings if finding.level is not Level.NOTE]
    notes = [finding for finding in report.findings if finding.level is Level.NOTE]
    lines += [_item(finding) for finding in bad]
    if bad:
        lines.append("")
    if notes:
        lines += [f"<details><summary>{len(notes)} changes without regression</summary>", ""]
        lines += [*map(_item, notes), "", "</details>", ""]
    against = f" against {_escaped(report.baseline)}" if report.baseline else ""
    lines.append(f"<sub>headway {__version__}{against}; this comment is updated.</sub>")
    return "\n".join(lines)


def _row(held: Held) -> str:
    return f"| {' | '.join(map(_escaped, job_row(held)))} | {'❌' if held.failed else '✅'} |"


def _item(finding: Finding) -> str:
    location = f"`{finding.file.replace('`', '')}:{finding.line}`"
    return (
        f"- {_SIGNS[finding.level]} {_escaped(finding.job)}: {_escaped(finding.message)} "
        f"({location})"
    )


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(harmless(text).split()))
