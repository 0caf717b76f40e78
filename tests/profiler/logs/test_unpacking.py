"""Unpacking: every form holds the same lines, a cut keeps what came before, a bomb nothing."""

from __future__ import annotations

import gzip
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import headway
from headway.profiler.logs.event_logs import HadoopFile
from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.unpacking import Unpacker, unpack
from tests.profiler.event_log import write_gzip, write_plain, write_rolling, write_zstd

LINES = [f'{{"Event":"SparkListenerTaskEnd","Stage ID":{number}}}' for number in range(2000)]
TEXT = "".join(f"{line}\n" for line in LINES)


def unpacked(source: str | Path, work_folder: Path) -> str:
    found = find_event_logs([source])
    result = unpack(found.logs, work_folder)
    assert (found.failures, result.failures, result.pending) == ((), [], {})
    assert result.logs == {0: found.logs[0]}
    return text_of(work_folder / "app=0")


def text_of(folder: Path) -> str:
    parts = sorted(folder.iterdir())
    return "".join(part.read_text(encoding="utf-8") for part in parts)


def refusal(result: Unpacker, work_folder: Path) -> tuple[str, str]:
    """The one failure, which must leave nothing behind."""
    assert (result.logs, result.pending) == ({}, {})
    assert [path for path in work_folder.rglob("*") if not path.is_dir()] == []
    assert list(work_folder.glob("app=*")) == []
    (failure,) = result.failures
    assert failure.why.isprintable()
    return failure.name, failure.why


