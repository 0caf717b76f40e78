"""Windows over one stream, on the grid of panes that they share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headway.errors import InputError
from headway.units import exact_duration, ms_to_s, parse_duration_s, s_to_ms

_MOST_PANES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class WindowSpec:
    """Windows of one size: they begin at ``offset_ms + k * slide_ms`` after the epoch.

    >>> hourly = WindowSpec.parse("1h every 5m")
    >>> hourly.size_ms, hourly.slide_ms, hourly.num_overlapping, str(hourly)
    (3600000, 300000, 12.0, '1 h every 5 min')
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.slide_ms <= self.size_ms:
            raise ValueError(
                f"a window of {self.size_ms} ms every {self.slide_ms} ms; expected a slide above "
                "0 and at most the size"
            )
        if not 0 <= self.offset_ms < self.slide_ms:
            raise ValueError(f"offset_ms is {self.offset_ms}; expected 0 or more, below the slide")

    @classmethod
    def parse(cls, text: str) -> WindowSpec:
        """Windows from text: ``10m``, ``1h every 5m``, ``1 hour every 5 minutes offset 30s``.

        Raises InputError if the text is none, or not in whole milliseconds.
        """
        match = re.fullmatch(
            r"\s*(?P<size>.+?)(?:\s+every\s+(?P<slide>.+?))?(?:\s+offset\s+(?P<offset>.+?))?\s*",
            text,
        )
        if match is None:
            raise _no_window(text)
        size_ms = _whole_ms(match["size"], text)
        slide_ms = _whole_ms(match["slide"], text) if match["slide"] else size_ms
        offset_ms = _whole_ms(match["offset"], text) if match["offset"] else 0
        if not 0 < slide_ms <= size_ms:
            raise _no_window(text)
        return cls(size_ms=size_ms, slide_ms=slide_ms, offset_ms=offset_ms % slide_ms)

    @property
    def num_overlapping(self) -> float:
        """Number of windows that contain a row, on average."""
        return self.size_ms / self.slide_ms

    def starts_with(self, start_ms: int, end_ms: int) -> range:
        """Starts of all windows that contain the whole of ``[start_ms, end_ms)``, in order."""
        last = start_ms - (start_ms - self.offset_ms) % self.slide_ms
        earliest = end_ms - self.size_ms
        first = last - max((last - earliest) // self.slide_ms, -1) * self.slide_ms
        return range(first, last + 1, self.slide_ms)

    def ends_between(self, after_ms: int, until_ms: int) -> range:
        """Ends in ``(after_ms, until_ms]``, in order."""
        shift = self.offset_ms + self.size_ms
        first = after_ms + self.slide_ms - (after_ms - shift) % self.slide_ms
        return range(first, until_ms + 1, self.slide_ms)

    def __str__(self) -> str:
        words = _in_words(self.size_ms)
        if self.slide_ms != self.size_ms:
            words += f" every {_in_words(self.slide_ms)}"
        if self.offset_ms:
            words += f" offset {_in_words(self.offset_ms)}"
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSet:
    """Windows of different sizes over one stream.

    >>> windows = WindowSet.parse(["1h every 5m", "10m"])
    >>> windows.pane_ms, windows.num_copies, windows.longest_ms
    (300000, 13.0, 3600000)
    """

    windows: tuple[WindowSpec, ...]

    def __post_init__(self) -> None:
        if not self.windows:
            raise ValueError("expected at least one window")
        sizes = [window.size_ms for window in self.windows]
        for size_ms, next_size_ms in pairwise(sizes):
            if size_ms == next_size_ms:
                size = exact_duration(ms_to_s(size_ms))
                raise ValueError(f"two windows of {size}; expected different sizes")
            if size_ms > next_size_ms:
                raise ValueError("a window is longer than the next one; expected them by size")
        num_panes = self.longest_ms // self.pane_ms
        if num_panes > _MOST_PANES:
            raise ValueError(
                f"the longest window has {num_panes:,} panes of {self.pane_ms} ms; "
                f"expected at most {_MOST_PANES:,}: choose sizes, slides and offsets with a "
                "larger common divisor"
            )

    @classmethod
    def parse(cls, texts: Sequence[str]) -> WindowSet:
        """Windows from texts as :meth:`WindowSpec.parse` reads them, in any order.

        Raises InputError if a text is no window, there is none, two have the same size, or there
        are too many panes.
        """
        try:
            return cls.of(WindowSpec.parse(text) for text in texts)
        except ValueError as error:
            raise InputError(f"windows {', '.join(map(repr, texts))}: {error}") from None

    @classmethod
    def of(cls, windows: Iterable[WindowSpec]) -> WindowSet:
        return cls(windows=tuple(sorted(windows)))

    @property
    def pane_ms(self) -> int:
        """Longest pane of which all windows consist: divisor of sizes, slides and offsets."""
        return math.gcd(
            *(
                length_ms
                for window in self.windows
                for length_ms in (window.size_ms, window.slide_ms, window.offset_ms)
            )
        )

    @property
    def num_copies(self) -> float:
        """Number of windows that contain a row, on average: m of the design, W of the paper."""
        return sum(window.num_overlapping for window in self.windows)

    @property
    def longest_ms(self) -> int:
        return self.windows[-1].size_ms

    def __str__(self) -> str:
        return ", ".join(map(str, self.windows))


def _whole_ms(text: str, window_text: str) -> int:
    seconds = parse_duration_s(text)
    if ms_to_s(s_to_ms(seconds)) != seconds:
        raise InputError(f"{window_text!r}: {text!r} is not a whole number of milliseconds")
    return s_to_ms(seconds)


def _in_words(duration_ms: int) -> str:
    for unit in ("d", "h", "min", "s"):
        unit_ms = s_to_ms(parse_duration_s(f"1{unit}"))
        if duration_ms % unit_ms == 0:
            return f"{duration_ms // unit_ms} {unit}"
    return f"{duration_ms} ms"


def _no_window(text: str) -> InputError:
    return InputError(
        f"{text!r} is not a window; expected e.g. '10m', '1h every 5m' (the slide at most the "
        f"size) or '1h every 5m offset 1m'"
    )
