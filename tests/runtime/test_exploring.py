"""Active profiling: settings are run, recorded, held against what was asked, and gone on with."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.api import explore as door
from headway.domain import Interval, ObservedSetting, QuerySetting, StreamAnswer
from headway.domain.later import with_changes
from headway.errors import HeadwayError, InputError
from headway.formats.exploration_file import ExplorationState, load_state, save_state
from headway.formats.profile_file import dump_profile
from headway.report.advice import lesson_text
from headway.runtime import exploring
from headway.runtime.exploring import require_followed, run_setting, session_slots
from headway.runtime.word_count import word_count
from headway.units import format_rate
from tests.factories import a_configuration, a_plan, a_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUESTION = "p99 <= 3s at 4k/s"


class Killed(BaseException):
    """What a signal does to a process, as far as code can tell."""


def build(spark: SparkSession, setting: QuerySetting) -> StreamingQuery:
    assert setting.rate_per_s is not None
    assert setting.checkpoint is not None
    counts = word_count(
        spark, rate_per_s=setting.rate_per_s, num_source_partitions=2, hash_rounds=1
    )
    return (
        counts.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", setting.checkpoint)
        .trigger(**setting.trigger)
        .start()
    )


@pytest.mark.statistical
def test_an_exploration_that_was_killed_goes_on_and_leaves_a_profile(
    spark: SparkSession, tmp_path: Path
) -> None:
    asked: list[QuerySetting] = []

    def killed_at_the_third(session: SparkSession, setting: QuerySetting) -> StreamingQuery:
        asked.append(setting)
        if len(asked) == 4:  # the warm-up is the first
            raise Killed
        return build(session, setting)

    how: dict[str, Any] = {"budget": "50s", "run": "7s", "folder": tmp_path / "found"}
    with pytest.raises(Killed):
        headway.explore(spark, killed_at_the_third, QUESTION, **how)
    state = json.loads((tmp_path / "found" / "exploration.json").read_text())
    assert len(state["runs"]) == 2
    assert len(state["queue"]) == 2
    # What was killed is run again, and what was run is not.
    found = headway.explore(spark, build, QUESTION, **how)
    assert found.num_runs >= 4
    assert found.spent_s >= 4 * 7.0
    assert [run["recording"] for run in state["runs"]] == ["run-001.jsonl", "run-002.jsonl"]
    assert len(found.profile.settings) == found.num_runs
    assert {one.configuration.trigger_s for one in found.profile.settings} >= {0.0, 1.0}
    # Files keep six digits.
    written = headway.load_profile(found.folder / "profile.yaml")
    assert dump_profile(written) == dump_profile(found.profile)
    assert found.plan.rate_per_s == 4000.0
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    again = headway.explore(spark, build, QUESTION, **{**how, "budget": "8s"})
    assert again.num_runs >= found.num_runs


def test_a_query_that_fails_is_named(spark: SparkSession, tmp_path: Path) -> None:
    def other(session: SparkSession, _setting: QuerySetting) -> str:
        return str(session)

    setting = QuerySetting(configuration=session_slots(spark), checkpoint=str(tmp_path / "ck"))
    with pytest.raises(InputError, match="returned str; expected the streaming query"):
        run_setting(spark, other, setting, run_s=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ran", "message"),
    [
        ({"configuration": a_configuration(shuffle_partitions=4)}, "8 shuffle partitions"),
        ({"rows_per_batch_high": 9000.0}, "at most 5,000 rows per batch, it ran with 9,000"),
        ({"configuration": a_configuration(trigger_s=0.0)}, "a trigger of 1.00 s"),
    ],
)
def test_a_function_that_ignores_its_setting_is_an_error(ran: dict[str, Any], message: str) -> None:
    setting = QuerySetting(configuration=a_configuration(max_offsets_per_trigger=5000))
    seen: ObservedSetting = replace(a_profile().settings[0], **ran)
    with pytest.raises(InputError, match=message):
        require_followed(setting, seen)


def test_a_setting_that_was_kept_is_no_error() -> None:
    setting = QuerySetting(configuration=a_configuration(max_offsets_per_trigger=5000))
    require_followed(setting, a_profile().settings[0])
    # A query that cannot keep its trigger runs back to back: nobody ignored anything.
    overran = replace(
        a_profile().settings[0],
        configuration=a_configuration(trigger_s=0.0),
        batch_duration_mean_s=1.2,
    )
    require_followed(setting, overran)


class FakeSession:
    """As much of a session as is asked before anything runs."""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"question": "p99 <= 3s"}, "expected a target and a rate"),
        ({"question": "at 50k/s"}, "expected a target and a rate"),
        ({"budget": "5s"}, "too short for one run"),
        ({"budget": "nonsense"}, "nonsense"),
        ({"build": 3}, r"expected a function build\(spark, setting\)"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    how = {"question": QUESTION, "build": build, "folder": tmp_path / "found", **given}
    with pytest.raises(HeadwayError, match=message):
        headway.explore(FakeSession(), **how)  # type: ignore[arg-type]
    assert not (tmp_path / "found").exists()


def test_a_session_of_connect_is_refused() -> None:
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(InputError, match="Spark Connect hides what tasks cost"):
        session_slots(kind())


def test_a_state_of_another_question_or_none_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "exploration.json"
    asked = ExplorationState(rate_per_s=4000.0, target="p99 <= 3.00 s")
    assert load_state(path, asked) == asked
    save_state(asked, path)
    assert load_state(path, asked) == asked
    with pytest.raises(InputError, match="the state of another question"):
        load_state(path, replace(asked, rate_per_s=5000.0))
    for text in ("{}", "[1]", "no json", '{"schema": "headway.exploration/v1"}'):
        path.write_text(text)
        with pytest.raises(InputError, match="expected the state of an exploration"):
            load_state(path, asked)


def test_the_jvm_is_warmed_up_before_the_first_run_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_recorded = [False]
    runs: list[tuple[bool, float]] = []

    @contextmanager
    def recorded(_spark: object, path: Path, **_: Any) -> Iterator[None]:
        path.write_text("")
        is_recorded[0] = True
        yield
        is_recorded[0] = False

    def run_at(*_: Any, run_s: float, enough_batches: float = math.inf) -> str:
        assert run_s == 7.0
        runs.append((is_recorded[0], enough_batches))
        return "id"

    stand_ins = {
        "session_slots": lambda _spark: a_configuration(executors=1, cores_per_executor=2),
        "record": recorded,
        "run_setting": run_at,
        "require_followed": lambda _setting, _observed: None,
        "profile": lambda *_, **__: a_profile(),
        "measured_p99_s": lambda _path, _query_id: 1.2,
        "width_ratio": lambda _plan: 0.05,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(door, name, stand_in)
    lessons: list[str] = []
    explored = headway.explore(
        FakeSession(),  # type: ignore[arg-type]
        build,
        "p99 <= 9s at 4k/s",
        budget="1m",
        run="7s",
        folder=tmp_path / "found",
        lesson=lessons.append,
    )
    assert runs == [(False, 60), *[(True, math.inf)] * 4]
    assert explored.num_runs == 4
    assert [text.partition(" (")[0] for text in lessons] == ["run 1", "run 2", "run 3", "run 4"]
    assert "p99 1.20 s measured, not predicted before; p99 at 4k/s " in lessons[0]
    assert " predicted before; p99 at 4k/s " in lessons[1]
    assert ", was " in lessons[1]


def test_a_run_ends_when_it_has_had_enough_batches() -> None:
    class FakeQuery:
        isActive = True  # noqa: N815  # as Spark spells it
        lastProgress = {"numInputRows": 5}  # noqa: N815, RUF012

        @property
        def recentProgress(self) -> list[dict[str, int]]:  # noqa: N802
            return [{"numInputRows": 5}] * 3 + [{"numInputRows": 0}] * 9

    began_s = time.monotonic()
    exploring._wait(FakeQuery(), 60.0, 3)  # type: ignore[arg-type]
    assert time.monotonic() - began_s < 10.0


def test_a_run_says_what_it_showed() -> None:
    def answer(low_s: float, high_s: float) -> StreamAnswer:
        plan = a_plan()
        latency = plan.prediction.tuple_latency
        assert latency is not None
        interval = replace(latency, interval90_p99_s=Interval(low=low_s, high=high_s))
        return with_changes(plan, prediction=replace(plan.prediction, tuple_latency=interval))

    wide, narrow = answer(1.2, 5.0), answer(1.53, 3.41)
    rate = format_rate(wide.rate_per_s)
    assert lesson_text(measured_p99_s=1.2, predicted_p99_s=1.34, before=wide, after=narrow) == (
        f"p99 1.20 s measured, 1.34 s predicted before; p99 at {rate} 1.53 s to 3.41 s, was "
        "1.20 s to 5.00 s (90% interval)"
    )
    first = lesson_text(measured_p99_s=None, predicted_p99_s=None, before=None, after=None)
    assert first == "p99 unknown, not predicted before; no answer yet"


def test_a_block_holds_each_setting_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    from random import Random

    exploration = door._Exploring(
        spark=None,  # type: ignore[arg-type]
        build=build,
        slots=a_configuration(executors=1, cores_per_executor=2),
        folder=tmp_path,
        run_s=7.0,
        random=Random(1),
        tell=lambda _text: None,
        lesson=lambda _text: None,
    )
    settings = exploration.next_block(ExplorationState(rate_per_s=4000.0, target="p99 <= 3s"))
    assert len(settings) == 4
    assert set(map(repr, settings[:2])) == set(map(repr, settings[2:]))