def write_zip(lines: list[str], path: Path) -> Path:
    """A rolling log in a zip."""
    folder = write_rolling(lines, path.with_name("eventlog_v2_zipped"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for file in folder.iterdir():
            opened.write(file, f"{folder.name}/{file.name}")
    return path


@pytest.mark.parametrize(
    "write",
    [
        write_plain,
        write_gzip,
        write_zstd,
        lambda lines, path: write_zstd(lines, path, frames=5),
        write_rolling,
        write_zip,
    ],
    ids=["plain", "gzip", "zstd", "zstd in frames", "rolling", "zip"],
)
def test_every_form_holds_the_same_lines_in_order(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    assert unpacked(write(LINES, tmp_path / "log"), tmp_path / "work") == TEXT


def test_codec_is_read_from_the_content_not_from_the_name(tmp_path: Path) -> None:
    assert unpacked(write_gzip(LINES, tmp_path / "log.zstd"), tmp_path / "work") == TEXT


def test_a_plain_log_is_not_copied(tmp_path: Path) -> None:
    log = write_plain(LINES, tmp_path / "log")
    assert unpacked(log, tmp_path / "work") == TEXT
    (part,) = (tmp_path / "work" / "app=0").iterdir()
    assert part.is_symlink()
    assert part.samefile(log)
    shutil.rmtree(tmp_path / "work")
    assert log.read_text() == TEXT


def test_a_log_that_is_renamed_meanwhile_stays_readable(tmp_path: Path) -> None:
    log = write_plain(LINES, tmp_path / "log.inprogress")
    assert unpacked(log, tmp_path / "work") == TEXT
    log.rename(tmp_path / "log")
    assert text_of(tmp_path / "work" / "app=0") == TEXT


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second disk")
@pytest.mark.parametrize("name", ["log", "log.inprogress"])
def test_a_log_on_another_disk_is_read(tmp_path: Path, name: str) -> None:
    folder = Path("/dev/shm") / f"headway-{tmp_path.name}"
    folder.mkdir()
    try:
        log = write_plain(LINES, folder / name)
        assert unpacked(log, tmp_path / "work") == TEXT
        (part,) = (tmp_path / "work" / "app=0").iterdir()
        # What may be renamed is copied: a symbolic link would lead nowhere then.
        assert part.is_symlink() == (name == "log")
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("write", [write_gzip, write_zstd])
@pytest.mark.parametrize("num_lines", [10_000, 200_000])
def test_a_block_that_is_cut_off_keeps_what_came_before(
    tmp_path: Path, write: Callable[[list[str], Path], Path], num_lines: int
) -> None:
    random.seed(7)
    whole = [f'{{"Event":"x","a":"{random.random()}"}}' for _ in range(num_lines)]
    path = write(whole, tmp_path / "log")
    path.write_bytes(path.read_bytes()[:-2000])
    kept = unpacked(path, tmp_path / "work")
    text = "".join(f"{line}\n" for line in whole)
    assert text.startswith(kept)
    # Zstd gives whole blocks of 128 KiB.
    assert len(kept) > len(text) - 150_000


@pytest.mark.parametrize("write", [write_gzip, write_zstd])
def test_damage_behind_the_first_block_is_a_damaged_line(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    path = write(LINES, tmp_path / "log")
    # Of gzip the checksum is wrong, of zstd what follows the frame.
    whole = path.read_bytes()
    path.write_bytes(
        whole[:-8] + bytes(8) if write is write_gzip else whole + b"\x28\xb5\x2f\xfd" * 9
    )
    assert unpacked(path, tmp_path / "work") == TEXT + "\n\0\n"
    (damaged,) = headway.survey(path).logs
    assert damaged.coverage is not None
    assert damaged.coverage.damaged_lines == 1


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


def test_a_part_in_the_middle_must_be_whole(tmp_path: Path) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (folder / "events_2_eventlog_v2_a.zstd").write_bytes(b"")
    result = unpack(find_event_logs([folder]).logs, tmp_path / "work")
    name, why = refusal(result, tmp_path / "work")
    assert name == str(folder)
    assert why.startswith("events_2_eventlog_v2_a.zstd: the file is empty")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"once upon a time", "not a Spark event log"),
        (bytes(range(256)), "not a Spark event log"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "damaged zstd data"),
        (b"\x28\xb5\x2f\xfd", "not one whole zstd block"),
        (b"\x1f\x8b\x08", "not one whole gzip block"),
        # A part that has just begun is cut off, never wrong.
        (b"\x1f\x8b" + b"\xff" * 50, "damaged gzip data"),
    ],
)
def test_what_is_no_event_log_is_refused_and_spares_the_others(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "some log"
    path.write_bytes(content)
    name, why = refusal(unpack(find_event_logs([path]).logs, tmp_path / "work"), tmp_path / "work")
    assert name == str(path)
    assert complaint in why
    good = write_plain(LINES, tmp_path / "good")
    logs = find_event_logs([path, good]).logs
    result = unpack(logs, tmp_path / "again")
    assert result.logs == {1: logs[1]}
    assert [failure.name for failure in result.failures] == [str(path)]
    assert [folder.name for folder in (tmp_path / "again").iterdir()] == ["app=1"]


def test_a_log_that_is_gone_meanwhile_is_a_failure(tmp_path: Path) -> None:
    logs = find_event_logs([write_plain(LINES, tmp_path / "log")]).logs
    (tmp_path / "log").unlink()
    _, why = refusal(unpack(logs, tmp_path / "work"), tmp_path / "work")
    assert why.startswith("No such file or directory; ")


def test_what_only_spark_fetches_is_left_for_it(tmp_path: Path) -> None:
    logs = (
        EventLog(
            name="x", files=(HadoopFile("hdfs://host/x"),), in_progress=False, compacted=False
        ),
    )
    result = unpack(logs, tmp_path / "work")
    assert (result.logs, result.pending, result.failures) == ({}, dict(enumerate(logs)), [])
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("write", [write_gzip, write_zstd, write_rolling])
def test_packed_files_may_stay_packed_and_are_looked_at_all_the_same(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    log = write(LINES, tmp_path / "log")
    (tmp_path / "begun").write_bytes(b"\x28\xb5\x2f\xfd")
    found = find_event_logs([log, tmp_path / "begun"])
    result = unpack(found.logs, tmp_path / "work", stay_packed=True)
    assert list(result.logs) == [0]
    ((name, why, _),) = result.failures
    assert (name, why) == (str(tmp_path / "begun"), "not one whole zstd block")
    parts = sorted((tmp_path / "work" / "app=0").iterdir())
    assert {part.suffix for part in parts} == {".packed"}
    assert [part.resolve() for part in parts] == list(found.logs[0].files)


@pytest.mark.parametrize("write", [write_gzip, write_zstd, write_zip])
def test_a_bomb_is_stopped_by_its_ratio_and_leaves_nothing(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    path = write([f'{{"Event":"{"0" * 3_000_000}"}}'] * 3, tmp_path / "bomb")
    logs = find_event_logs([path]).logs
    limits = UnpackLimits(ratio_from_bytes=1_000_000)
    _, why = refusal(unpack(logs, tmp_path / "work", limits=limits), tmp_path / "work")
    assert "over 500 times as much" in why
    assert "unpack to" in why
    # Little is no bomb.
    assert unpack(logs, tmp_path / "again").failures == []


def test_the_default_limits_stop_a_bomb_early_and_let_a_repetitive_log_pass(
    tmp_path: Path,
) -> None:
    bomb = tmp_path / "bomb"
    compressor = zstandard.ZstdCompressor().compressobj()
    with bomb.open("wb") as written:
        written.write(compressor.compress(b'{"Event":"'))
        for _ in range(300):
            written.write(compressor.compress(bytes(1_000_000)))
        written.write(compressor.flush())
    result = unpack(find_event_logs([bomb]).logs, tmp_path / "work")
    assert "to 6" in refusal(result, tmp_path / "work")[1]
    random.seed(7)
    block = "".join(f'{{"Event":"{random.random()}"}}\n' for _ in range(400)).encode()
    repetitive = tmp_path / "repetitive"
    repetitive.write_bytes(gzip.compress(block * 9000))
    assert repetitive.stat().st_size * 30 < len(block) * 9000 > 64 * 2**20
    assert unpack(find_event_logs([repetitive]).logs, tmp_path / "again").failures == []


@pytest.mark.parametrize("write", [write_zstd, write_zip, write_rolling])
def test_a_log_may_not_be_larger_than_allowed(
    tmp_path: Path, write: Callable[[list[str], Path], Path]
) -> None:
    logs = find_event_logs([write(LINES, tmp_path / "log")]).logs
    limits = UnpackLimits(max_bytes=len(TEXT) - 1)
    _, why = refusal(unpack(logs, tmp_path / "work", limits=limits), tmp_path / "work")
    assert "more than 94.6 KiB when unpacked" in why
    exact = UnpackLimits(max_bytes=len(TEXT))
    assert unpack(logs, tmp_path / "again", limits=exact).failures == []


def test_the_disk_is_never_filled(tmp_path: Path) -> None:
    log = write_zstd(LINES, tmp_path / "log")
    limits = UnpackLimits(min_free_bytes=shutil.disk_usage(tmp_path).total)
    result = unpack(find_event_logs([log]).logs, tmp_path / "work", limits=limits)
    assert "free on the disk" in refusal(result, tmp_path / "work")[1]


def test_a_damaged_or_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("log", TEXT)
    sound = path.read_bytes()
    path.write_bytes(sound.replace(LINES[1000].encode(), b"x" * len(LINES[1000])))
    result = unpack(find_event_logs([path]).logs, tmp_path / "work")
    assert "Bad CRC-32" in refusal(result, tmp_path / "work")[1]
    encrypted = bytearray(sound)
    encrypted[6] |= 1
    encrypted[encrypted.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(encrypted)
    result = unpack(find_event_logs([path]).logs, tmp_path / "work")
    assert "encrypted" in refusal(result, tmp_path / "work")[1]


def test_progress_grows_to_its_total(tmp_path: Path) -> None:
    many = [f'{{"Event":"{number}"}}' for number in range(300_000)]
    sources = [
        write_plain(LINES, tmp_path / "plain"),
        write_gzip(many, tmp_path / "gzip"),
        write_plain(["nothing"], tmp_path / "no log"),
        write_rolling(LINES, tmp_path / "eventlog_v2_a"),
        write_zip(LINES, tmp_path / "zip"),
    ]
    calls: list[tuple[int, int]] = []
    unpack(
        find_event_logs(sources).logs, tmp_path / "work", on_progress=lambda *now: calls.append(now)
    )
    done = [now for now, _ in calls]
    assert done == sorted(done)
    assert {total for _, total in calls} == {calls[-1][0]}
    assert len(set(done)) > 10


def test_what_progress_raises_ends_the_work(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done:
            raise StoppedError

    logs = find_event_logs([write_gzip(LINES, tmp_path / "log")]).logs
    with pytest.raises(StoppedError):
        unpack(logs, tmp_path / "work", on_progress=stop)
    assert list((tmp_path / "work").iterdir()) == []
