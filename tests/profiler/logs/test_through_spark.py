"""Hadoop's file systems and Spark's own codecs, through the real ones of the session."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.profiler.coverage import gaps
from headway.profiler.logs.limits import DEFAULT_LIMITS, UnpackLimits
from headway.profiler.logs.log_codecs import lz4_blocks
from headway.profiler.logs.sources import EventLog, find_event_logs
from headway.profiler.logs.through_spark import unpack_with_spark
from headway.profiler.logs.unpacking import Progress, Unpacker, unpack
from tests.profiler.event_log import write_gzip, write_plain, write_rolling, write_zstd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [f'{{"Event":"SparkListenerTaskEnd","Stage ID":{number}}}' for number in range(20_000)]
TEXT = "".join(f"{line}\n" for line in LINES)
CODECS = ("lz4", "snappy", "lzf", "zstd")
SPARK_CODECS = ("lz4", "snappy", "lzf")

Write = Callable[[str, bytes, Path], Path]


@pytest.fixture(scope="module")
def write(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Writes bytes with one of Spark's codecs, as its event log writer does."""
    scratch = tmp_path_factory.mktemp("plain") / "plain"
    jvm: Any = spark.sparkContext._jvm
    conf = spark.sparkContext._jsc.sc().conf()

    def write_packed(codec: str, content: bytes, path: Path) -> Path:
        scratch.write_bytes(content)
        reader = jvm.java.io.FileInputStream(str(scratch))
        packed = jvm.org.apache.spark.io.CompressionCodec.createCodec(
            conf, codec
        ).compressedOutputStream(jvm.java.io.FileOutputStream(str(path)))
        jvm.org.apache.commons.io.IOUtils.copyLarge(reader, packed)
        packed.close()
        reader.close()
        return path

    return write_packed


def unpack_all(
    spark: SparkSession,
    sources: Sequence[str | Path],
    work_folder: Path,
    limits: UnpackLimits = DEFAULT_LIMITS,
) -> Unpacker:
    found = find_event_logs(sources)
    assert found.failures == ()
    result = unpack(found.logs, work_folder, limits=limits)
    unpack_with_spark(spark, result)
    assert result.pending == {}
    folders = {path.name for path in work_folder.iterdir()}
    assert folders == {f"app={number}" for number in result.logs}
    return result


def text_of(work_folder: Path, number: int = 0) -> str:
    parts = sorted((work_folder / f"app={number}").iterdir())
    return "".join(part.read_text(encoding="utf-8", errors="replace") for part in parts)


def uri(path: Path) -> str:
    return f"file:{path}"


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_of_spark_is_read_whatever_the_file_is_called(
    spark: SparkSession, write: Write, tmp_path: Path, codec: str
) -> None:
    path = write(codec, TEXT.encode(), tmp_path / "log").rename(tmp_path / "é\nlog\udcff")
    result = unpack_all(spark, [path], tmp_path / "work")
    assert result.failures == []
    assert text_of(tmp_path / "work") == TEXT
    assert result.logs[0].files == (path,)
    assert spark.read.text(str(tmp_path / "work")).count() == len(LINES)


@pytest.mark.parametrize("codec", SPARK_CODECS)
def test_rolling_logs_of_sparks_codecs_end_in_parts_that_have_just_begun(
    spark: SparkSession, write: Write, tmp_path: Path, codec: str
) -> None:
    folder = tmp_path / "eventlog_v2_a"
    folder.mkdir()
    for number, at in ((1, 0), (2, 7000), (10, 14000)):
        lines = "".join(f"{line}\n" for line in LINES[at : at + 7000])
        last = write(codec, lines.encode(), folder / f"events_{number}_a.{codec}")
    (folder / f"events_11_a.{codec}").write_bytes(last.read_bytes()[:100])
    unpack_all(spark, [folder], tmp_path / "work")
    assert text_of(tmp_path / "work") == TEXT
    (folder / f"events_2_a.{codec}").write_bytes(last.read_bytes()[:100])
    ((name, why, _),) = unpack_all(spark, [folder], tmp_path / "again").failures
    assert name == str(folder)
    assert why.startswith(f"events_2_a.{codec}: not one whole {codec} block (")


