"""Whatever goes wrong is one line on stderr and an exit code that tells whose fault it is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import run
from headway.formats.profile_file import dump_profile, load_profile
from tests.factories import a_profile
from tests.profiler.event_log import AppLog, Query, write_plain


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line that must fail in one line; the line."""

    def check(arguments: Sequence[str], exit_code: int) -> str:
        assert run(arguments) == exit_code
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("headway: ")
        assert err.endswith("\n")
        line = err.removesuffix("\n")
        assert line.isprintable(), line
        assert "Traceback" not in line
        assert "internal error" not in line
        return line

    return check


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rate", "abc"], "'abc' is not a rate"),
        (["--rate", "0"], "positive"),
        (["--rate", "-5"], "is not a rate"),
        (["--rate", "nan"], "is not a rate"),
        (["--rate", "1e999"], "positive"),
        (["--rate", ""], "is not a rate"),
        (["--target", "p99 < banana"], "'banana' is not a duration"),
        (["--target", "p0 <= 1s"], "p0 is no percentile"),
        (["--target", "p100 <= 1s"], "p100 is no percentile"),
        (["--target", "p99 <= 0s"], "above zero"),
        (["--target", "p99 <= 3"], "a number and a unit"),
        (["--target", "fast"], "is not a target"),
        (["--target", ""], "is not a target"),
        (["--trigger", "2"], "a number and a unit"),
        (["--trigger", "-2s"], "is not a duration"),
        (["--confidence", "2"], "not in the range"),
        (["--confidence", "high"], "not a confidence level"),
        (["--max-nodes", "0"], "not in the range"),
        (["--cores", "two"], "not a valid integer"),
        (["--partitions", "99999999999999999999999"], "not in the range"),
        (["--node-cores", "1", "--cores", "4"], "a node of 1 core has no room for an executor"),
        (["--target", "deadline <= 3s"], "a streaming job has no end to meet"),
        (["--node-type", "m6i.xlage"], "did you mean 'm6i.xlarge'?"),
        (["--node-type", "mine"], "not in Headway's catalogue"),
        (["--node-type", "mine:cores=0"], "expected at least 1"),
        (["--node-type", "mine:cores=4,price=0"], "more than 0 per hour"),
        (["--node-type", "mine:cores=4", "--node-cores", "4"], "contradicts"),
        (["--node-type", "mine:cores=4", "--node-type", "mine:cores=8"], "given twice"),
        (["--node-type", "mine:cores=4", "--objective", "cost"], "needs the price of mine"),
        (["--node-type", "mine:cores=2,price=1", "--budget", "0.5"], "more than the budget"),
        (["--node-type", "mine", "--catalog", "no/such.yaml"], "no/such.yaml"),
        (["--budget", "0"], "not in the range"),
        (["--budget", "-1"], "not in the range"),
        (["--objective", "cost"], "needs the price"),
        (["--objective", "beauty"], "is not one of"),
        (["--checkpoint", "old"], "is not one of"),
        (["--checkpoint", "existing", "--partitions", "3"], "contradicts --checkpoint existing"),
        (["--target", "window p99 <= 9s"], "has no windows"),
        (["--target", "catch_up <= 5m after 10m"], "needs a latency target beside it"),
        (["--source-partitions", "0"], "not in the range"),
        (["--format", "toml"], "'toml' is not one of"),
        (["--bogus"], "No such option"),
        (["surplus"], "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_make_no_sense(
    fails: Any, profile_file: str, options: list[str], complaint: str
) -> None:
    given = {"--rate": "5k/s", "--target": "p99 <= 3s"}
    defaults = [text for pair in given.items() if pair[0] not in options for text in pair]
    line = fails(["plan", profile_file, *defaults, *options], 2)
    assert complaint in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["--bogus"],
        ["plan"],
        ["predict"],
        ["profile"],
        ["predict", "PROFILE", "--rate"],
        ["plan", "PROFILE", "--rate", "900M/s"],
        ["plan", "PROFILE", "--target", ""],
        ["predict", "PROFILE", "--executors", "0"],
        ["predict", "PROFILE", "--max-offsets", "0.5"],
        ["predict", "PROFILE", "--jvm-age", "old"],
        ["profile", "no/such/log", "-o", "no/such/folder/file.yaml"],
        ["profile", "no/such/log", "--json"],
        ["profile", "no/such/log", "--conf", "spark.app.name"],
        ["backtest", "no/such/log", "--conf", "password=hunter2"],
        ["profile", "no/such/log", "--check", "--query", "orders"],
        ["profile", "no/such/log", "--advise", "--check"],
        ["profile", "no/such/log", "--advise", "-o", "job.profile.yaml"],
    ],
    ids=" ".join,
)
def test_usage_that_makes_no_sense(fails: Any, profile_file: str, arguments: list[str]) -> None:
    fails([profile_file if word == "PROFILE" else word for word in arguments], 2)


