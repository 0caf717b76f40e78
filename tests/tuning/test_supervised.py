"""An application of its own is started, asked to stop, and started anew, or said why not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.api.supervised import remember_start
from headway.api.tune_spec import supervise_spec
from headway.domain.live import ChangeKind
from headway.errors import ActuatorError, HeadwayError, InputError, QueryEndedError
from headway.formats.profile_file import save_profile
from headway.formats.setting_file import (
    GivenSetting,
    answer_file,
    load_answer,
    load_setting,
    save_setting,
)
from headway.profiler.recording.live import LogFeed
from headway.runtime.tuning import supervised
from headway.runtime.tuning.clean_stop import NoGapError
from headway.runtime.tuning.supervised import SupervisedQuery
from tests.tuning.test_on_spark import a_small_profile, setting_of, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
# What headway.stop_when_asked does, without Spark.
APPLICATION = """
import os, sys, time
from pathlib import Path
from headway.formats.setting_file import alive_file, load_setting, save_answer
path = Path(os.environ["HEADWAY_SETTING"])
first = load_setting(path)
with open(sys.argv[1], "a") as log:
    log.write(f"{first.configuration.trigger_s}\\n")
while True:
    alive_file(path).touch()
    asked = load_setting(path)
    if asked.number != first.number:
        why = "no gap" if len(sys.argv) > 2 else None
        save_answer(path, number=asked.number, why=why)
        if why is None:
            alive_file(path).unlink()
            break
        first = asked
    time.sleep(0.05)
"""
# The same, with batches that leave no gap until a file says that they do.
WITHOUT_GAP = """
import os, sys, time
from pathlib import Path
from headway.formats.setting_file import alive_file, load_setting, save_answer
path, gap, mode = Path(os.environ["HEADWAY_SETTING"]), Path(sys.argv[1]), sys.argv[2]
number = int(os.environ["HEADWAY_SETTING_NUMBER"])
began = time.monotonic()
while True:
    asked = load_setting(path)
    is_asked = asked.number != number
    if mode == "hangs" and is_asked:
        time.sleep(600)
    alive_file(path).touch()
    if mode == "fails" and is_asked:
        sys.exit(3)
    if is_asked and asked.is_withdrawn:
        save_answer(path, number=asked.number, why="withdrawn", no_gap=True)
        number = asked.number
    elif is_asked and mode == "refuses":
        save_answer(path, number=asked.number, why="no gap", no_gap=True)
        number = asked.number
    elif is_asked and gap.exists():
        save_answer(path, number=asked.number, why=None)
        break
    time.sleep(0.05)
"""
ON_SPARK = """
import sys
from pathlib import Path
import headway
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from tests.tuning.test_on_spark import build_into
with embedded_session(app_name="supervised", master="local[2]", driver_memory="1g",
                      extra_conf=local_checkpoint_conf()) as spark:
    query = build_into(Path(sys.argv[1]), "rows")(spark, headway.setting(spark))
    headway.stop_when_asked(query)
