"""A report as workflow commands of GitHub Actions: lines that become annotations."""

from __future__ import annotations

from headway.ci.nouns import Finding, Level, Report

_KINDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


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
    return f"::{_KINDS[finding.level]} {listed}::{_message(finding.message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
