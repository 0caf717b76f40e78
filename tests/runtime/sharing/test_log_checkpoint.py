"""A log takes Spark's watermark from the checkpoint, and refuses one that is not its own."""

from __future__ import annotations

import json

import pytest

from headway.errors import HeadwayError
from headway.runtime.sharing.log_state import (
    LogState,
    query_id_of,
    require_matching,
    watermark_of,
)
from tests.runtime.sharing.log_cases import COUNTS, MemoryFiles

OFFSETS = 'v1\n{"batchWatermarkMs":7000,"batchTimestampMs":1,"conf":{"a":"{"}}\n{"logOffset":0}'


def checkpoint(query_id: str, *committed: int) -> MemoryFiles:
    files = MemoryFiles()
    files.write_new("/ckpt/metadata", json.dumps({"id": query_id}))
    for batch in committed:
        files.write_new(f"/ckpt/commits/{batch}", "v1\n{}")
    return files


def state(batch: int, query_id: str = "q") -> LogState:
    return LogState(batch=batch, pane_ms=5, contents=COUNTS, query_id=query_id)


def test_the_watermark_of_a_batch_is_in_spark_s_offset_log() -> None:
    files = checkpoint("q")
    files.write_new("/ckpt/offsets/3", OFFSETS)
    files.write_new("/ckpt/offsets/4", "v1\n{}\n{}")
    assert watermark_of(files, "/ckpt", 3) == 7000
    with pytest.raises(HeadwayError, match="offsets/4: no watermark"):
        watermark_of(files, "/ckpt", 4)


@pytest.mark.parametrize(
    ("batch", "committed"), [(-1, ()), (0, ()), (0, (0,)), (7, (5, 6)), (11, (9, 10, 11))]
)
def test_a_store_is_at_the_checkpoint_s_batch_or_one_ahead(
    batch: int, committed: tuple[int, ...]
) -> None:
    require_matching(checkpoint("q", *committed), "/ckpt", "/store", state(batch))


@pytest.mark.parametrize(
    ("batch", "committed", "query_id", "why"),
    [
        (3, (3,), "other", "filled up to batch 3 with another checkpoint than /ckpt"),
        (-1, (0, 1), "q", "/store: empty, while the last batch that /ckpt has committed is 1"),
        (3, (4,), "q", "filled up to batch 3, while the last batch .* is 4: one of them is not"),
        (3, (1,), "q", "rows would be missing or skipped"),
        (3, (), "q", "has committed is none"),
    ],
)
def test_a_store_of_another_query_or_another_time_is_refused(
    batch: int, committed: tuple[int, ...], query_id: str, why: str
) -> None:
    with pytest.raises(HeadwayError, match=why):
        require_matching(checkpoint(query_id, *committed), "/ckpt", "/store", state(batch))


def test_a_checkpoint_that_is_gone_is_not_the_store_s() -> None:
    assert query_id_of(MemoryFiles(), "/ckpt") == ""
    with pytest.raises(HeadwayError, match="with another checkpoint"):
        require_matching(MemoryFiles(), "/ckpt", "/store", state(3, ""))