"""


def a_query(tmp_path: Path, code: str, *more: str) -> SupervisedQuery:
    script = tmp_path / "application.py"
    script.write_text(code)
    return SupervisedQuery(
        command=[sys.executable, str(script), *more],
        path=tmp_path / "orders.setting",
        recording=tmp_path / "orders.headway.jsonl",
    )


def more_of(seen: list[Any], feed: LogFeed) -> list[Any]:
    seen += feed.new_batches()
    return seen


@pytest.fixture(autouse=True)
def of_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_it_is_started_anew_at_each_setting(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    query = a_query(tmp_path, APPLICATION, str(log))
    query.start(setting_of())
    wait_for(lambda: (tmp_path / "orders.alive").exists())
    assert query.is_active and query.ended_with() is None
    query.apply(ChangeKind.RESTART, setting_of(), setting_of(trigger_s=2.0))
    wait_for(lambda: log.read_text() == "1.0\n2.0\n")
    assert query.stop(2.0) is False
    assert query.ended_with() == "the application ended with exit code 0"
    with pytest.raises(ActuatorError, match="can only restart the application"):
        query.apply(ChangeKind.ADD, setting_of(), setting_of())
    assert "command" in query.why_no_live_executors()


def test_one_that_cannot_stop_runs_on(tmp_path: Path) -> None:
    query = a_query(tmp_path, APPLICATION, str(tmp_path / "starts"), "deaf")
    query.start(setting_of())
    wait_for(lambda: (tmp_path / "orders.alive").exists())
    with pytest.raises(ActuatorError, match="no gap"):
        query.apply(ChangeKind.RESTART, setting_of(), setting_of(trigger_s=2.0))
    assert query.is_active
    query.stop_at_once()
    assert query.ended_with() is not None


def test_one_whose_supervisor_was_killed_ends_before_another_starts(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    left = a_query(tmp_path, APPLICATION, str(log))
    left.start(setting_of())
    wait_for(lambda: (tmp_path / "orders.alive").exists())
    fresh = a_query(tmp_path, APPLICATION, str(log))
    fresh.start(setting_of(trigger_s=2.0))
    assert left.process is not None and left.process.wait(10) == 0
    wait_for(lambda: log.read_text() == "1.0\n2.0\n")
    assert fresh.is_active
    fresh.stop(2.0)


def a_waiting_query(tmp_path: Path, mode: str) -> SupervisedQuery:
    query = a_query(tmp_path, WITHOUT_GAP, str(tmp_path / "gap"), mode)
    query.start(setting_of())
    wait_for(lambda: (tmp_path / "orders.alive").exists())
    return query


def test_it_is_watched_while_it_waits_for_its_gap_for_longer_than_it_may_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "ANSWERED_WITHIN_S", SimpleNamespace(value=-1.0))
    query, looks = a_waiting_query(tmp_path, "waits"), 0
    began_s = time.monotonic()

    def look() -> bool:
        nonlocal looks
        looks += 1
        if time.monotonic() - began_s > 3.0:
            (tmp_path / "gap").touch()
        return False

    query.meanwhile = look
    pause_s = query.apply(ChangeKind.RESTART, setting_of(), setting_of(trigger_s=2.0))
    waited_s = time.monotonic() - began_s
    assert query.is_active and query.configuration == setting_of(trigger_s=2.0)
    query.stop_at_once()
    # A second of silence ends it; three seconds of waiting with signs of life do not, nor count.
    assert looks >= 5
    assert waited_s > 3.0
    assert pause_s < waited_s - 2.5


def test_a_request_that_is_taken_back_leaves_it_as_it_was(tmp_path: Path) -> None:
    query = a_waiting_query(tmp_path, "waits")
    process = query.process
    query.meanwhile = lambda: True
    began_s = time.monotonic()
    with pytest.raises(NoGapError, match="withdrawn"):
        query.apply(ChangeKind.RESTART, setting_of(), setting_of(trigger_s=2.0))
    assert time.monotonic() - began_s < 4.0
    assert query.process is process and query.is_active
    # It can be asked again.
    query.meanwhile = lambda: False
    (tmp_path / "gap").touch()
    assert query.stop(1.0) is False
    assert query.ended_with() == "the application ended with exit code 0"


def test_one_without_a_gap_may_be_asked_again(tmp_path: Path) -> None:
    query = a_waiting_query(tmp_path, "refuses")
    with pytest.raises(NoGapError, match="no gap"):
        query.stop(1.0)
    assert query.is_active
    query.stop_at_once()


def test_one_that_fails_while_it_waits_is_not_started_anew(tmp_path: Path) -> None:
    query = a_waiting_query(tmp_path, "fails")
    with pytest.raises(QueryEndedError, match="exit code 3 when it was asked to stop"):
        query.apply(ChangeKind.RESTART, setting_of(), setting_of(trigger_s=2.0))
    assert not query.is_active


def test_one_that_hangs_is_ended_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "ANSWERED_WITHIN_S", SimpleNamespace(value=0.0))
    query = a_waiting_query(tmp_path, "hangs")
    said: list[str] = []
    query.say = lambda event, _why: said.append(event)
    assert query.stop(1.0) is True
    assert said == ["cut"]
    assert not query.is_active


class NeverIdle:
    """A query without a gap, that ends when its application has answered."""

    status = {"isTriggerActive": True}  # noqa: RUF012

    def __init__(self, answer: Path) -> None:
        self._answer = answer
        self._jsq = SimpleNamespace(lastProgress=lambda: None)

    @property
    def isActive(self) -> bool:  # noqa: N802
        return not self._answer.exists()

    def exception(self) -> None:
        return None


def later_than_the_first(given: GivenSetting) -> Any:
    """Reads a setting: at the first call, when it is still whole, without its file."""
    reads = iter([given])
    return lambda path: next(reads, None) or load_setting(path)


def test_what_is_asked_while_a_session_starts_is_heard_and_what_is_taken_back_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.setting"
    given = GivenSetting(number=2, configuration=setting_of(), recording="none", is_withdrawn=True)
    save_setting(given, path)
    monkeypatch.setenv("HEADWAY_SETTING", str(path))
    monkeypatch.setenv("HEADWAY_SETTING_NUMBER", "1")
    query: Any = NeverIdle(answer_file(path))
    began_s = time.monotonic()
    headway.stop_when_asked(query)
    assert time.monotonic() - began_s < 5.0
    answer = load_answer(path, 2)
    assert answer is not None
    why, no_gap = answer
    assert no_gap
    assert "withdrawn" in str(why)


def test_a_supervisor_whose_files_cannot_be_used_ends_no_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "orders.setting"
    given = GivenSetting(number=2, configuration=setting_of(), recording="none", is_withdrawn=True)
    save_setting(given, path)
    text = path.read_text()
    monkeypatch.setenv("HEADWAY_SETTING", str(path))
    monkeypatch.setenv("HEADWAY_SETTING_NUMBER", "1")
    looks = 0

    def pass_time(_: float) -> None:
        """After the first look, the file is damaged for two looks."""
        nonlocal looks
        looks += 1
        path.write_text(text if looks > 2 else "{")

    path.write_text("{")
    monkeypatch.setattr("headway.api.supervised.time.sleep", pass_time)
    monkeypatch.setattr("headway.api.supervised.load_setting", later_than_the_first(given))
    query: Any = NeverIdle(answer_file(path))
    headway.stop_when_asked(query)
    assert looks > 2
    assert load_answer(path, 2) is not None
    assert [record.message.count("cannot be heard") for record in caplog.records] == [1]


def test_an_answer_that_cannot_be_written_ends_no_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "orders.setting"
    save_setting(GivenSetting(number=2, configuration=setting_of(), recording="none"), path)
    monkeypatch.setenv("HEADWAY_SETTING", str(path))
    monkeypatch.setenv("HEADWAY_SETTING_NUMBER", "1")
    tries: list[str | None] = []

    def full(_path: Path, *, number: int, why: str | None, no_gap: bool) -> None:
        tries.append(why)
        raise HeadwayError("orders.answer: the answer cannot be written: No space left on device")

    def stops(_query: object, _trigger_s: float, **_: object) -> float:
        if not tries:
            raise NoGapError("it had no gap")
        return 0.0

    monkeypatch.setattr("headway.api.supervised.save_answer", full)
    monkeypatch.setattr("headway.api.supervised.stop_between_batches", stops)
    query: Any = SimpleNamespace(isActive=True, exception=lambda: None)

    def ask_again(_: float) -> None:
        save_setting(GivenSetting(number=3, configuration=setting_of(), recording="none"), path)

    monkeypatch.setattr("headway.api.supervised.time.sleep", ask_again)
    headway.stop_when_asked(query)
    # It ran on after the first request, and stopped in order at the second.
    assert tries == ["it had no gap", None]
    assert [record.message.count("cannot be answered") for record in caplog.records] == [1, 1]


def a_spec(tmp_path: Path, bounds: str = "") -> Path:
    save_profile(a_small_profile(), tmp_path / "orders.profile.yaml")
    spec = tmp_path / "orders.yaml"
    spec.write_text(
        "apiVersion: headway/v1\nkind: Tuning\nmetadata:\n  name: orders\nspec:\n"
        f"  profile: orders.profile.yaml\n  target: p99 <= 3s\n{bounds}"
    )
    return spec


@pytest.mark.parametrize(
    ("sent", "exit_code"),
    [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 0)],
    ids=["terminate", "Ctrl-C"],
)
def test_a_signal_asks_the_application_to_stop_and_leaves_none_behind(
    tmp_path: Path, sent: signal.Signals, exit_code: int
) -> None:
    script = tmp_path / "application.py"
    script.write_text(APPLICATION)
    log = tmp_path / "starts"
    tuner = subprocess.Popen(
        [
            sys.executable, "-m", "headway", "tune", str(a_spec(tmp_path)), "--supervise", "--",
            sys.executable, str(script), str(log),
        ],
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        wait_for(lambda: log.exists() and list(tmp_path.glob("*.alive")) != [], within_s=60.0)
        tuner.send_signal(sent)
        _, stderr = tuner.communicate(timeout=20)
        assert tuner.returncode == exit_code
        assert "stopping the query between two batches, which may take a minute; Ctrl-C" in stderr
        # It has removed its sign of life: asked to stop, not ended by a signal.
        assert list(tmp_path.glob("*.alive")) == []
    finally:
        if tuner.poll() is None:
            tuner.kill()


def test_a_command_that_is_none_is_said(tmp_path: Path) -> None:
    query = SupervisedQuery(
        command=["no-such-command"], path=tmp_path / "x.setting", recording=tmp_path / "x"
    )
    with pytest.raises(HeadwayError, match="no-such-command: cannot be run"):
        query.start(setting_of())


def test_bounds_of_executors_are_refused_where_nothing_changes_them(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, "  executors: {min: 2, max: 8}\n")
    with pytest.raises(InputError, match="executors: cannot be changed, since the command"):
        supervise_spec(spec, [sys.executable, "-c", "pass"])
    assert not (tmp_path / "tuner.json").exists()


def test_the_number_of_a_start_is_that_of_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, clicks = tmp_path / "orders.setting", tmp_path / "clicks.setting"
    monkeypatch.setenv("HEADWAY_SETTING", str(orders))
    monkeypatch.setenv("HEADWAY_SETTING_NUMBER", "1")
    # Asked again while its session starts: 2 is not answered yet.
    remember_start(orders, 2)
    assert os.environ["HEADWAY_SETTING_NUMBER"] == "1"
    remember_start(clicks, 7)
    assert os.environ["HEADWAY_SETTING"] == str(clicks)
    assert os.environ["HEADWAY_SETTING_NUMBER"] == "7"


def test_without_a_supervisor_there_is_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.delenv("HEADWAY_SETTING", raising=False)
    with pytest.raises(InputError, match=r"neither spark\.headway\.setting nor HEADWAY_SETTING"):
        headway.setting(spark)
    monkeypatch.setenv("HEADWAY_SETTING", str(tmp_path / "none"))
    with pytest.raises(InputError, match="no setting"):
        headway.setting(spark)
    with pytest.raises(InputError, match="no setting"):
        load_setting(tmp_path / "none")


@pytest.mark.jvm
def test_a_real_application_records_itself_and_stops_between_two_batches(tmp_path: Path) -> None:
    query = a_query(tmp_path, ON_SPARK, str(tmp_path))
    feed = LogFeed(query.recording, is_supervised=True)
    assert list(feed.new_batches()) == []
    seen: list[Any] = []
    query.start(setting_of())
    try:
        wait_for(lambda: len(more_of(seen, feed)) >= 3, within_s=120.0)
        assert query.is_active
        assert query.stop(1.0) is False
    finally:
        if query.process is not None and query.is_active:
            os.killpg(query.process.pid, signal.SIGKILL)
    assert query.ended_with() == "the application ended with exit code 0"
    offsets = {one.name for one in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*")}
    commits = {one.name for one in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")}
    assert offsets == commits
