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
from headway.profiler.spark.session import embedded_session
from tests.seeds import first_of

# Of the first nothing is kept, so nothing is put in order: its JVM and what it wrote must go all
# the same. The second leaves a log, and ends by an error.
_TWO_SESSIONS = """
import os
import threading
import time
from pathlib import Path
from headway.profiler.spark.session import embedded_session

for name, kept in (("first", {}), ("second", {"event_log_dir": Path("log")})):
    try:
        with embedded_session(
            app_name=name, master="local[1]", driver_memory="512m", **kept
        ) as spark:
            from pyspark import SparkContext

            print(SparkContext._gateway.proc.pid)
            assert spark.range(3).selectExpr("count(DISTINCT id) AS number").head().number == 3
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            if kept:
                raise KeyError(name)
    except KeyError:
        pass
    deadline = time.monotonic() + 30
    while any("serve_forever" in thread.name for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
assert "SPARK_LOCAL_IP" not in os.environ
assert "PYSPARK_GATEWAY_PORT" not in os.environ
print(sorted(entry.name for entry in Path.cwd().iterdir()))
"""

# The first signal comes while a call into the JVM is being waited for: the case in which the
# connection is left with an answer that nobody takes.
_SIGNALLED = """
import signal
import sys
from headway.profiler.spark.session import embedded_session

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


@pytest.mark.statistical
@pytest.mark.jvm
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
    assert result.returncode == 0
    *pids, files = result.stdout.splitlines()
    assert len(pids) == 2
    assert not any(_is_running(int(pid)) for pid in pids)
    assert files == "['log']"
    assert list(scratch.iterdir()) == []
    (log,) = (working / "log").iterdir()
    assert log.name.startswith("eventlog_v2_")
    assert not list((working / "log").rglob("*.inprogress"))


@pytest.mark.jvm
def test_what_spark_says_when_it_does_not_start_is_one_line(tmp_path: Path) -> None:
    statement = (
        "from headway.errors import SparkUnavailableError\n"
        "from headway.profiler.spark.session import embedded_session\n"
        "try:\n"
        "    with embedded_session(app_name='x', driver_memory='1z'): pass\n"
        "except SparkUnavailableError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", statement],
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.stderr == ""
    assert result.stdout.startswith("Spark did not start: ")
    assert "Could not create the Java Virtual Machine" in result.stdout
    assert result.stdout.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jvm
@pytest.mark.parametrize("number", first_of([signal.SIGTERM, signal.SIGINT], 1))
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
