"""Pieces of logs come to the same, wherever and in whatever order they are read."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway
from headway.domain import JobProfile
from headway.errors import EventLogError, HeadwayError, InputError, SparkUnavailableError
from headway.formats.profile_file import dump_profile
from headway.profiler import gathered as gathering
from headway.profiler import pieces as cutting
from headway.profiler import schema
from headway.profiler.collect import collect
from headway.profiler.contents import CollectedLogs, contents_of
from headway.profiler.engines import in_process
from headway.profiler.engines.in_process import _Shared, read_in_process
from headway.profiler.engines.on_spark import read_on_spark
from headway.profiler.gathered import Gathered
from headway.profiler.gatherer import Gatherer
from headway.profiler.ids import Ids
from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import unpack
from headway.profiler.pieces import Engine, Order, Result, pieces_of
from headway.profiler.recording.recorder_file import RotatingFile
from headway.profiler.streaming.log_runs import with_runs
from headway.profiler.streaming.summarize import summarize
from tests.profiler.event_log import (
    AppLog,
    Query,
    write_gzip,
    write_plain,
    write_rolling,
    write_zstd,
)
from tests.profiler.test_robustness import (
    corrupted,
    cuts_at_bytes,
    lost_doubled_and_shuffled,
    whole_log,
)
from tests.shared_data import EVENT_LOGS, GROUND_TRUTH, RECORDED, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = "FileStreamSource[file:/data/in]"
QUERY = Query(num_batches=30, noise=0.2)


def several_logs(folder: Path) -> Path:
    """Whole, damaged and packed logs, a recorder's files, a source of files, and a real run."""
    folder.mkdir()
    shutil.copytree(RECORDED, folder / "recorded")
    write_recorder_files(folder / "orders.headway.jsonl")
    write_gzip(AppLog().add(replace(QUERY, source=FILES, file_rows=500)).lines, folder / "files")
    torn = write_gzip(AppLog().add(QUERY).lines, folder / "torn")
    torn.write_bytes(torn.read_bytes()[:-8] + bytes(8))
    lines = AppLog(executors=(4, 2)).add(QUERY).lines
    write_plain(lines, folder / "plain")
    write_rolling(lines, folder / "eventlog_v2_rolling")
    write_zstd(lines, folder / "zstd")
    for damaged in (*cuts_at_bytes(4), *lost_doubled_and_shuffled(1), *corrupted(4)):
        (folder / damaged.how.replace(" ", "-")).write_bytes(damaged.content)
    return folder


def write_recorder_files(path: Path) -> None:
    """What a recorder writes of a query, of some batches the progress alone, in several parts."""
    log = AppLog(executors=(2, 2)).add(QUERY)
    passed_over = {"Event": schema.RECORDER_PASSED_OVER, "num_batches": 2}
    lost = {"Event": schema.RECORDER_LOST, "num_lost": 3}
    recording = {"Recording ID": "1"}
    start = [{"Event": schema.RECORDER_START, **recording}, *log.events[:5]]
    file = RotatingFile(path, max_bytes=60_000, max_files=20)
    file.begin(start, [], [{"Event": schema.RECORDER_END, **recording}])
    events = [event for event in log.events[5:] if "sql.execution" not in event["Event"]]
    for begin in range(0, len(events), 20):
        file.append(events[begin : begin + 20])
    file.append([passed_over, lost])
    file.finish()
    file.close()
    assert len(list(path.parent.glob(f"{path.name}*"))) > 3


def in_processes(number: int) -> Engine:
    return functools.partial(read_in_process, num_processes=number)


def other_way_round(orders: Sequence[Order]) -> Iterator[Result]:
    """Results of one process, in the reverse order."""
    yield from reversed(list(in_processes(1)(orders)))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "PIECE_BYTES", 30_000)
    monkeypatch.setattr("headway.profiler.engines.in_process._WORTH_A_PROCESS_BYTES", 100_000)


