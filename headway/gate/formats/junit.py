"""A report as JUnit XML: each job a test case."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from headway.gate.nouns import Held, Level, Report

# What XML 1.0 cannot hold at all, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_text(report: Report) -> str:
    """One suite; a job that fails has its errors as the failure, and all findings as output."""
    failed = sum(held.failed for held in report.jobs)
    cases = "".join(map(_case, report.jobs))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites tests="{len(report.jobs)}" failures="{failed}">\n'
        f'<testsuite name="headway" tests="{len(report.jobs)}" failures="{failed}">\n'
        f"{cases}</testsuite>\n</testsuites>"
    )


def _case(held: Held) -> str:
    head = f"<testcase classname={_quoted(held.file)} name={_quoted(held.name)}"
    errors = [each for each in held.findings if each.level is Level.ERROR]
    told = "\n".join(
        f"{each.file}:{each.line}:{each.column}: {each.level}: {each.message} ({each.rule})"
        for each in held.findings
    )
    if not told:
        return f"{head}/>\n"
    failure = ""
    if errors:
        message = "; ".join(each.message for each in errors)
        failure = f"<failure message={_quoted(message)} type={_quoted(str(errors[0].rule))}/>\n"
    return f"{head}>\n{failure}<system-out>{escape(_plain(told))}</system-out>\n</testcase>\n"


def _quoted(text: str) -> str:
    return quoteattr(_plain(text))


def _plain(text: str) -> str:
    return _NOT_XML.sub("?", text)