@pytest.mark.parametrize("codec", SPARK_CODECS)
def test_what_came_before_a_cut_or_a_damage_stands(
    spark: SparkSession, write: Write, tmp_path: Path, codec: str
) -> None:
    path = write(codec, TEXT.encode(), tmp_path / "log")
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle])
    unpack_all(spark, [path], tmp_path / "work")
    # The block that was cut is lost, of 64 KiB at most.
    assert TEXT.startswith(text_of(tmp_path / "work"))
    assert len(text_of(tmp_path / "work")) > 0.4 * len(TEXT) - 66_000
    path.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 :])
    assert unpack_all(spark, [path], tmp_path / "again").failures == []
    assert len(text_of(tmp_path / "again")) > 0.4 * len(TEXT) - 66_000


def test_a_bit_that_flipped_in_an_lz4_log_is_reported(
    spark: SparkSession, write: Write, tmp_path: Path
) -> None:
    """A number with another digit is a sound line: only the checksum of its block can tell."""
    whole = write("lz4", TEXT.encode(), tmp_path / "log").read_bytes()
    plain = [block for block in lz4_blocks(io.BytesIO(whole)) if block]
    assert b"".join(plain) == TEXT.encode()
    for place in range(3):
        # Wherever in the second block: some flips cannot be unpacked, most can.
        begin = whole.index(b"LZ4Block", 20)
        packed = bytearray(whole)
        packed[begin + 21 + (300, 2000, 3000)[place]] ^= 1
        (tmp_path / "flipped").write_bytes(packed)
        blocks = list(lz4_blocks(io.BytesIO(bytes(packed))))
        assert blocks == [plain[0], b"\n\0\n", *plain[2:]]
        (log,) = headway.survey(tmp_path / "flipped").logs
        assert log.coverage is not None
        assert log.coverage.damaged_lines in (1, 2, 3)
        assert any("damaged line" in one for one in gaps(log.coverage))