def test_every_engine_reads_the_same_whatever_the_pieces_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_event_logs([several_logs(tmp_path / "logs")])
    unpack(found.logs, tmp_path / "work", stay_packed=True)
    whole = collect(pieces_of(tmp_path / "work"), in_processes(1))
    assert len(whole.applications) > 12
    monkeypatch.setattr("headway.profiler.engines.in_process._WORTH_A_PROCESS_BYTES", 100_000)
    for piece_bytes in (1_000, 30_000):
        monkeypatch.setattr(cutting, "PIECE_BYTES", piece_bytes)
        pieces = pieces_of(tmp_path / "work")
        assert len(pieces) > 2 * len(whole.applications)
        if piece_bytes == 30_000:
            assert collect(pieces, in_processes(3)) == whole
            assert collect(pieces, functools.partial(read_on_spark, spark)) == whole
        assert collect(pieces, other_way_round) == whole


@pytest.mark.statistical
@needs(
    EVENT_LOGS,
    stand_in="tests/profiler/test_engines.py::"
    "test_every_engine_reads_the_same_whatever_the_pieces_are",
)
def test_published_logs_are_read_alike_by_every_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_event_logs([EVENT_LOGS, GROUND_TRUTH])
    unpack(found.logs, tmp_path / "packed", stay_packed=True)
    whole = collect(pieces_of(tmp_path / "packed"), in_processes(1))
    assert collect(pieces_of(tmp_path / "packed"), functools.partial(read_on_spark, spark)) == whole
    unpack(found.logs, tmp_path / "plain")
    monkeypatch.setattr(cutting, "PIECE_BYTES", 1_000_000)
    assert collect(pieces_of(tmp_path / "plain"), in_processes(2)) == whole


def test_profiles_of_both_engines_are_the_same_to_the_byte(
    spark: SparkSession, tmp_path: Path, small_pieces: None
) -> None:
    folder = several_logs(tmp_path / "logs")
    in_process, on_spark = headway.survey(folder), headway.survey(folder, session=spark)
    assert in_process.failures == on_spark.failures
    recorder, files, torn = (
        next(log for log in in_process.logs if part in log.name)
        for part in ("orders.headway.jsonl", "files", "torn")
    )
    assert recorder.coverage is not None
    assert recorder.coverage.passed_over_batches == 2
    assert recorder.coverage.lost_events == 3
    assert torn.coverage is not None
    assert torn.coverage.damaged_lines == 1
    for log in (recorder, files, torn):
        assert isinstance(log.profile, JobProfile), log.why_not
    for ours, theirs in zip(in_process.logs, on_spark.logs, strict=True):
        assert (ours.name, ours.counts, ours.why_not) == (
            theirs.name,
            theirs.counts,
            theirs.why_not,
        )
        assert (ours.profile is None) == (theirs.profile is None)
        if ours.profile is not None and theirs.profile is not None:
            assert dump_profile(ours.profile) == dump_profile(theirs.profile)


def test_runs_are_measured_where_their_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.profiler.engines.in_process._WORTH_A_PROCESS_BYTES", 1)
    runs = [
        replace(QUERY, seed=seed, name="orders", rate_per_s=9_000.0 * seed) for seed in range(1, 5)
    ]
    folder = tmp_path / "logs"
    folder.mkdir()
    for run in runs[:-1]:
        write_gzip(AppLog(app_id=f"app-{run.seed}").add(run).lines, folder / f"{run.seed}.gz")
    # Ends of tasks that occur twice are counted when all of them are known.
    doubled = [line for line in AppLog(app_id="app-4").add(runs[-1]).lines for _ in range(2)]
    write_gzip(doubled, folder / "4.gz")
    logs = find_event_logs([folder]).logs
    unpacked = unpack(logs, tmp_path / "work", stay_packed=True).logs
    pieces = pieces_of(tmp_path / "work")
    results: list[Result] = []

    def engine(orders: Sequence[Order]) -> Iterator[Result]:
        for result in in_processes(2)(orders):
            results.append(result)
            yield result

    measured = collect(
        pieces, engine, finish_of=lambda app: functools.partial(with_runs, name=unpacked[app].name)
    )
    of_whole_logs = [result for result in results if result.contents is not None]
    assert len(of_whole_logs) == 3
    assert all(log.contents and log.contents.runs for log in of_whole_logs)
    assert not measured.stage_runs and set(measured.runs) == set(unpacked)
    as_collected = collect(pieces, in_processes(1))
    assert as_collected.stage_runs and not as_collected.runs
    profile, expected = (
        summarize(contents, unpacked, (), "0") for contents in (measured, as_collected)
    )
    assert len(profile.settings) == len(runs)
    assert profile == expected


