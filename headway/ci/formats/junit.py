"""A report as JUnit XML: each job a test case, or each file that is invalid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from headway.ci.nouns import Finding, Level, Report, Rule
from headway.redaction import printable

# What XML 1.0 cannot hold at all, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_ATTRIBUTES = str.maketrans({'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def junit_text(report: Report) -> str:
    """One suite; a job that fails has its errors as the failure, and all findings as output."""
    faults: dict[str, list[Finding]] = {}
    for finding in report.others:
        if finding.rule is Rule.INVALID:
            faults.setdefault(finding.file, []).append(finding)
    num_failed = sum(held.failed for held in report.jobs) + len(faults)
    counts = f'tests="{len(report.jobs) + len(faults)}" failures="{num_failed}"'
    cases = [_case(held.file, held.name, held.findings) for held in report.jobs]
    cases += [_case(file, file, of_file) for file, of_file in faults.items()]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites {counts}>\n"
        f'<testsuite name="headway" {counts}>\n'
        f"{''.join(cases)}</testsuite>\n</testsuites>"
    )


def _case(file: str, name: str, findings: Sequence[Finding]) -> str:
    head = f"<testcase classname={_quoted(file)} name={_quoted(name)}"
    if not findings:
        return f"{head}/>\n"
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    failure = ""
    if errors:
        message = "; ".join(printable(finding.message) for finding in errors)
        failure = f"<failure message={_quoted(message)} type={_quoted(str(errors[0].rule))}/>\n"
    out = _escaped("\n".join(finding.text for finding in findings))
    return f"{head}>\n{failure}<system-out>{out}</system-out>\n</testcase>\n"


def _quoted(text: str) -> str:
    """An attribute's value; line ends in it would be read as blanks if they were not escaped."""
    return f'"{_escaped(text).translate(_IN_ATTRIBUTES)}"'


def _escaped(text: str) -> str:
    return escape(_NOT_XML.sub("?", text), quote=False)
