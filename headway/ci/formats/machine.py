"""A report as data: our own JSON, and SARIF for code scanning."""

from __future__ import annotations

import json
from dataclasses import asdict
from urllib.parse import quote

from headway.ci.nouns import ABOUT, Finding, Held, Level, LockedToday, Report, Rule
from headway.formats.codec import EXACT, data_of
from headway.formats.lock_file import AnyLocked
from headway.version import __version__

# A colon would begin with a scheme, which a relative path may not.
_SAFE_IN_URI = "/@!$&'()*+,;=~"


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