def test_a_run_without_executors_is_refused_only_if_it_is_chosen(tmp_path: Path) -> None:
    broken, sound = AppLog(app_id="app-1"), AppLog(app_id="app-2")
    broken.events = [
        event for event in broken.events if event["Event"] != "SparkListenerExecutorAdded"
    ]
    paths = [
        write_gzip(log.add(replace(QUERY, name=name, query_id=query_id)).lines, tmp_path / name)
        for log, name, query_id in (
            (broken, "broken", "aaaaaaaa-0d51-4a0e-9d1d-1f2e3d4c5b6a"),
            (sound, "sound", "bbbbbbbb-0d51-4a0e-9d1d-1f2e3d4c5b6a"),
        )
    ]
    assert headway.profile(paths, queries=["sound"]).settings[0].query_name == "sound"
    with pytest.raises(EventLogError, match=r"broken.*executor"):
        headway.profile(paths)


def test_a_stage_without_its_end_has_the_name_of_its_start() -> None:
    rdd = {"RDD ID": 1, "Scope": json.dumps({"id": "1", "name": "HashAggregate"})}
    named = {"Stage Name": "count at /home/jobs/report.py:7", "RDD Info": [rdd]}
    log = AppLog().add(QUERY)
    submitted = [event for event in log.events if event["Event"] == schema.STAGE_SUBMITTED]
    for event in log.events:
        event.get("Stage Info", {}).update(named)
    last_id = submitted[-1]["Stage Info"]["Stage ID"]

    def names(*, with_end: bool) -> tuple[object, ...]:
        gatherer = Gatherer(0, 0)
        for event in log.events:
            is_end = event["Event"] == schema.STAGE_COMPLETED
            if with_end or not is_end or event["Stage Info"]["Stage ID"] != last_id:
                gatherer.gather(json.dumps(event).encode())
        (stage,) = (
            row for row in contents_of(0, gatherer.done()).stage_runs if row["stage_id"] == last_id
        )
        assert (stage["completed_s"] is None) == (not with_end)
        return stage["scopes"], stage["call"]

    assert names(with_end=True) == names(with_end=False)
    assert names(with_end=False) == (("HashAggregate",), "count at report.py:7")


@functools.cache
def _parts() -> list[Gathered]:
    """A log of doubled, lost and shuffled lines, gathered piece by piece."""
    lines = [line for line in whole_log() for _ in range(2)]
    random.Random(7).shuffle(lines)
    parts = []
    for number, start in enumerate(range(0, len(lines), 40)):
        for again in (None, ((20, 40),)):
            gatherer = Gatherer(number % 3, 1000 * number, again)
            gatherer.gather(b"\n".join(lines[start : start + 40]))
            parts.append(gatherer.done())
    return parts


def _sum(parts: Sequence[Gathered]) -> Gathered:
    whole = Gathered()
    for part in parts:
        whole.add(part)
    return whole


def _canonical(gathered: Gathered) -> object:
    """The same without the order of what has none."""
    batches = {run: sorted(rows, key=repr) for run, rows in gathered.batches.items()}
    names = [name for name in gathered.__struct_fields__ if name != "batches"]
    return [getattr(gathered, name) for name in names], batches


