"""An application of its own is started, asked to stop, and started anew, or said why not."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.api.supervise import supervise_spec
from headway.domain.live import ChangeKind
from headway.errors import ActuatorError, HeadwayError, InputError
from headway.formats.profile_file import save_profile
from headway.formats.setting_file import load_setting
from headway.profiler.recording.live import LaterLogFeed
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


def more_of(seen: list[Any], feed: LaterLogFeed) -> list[Any]:
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
    with pytest.raises(ActuatorError, match="only starts applications anew"):
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


def test_a_command_that_is_none_is_said(tmp_path: Path) -> None:
    query = SupervisedQuery(
        command=["no-such-command"], path=tmp_path / "x.setting", recording=tmp_path / "x"
    )
    with pytest.raises(HeadwayError, match="no-such-command: cannot be run"):
        query.start(setting_of())


def test_bounds_of_executors_are_refused_where_nothing_changes_them(tmp_path: Path) -> None:
    save_profile(a_small_profile(), tmp_path / "orders.profile.yaml")
    spec = tmp_path / "orders.yaml"
    spec.write_text(
        "apiVersion: headway/v1\nkind: Tuning\nmetadata:\n  name: orders\nspec:\n"
        "  profile: orders.profile.yaml\n  target: p99 <= 3s\n  executors: {min: 2, max: 8}\n"
    )
    with pytest.raises(InputError, match="executors: nothing changes them under --supervise"):
        supervise_spec(spec, [sys.executable, "-c", "pass"])
    assert not (tmp_path / "tuner.json").exists()


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
    feed = LaterLogFeed(query.recording)
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
