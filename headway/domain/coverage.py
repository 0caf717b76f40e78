"""How much of what happened is recorded."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.checks import require_not_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the things that must have existed were seen.

    Examples
    --------
    >>> Share(seen=9, expected=10).ratio
    0.9
    >>> Share(seen=0, expected=0).ratio
    1.0
    """

    seen: int
    expected: int

    def __post_init__(self) -> None:
        require_not_negative("share", seen=self.seen)
        if self.expected < self.seen:
            raise ValueError(f"expected is {self.expected}, fewer than the {self.seen} seen")

    @property
    def ratio(self) -> float:
        """Seen over expected; 1 if nothing was expected."""
        return self.seen / self.expected if self.expected else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Contents of a log of an application, compared with what its own events imply.

    Tasks are expected from their stages, stages from their jobs, batches from the numbers of those
    before and after, executors from the tasks that ran on them. ``damaged_lines`` could not be
    read, ``unknown_events`` are of kinds that Spark itself does not write, ``lost_events`` are
    those whose loss was recorded, ``missing_parts`` the files that are missing from a rolling log,
    ``passed_over_batches`` those whose tasks a recorder skipped to limit its costs.
    """

    tasks: Share
    stages: Share
    jobs: Share
    batches: Share
    executors: Share
    has_start: bool
    has_end: bool
    compacted: bool = False
    in_progress: bool = False
    damaged_lines: int = 0
    unknown_events: int = 0
    lost_events: int = 0
    missing_parts: int = 0
    passed_over_batches: int = 0