@given(order=st.permutations(range(8)), cut=st.integers(0, 8), keep=st.sampled_from([3, 5_000]))
def test_what_is_gathered_adds_up_in_any_order_and_grouping(
    order: list[int], cut: int, keep: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "MOST_BATCHES_PER_RUN", keep)
        straight = _sum(copy.deepcopy(_parts()[:8]))
        parts = copy.deepcopy([_parts()[place] for place in order])
        grouped = _sum([_sum(parts[:cut]), _sum(parts[cut:])])
    assert _canonical(grouped) == _canonical(straight)
    assert straight.stages
    assert straight.tasks_again


@given(st.lists(st.integers(-3, 12)), st.lists(st.integers(-3, 12)))
def test_ids_are_those_that_were_seen_and_seen_again(some: list[int], others: list[int]) -> None:
    both = Ids.of(some).with_others(Ids.of(others))
    assert both == Ids.of([*some, *others])
    seen = [number for first, last in both.seen for number in range(first, last + 1)]
    assert seen == sorted({*some, *others})
    assert both.num_distinct == len(seen)


def test_long_queries_leave_their_old_batches_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    unpack(find_event_logs([log]).logs, tmp_path / "work")
    monkeypatch.setattr(gathering, "MOST_BATCHES_PER_RUN", 10)
    monkeypatch.setattr(cutting, "PIECE_BYTES", 20_000)
    pieces = pieces_of(tmp_path / "work")
    read = collect(pieces, in_processes(1))
    assert [row["batch_id"] for row in read.batches] == list(range(20, 30))
    assert {row["batch_id"] for row in read.stage_runs} == set(range(20, 30))
    assert collect(pieces, other_way_round) == read


def test_a_bomb_is_stopped_while_it_is_read(tmp_path: Path) -> None:
    bomb = write_zstd([f'{{"Event":"{"0" * 3_000_000}"}}'] * 30, tmp_path / "bomb")
    good = write_plain(AppLog().add(QUERY).lines, tmp_path / "good")
    logs = find_event_logs([bomb, good]).logs
    unpack(logs, tmp_path / "work", stay_packed=True)
    limits = UnpackLimits(ratio_from_bytes=1_000_000)
    read = collect(pieces_of(tmp_path / "work"), read_in_process, limits)
    assert list(read.applications) == [1]
    assert "over 500 times as much" in read.failures[0]
    # The parts of a log count together.
    parts = write_rolling(AppLog().add(QUERY).lines, tmp_path / "eventlog_v2_parts")
    unpack(find_event_logs([parts]).logs, tmp_path / "again", stay_packed=True)
    size = sum(len(line) + 1 for line in AppLog().add(QUERY).lines)
    for max_bytes, is_too_much in ((size, False), (size - 1, True)):
        limits = UnpackLimits(max_bytes=max_bytes)
        read = collect(pieces_of(tmp_path / "again"), read_in_process, limits)
        assert bool(read.failures) == is_too_much


def test_a_file_that_is_gone_while_it_is_read_spares_the_others(
    tmp_path: Path, small_pieces: None
) -> None:
    lines = AppLog().add(QUERY).lines
    logs = [write_plain(lines, tmp_path / name) for name in ("gone", "good")]
    unpack(find_event_logs(logs).logs, tmp_path / "work")
    pieces = pieces_of(tmp_path / "work")
    logs[0].unlink()
    read = collect(pieces, in_processes(2))
    assert list(read.applications) == [1]
    assert read.failures[0].startswith("No such file or directory; ")
    assert len(read.batches) == QUERY.num_batches


@pytest.mark.parametrize("line_bytes", [300, 1_200_000])
def test_lines_are_whole_however_long_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line_bytes: int
) -> None:
    ends = [
        f'{{"Event":"SparkListenerJobStart","Job ID":{job},"x":"{"y" * line_bytes}"}}'
        for job in range(12)
    ]
    (tmp_path / "log").write_text("\r\n".join(ends))
    unpack(find_event_logs([tmp_path / "log"]).logs, tmp_path / "work")
    for piece_bytes in (101, 4096, 2**24):
        if line_bytes / piece_bytes < 1000:
            monkeypatch.setattr(cutting, "PIECE_BYTES", piece_bytes)
            read = collect(pieces_of(tmp_path / "work"), in_processes(1))
            (facts,) = read.applications.values()
            assert facts.num_lines("SparkListenerJobStart") == 12
            assert facts.ids_of("SparkListenerJobStart") == Ids(seen=((0, 11),))
            assert facts.num_damaged == 0


