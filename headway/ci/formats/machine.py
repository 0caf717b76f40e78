"""A report as data: our own JSON, SARIF for code scanning, JUnit XML, annotations of GitHub."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from urllib.parse import quote
from xml.sax.saxutils import escape

from headway.ci.nouns import ABOUT, Finding, Held, Level, LockedToday, Report, Rule
from headway.formats.codec import EXACT, data_of
from headway.formats.lock_file import AnyLocked
from headway.redaction import printable
from headway.version import __version__

# A colon would begin with a scheme, which a relative path may not.
_SAFE_IN_URI = "/@!$&'()*+,;=~"
# What XML 1.0 cannot hold at all, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_ATTRIBUTES = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def check_json(report: Report) -> dict[str, object]:
    """Everything in the report; keys may be added, none is renamed."""
    return {
        "schema": "headway.check/v1",
        "ok": not report.errors,
        "exit_code": report.exit_code,
        "headline": report.headline,
        "baseline": report.baseline,
        "jobs": [_job(held) for held in report.jobs],
        "findings": [asdict(finding) for finding in report.findings],
    }


def sarif_text(report: Report) -> str:
    """SARIF 2.1.0: rules and paths stay the same, so that findings are recognised again."""
    rules = [
        {"id": str(rule), "shortDescription": {"text": about}} for rule, about in ABOUT.items()
    ]
    driver = {"name": "headway", "version": __version__, "rules": rules}
    results = [_sarif_result(finding) for finding in report.findings]
    data = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _sarif_result(finding: Finding) -> dict[str, object]:
    location = {
        "artifactLocation": {"uri": quote(finding.file.replace("\\", "/"), safe=_SAFE_IN_URI)},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }
    return {
        "ruleId": str(finding.rule),
        "ruleIndex": list(Rule).index(finding.rule),
        "level": str(finding.level),
        "message": {"text": f"{finding.job}: {finding.message}"},
        "locations": [{"physicalLocation": location}],
    }


def _job(held: Held) -> dict[str, object]:
    levels = [finding.level for finding in held.findings]
    return {
        "name": held.name,
        "file": held.file,
        "line": held.line,
        "ok": not held.failed,
        "feasible": held.feasible,
        "calibrated": held.calibrated,
        "worst": next((str(level) for level in Level if level in levels), None),
        "locked_today": None if held.locked_today is None else _figures(held.locked_today),
        "now": _figures(held.now),
        "locked": None if held.then is None else _figures(held.then),
    }


def _figures(locked: AnyLocked | LockedToday) -> dict[str, object]:
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else data_of(value, EXACT)
        for key, value in asdict(locked).items()
    }


def junit_text(report: Report) -> str:
    """One suite; a job that fails has its errors as the failure, and all findings as output."""
    counts = f'tests="{len(report.jobs)}" failures="{sum(held.failed for held in report.jobs)}"'
    cases = "".join(map(_case, report.jobs))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites {counts}>\n"
        f'<testsuite name="headway" {counts}>\n'
        f"{cases}</testsuite>\n</testsuites>"
    )


def _case(held: Held) -> str:
    head = f"<testcase classname={_quoted(held.file)} name={_quoted(held.name)}"
    if not held.findings:
        return f"{head}/>\n"
    errors = [finding for finding in held.findings if finding.level is Level.ERROR]
    failure = ""
    if errors:
        message = "; ".join(printable(finding.message) for finding in errors)
        failure = f"<failure message={_quoted(message)} type={_quoted(str(errors[0].rule))}/>\n"
    out = escape(_NOT_XML.sub("?", "\n".join(finding.text for finding in held.findings)))
    return f"{head}>\n{failure}<system-out>{out}</system-out>\n</testcase>\n"


def _quoted(text: str) -> str:
    """An attribute's value; line ends in it would be read as blanks if they were not escaped."""
    return f'"{escape(_NOT_XML.sub("?", text), _IN_ATTRIBUTES)}"'


def github_text(report: Report) -> str:
    """One command per finding, errors first: GitHub shows about ten of a kind; then the outcome."""
    order = list(Level)
    findings = sorted(report.findings, key=lambda finding: order.index(finding.level))
    return "\n".join([*map(_command, findings), report.headline])


def _command(finding: Finding) -> str:
    properties = {
        "file": finding.file,
        "line": str(finding.line),
        "col": str(finding.column),
        "title": f"{finding.job}: {finding.rule}",
    }
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.level]} {listed}::{_message(finding.message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
