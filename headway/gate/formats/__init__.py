"""A report in the words of the tools that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from headway.gate.formats.annotations import github_text
from headway.gate.formats.junit import junit_text
from headway.gate.formats.machine import check_json_text, sarif_text
from headway.gate.formats.markdown import markdown_text
from headway.gate.formats.text import report_text
from headway.gate.nouns import Report

#: Every format, by the name that ``headway check --format`` takes.
FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "text": report_text,
        "json": check_json_text,
        "github": github_text,
        "junit": junit_text,
        "markdown": markdown_text,
        "sarif": sarif_text,
    }
)

__all__ = ["FORMATS"]
