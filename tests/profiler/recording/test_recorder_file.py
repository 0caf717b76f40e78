from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import headway
from headway.errors import InputError
from headway.formats.text_file import AppendedFile
from headway.profiler.coverage import gaps
from headway.profiler.recording.recorder_file import FileLostError, Json, RotatingFile

NO_ROOM = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def begun(
    path: Path, recording: str = "1", *, application: str = "app-1", **sizes: int
) -> RotatingFile:
    """A file with the beginning of a recording."""
    file = RotatingFile(path, sizes.get("max_bytes", 10_000), sizes.get("max_files", 3))
    file.begin(
        [
            {"Event": "HeadwayRecorderStart", "Recording ID": recording},
            {"Event": "SparkListenerApplicationStart", "App ID": application},
        ],
        [],
        [{"Event": "HeadwayRecorderEnd", "Recording ID": recording}],
    )
    return file


def batches(numbers: Sequence[int]) -> list[Json]:
    progress = {"id": "q", "runId": "r", "numInputRows": 5, "durationMs": {"triggerExecution": 9}}
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    return [{"Event": event, "progress": {**progress, "batchId": number}} for number in numbers]


def test_the_next_file_may_be_read_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "job.headway.jsonl"
    path.touch(mode=0o600)
    file = begun(path, max_bytes=300)
    for number in range(20):
        file.append([{"Event": "B", "number": number}])
    file.close()
    parts = sorted(tmp_path.iterdir())
    assert len(parts) == 3
    assert {stat.S_IMODE(part.stat().st_mode) for part in parts} == {0o600}
    assert all(part.stat().st_size <= 300 for part in parts)


def stopped(path: Path) -> None:
    file = begun(path)
    file.append(batches(range(3)))
    file.finish()
    file.close()


def killed(path: Path) -> None:
    file = begun(path, "2")
    file.append(batches(range(3, 6)))
    file.close()


def stopped_in_small_parts(path: Path) -> None:
    file = begun(path, max_bytes=600, max_files=9)
    for number in range(5):
        file.append(batches([number]))
    assert path.with_name(f"{path.name}.1").exists()
    file.finish()
    file.close()


@pytest.mark.parametrize(
    ("lives", "is_complete"),
    [
        ([stopped], True),
        ([stopped_in_small_parts], True),
        ([stopped, stopped], True),
        ([killed], False),
        ([stopped, killed], False),
        ([killed, stopped], False),
    ],
)
def test_a_recording_that_was_stopped_in_order_does_not_lack_its_end(
    tmp_path: Path, lives: Sequence[Callable[[Path], None]], is_complete: bool
) -> None:
    path = tmp_path / "job.headway.jsonl"
    for live in lives:
        live(path)
    (log,) = headway.survey([tmp_path]).logs
    assert log.coverage is not None
    assert log.coverage.unknown_events == 0
    lacking = [gap for gap in gaps(log.coverage) if "the end of the log is missing" in gap]
    assert bool(lacking) is not is_complete


def test_a_second_recorder_does_not_get_the_file_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "job.headway.jsonl"
    first = begun(path)
    before = path.read_bytes()
    for application in ("app-1", "app-2"):
        with pytest.raises(InputError, match=r"job\.headway\.jsonl: another writer appends to it"):
            begun(path, "2", application=application)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    first.append(batches([0]))
    first.close()
    begun(path, "2").close()


def test_a_recorder_of_another_process_is_heard_of_as_long_as_it_lives(tmp_path: Path) -> None:
    path = tmp_path / "job.headway.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from headway.formats.text_file import AppendedFile\n"
        "file = AppendedFile(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(InputError):
            begun(path)
        process.kill()
        process.wait()
    begun(path).close()


def test_the_next_file_belongs_to_the_same_recorder(tmp_path: Path) -> None:
    path = tmp_path / "job.headway.jsonl"
    file = begun(path, max_bytes=600)
    while not path.with_name(f"{path.name}.1").exists():
        file.append(batches([0]))
    with pytest.raises(InputError):
        begun(path, "2")
    file.close()
    AppendedFile(path.with_name(f"{path.name}.1")).close()


def test_a_full_disk_ends_the_file_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = begun(tmp_path / "job.headway.jsonl")

    def full(_: AppendedFile, __: bytes) -> None:
        raise NO_ROOM

    monkeypatch.setattr(AppendedFile, "append", full)
    with pytest.raises(FileLostError, match=r"written any more \(No space left on device\)"):
        file.append(batches([0]))
    with pytest.raises(FileLostError, match=r"written any more \(No space left on device\)"):
        file.finish()
    file.close()
