"""Which logs there are: what was found, in which order, and what was wrong with the rest."""

from __future__ import annotations

import os
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.profiler.logs.event_logs import HadoopFile, LogFile, ZipMember
from headway.profiler.logs.sources import EventLog, FoundLogs, find_event_logs
from tests.profiler.event_log import write_gzip, write_plain, write_rolling, write_zstd
from tests.shared_data import EVENT_LOGS, needs

LINES = [f'{{"Event":"SparkListenerTaskEnd","Stage ID":{number}}}' for number in range(200)]


def found(*sources: str | Path) -> tuple[EventLog, ...]:
    logs, failures = find_event_logs(sources)
    assert failures == ()
    return logs


def file_names(log: EventLog) -> list[str]:
    return [base_name(file) for file in log.files]


def base_name(file: LogFile) -> str:
    assert isinstance(file, Path | ZipMember)
    return file.name if isinstance(file, Path) else file.member


def only_failure(result: FoundLogs) -> tuple[str, str]:
    (failure,) = result.failures
    for text in failure[:2]:
        assert text.isprintable()
        assert len(text) < 600
    return failure.name, failure.why


def test_a_folder_holds_files_and_rolling_folders_at_any_depth(tmp_path: Path) -> None:
    write_plain(LINES, tmp_path / "b-plain")
    write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (tmp_path / "2026" / "01").mkdir(parents=True)
    write_zstd(LINES, tmp_path / "2026" / "01" / "app-7.zstd")
    for passed_over in (".b-plain.crc", "_SUCCESS", "b-plain.crc", "truth.jsonl"):
        (tmp_path / passed_over).write_bytes(b"\0")
    (tmp_path / ".hidden").mkdir()
    write_plain(LINES, tmp_path / ".hidden" / "log")
    logs = found(tmp_path, tmp_path / "b-plain")
    assert [log.name for log in logs] == [
        str(tmp_path / "2026" / "01" / "app-7.zstd"),
        str(tmp_path / "b-plain"),
        str(tmp_path / "eventlog_v2_a"),
    ]
    assert [name.split("_")[1] for name in file_names(logs[2])] == ["1", "2", "10"]
    assert not any(log.in_progress or log.compacted for log in logs)


def test_parts_that_were_compacted_are_read_once(tmp_path: Path) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a", numbers=(1, 2, 3))
    write_zstd(LINES[:10], folder / "events_2_eventlog_v2_a.zstd.compact")
    (log,) = found(folder)
    assert file_names(log) == [
        "events_2_eventlog_v2_a.zstd.compact",
        "events_3_eventlog_v2_a.zstd",
    ]
    assert log.compacted


@pytest.mark.parametrize(
    ("numbers", "compact", "missing"),
    [((1, 2, 3), None, 0), ((1, 3, 6), None, 3), ((3, 4), None, 2), ((3, 5), 3, 1), ((4,), 4, 0)],
)
def test_parts_that_are_not_there_are_counted(
    tmp_path: Path, numbers: tuple[int, ...], compact: int | None, missing: int
) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a", numbers=numbers)
    if compact is not None:
        part = folder / f"events_{compact}_eventlog_v2_a.zstd"
        part.rename(f"{part}.compact")
    (log,) = found(folder)
    assert log.num_missing_parts == missing


def test_parts_named_one_by_one_or_by_a_pattern_are_one_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    (whole,) = found(folder)
    assert found(*sorted(folder.glob("events_*"), reverse=True)) == (whole,)
    assert found(str(folder / "*")) == (whole,)
    assert found(f"{tmp_path}/**/events_[0-9]*") == (whole,)
    assert found(f"{tmp_path}/**") == (whole,)
    monkeypatch.chdir(folder)
    (log,) = found("events_10_eventlog_v2_a.zstd", folder / "events_1_eventlog_v2_a.zstd")
    assert [name.split("_")[1] for name in file_names(log)] == ["1", "10"]


def test_parts_of_two_applications_in_one_folder_are_two_logs(tmp_path: Path) -> None:
    for name in ("events_1_a", "events_2_a", "events_1_b.zstd", "events_2_b.zstd"):
        write_plain(LINES, tmp_path / name)
    first, second = found(tmp_path)
    assert (file_names(first), first.name) == (
        ["events_1_a", "events_2_a"],
        f"{tmp_path}/events_*_a",
    )
    assert file_names(second) == ["events_1_b.zstd", "events_2_b.zstd"]


def test_the_status_file_tells_whether_a_rolling_log_is_still_written(tmp_path: Path) -> None:
    folder = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    status = folder / "appstatus_eventlog_v2_a"
    status.rename(f"{status}.inprogress")
    for source in (folder, folder / "events_1_eventlog_v2_a.zstd", f"{folder}/ev*", f"{folder}/*"):
        (log,) = found(source)
        assert log.in_progress
    status.touch()
    (log,) = found(folder)
    assert not log.in_progress