def test_a_line_that_never_ends_is_damage_and_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "_LONGEST_LINE_BYTES", 3 * 2**20)
    sound = '{"Event":"SparkListenerJobStart","Job ID":1}\n'
    with (tmp_path / "log").open("w") as written:
        written.write(sound)
        written.write('{"Event":"SparkListenerJobStart","Job ID":2,"x":"')
        for _ in range(20):
            written.write("y" * 2**20)
        written.write('"}\n' + sound.replace("1", "3"))
    unpack(find_event_logs([tmp_path / "log"]).logs, tmp_path / "work")
    read = collect(pieces_of(tmp_path / "work"), in_processes(1))
    (facts,) = read.applications.values()
    assert facts.num_lines("SparkListenerJobStart") == 2
    assert facts.num_damaged == 1


def test_tables_of_both_engines_are_the_same(
    spark: SparkSession, tmp_path: Path, small_pieces: None
) -> None:
    folder = several_logs(tmp_path / "logs")
    here = headway.survey(folder, tables=tmp_path / "here").tables
    there = headway.survey(folder, tables=tmp_path / "there", session=spark).tables
    for paths in zip(here, there, strict=True):
        ours, theirs = (spark.read.parquet(str(path)).collect() for path in paths)
        assert len(ours) > 0
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_logs_are_profiled_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_rolling(AppLog().add(QUERY).lines, tmp_path / "eventlog_v2_app-1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert dump_profile(headway.profile(log))
    assert headway.backtest(log).runs
    assert headway.survey(log, tables=tmp_path / "tables").tables
    with pytest.raises(EventLogError, match=r"only Spark can fetch it"):
        headway.profile("hdfs://host/log", engine="in-process")
    with pytest.raises(InputError, match=r"leave it out"):
        headway.profile(log, engine="in-process", master="spark://host:7077")
    with pytest.raises(InputError, match=r"engine is 'flink'; expected one of auto"):
        headway.profile(log, engine="flink")


def test_spark_is_asked_for_where_there_is_much_but_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    steps: list[str] = []

    def reported(text: str, done: float | None = None) -> None:
        steps.append(text)

    def no_java(**_: object) -> None:
        raise SparkUnavailableError("no Java")

    monkeypatch.setattr("headway.profiler.spark.session.embedded_session", no_java)
    headway.profile(log, progress=reported)
    assert "starting Spark" not in steps
    monkeypatch.setattr("headway.profiler.reading.IN_PROCESS_BYTES", 1000)
    headway.profile(log, progress=reported)
    assert "starting Spark" in steps
    with pytest.raises(SparkUnavailableError):
        headway.profile(log, engine="spark")


def test_reading_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.profiler.reading._TELL_EVERY_S", 0.0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    reported: list[tuple[str, float | None]] = []
    headway.profile(log, progress=lambda text, done: reported.append((text, done)))
    ((text, done),) = (step for step in reported if step[0].startswith("reading ") and step[1])
    assert done == pytest.approx(1.0)
    assert "events/s, 0 s left" in text
    assert list(tmp_path.glob("headway-logs-*")) == []


# This process stops in the middle of its first piece, the other one goes on.
_INTERRUPTED = """
import signal, subprocess, sys, time
from headway.cli.main import run
from headway.profiler import pieces
from headway.profiler.engines import in_process

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)

def forever(order, on_progress):
    print("reading", flush=True)
    time.sleep(600)

# A shell may have started the tests with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
subprocess.Popen = Popen
in_process.carried_out = forever
in_process._WORTH_A_PROCESS_BYTES = 100_000
in_process.os.sched_getaffinity = lambda _process: {0, 1}
pieces.PIECE_BYTES = 30_000
sys.exit(run(["profile", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_ends_all_processes_and_leaves_nothing(
    tmp_path: Path, number: int, code: int
) -> None:
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        other = int(process.stdout.readline())
        assert process.stdout.readline() == "reading\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.strip() == ("headway: interrupted" if number == signal.SIGINT else "")
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


def orders_for_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """Pieces of which another process reads some."""
    monkeypatch.setattr("headway.profiler.engines.in_process._WORTH_A_PROCESS_BYTES", 100_000)
    monkeypatch.setattr(cutting, "PIECE_BYTES", 30_000)
    log = write_plain(AppLog().add(QUERY).lines, tmp_path / "log")
    folder = tmp_path / "pieces"
    folder.mkdir()
    unpack(find_event_logs([log]).logs, folder, limits=UnpackLimits())
    return [Order(piece, UnpackLimits()) for piece in pieces_of(folder)]


def test_a_file_of_the_working_folder_is_not_taken_for_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = orders_for_two(tmp_path, monkeypatch)
    planted = tmp_path / "downloads"
    planted.mkdir()
    for name in ("msgspec", "zstandard", "numpy", "pickle", "struct"):
        (planted / f"{name}.py").write_text(
            f"open({str(planted / 'executed')!r}, 'a')\nraise SystemExit"
        )
    monkeypatch.chdir(planted)
    # As in an interactive session, where it is the working folder.
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    results = [*in_processes(2)(orders)]
    assert not (planted / "executed").exists()
    assert results == [cutting.carried_out(order, lambda *_: None) for order in orders]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("os.kill(os.getpid(), 9)", r"was ended by signal 9 \(Killed\)"),
        ("os._exit(7)", "ended with exit code 7"),
        ("sys.stdout.buffer.write(bytes(9)); sys.stdout.flush(); time.sleep(99)", "answers with"),
    ],
)
def test_how_another_process_ended_is_said_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, words: str
) -> None:
    orders = orders_for_two(tmp_path, monkeypatch)
    command = [sys.executable, "-c", f"import os, sys, time; {ends}"]
    monkeypatch.setattr(in_process, "python_command", lambda *_: command)
    monkeypatch.setattr(in_process, "_ENDS_WITHIN_S", 0.5)
    # It must have time to answer while this process reads.
    monkeypatch.setattr(_Shared, "take", taken_by_others_first(_Shared.take))
    with pytest.raises(
        HeadwayError, match=f"^one of the processes that read logs {words}"
    ) as raised:
        list(in_processes(2)(orders))
    assert "memory" not in str(raised.value)


def taken_by_others_first(
    take: Callable[..., int | None],
) -> Callable[..., int | None]:
    """This process leaves all pieces to the others."""

    def taken(shared: _Shared, *, patiently: bool = False) -> int | None:
        return take(shared, patiently=True) if patiently else None

    return taken


def test_an_error_in_another_process_is_raised_as_in_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No file has such a place, which is a fault of the program, not of a log.
    orders = [
        order._replace(piece=order.piece._replace(start_bytes=order.piece.start_bytes + 0.5))  # type: ignore[arg-type]
        for order in orders_for_two(tmp_path, monkeypatch)
    ]
    monkeypatch.setattr(_Shared, "take", taken_by_others_first(_Shared.take))
    with pytest.raises(TypeError, match="float") as alone:
        cutting.carried_out(orders[0], lambda *_: None)
    with pytest.raises(TypeError) as beside:
        list(in_processes(2)(orders))
    assert str(beside.value) == str(alone.value)


def test_python_workers_of_spark_do_not_import_from_the_working_folder(spark: SparkSession) -> None:
    def of_the_worker(_: int) -> tuple[bool, bool]:
        import sys

        return sys.flags.safe_path, "" in sys.path

    assert spark.sparkContext.parallelize([1], 1).map(of_the_worker).collect() == [(True, False)]


def test_nothing_to_read_is_no_application(tmp_path: Path) -> None:
    assert collect([], read_in_process) == CollectedLogs(applications={}, batches=[], stage_runs=[])
    shutil.rmtree(tmp_path)
