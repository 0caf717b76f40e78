"""A report as Markdown for the comment of a pull request: cost, latency, then what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway.ci.formats.figures import cost_text, job_row
from headway.ci.nouns import Finding, Held, Level, Report, Rule
from headway.digits import format_money
from headway.redaction import printable
from headway.units import counted
from headway.version import __version__

#: Marks the comment as ours: whoever posts it finds the one to replace.
MARKER = "<!-- headway:check -->"
_HEAD = ("job", "cost", "planned", "target", "locked setting", "nodes")
_SIGNS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTE: "ℹ️"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")
_OF_LATENCY = frozenset(
    (Rule.LOCKED, Rule.TARGET, Rule.LATENCY, Rule.DRIFT, Rule.CALIBRATION, Rule.CAUTION)
)


def markdown_text(report: Report) -> str:
    """The outcome, a table of the jobs, what was found, and a hidden marker on top."""
    headline = filter(None, (*_costs_in_all(report), report.missing_today, report.outcome))
    lines = [MARKER, f"**Headway: {_escaped('; '.join(headline))}**", ""]
    if report.jobs:
        lines += [f"| {' | '.join(_HEAD)} | |", "|---|---|---|---|---|---|---|"]
        lines += [*map(_row, report.jobs), ""]
    findings = sorted(report.findings, key=_rank)
    bad = [finding for finding in findings if finding.level is not Level.NOTE]
    notes = [finding for finding in findings if finding.level is Level.NOTE]
    lines += [*map(_item, bad), ""] if bad else []
    if notes:
        lines += [f"<details><summary>{_summary(notes)}</summary>", ""]
        lines += [*map(_item, notes), "", "</details>", ""]
    against = f" against {_escaped(report.baseline)}" if report.baseline else ""
    lines.append(f"<sub>headway {__version__}{against}; this comment is updated.</sub>")
    return "\n".join(lines)


def _summary(notes: Sequence[Finding]) -> str:
    """How many changes there are, and how many locked jobs were not checked."""
    num_gone = sum(note.rule is Rule.GONE for note in notes)
    num_changes = len(notes) - num_gone
    changes = f"{counted(num_changes, 'change')} without regression" if num_changes else ""
    gone = f"{counted(num_gone, 'locked job')} not checked" if num_gone else ""
    return ", ".join(filter(None, (changes, gone)))


def _costs_in_all(report: Report) -> Iterator[str]:
    """The cost of all jobs with a price per month, and its change, for each currency."""
    for currency, (cost, change) in report.costs_per_month.items():
        changed = f" ({format_money(change, sign=True)})" if change else ""
        yield f"{format_money(cost, currency=currency)} per month{changed}"


def _row(held: Held) -> str:
    name, targets, nodes, _, planned, locked_setting = job_row(held)
    cells = (name, cost_text(held), planned, targets, locked_setting, nodes)
    sign = _SIGNS[Level.ERROR] if held.failed else _SIGNS[Level.WARNING] if held.cautions else "✅"
    return f"| {' | '.join(map(_escaped, cells))} | {sign} |"


def _rank(finding: Finding) -> int:
    """The place of a finding in the comment: cost, latency, all else."""
    if finding.rule is Rule.COST:
        return 0
    return 1 if finding.rule in _OF_LATENCY else 2


def _item(finding: Finding) -> str:
    location = f"`{finding.file.replace('`', '')}:{finding.line}`"
    text = f"{_escaped(finding.job)}: {_escaped(finding.message)}"
    return f"- {_SIGNS[finding.level]} {text} ({location})"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(printable(text).split()))