def test_sparks_codecs_are_read_inside_zips(
    spark: SparkSession, write: Write, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.write(write("lz4", TEXT.encode(), tmp_path / "log"), "app-1.lz4")
        archive.writestr("app-2", LINES[0])
    result = unpack_all(spark, [tmp_path / "logs.zip"], tmp_path / "work")
    assert result.failures == []
    assert text_of(tmp_path / "work", 0) == TEXT
    assert text_of(tmp_path / "work", 1) == LINES[0]


@pytest.mark.parametrize("codec", ["lz4", "lzf"])
def test_a_bomb_of_sparks_codecs_is_stopped_and_leaves_nothing(
    spark: SparkSession, write: Write, tmp_path: Path, codec: str
) -> None:
    path = write(codec, b'{"Event":"' + bytes(50_000_000), tmp_path / "bomb")
    limits = UnpackLimits(max_ratio=50, ratio_from_bytes=1_000_000)
    ((_, why, _),) = unpack_all(spark, [path], tmp_path / "work", limits).failures
    assert "over 50 times as much" in why
    small = UnpackLimits(max_bytes=40_000_000)
    ((_, why, _),) = unpack_all(spark, [path], tmp_path / "again", small).failures
    assert "more than 38.1 MiB" in why


def test_a_hadoop_folder_is_read_as_a_local_one(
    spark: SparkSession, write: Write, tmp_path: Path
) -> None:
    folder = tmp_path / "lögs"
    folder.mkdir()
    write_rolling(LINES, folder / "eventlog_v2_a")
    write_gzip(LINES, folder / "b gzip")
    write_plain(LINES, folder / "c-plain.inprogress")
    write("snappy", TEXT.encode(), folder / "d.snappy")
    (folder / "e").mkdir()
    write_zstd(LINES, folder / "e" / "eventlog-2021-06-15--15-00")
    write_plain(["{}"], folder / "e" / "eventlog")
    for passed_over in (".x", "_y", "z.crc", "truth.jsonl"):
        (folder / passed_over).write_bytes(b"\0")
    (folder / "no log").write_bytes(b"once upon a time")
    with zipfile.ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr("app-1", TEXT)
        archive.write(folder / "d.snappy", "app-2")
    local = write_plain(["{}"], tmp_path / "local")
    result = unpack_all(spark, [uri(folder), local], tmp_path / "work")
    texts = {log.name: text_of(tmp_path / "work", n) for n, log in result.logs.items()}
    assert texts == {
        str(local): "{}\n",
        f"file:{folder}/b gzip": TEXT,
        f"file:{folder}/c-plain.inprogress": TEXT,
        f"file:{folder}/d.snappy": TEXT,
        f"file:{folder}/e": TEXT + "{}\n",
        f"file:{folder}/eventlog_v2_a": TEXT,
        f"file:{folder}/z.zip/app-1": TEXT,
        f"file:{folder}/z.zip/app-2": TEXT,
    }
    assert {log.name for log in result.logs.values() if log.in_progress} == {
        f"file:{folder}/c-plain.inprogress"
    }
    ((name, why, _),) = result.failures
    assert name == f"file:{folder}/no log"
    assert "not a Spark event log" in why


def test_hadoop_patterns_and_parts_name_logs_as_local_ones_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    folder = write_rolling(LINES, tmp_path / "logs" / "eventlog_v2_a")
    (folder / "appstatus_eventlog_v2_a").rename(folder / "appstatus_eventlog_v2_a.inprogress")
    parts = [uri(part) for part in sorted(folder.glob("events_*"))]
    patterns = [uri(folder / "events_*")], [uri(folder / "*")], [uri(folder.parent / "*")]
    for number, sources in enumerate((parts, [uri(folder), *parts], *patterns)):
        work_folder = tmp_path / f"work-{number}"
        result = unpack_all(spark, sources, work_folder)
        assert result.failures == []
        assert [log.name for log in result.logs.values()] == [uri(folder)]
        assert text_of(work_folder) == TEXT
        assert result.logs[0].in_progress


def test_a_recorder_on_a_hadoop_file_system_brings_its_rotations(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_plain(LINES[:9000], tmp_path / "a[{1}].headway.jsonl.1")
    write_plain(LINES[9000:], tmp_path / "a[{1}].headway.jsonl")
    unpack_all(spark, [uri(tmp_path / "a[{1}].headway.jsonl")], tmp_path / "work")
    assert text_of(tmp_path / "work") == TEXT


def test_a_hadoop_log_may_have_been_finished_since_it_was_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_plain(LINES, tmp_path / "app-1")
    result = unpack_all(spark, [uri(tmp_path / "app-1.inprogress")], tmp_path / "work")
    assert result.logs[0].name == uri(tmp_path / "app-1")
    assert not result.logs[0].in_progress


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("file:/nowhere/log", "no such file"),
        ("file:/nowhere/*", "no such file"),
        ("nosuch://me:hush@host/log", "No FileSystem for scheme"),
        ("hdfs://me:hush@127.0.0.1:1/log", "Hadoop cannot read it"),
        ("hdfs://:/x", "Hadoop cannot read it"),
        ("file:/proc/self/mem", ""),
    ],
)
def test_what_hadoop_cannot_read_is_a_failure_without_secrets(
    spark: SparkSession, tmp_path: Path, address: str, complaint: str
) -> None:
    good = write_plain(LINES, tmp_path / "good")
    result = unpack_all(spark, [address, uri(good)], tmp_path / "work")
    assert [log.name for log in result.logs.values()] == [uri(good)]
    ((name, why, _),) = result.failures
    assert complaint in why
    assert "hush" not in name + why
    assert (name + why).isprintable()


def test_a_hadoop_folder_without_logs_is_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    ((_, why, _),) = unpack_all(spark, [uri(tmp_path / "logs")], tmp_path / "work").failures
    assert why.startswith("no event log there")


def test_a_hadoop_file_may_not_be_larger_than_allowed(spark: SparkSession, tmp_path: Path) -> None:
    log = write_plain(LINES, tmp_path / "log")
    limits = UnpackLimits(max_bytes=len(TEXT) - 1)
    ((_, why, _),) = unpack_all(spark, [uri(log)], tmp_path / "work", limits).failures
    assert "the maximum for one log" in why


def test_a_session_without_a_jvm_in_reach_reads_what_python_can(tmp_path: Path) -> None:
    # That of Spark Connect needs packages that Headway does not; it lacks the attribute alike.
    session: Any = object()
    log = EventLog(name="log", files=(), in_progress=False, compacted=False)
    unpacker = Unpacker(tmp_path, DEFAULT_LIMITS, Progress((), None), numbers=count(2))
    unpacker.logs, unpacker.pending = {0: log}, {1: log}
    unpack_with_spark(session, unpacker)
    assert (unpacker.logs, unpacker.pending) == ({0: log}, {})
    assert "Spark Connect" in unpacker.failures[0].why
