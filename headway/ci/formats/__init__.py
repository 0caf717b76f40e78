"""A report in the formats of the tools that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from headway.ci.formats.annotations import github_text
from headway.ci.formats.junit import junit_text
from headway.ci.formats.machine import sarif_text
from headway.ci.formats.markdown import markdown_text
from headway.ci.nouns import Report

#: By the names that ``headway check --format`` takes, beside text and JSON, which all results have.
FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {"github": github_text, "junit": junit_text, "markdown": markdown_text, "sarif": sarif_text}
)
