"""What a log lacks is said in words, with what to do about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.domain import Coverage, Share
from headway.profiler.coverage import gaps, together

_ALL = Share(seen=4, expected=4)
WHOLE = Coverage(
    tasks=_ALL,
    stages=_ALL,
    jobs=_ALL,
    batches=_ALL,
    executors=_ALL,
    has_start=True,
    has_end=True,
)


def test_a_whole_log_lacks_nothing() -> None:
    assert gaps(WHOLE) == ()


@pytest.mark.parametrize(("missing", "said"), [(1, "1 part of a"), (3, "3 parts of a")])
def test_parts_that_are_not_there_are_reported(missing: int, said: str) -> None:
    (gap,) = gaps(together([WHOLE, replace(WHOLE, missing_parts=missing)]))
    assert gap.startswith(said)
    assert "profile the whole folder" in gap


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (WHOLE, True),
        (replace(WHOLE, has_end=False), False),
        (replace(WHOLE, has_start=False), False),
        (replace(WHOLE, compacted=True), False),
        (replace(WHOLE, missing_parts=1), False),
    ],
)
def test_what_a_cut_log_lacks_is_not_laid_on_dropped_events(log: Coverage, said: bool) -> None:
    found = gaps(replace(log, tasks=Share(seen=2, expected=4)))
    assert any("events were dropped" in gap for gap in found) is said
