"""What was found about a setting, as data: a code and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FindingCode(StrEnum):
    """What kind of finding it is; its numbers are named beside it."""

    OVER_CAPACITY = "over_capacity"
    """``rate_per_s``, ``stable_up_to_per_s``."""
    TOO_CLOSE_TO_SATURATION = "too_close_to_saturation"
    """``rate_per_s``, ``utilization_ratio``, ``told_up_to_per_s``, ``stable_up_to_per_s``."""
    MOSTLY_OVERRUNS = "mostly_overruns"
    """``overrun_probability``."""
    RATE_LIMIT_TOO_LOW = "rate_limit_too_low"
    """``limit_rows``, ``passed_per_s``, ``rate_per_s``; ``enough_rows`` where any number is."""
    RATE_LIMIT_LEAVES_LITTLE = "rate_limit_leaves_little"
    """``limit_rows``, ``catch_up_ratio``."""
    MORE_NODES_LESS_SURE = "more_nodes_less_sure"
    """``nodes`` after which more promise no less, ``planned_s`` there, ``seen_slots``."""
    MODEL_RISES = "model_rises"
    """``nodes`` from which the model says longer than for fewer, ``ratio`` by how much at most."""
    STATE_GROWS = "state_grows"
    """``growth_per_s``, ``state_rows``, ``batch_s_per_million_rows``."""
    STATE_BREAKS_PROMISE = "state_breaks_promise"
    """``missed_after_s``, ``growth_per_s``, ``state_rows``, ``state_rows_then``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A code and its numbers, in base units; words are made of it where it is shown.

    Examples
    --------
    >>> Finding(code=FindingCode.MOSTLY_OVERRUNS, numbers={"overrun_probability": 0.87}).code
    <FindingCode.MOSTLY_OVERRUNS: 'mostly_overruns'>
    """

    code: FindingCode
    numbers: Mapping[str, float] = field(default_factory=dict)
