"""What a streaming query is made of, read from its progress and its physical plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class WindowKind(StrEnum):
    """How event time is cut into windows."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeWindow:
    """A window of event time [s]; of a session ``size_s`` is the gap that ends it.

    Examples
    --------
    >>> EventTimeWindow(kind=WindowKind.SLIDING, size_s=60.0, slide_s=5.0).slide_s
    5.0
    """

    kind: WindowKind
    size_s: float
    slide_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.size_s < math.inf:
            raise ValueError(f"size_s is {self.size_s}; expected a positive number of seconds")
        if (self.slide_s is None) != (self.kind is WindowKind.SESSION):
            raise ValueError(f"slide_s is {self.slide_s}; windows slide, sessions do not")
        if self.slide_s is not None and not 0 < self.slide_s <= self.size_s:
            raise ValueError(f"slide_s is {self.slide_s}; expected more than 0, at most size_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """The parts of a query; what no record tells is None or empty."""

    sources: tuple[str, ...]
    sink: str
    output_mode: str | None = None
    stateful_operators: tuple[str, ...] = ()
    state_rows: int = 0
    watermarked: bool = False
    watermark_delay_s: float | None = None
    windows: tuple[EventTimeWindow, ...] = ()
    joins: tuple[str, ...] = ()
    python_operators: tuple[str, ...] = ()
