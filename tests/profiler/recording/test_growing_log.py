"""A log is read while it grows: each line once, however its files are rolled, packed, renamed."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from headway.errors import EventLogError
from headway.profiler import schema
from headway.profiler.recording.growing_log import GrowingLog
from headway.profiler.recording.live import LogFeed
from tests.factories import a_profile
from tests.live_logs import QUERY_ID, FakeQuery, a_log

LINE = '{{"Event":"SparkListenerLogStart","n":{0}}}\n'


def lines(*numbers: int) -> str:
    return "".join(LINE.format(number) for number in numbers)


def read(log: GrowingLog) -> list[int]:
    return [int(line.split(b":")[-1].rstrip(b"}")) for line in log.new_lines()]


def test_whole_lines_only_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    path.write_text(lines(1, 2) + LINE.format(3)[:20])
    log = GrowingLog(path)
    assert read(log) == [1, 2]
    assert read(log) == []
    with path.open("a") as file:
        file.write(LINE.format(3)[20:] + lines(4))
    assert read(log) == [3, 4]


def test_a_recorder_that_sets_its_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    path.write_text(lines(1))
    log = GrowingLog(path)
    assert read(log) == [1]
    with path.open("a") as file:
        file.write(lines(2))
    path.rename(tmp_path / "a.headway.jsonl.1")
    path.write_text(lines(3))
    assert read(log) == [2, 3]
    (tmp_path / "a.headway.jsonl.1").rename(tmp_path / "a.headway.jsonl.2")
    path.rename(tmp_path / "a.headway.jsonl.1")
    path.write_text(lines(4))
    assert read(log) == [4]


def test_a_rolling_log_that_is_compacted_while_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").write_text("")
    (folder / "events_1_app-1").write_text(lines(1))
    (folder / "events_2_app-1").write_text(lines(2))
    log = GrowingLog(folder)
    assert read(log) == [1, 2]
    (folder / "events_3_app-1").write_text(lines(4))
    (folder / "events_2_app-1.compact").write_text(lines(1, 2))
    (folder / "events_1_app-1").unlink()
    assert read(log) == [4]
    # Whoever begins now reads what was compacted.
    assert read(GrowingLog(folder)) == [1, 2, 4]


def test_packed_logs_grow_too(tmp_path: Path) -> None:
    path = tmp_path / "app-1.zstd.inprogress"
    # A flush of Spark's ends a frame.
    path.write_bytes(zstandard.compress(lines(1).encode()))
    log = GrowingLog(path)
    assert read(log) == [1]
    frame = zstandard.compress(lines(2, 3).encode())
    with path.open("ab") as file:
        file.write(frame[:9])
    assert read(log) == []
    with path.open("ab") as file:
        file.write(frame[9:])
    assert read(log) == [2, 3]
    packed = tmp_path / "app-2.gz"
    packed.write_bytes(gzip.compress(lines(1, 2).encode()))
    assert read(GrowingLog(packed)) == [1, 2]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_packed_log_of_millions_of_empty_lines_takes_little_memory(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    packed = tmp_path / "app-1.packed"
    packed.write_bytes(pack(lines(1).encode() + b"\n" * 30_000_000 + lines(2).encode()))
    tracemalloc.start()
    try:
        assert read(GrowingLog(packed)) == [1, 2]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200e6


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"LZ4Block and more of it", "cannot be followed while it grows"),
        (b"PK\x03\x04 and more of it", "no event log|cannot be followed|damaged|not a"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, head: bytes, message: str) -> None:
    path = tmp_path / "app-1"
    path.write_bytes(head)
    with pytest.raises(EventLogError, match=message):
        read(GrowingLog(path))


def test_a_folder_of_several_logs_or_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EventLogError, match="no such file or folder"):
        GrowingLog(tmp_path / "missing")
    (tmp_path / "app-1").write_text(lines(1))
    (tmp_path / "app-2").write_text(lines(1))
    with pytest.raises(EventLogError, match="holds 2 logs"):
        GrowingLog(tmp_path)


def test_batches_come_as_they_end_with_their_positions(tmp_path: Path) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    path = tmp_path / "a.headway.jsonl"
    path.write_text("\n".join([*query.head(), *query.batches(5)]) + "\n")
    feed = LogFeed(path)
    first = feed.new_batches()
    assert [one.batch_id for one in first] == [0, 1, 2, 3, 4]
    assert list(feed.executor_cores) == [4, 4]
    with path.open("a") as file:
        file.write("\n".join(query.batches(2)) + "\n")
    second = feed.new_batches()
    assert [one.batch_id for one in second] == [5, 6]
    # From the third batch on it is known that the offsets count rows.
    assert first[-1].position_rows == first[-1].available_rows == 25_000
    assert second[-1].shuffle_partitions == 8
    assert second[-1].ended_s - second[-1].committed_s == pytest.approx(0.028, abs=1e-4)


def test_several_queries_need_a_name(tmp_path: Path) -> None:
    one = FakeQuery(a_profile(), 5000.0)
    other = FakeQuery(a_profile(), 100.0, name="clicks", query_id="9" * 8 + one.query_id[8:])
    path = tmp_path / "a.headway.jsonl"
    path.write_text("\n".join([*one.head(), *one.batches(2), *other.batches(2)]) + "\n")
    with pytest.raises(EventLogError, match=r"several queries .*query"):
        LogFeed(path).new_batches()
    assert len(LogFeed(path, "clicks").new_batches()) == 2
    assert len(LogFeed(path, "3f1c").new_batches()) == 2
    # Of an application that a tuner starts nobody names one: it is another checkpoint.
    with pytest.raises(EventLogError, match="from the same checkpointLocation"):
        LogFeed(path, is_supervised=True).new_batches()


def ended(query: FakeQuery) -> str:
    return json.dumps({"Event": schema.QUERY_TERMINATED, "id": query.query_id, "runId": "r"})


def runs_of_a_name(number: int) -> list[FakeQuery]:
    """Runs of one query, each from a new checkpoint and therefore with its own id."""
    return [
        FakeQuery(a_profile(), 5000.0, query_id=str(place + 1) * 8 + QUERY_ID[8:])
        for place in range(number)
    ]


@pytest.mark.parametrize("name", ["orders", None])
def test_the_run_that_is_running_is_followed_not_those_that_ended(
    tmp_path: Path, name: str | None
) -> None:
    first, second, running = runs_of_a_name(3)
    path = tmp_path / "a.headway.jsonl"
    lines = [*first.head(), *first.batches(9), ended(first), *second.batches(9), ended(second)]
    path.write_text("\n".join([*lines, *running.batches(4)]) + "\n")
    feed = LogFeed(path, name)
    batches = feed.new_batches()
    assert [one.query_id for one in batches] == [running.query_id] * 4
    # Its offsets begin anew, and count from its own start.
    assert batches[-1].position_rows == batches[-1].available_rows == 20_000
    assert feed.ended is None
    with path.open("a") as file:
        file.write("\n".join([*running.batches(1), ended(running)]) + "\n")
    assert len(feed.new_batches()) == 1
    assert feed.ended == "stopped"


def test_runs_of_one_name_at_the_same_time_need_an_id(tmp_path: Path) -> None:
    first, second = runs_of_a_name(2)
    path = tmp_path / "a.headway.jsonl"
    path.write_text("\n".join([*first.head(), *first.batches(2), *second.batches(2)]) + "\n")
    with pytest.raises(EventLogError, match=r"\(orders \(11111111\), orders \(22222222\)\)"):
        LogFeed(path, "orders").new_batches()
    assert len(LogFeed(path, "2222").new_batches()) == 2


def test_a_supervised_application_is_not_followed_to_another_checkpoint(tmp_path: Path) -> None:
    first, second = runs_of_a_name(2)
    path = tmp_path / "a.headway.jsonl"
    lines = [*first.head(), *first.batches(2), ended(first), *second.batches(2)]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EventLogError, match="from the same checkpointLocation"):
        LogFeed(path, is_supervised=True).new_batches()


def test_a_log_that_ends_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    path.write_text(a_log(3))
    feed = LogFeed(path)
    feed.new_batches()
    assert feed.ended is None
    with path.open("a") as file:
        file.write('{"Event":"SparkListenerApplicationEnd","Timestamp":1}\n')
    feed.new_batches()
    assert feed.ended == "stopped"


def test_a_log_that_nobody_writes_any_more_may_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    path.write_text(a_log(3))
    os.utime(path, (1.0, 1.0))
    feed = LogFeed(path)
    feed.new_batches()
    assert feed.ended == "unheard"


def test_a_file_that_is_missing_while_a_new_one_is_begun_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.headway.jsonl"
    path.write_text(lines(1))
    log = GrowingLog(path)
    assert read(log) == [1]
    with path.open("a") as file:
        file.write(lines(2))
    path.rename(tmp_path / "a.headway.jsonl.1")
    assert read(log) == []
    path.write_text(lines(3))
    assert read(log) == [2, 3]
    path.unlink()
    assert read(log) == []
    with pytest.raises(EventLogError, match="no such file"):
        read(log)
