"""A report in the formats of the tools that show it; only the requested one is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType

from headway.gate.nouns import Report


def _written(module: str, function: str, report: Report) -> str:
    text = getattr(import_module(f"headway.gate.formats.{module}"), function)(report)
    assert isinstance(text, str)
    return text


#: Every format, by the name that ``headway check --format`` takes.
FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "text": partial(_written, "text", "report_text"),
        "json": partial(_written, "machine", "check_json_text"),
        "github": partial(_written, "annotations", "github_text"),
        "junit": partial(_written, "junit", "junit_text"),
        "markdown": partial(_written, "markdown", "markdown_text"),
        "sarif": partial(_written, "machine", "sarif_text"),
    }
)

__all__ = ["FORMATS"]