def test_a_hint_leads_to_the_help_of_the_command(fails: Any, profile_file: str) -> None:
    assert "try 'headway plan --help'" in fails(["plan", profile_file, "--quiet", "--verbose"], 2)
    assert "try 'headway --help'" in fails(["paln"], 2)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such file"),
        (b"", "empty"),
        (b"once upon a time", "expected a job profile"),
        (b"\x00\xff\xfe\x01", ""),
        (b"- 1\n- 2\n", "expected a job profile"),
        (b"name: x\n", "schema: missing"),
        (b"schema: headway.profile/v99\n", "headway.profile/v99"),
        (b"schema: headway.profile/v1\n", "missing"),
        (b"schema: [\n", ""),
        (b'{"Event":"SparkListenerLogStart"}\n', "record the application from its start"),
        (b"a: &a [*a]\n", ""),
    ],
)
@pytest.mark.parametrize(
    "command", [["predict"], ["plan", "--rate", "5k/s", "--target", "p99<=3s"]]
)
def test_files_that_are_no_profile(
    fails: Any, tmp_path: Path, command: list[str], content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "some file"
    if content is not None:
        path.write_bytes(content)
    line = fails([*command, str(path)], 2)
    assert line.startswith(f"headway: {path}")
    assert complaint in line


def test_a_folder_is_no_profile(fails: Any, tmp_path: Path) -> None:
    assert str(tmp_path) in fails(["predict", str(tmp_path)], 2)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such file or folder"),
        (b"", "the file is empty"),
        (b"once upon a time", "not a Spark event log"),
        (bytes(range(256)), "not a Spark event log"),
        (b"\x28\xb5\x2f\xfdxx", "zstd"),
    ],
)
def test_files_that_are_no_event_log(
    fails: Any, tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "some log"
    if content is not None:
        path.write_bytes(content)
    line = fails(["profile", str(path)], 2)
    assert line.startswith(f"headway: {path}: ")
    assert complaint in line


@pytest.mark.usefixtures("shared_session")
def test_logs_without_anything_to_profile(fails: Any, tmp_path: Path) -> None:
    one_batch = write_plain(AppLog().add(Query(num_batches=1)).lines, tmp_path / "one")
    assert "0 of 1 batches usable" in fails(["profile", str(one_batch)], 2)
    batch_job = write_plain(
        AppLog().add(Query(num_batches=9)).drop("QueryProgressEvent").lines, tmp_path / "batch"
    )
    assert "no streaming query" in fails(["profile", str(batch_job), "--query", "orders"], 2)
    no_events = write_plain(['{"a": 1}'], tmp_path / "none")
    assert "no Spark event in it" in fails(["profile", str(no_events)], 2)
    named = write_plain(AppLog().add(Query(num_batches=9)).lines, tmp_path / "named")
    line = fails(["profile", str(named), "--query", "no\nsuch\x1b[31m"], 2)
    assert "it holds orders (3f1c7e0a)" in line


@pytest.mark.usefixtures("shared_session")
def test_a_log_becomes_a_profile_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = write_plain(AppLog().add(Query()).lines, tmp_path / "log")
    output = tmp_path / "job.profile.yaml"
    assert run(["profile", str(log), "-o", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{output}\n"
    assert "1 run, " in err
    assert load_profile(output).settings[0].query_name == "orders"


@pytest.fixture
def made_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile command takes no time."""
    monkeypatch.setattr(
        "headway.cli.profile.profile_and_tables", lambda *_, **__: (a_profile(), ())
    )


@pytest.mark.usefixtures("made_profile")
def test_without_a_file_the_profile_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "log"]) == 0
    out, err = capsys.readouterr()
    assert out == dump_profile(a_profile())
    assert err == ""


@pytest.mark.usefixtures("made_profile")
def test_a_full_disk_leaves_the_old_file(
    fails: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "job.profile.yaml"
    output.write_text("old")

    def full(handle: int, data: bytes) -> None:
        os.write(handle, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headway.formats.text_file._put", full)
    line = fails(["profile", "log", "-o", str(output)], 1)
    assert line.startswith(f"headway: {output}: ")
    assert "No space left on device" in line
    assert output.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@pytest.mark.usefixtures("made_profile")
def test_a_device_that_is_full_is_named(fails: Any) -> None:
    assert "/dev/full: " in fails(["profile", "log", "-o", "/dev/full"], 1)


@pytest.mark.usefixtures("made_profile")
def test_a_folder_that_may_not_be_written_is_reported_first(
    fails: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "job.profile.yaml"
    output.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "no permission to write to" in fails(["profile", "log", "-o", str(output)], 2)
    assert output.read_text() == "old"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, PermissionError])
def test_what_nobody_foresaw_is_one_line_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind("two\nlines")

    monkeypatch.setattr("headway.cli.profile.profile_and_tables", fail)
    code = run(["profile", "log"])
    assert code == (130 if kind is KeyboardInterrupt else 1)
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(lines) == 1
    assert lines[0].startswith("headway: ")


@pytest.mark.jvm
def test_ctrl_c_while_profiling_leaves_no_jvm(tmp_path: Path) -> None:
    log = write_plain(AppLog().add(Query()).lines, tmp_path / "log")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from headway.cli.main import main; main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "profile", str(log), "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        jvm = _wait_for_java_of(process.pid)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == ""
    assert [line for line in err.splitlines() if line] == ["headway: interrupted"]
    assert not Path(f"/proc/{jvm}").exists()


def _wait_for_java_of(parent: int) -> int:
    """Process id of the JVM, once the launcher has become it."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        for task in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = (task / "stat").read_text().rpartition(")")
                if status[0].endswith("(java") and int(status[2].split()[1]) == parent:
                    return int(task.name)
        time.sleep(0.1)
    raise AssertionError("no JVM was started")
