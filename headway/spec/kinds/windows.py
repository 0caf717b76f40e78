"""Queries that count windows of one stream, which could share their panes."""

from __future__ import annotations

from dataclasses import dataclass

from headway.domain.window_set import WindowSet, WindowSpec
from headway.spec.forms import entry, require_different_names
from headway.spec.forms.kinds import ListOf, Nested, Parsed
from headway.spec.forms.quantities import NAME, RATE, TRIGGER

_MOST_QUERIES, _MOST_WINDOWS = 100, 50
WINDOW = Parsed(
    words="a window, e.g. 10m, 1h every 5m, 1h every 5m offset 1m",
    parse=WindowSpec.parse,
    examples=("10m", "1h every 5m"),
    pattern=r"^\s*[0-9].*$",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsQuery:
    """One of the queries, and the windows that it counts."""

    name: str = entry(NAME, "Name in the answer.")
    specs: tuple[WindowSpec, ...] = entry(
        ListOf(item=WINDOW, least=1, most=_MOST_WINDOWS, or_one=True),
        "Its windows, each of a different size.",
        key="windows",
    )

    def __post_init__(self) -> None:
        self.windows()

    def windows(self) -> WindowSet:
        return WindowSet.of(self.specs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWindows:
    """Queries that count windows over one stream, so far each on its own."""

    rate_per_s: float | None = entry(RATE, "Input rate. Default: as profiled.", default=None)
    trigger_s: float | None = entry(
        TRIGGER, "Trigger interval of each. Default: as profiled.", default=None
    )
    queries: tuple[WindowsQuery, ...] = entry(
        ListOf(item=Nested(WindowsQuery), least=1, most=_MOST_QUERIES), "The queries."
    )

    def __post_init__(self) -> None:
        fault = "two queries are called {!r}; expected different names"
        require_different_names(self.queries, fault)
        self.windows()

    def windows(self) -> WindowSet:
        """The windows of all queries; windows that several queries count are included once."""
        try:
            return WindowSet.of({spec for query in self.queries for spec in query.specs})
        except ValueError as error:
            raise ValueError(f"queries: their windows together: {error}") from None