def test_a_finished_log_wins_over_what_was_left_of_its_writing(tmp_path: Path) -> None:
    growing = write_plain(LINES[:5], tmp_path / "app-1.inprogress")
    (log,) = found(growing)
    assert log == EventLog(name=str(growing), files=(growing,), in_progress=True, compacted=False)
    finished = write_plain(LINES, tmp_path / "app-1")
    for source in (tmp_path, growing, f"{tmp_path}/app*"):
        (log,) = found(source)
        assert (log.files, log.in_progress) == ((finished,), False)


def test_a_log_that_was_finished_since_it_was_named_is_found(tmp_path: Path) -> None:
    finished = write_plain(LINES, tmp_path / "app-1.zstd")
    (log,) = found(tmp_path / "app-1.zstd.inprogress")
    assert log.files == (finished,)


def test_a_databricks_folder_is_one_log_the_current_file_last(tmp_path: Path) -> None:
    for name in ("eventlog", "eventlog-2021-06-15--16-00.gz", "eventlog-2021-06-15--15-00.gz"):
        write_gzip(LINES, tmp_path / name)
    (log,) = found(tmp_path)
    assert file_names(log) == [
        "eventlog-2021-06-15--15-00.gz",
        "eventlog-2021-06-15--16-00.gz",
        "eventlog",
    ]
    assert log.name == str(tmp_path)


def test_a_recorder_and_its_rotations_are_one_log_the_oldest_first(tmp_path: Path) -> None:
    names = ["orders.headway.jsonl", *(f"orders.headway.jsonl.{number}" for number in range(1, 12))]
    for name in [*names, "payments.headway.jsonl", "truth.jsonl"]:
        write_plain(LINES, tmp_path / name)
    orders, payments = found(tmp_path)
    assert file_names(orders) == names[::-1]
    assert orders.name == str(tmp_path / "orders.headway.jsonl")
    assert file_names(payments) == ["payments.headway.jsonl"]
    assert found(tmp_path / "orders.headway.jsonl") == (orders,)


def test_others_files_of_json_lines_are_read_when_they_are_named(tmp_path: Path) -> None:
    path = write_plain(LINES, tmp_path / "events.jsonl")
    (log,) = found(path)
    assert log.files == (path,)


def test_the_same_log_named_twice_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_plain(LINES, tmp_path / "log")
    (tmp_path / "link").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    expected = EventLog(name=str(path), files=(path,), in_progress=False, compacted=False)
    assert found(path, str(path), "log", "./link", tmp_path) == (expected,)


def test_links_to_folders_are_followed_and_circles_end(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    log = write_plain(LINES, tmp_path / "elsewhere" / "log")
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "logs")
    (only,) = found(tmp_path / "logs")
    assert only.files == (tmp_path / "logs" / "link" / log.name,)


def test_a_zip_holds_one_log_or_several(tmp_path: Path) -> None:
    rolling = write_rolling(LINES, tmp_path / "eventlog_v2_a")
    archive = tmp_path / "download.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.mkdir("eventlog_v2_a")
        for file in sorted(rolling.iterdir()):
            opened.write(file, f"eventlog_v2_a/{file.name}")
    (log,) = found(archive)
    assert log.name == str(archive)
    assert [name.split("_")[3] for name in file_names(log)] == ["1", "2", "10"]
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("app-2.inprogress", LINES[0])
    rolling_log, single = found(archive)
    assert rolling_log.name == f"{archive}/eventlog_v2_a"
    assert (single.name, single.in_progress) == (f"{archive}/app-2.inprogress", True)


@pytest.mark.parametrize("member", ["/etc/log", "../log", "a/../../log"])
def test_a_zip_that_leads_out_of_itself_is_refused(tmp_path: Path, member: str) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as opened:
        opened.writestr(member, LINES[0])
    name, why = only_failure(find_event_logs([tmp_path / "bad.zip"]))
    assert name == str(tmp_path / "bad.zip")
    assert "leads out of it" in why


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as opened:
        link = zipfile.ZipInfo("log")
        link.external_attr = 0o120777 << 16
        opened.writestr(link, "/etc/passwd")
    assert "leads out of it" in only_failure(find_event_logs([tmp_path / "bad.zip"]))[1]


def test_a_zip_that_was_cut_off_or_holds_no_log_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "bad.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("_SUCCESS", "")
        opened.writestr("appstatus_a", "")
    assert only_failure(find_event_logs([archive]))[1] == "the zip holds no event log"
    archive.write_bytes(archive.read_bytes()[:-10])
    assert "not a whole zip" in only_failure(find_event_logs([archive]))[1]


def test_an_address_for_hadoop_is_one_log_until_spark_runs() -> None:
    (log,) = found("s3a://KEY:secret@bucket/logs", "s3a://KEY:secret@bucket/logs")
    assert log.name == "s3a://bucket/logs"
    assert log.files == (HadoopFile("s3a://KEY:secret@bucket/logs"),)
    assert "secret" not in repr(log)


