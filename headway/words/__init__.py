"""Findings in words: the one place for terminal, page, JSON and emitted files."""

from __future__ import annotations

from collections.abc import Iterable

from headway.domain import Finding
from headway.words.plans import OF_PLANS
from headway.words.predictions import OF_PREDICTIONS

_WORDS = {**OF_PREDICTIONS, **OF_PLANS}


def words_of(finding: Finding) -> str:
    """A finding as one sentence, without a full stop.

    Raises
    ------
    KeyError
        If a number or a name is missing that its code has.

    Examples
    --------
    >>> from headway.domain import FindingCode
    >>> words_of(Finding(code=FindingCode.OVER_CAPACITY,
    ...     numbers={"rate_per_s": 2e5, "stable_up_to_per_s": 1.4e5}))
    'over capacity at 200k/s: the backlog grows; stable up to 140k/s'
    """
    words = _WORDS[finding.code]
    return words if isinstance(words, str) else words(finding)


def all_words(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Every finding as a sentence, in order."""
    return tuple(map(words_of, findings))
