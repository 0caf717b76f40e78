"""What to run next, to learn what a profile cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.configuration import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedRun:
    """One run, and what it would teach.

    ``rate_per_s`` is the rate at which to run it [records/s], ``num_batches`` how many batches of
    it are enough.
    """

    learns: str
    why: str
    configuration: Configuration
    rate_per_s: float
    num_batches: int
    new_checkpoint: bool = False