def test_what_stands_for_no_log_is_a_failure_and_spares_the_others(tmp_path: Path) -> None:
    log = write_plain(LINES, tmp_path / "log")
    (tmp_path / "empty" / "eventlog_v2_a").mkdir(parents=True)
    (tmp_path / "empty" / "eventlog_v2_a" / "appstatus_a").touch()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    expected = {
        str(tmp_path / "nowhere"): "no such file",
        str(tmp_path / "*.nothing"): "no such file",
        str(tmp_path / "empty"): "no event log there",
        str(tmp_path / "empty" / "eventlog_v2_a" / "appstatus_a"): "no event log there",
        "''": "the name is empty",
        str(log / "inside"): "Not a directory",
    }
    sources = ["" if name == "''" else name for name in expected]
    logs, failures = find_event_logs([*sources, log])
    assert [found.files for found in logs] == [(log,)]
    assert [name for name, _, _ in failures] == list(expected)
    for name, why, _ in failures:
        assert expected[name] in why
    name, why = only_failure(find_event_logs([tmp_path]))
    assert (name, why.partition(";")[0]) == (str(tmp_path / "gone"), "No such file or directory")


def test_names_are_never_printed_raw_nor_at_full_length(tmp_path: Path) -> None:
    hostile = tmp_path / "two\nlines\x1b[31m\u202e\udcff"
    write_plain(LINES, hostile)
    (log,) = found(hostile)
    assert log.files == (hostile,)
    assert log.name.isprintable()
    assert log.name.startswith(rf"{tmp_path}/two\nlines\x1b[31m\u202e")
    only_failure(find_event_logs([f"{hostile}.gone"]))
    assert only_failure(find_event_logs(["x" * 100_000]))[1].startswith("File name too long")
    assert "null" in only_failure(find_event_logs(["log\0"]))[1]
    assert only_failure(find_event_logs(["hdfs://host/\udcff"]))[0] == r"hdfs://host/\udcff"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        logs, failures = find_event_logs([tmp_path, "/dev/zero"])
    assert logs == ()
    assert [why.partition(";")[0] for _, why, _ in failures] == [
        "it is a pipe",
        "it is a socket",
        "it is a device",
    ]


def test_a_folder_of_other_things_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (tmp_path / f"part-{number}.py").write_text("import os\n", encoding="utf-8")
    (tmp_path / "README").write_text("nothing\n", encoding="utf-8")
    name, why = only_failure(find_event_logs([tmp_path]))
    assert name == str(tmp_path)
    assert why.startswith(
        "none of the 10 files there looks like an event log: there are 9 .py, 1 without an ending; "
        "expected a log that Spark wrote"
    )
    monkeypatch.setattr("headway.profiler.logs.sources._FIRST_FILES", 9)
    assert "none of the first 9 files there" in only_failure(find_event_logs([tmp_path]))[1]


@pytest.mark.parametrize(("num_others", "is_refused"), [(100, False), (101, True)])
def test_a_folder_of_logs_may_hold_some_other_files(
    tmp_path: Path, num_others: int, is_refused: bool
) -> None:
    write_rolling(LINES, tmp_path / "eventlog_v2_a")
    for number in range(num_others):
        (tmp_path / f"note-{number}.txt").touch()
    logs, failures = find_event_logs([tmp_path])
    assert (logs == ()) is is_refused
    assert [why.partition(":")[0] for _, why, _ in failures] == (
        ["4 of the 105 files there look like an event log"] if is_refused else []
    )


def test_folders_that_lie_too_deep_are_named(tmp_path: Path) -> None:
    log = write_plain(LINES, tmp_path / "log")
    deep = tmp_path.joinpath(*"abcdefghijklm")
    deep.mkdir(parents=True)
    write_plain(LINES, deep / "log")
    logs, failures = find_event_logs([tmp_path])
    assert [found.files for found in logs] == [(log,)]
    assert [(name, why[:10]) for name, why, _ in failures] == [(str(deep), "more than ")]


@contextmanager
def nobody_special() -> Iterator[None]:
    """Root may read everything: be somebody else for a while."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_what_may_not_be_read_is_a_failure() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "folder").mkdir(0o000)
        write_plain(LINES, folder / "log").chmod(0o000)
        with nobody_special():
            logs, failures = find_event_logs([folder])
    assert logs == ()
    assert [Path(name).name for name, _, _ in failures] == ["folder", "log"]
    assert {why.partition(";")[0] for _, why, _ in failures} == {"Permission denied"}


@needs(
    EVENT_LOGS,
    stand_in="tests/profiler/logs/test_sources.py::"
    "test_a_databricks_folder_is_one_log_the_current_file_last",
)
def test_published_layouts_are_distinguished() -> None:
    folder = next(EVENT_LOGS.rglob("db_sim_eventlog"))
    (log,) = found(folder)
    assert file_names(log) == ["eventlog-2021-06-15--15-00.gz", "eventlog"]
    logs = found(folder.parent)
    assert folder in [Path(log.name) for log in logs]
    (rolling,) = (log for log in logs if "eventlog_v2" in log.name)
    assert [name[:8] for name in file_names(rolling)] == ["events_1", "events_2"]
