"""Windows from text, on the grid of their panes."""

from __future__ import annotations

import pytest

from headway.domain.window_set import WindowSet, WindowSpec
from headway.errors import InputError

TIMES = range(-30, 30)


def test_starts_and_ends_are_those_of_enumeration() -> None:
    for slide in (1, 2, 3, 5, 10):
        for offset in range(slide):
            spec = WindowSpec(size_ms=10, slide_ms=slide, offset_ms=offset)
            starts = [s for s in range(-90, 90) if (s - offset) % slide == 0]
            for at in TIMES:
                until = at + 4
                holding = [s for s in starts if s <= at and until <= s + 10]
                assert list(spec.starts_with(at, until)) == holding
                ends = [s + 10 for s in starts if at < s + 10 <= until]
                assert list(spec.ends_between(at, until)) == ends


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10m", (600_000, 600_000, 0)),
        ("1 hour every 5 minutes", (3_600_000, 300_000, 0)),
        ("1h every 5m offset 90s", (3_600_000, 300_000, 90_000)),
        ("10 seconds offset 12s", (10_000, 10_000, 2_000)),
    ],
)
def test_windows_are_read(text: str, expected: tuple[int, int, int]) -> None:
    spec = WindowSpec.parse(text)
    assert (spec.size_ms, spec.slide_ms, spec.offset_ms) == expected
    assert WindowSpec.parse(str(spec)) == spec


@pytest.mark.parametrize("text", ["", "1h every 2h", "0s", "1.5ms", "an hour", "1h each 5m"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"window|duration|milliseconds"):
        WindowSpec.parse(text)


def test_panes_divide_sizes_slides_and_offsets() -> None:
    assert WindowSet.parse(["20s every 6s", "9s"]).pane_ms == 1000
    assert WindowSet.parse(["20s every 10s offset 4s"]).pane_ms == 2000
    windows = WindowSet.parse(["60s every 5s", "10s"])
    assert windows.num_copies == 13.0


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([], "at least one"),
        (["1h every 5m", "1h"], "two windows of 60 min; expected different sizes"),
        (["1h every 1ms"], "3,600,000 panes"),
    ],
)
def test_sets_that_cannot_be_shared_are_refused(texts: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        WindowSet.parse(texts)
