from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from headway.errors import EventLogError
from headway.profiler.sources import EventLog, find_event_logs, unpack
from tests.profiler.event_log import write_gzip, write_plain, write_rolling, write_zstd

LINES = [f'{{"Event":"SparkListenerTaskEnd","Stage ID":{number}}}' for number in range(2000)]
TEXT = "".join(f"{line}\n" for line in LINES)


def unpacked(source: Path, work_folder: Path) -> str:
    unpack(find_event_logs([source]), work_folder)
    parts = sorted((work_folder / "app=0").iterdir())
    return "".join(part.read_text(encoding="utf-8") for part in parts)


@pytest.mark.parametrize(
    "write",
    [
        write_plain,
        write_gzip,
        write_zstd,
        lambda lines, path: write_zstd(lines, path, frames=5),
        write_rolling,
    ],
    ids=["plain", "gzip", "zstd", "zstd in frames", "rolling"],
)
def test_every_form_holds_the_same_lines_in_order(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    assert unpacked(write(LINES, tmp_path / "log"), tmp_path / "work") == TEXT


def test_codec_is_told_from_the_content_not_from_the_name(tmp_path: Path) -> None:
    assert unpacked(write_gzip(LINES, tmp_path / "log.zstd"), tmp_path / "work") == TEXT


def test_a_folder_holds_files_and_rolling_folders(tmp_path: Path) -> None:
    write_plain(LINES, tmp_path / "b-plain")
    write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (tmp_path / ".b-plain.crc").write_bytes(b"\0")
    logs = find_event_logs([tmp_path, tmp_path / "b-plain"])
    assert [log.name for log in logs] == [
        str(tmp_path / "b-plain"),
        str(tmp_path / "eventlog_v2_a"),
    ]
    assert [file.name.split("_")[1] for file in logs[1].files] == ["1", "2", "10"]


def test_parts_that_were_compacted_are_read_once(tmp_path: Path) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a", numbers=(1, 2, 3))
    write_zstd(LINES[:10], folder / "events_2_eventlog_v2_a.zstd.compact")
    (log,) = find_event_logs([folder])
    assert [file.name for file in log.files] == [
        "events_2_eventlog_v2_a.zstd.compact",
        "events_3_eventlog_v2_a.zstd",
    ]


@pytest.mark.parametrize("write", [write_gzip, write_zstd])
def test_a_block_that_is_cut_off_keeps_what_came_before(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    whole = [f'{{"Event":"x","a":"{number * 7919 % 10007}"}}' for number in range(200_000)]
    path = write(whole, tmp_path / "log")
    path.write_bytes(path.read_bytes()[:-2000])
    text = unpacked(path, tmp_path / "work")
    assert text
    assert "".join(f"{line}\n" for line in whole).startswith(text)


def test_an_unfinished_last_zstd_frame_keeps_the_frames_before(tmp_path: Path) -> None:
    first, second = LINES[:1000], LINES[1000:]
    path = write_zstd(first, tmp_path / "log")
    unfinished = zstandard.compress("".join(f"{line}\n" for line in second).encode())[:30]
    path.write_bytes(path.read_bytes() + unfinished)
    text = unpacked(path, tmp_path / "work")
    assert text.startswith("".join(f"{line}\n" for line in first))
    assert TEXT.startswith(text)


def test_a_byte_order_mark_is_no_part_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert unpacked(path, tmp_path / "work") == TEXT


@pytest.mark.parametrize("begun", [b"", b"\x28\xb5\x2f\xfd\x04"])
def test_a_growing_log_may_end_in_a_part_that_has_just_begun(tmp_path: Path, begun: bytes) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (folder / "events_11_eventlog_v2_a.zstd").write_bytes(begun)
    assert unpacked(folder, tmp_path / "work") == TEXT


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"once upon a time", "not a Spark event log"),
        (bytes(range(256)), "not a Spark event log"),
        (b"LZ4Block\x16\0\0", "lz4, snappy or lzf"),
        (b"\x82SNAPPY\0\0\0\0", "lz4, snappy or lzf"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "damaged zstd data"),
        (b"\x28\xb5\x2f\xfd", "not one whole zstd block"),
        (b"\x1f\x8b\x08", "not one whole gzip block"),
        (b"\x1f\x8b" + b"\xff" * 50, "not one whole gzip block"),
    ],
)
def test_what_is_no_event_log_is_refused_by_name(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "some log"
    path.write_bytes(content)
    with pytest.raises(EventLogError) as caught:
        unpack(find_event_logs([path]), tmp_path / "work")
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_hold_nothing_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(EventLogError, match="nowhere: no such file or folder"):
        find_event_logs([tmp_path / "nowhere"])
    with pytest.raises(EventLogError, match="the folder holds no event log"):
        find_event_logs([tmp_path])


def test_a_part_in_the_middle_must_be_whole(tmp_path: Path) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (folder / "events_2_eventlog_v2_a.zstd").write_bytes(b"")
    with pytest.raises(EventLogError, match=r"events_2_.*the file is empty"):
        unpack(find_event_logs([folder]), tmp_path / "work")


def test_the_same_log_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write_plain(LINES, tmp_path / "log")
    assert find_event_logs([path, str(path)]) == (EventLog(name=str(path), files=(path,)),)
