"""Findings and verdicts in words: the one place for terminal, page, JSON and emitted files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from headway.domain import Answer, Finding
from headway.domain.plan_parts import PromiseNeed, Verdict
from headway.domain.target import targets_text
from headway.units import format_rate
from headway.words.plans import OF_PLANS
from headway.words.predictions import OF_PREDICTIONS
from headway.words.sentences import filled

_WORDS = {**OF_PREDICTIONS, **OF_PLANS}
_MOST_CERTAIN_SHOWN = 0.99
_MOST_DIGITS = 3


def words_of(finding: Finding) -> str:
    """A finding as one sentence, without a full stop.

    Raises KeyError if a number or a name is missing that its code has.

    >>> from headway.domain import FindingCode
    >>> words_of(Finding(code=FindingCode.OVER_CAPACITY,
    ...     numbers={"rate_per_s": 2e5, "stable_up_to_per_s": 1.4e5}))
    'over capacity at 200k/s: the backlog grows; stable up to 140k/s'
    """
    words = _WORDS[finding.code]
    return filled(words, finding) if isinstance(words, str) else words(finding)


def all_words(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Every finding as a sentence, in order."""
    return tuple(map(words_of, findings))


def as_sentence(words: str) -> str:
    """Words of a finding with a capital letter and a full stop.

    >>> as_sentence("the state grows")
    'The state grows.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def missed_text(plan: Answer) -> str:
    """Of a plan that is not feasible: how certain its targets are, or that nothing meets them."""
    at_rate = "" if plan.rate_per_s is None else f" at {format_rate(plan.rate_per_s)}"
    # Of a plan of DStreams no probability is known.
    verdict: Verdict | None = getattr(plan, "verdict", None)
    probability: float | None = getattr(plan, "kept_probability", None)
    if verdict is Verdict.TOO_CLOSE and probability is not None:
        certainty = certainty_text(probability, plan.confidence)
        return f"{targets_text(plan.promises)}{at_rate} is {certainty}"
    # The nearest plan meets all targets if only the budget or the limit of files is in the way.
    is_met = verdict is Verdict.KEPT and math.isfinite(plan.planned_s)
    limits = " within the given limits" if is_met else ""
    return f"no configuration meets {_failing_text(plan)}{at_rate}{limits}"


def _failing_text(plan: Answer) -> str:
    """The targets that no searched setting meets: those that fail alone, or all together."""
    needs: Sequence[PromiseNeed] = getattr(plan, "needs", ())
    failing = [need.promise for need in needs if not need.within]
    if failing:
        return " or ".join(failing)
    together = " together" if len(plan.promises) > 1 else ""
    return f"{targets_text(plan.promises)}{together}"


def certainty_text(probability: float, confidence: float) -> str:
    """How certain it is that targets are met, beside the confidence level that was asked for.

    >>> certainty_text(0.82, 0.95), certainty_text(0.9496, 0.95)
    ('82% certain, 95% asked', '94.96% certain, 95% asked')
    >>> certainty_text(0.9999, 0.95), certainty_text(0.0, 0.95)
    ('more than 99% certain, 95% asked', 'less than 1% certain, 95% asked')
    """
    level = f"{100.0 * confidence:.6g}%"
    if probability > _MOST_CERTAIN_SHOWN > confidence:
        certain = f"more than {_MOST_CERTAIN_SHOWN:.0%}"
    elif probability < 1.0 - _MOST_CERTAIN_SHOWN:
        certain = f"less than {1.0 - _MOST_CERTAIN_SHOWN:.0%}"
    else:
        certain = _distinct(probability, confidence)
    return f"{certain} certain, {level} asked"


def _distinct(probability: float, confidence: float) -> str:
    """The probability with as few digits as show on which side of the confidence level it is."""
    for digits in range(_MOST_DIGITS):
        text = f"{probability:.{digits}%}"
        rounded = float(text.rstrip("%")) / 100.0
        if rounded != confidence and (rounded > confidence) == (probability > confidence):
            return text
    level = f"{100.0 * confidence:.6g}%"
    return level if probability >= confidence else f"just under {level}"
