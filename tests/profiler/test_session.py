"""The embedded Spark in processes of their own: silent, tidy, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headway
from headway.errors import SparkUnavailableError
from headway.profiler.session import embedded_session, require_java

_TWO_SESSIONS = """
import os
from pathlib import Path
from headway.profiler.session import embedded_session

for name in ("first", "second"):
    try:
        with embedded_session(
            app_name=name, master="local[1]", event_log_dir=Path("log"), driver_memory="512m"
        ) as spark:
            assert spark.range(3).selectExpr("sum(id) AS total").head().total == 3
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            raise KeyError(name)
    except KeyError:
        pass
assert "SPARK_LOCAL_IP" not in os.environ
print(sorted(entry.name for entry in Path.cwd().iterdir()))
"""

# The first signal comes while a call into the JVM is being waited for: the case in which the
# connection is left with an answer that nobody takes.
_SIGNALLED = """
import signal
import sys
from headway.profiler.session import embedded_session

# A shell may have started the tests with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with embedded_session(app_name="signalled", master="local[1]", driver_memory="512m") as spark:
    from pyspark import SparkContext

    print(SparkContext._gateway.proc.pid, flush=True)
    spark.sparkContext._jvm.java.lang.Thread.sleep(120_000)
"""


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _environment(scratch: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"} | {
        "TMPDIR": str(scratch),
        "PYTHONPATH": str(Path(headway.__file__).parents[1]),
    }


def test_sessions_follow_each_other_silently_and_leave_nothing(tmp_path: Path) -> None:
    scratch, working = tmp_path / "scratch", tmp_path / "working"
    scratch.mkdir()
    working.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", _TWO_SESSIONS],
        cwd=working,
        env=_environment(scratch),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.stderr == ""
    assert result.stdout == "['log']\n"
    assert result.returncode == 0
    assert list(scratch.iterdir()) == []
    logs = sorted(entry.name for entry in (working / "log").iterdir())
    assert len(logs) == 2
    assert all(name.startswith("eventlog_v2_") for name in logs)
    assert not list((working / "log").rglob("*.inprogress"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_jvm(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SIGNALLED],
        env=_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            assert _is_running(pid)
            time.sleep(0.5)
            # To the whole group, as a terminal sends Ctrl-C.
            os.killpg(process.pid, number)
            process.wait(timeout=60)
        finally:
            process.kill()
    assert not _is_running(pid)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGTERM, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_second_session_is_refused(spark: SparkSession) -> None:
    with (
        pytest.raises(SparkUnavailableError, match="a Spark session is open"),
        embedded_session(app_name="second"),
    ):
        pass
    assert spark.range(1).count() == 1


def _fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {folder}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    java.chmod(0o755)
    return java


def test_java_home_is_asked_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home, on_path = tmp_path / "home", tmp_path / "path"
    _fake_java(at_home, "21")
    _fake_java(on_path, "17")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", str(at_home))
    assert require_java() == at_home
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert require_java() == on_path


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, "1.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(SparkUnavailableError, match="Java 17 or later, found Java 8 in"):
        require_java()


def test_no_java_is_one_line_of_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as failure:
        require_java()
    message = str(failure.value)
    assert "\n" not in message
    for way in ("apt-get install", "brew install", "JAVA_HOME"):
        assert way in message
