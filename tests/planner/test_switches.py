"""Switches that a plan may turn: which it turns, what it says of them, and where they are set."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

import headway
from headway.cli.main import run
from headway.domain import EmptyBatches, FindingCode, JobProfile, Metric
from headway.domain.switches import Switch
from headway.domain.writes import FilesLimit
from headway.emitters import ALL_FORMATS
from headway.errors import InputError
from headway.formats.from_json import parse_plan
from headway.models.job.switches import turned
from headway.models.job.turned import TurnedJob
from headway.planner.switches import variants, why_not, with_switches_of
from headway.sparkconf.switches import switch_setting
from headway.units import parse_duration_s
from headway.words import words_of
from tests.factories import a_profile
from tests.models.job.test_switches import with_state

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
COMMITS: dict[str, Any] = {
    "rocksdbCommitFlushLatency": 40.0,
    "rocksdbCommitCheckpointLatency": 24.0,
    "rocksdbCommitFileSyncLatencyMs": 320.0,
}


def planned(profile: JobProfile, **options: Any) -> Any:
    question: dict[str, Any] = {"rate": 5000.0, "target": "p99 <= 2s", "cores": 2, "max_nodes": 8}
    return headway.plan(profile, **(question | options))


def to_kafka() -> JobProfile:
    """A job without state, from Kafka to Kafka, whose logs take 58 ms a batch."""
    shape = replace(a_profile().shape, sink="KafkaTable", stateful_operators=())
    return a_profile(shape=shape)


def on_rocksdb() -> JobProfile:
    profile = with_state(**COMMITS)
    properties = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    application = replace(profile.applications[-1], properties=properties)
    return replace(profile, applications=(application,), state_store="RocksDBStateStoreProvider")


def findings_of(plan: Any, code: FindingCode) -> list[str]:
    return [words_of(finding) for finding in plan.findings if finding.code is code]


def limit_that_needs(profile: JobProfile, switch: Switch, **fixed: Any) -> str:
    """A target between what one node is planned at without a switch and with it."""
    lax = {**fixed, "target": "p99 <= 30s"}
    ((_, with_switch),) = variants(profile, [switch], None, Metric.TUPLE)
    without_s, with_s = (planned(job, **lax).planned_latency_s for job in (profile, with_switch))
    assert with_s < 0.95 * without_s
    return f"p99 <= {500 * (without_s + with_s):.0f}ms"


ON_ONE_NODE: dict[str, Any] = {"trigger": "0s", "partitions": 8, "max_nodes": 1}


def test_a_switch_is_turned_where_it_is_needed_and_not_otherwise() -> None:
    profile = to_kafka()
    tight = ON_ONE_NODE | {
        "target": limit_that_needs(profile, Switch.ASYNC_PROGRESS, **ON_ONE_NODE)
    }
    assert not planned(profile, **tight).feasible
    turned = planned(profile, **tight, allow="async-progress")
    assert turned.feasible
    assert turned.query_options["asyncProgressTrackingEnabled"] == "true"
    assert "asyncProgressTrackingEnabled" not in turned.spark_conf
    (change,) = [one for one in turned.changes if one.setting == "asynchronous progress tracking"]
    assert (change.before, change.after, change.applies) == ("Spark's default", "true", "restart")
    (text,) = findings_of(turned, FindingCode.SWITCHES_TURNED)
    assert "asynchronous progress tracking" in text
    easy = planned(profile, target="p99 <= 30s", allow=["async-progress"])
    assert easy.nodes == planned(profile, target="p99 <= 30s").nodes == 1
    assert "asyncProgressTrackingEnabled" not in easy.query_options
    (text,) = findings_of(easy, FindingCode.SWITCH_NOT_TURNED)
    assert text.startswith("async-progress is allowed, but not part of the plan: it is expected")
    assert "58 ms" in text


def test_a_plan_counts_on_the_least_gain() -> None:
    """Of 58 ms in the logs, e^-0.082 are saved: noise of 5% between runs, at 90%."""
    ((_, profile),) = variants(to_kafka(), [Switch.ASYNC_PROGRESS], None, Metric.TUPLE)
    left_s = sum(
        phase.mean_s
        for phase in profile.driver_phases
        if phase.name in ("wal_commit", "commit_offsets")
    )
    assert left_s == pytest.approx(0.058 * (1 - 0.92104), abs=1e-5)
    assert profile.application.properties["asyncProgressTrackingEnabled"] == "true"


def test_the_switch_that_saves_most_is_tried_first() -> None:
    profile = on_rocksdb()
    unloading = {"spark.sql.streaming.stateStore.unloadOnCommit": "true"}
    application = profile.applications[-1]
    application = replace(application, properties={**application.properties, **unloading})
    (operator,) = profile.state.operators  # type: ignore[union-attr]
    metrics = {**operator.store_metrics, "rocksdbLoadLatencyMs": 8 * 1.0}
    state = replace(
        profile.state,
        operators=(replace(operator, store_metrics=metrics),),  # type: ignore[type-var]
    )
    profile = replace(profile, applications=(application,), state=state)
    allowed = [Switch.KEEP_LOADED, Switch.CHANGELOG, Switch.ASYNC_PROGRESS]
    tried = [switches for switches, _ in variants(profile, allowed, None, Metric.TUPLE)]
    assert tried == [("changelog",), ("changelog", "keep-loaded")]


def test_each_allowed_switch_is_turned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[Switch] = []

    def counted(profile: JobProfile, switch: Switch) -> TurnedJob | str:
        turns.append(switch)
        return turned(profile, switch)

    monkeypatch.setattr("headway.planner.switches.turned", counted)
    ((switches, _),) = variants(to_kafka(), [Switch.ASYNC_PROGRESS], None, Metric.TUPLE)
    assert switches == tuple(turns) == (Switch.ASYNC_PROGRESS,)


@pytest.mark.parametrize(
    ("profile", "switch", "reason"),
    [
        (a_profile(), "async-progress", "queries with state"),
        (a_profile(), "changelog", "does not show state in RocksDB"),
        (a_profile(), "file-manager", "shows no settings of the query"),
        (on_rocksdb(), "file-manager", "not known to be on a mounted disk"),
        (a_profile(), "no-checksums", "does not show that checksums are on"),
        (a_profile(), "keep-loaded", "does not show that state is unloaded"),
        (a_profile(), "rocksdb", "the log shows no state"),
        (on_rocksdb(), "rocksdb", "a state store of its own"),
        (to_kafka(), "no-coalescing", "no exchange whose partitions are merged"),
        (a_profile(), "no-empty-batches", "no batches without rows"),
    ],
)
def test_what_cannot_be_turned_says_why(profile: JobProfile, switch: str, reason: str) -> None:
    plan = planned(profile, allow=[switch])
    (text,) = findings_of(plan, FindingCode.SWITCH_NOT_TURNED)
    assert text.startswith(f"{switch} is allowed, but not part of the plan: ")
    assert reason in text


def test_an_existing_checkpoint_keeps_its_state_store() -> None:
    plan = planned(with_state(), allow="rocksdb", checkpoint="existing")
    (text,) = findings_of(plan, FindingCode.SWITCH_NOT_TURNED)
    assert "the existing checkpoint keeps its state store" in text


def test_a_target_on_windows_does_not_let_them_come_later() -> None:
    empty = EmptyBatches(num_per_batch=1.0, duration_s=0.1, emitted_share=0.5, ahead_s=1.0)
    profile = a_profile(empty_batches=empty)
    assert len([*variants(profile, [Switch.NO_EMPTY_BATCHES], None, Metric.TUPLE)]) == 1
    assert not [*variants(profile, [Switch.NO_EMPTY_BATCHES], None, Metric.WINDOW)]


def test_advice_has_the_latency_then_with_its_interval() -> None:
    plan = planned(on_rocksdb(), trigger="0s", partitions=8)
    (advice,) = [one for one in plan.advice if "changelog checkpointing" in one.text]
    stated = re.search(r"would lower p99 to (.+?) \(90% interval (.+?) to (.+?)\): ", advice.text)
    assert stated is not None
    latency_s, low_s, high_s = map(parse_duration_s, stated.groups())
    assert low_s < latency_s < high_s < plan.planned_latency_s
    assert "headway plan --allow changelog" in advice.text
    # A line may end behind the key: some values are names of classes.
    assert ".enabled = true)" in advice.text
    # It is what the same setting would be planned at, with the expected gain.
    assert advice.latency_s == pytest.approx(latency_s, rel=0.01)


def test_formats_say_where_a_switch_is_set() -> None:
    limit = limit_that_needs(to_kafka(), Switch.ASYNC_PROGRESS, **ON_ONE_NODE)
    plan = planned(to_kafka(), **ON_ONE_NODE, target=limit, allow="async-progress")
    snippet = headway.emit(plan, format="pyspark").text
    assert '"asyncProgressTrackingEnabled": "true"' in snippet.partition("WRITE_OPTIONS = ")[2]
    assert "asyncProgressTrackingEnabled" not in snippet.partition("TRIGGER")[0]
    assert ".options(**WRITE_OPTIONS)" in snippet
    compile(snippet, "snippet", "exec")
    text = headway.emit(plan, format="spark-defaults").text
    assert '.writeStream.option("asyncProgressTrackingEnabled", "true")' in text
    plain = headway.emit(planned(to_kafka()), format="pyspark").text
    assert "WRITE_OPTIONS" not in plain
    assert "pyspark" in ALL_FORMATS


def test_a_turned_switch_stands_in_the_configuration_and_is_read_back() -> None:
    profile = on_rocksdb()
    limit = limit_that_needs(profile, Switch.CHANGELOG, **ON_ONE_NODE)
    plan = planned(profile, **ON_ONE_NODE, target=limit, allow="changelog")
    key = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    assert plan.feasible
    assert plan.spark_conf[key] == "true"
    read = parse_plan(json.dumps(plan.to_dict()), name="plan.json")
    assert read.spark_conf == plan.spark_conf
    assert [finding.code for finding in read.findings] == [one.code for one in plan.findings]


def test_fewer_files_are_written_with_asynchronous_progress() -> None:
    """Four batches a second write offsets and commits once a second."""
    fixed: dict[str, Any] = {"trigger": "250ms", "partitions": 8, "target": "p99 <= 5s"}
    plan = planned(to_kafka(), **fixed)
    properties = {"asyncProgressTrackingEnabled": "true"}
    application = replace(a_profile().applications[-1], properties=properties)
    turned = planned(replace(to_kafka(), applications=(application,)), **fixed)
    per_batch = turned.writes.checkpoint_files_per_batch / plan.writes.checkpoint_files_per_batch
    assert per_batch == pytest.approx(turned.writes.interval_s)


def test_empty_batches_write_files_too() -> None:
    empty = EmptyBatches(num_per_batch=0.5, duration_s=0.1, emitted_share=0.5, ahead_s=1.0)
    fixed: dict[str, Any] = {"trigger": "1s", "partitions": 8}
    plain, more = (planned(one, **fixed) for one in (a_profile(), a_profile(empty_batches=empty)))
    assert more.writes.files_per_hour == pytest.approx(1.5 * plain.writes.files_per_hour)
    assert more.configuration == plain.configuration


def test_a_limit_of_files_takes_a_longer_trigger() -> None:
    """At eight partitions a batch writes 2 + 8 (1 + 1/60) files or a few more: 3600/T of these."""
    fixed: dict[str, Any] = {"partitions": 8, "target": "p99 <= 20s"}
    limited = planned(a_profile(), **fixed, limit="files <= 9k/h")
    assert limited.feasible
    assert limited.writes.files_per_hour <= 9000
    assert limited.configuration.trigger_s >= 3600 * 10.1 / 9000
    short = planned(a_profile(), **fixed, limit="files <= 9k/h", trigger="1s")
    assert not short.feasible
    assert "files per hour at least" in short.binding[0]
    assert "the limit of 9,000" in short.binding[0]
    assert planned(a_profile(), **fixed, trigger="1s").feasible


def test_the_lowest_of_several_limits_counts() -> None:
    limits = ["files <= 20k/h", FilesLimit(9000.0)]
    plan = planned(a_profile(), partitions=8, target="p99 <= 20s", limit=limits)
    assert plan.writes.files_per_hour <= 9000


@pytest.mark.parametrize(
    ("text", "per_hour"), [("files <= 500/h", 500.0), ("files < 1.2k/h", 1200.0)]
)
def test_limits_are_read(text: str, per_hour: float) -> None:
    assert FilesLimit.parse(text).files_per_hour == pytest.approx(per_hour)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": "requests <= 5/h"}, "'files <= 500/h'"),
        ({"limit": 500}, "limit is 500; expected a text such as 'files <= 500/h'"),
        ({"allow": "turbo"}, "'turbo' is no switch that Headway knows; expected one of async"),
        ({"allow": "changelog", "mode": "real-time"}, "not modelled"),
        ({"limit": "files <= 5/h", "mode": "real-time"}, "not modelled"),
    ],
)
def test_what_is_no_limit_or_switch_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        planned(a_profile(), **options)


def test_a_prediction_waits_for_a_minimum_of_rows() -> None:
    """4,100 rows at 2,000/s: the fifth trigger of half a second has them."""
    fixed: dict[str, Any] = {"rate": 2000.0, "trigger": "500ms"}
    waiting = headway.predict(a_profile(), **fixed, min_offsets=4100)
    as_long = headway.predict(a_profile(), **(fixed | {"trigger": "2500ms"}))
    assert waiting.tuple_latency is not None
    assert as_long.tuple_latency is not None
    assert waiting.tuple_latency.mean_s == pytest.approx(as_long.tuple_latency.mean_s, rel=1e-5)
    (finding,) = [one for one in waiting.findings if one.code is FindingCode.TRIGGERS_WAIT]
    assert words_of(finding) == (
        "batches start every 2.50 s, since triggers wait for 4,100 rows (minOffsetsPerTrigger)"
    )
    hurried = headway.predict(a_profile(), **fixed, min_offsets=4100, max_trigger_delay="1s")
    assert hurried.configuration.trigger_s == 1.0
    assert headway.predict(a_profile(), **fixed, min_offsets=10) == headway.predict(
        a_profile(), **fixed
    )
    with pytest.raises(InputError, match="max_trigger_delay"):
        headway.predict(a_profile(), **fixed, max_trigger_delay="1s")


def test_a_minimum_of_rows_is_not_above_the_maximum() -> None:
    with pytest.raises(InputError, match="min_offsets 5001 is more than max_offsets 5000"):
        headway.predict(a_profile(), rate=2000.0, min_offsets=5001, max_offsets=5000)
    headway.predict(a_profile(), rate=2000.0, min_offsets=5000, max_offsets=5000)
    profile = a_profile()
    configuration = replace(profile.baseline, max_offsets_per_trigger=5000)
    setting = replace(profile.settings[-1], configuration=configuration)
    limited = replace(profile, settings=(*profile.settings[:-1], setting))
    with pytest.raises(InputError, match="5001 is more than the profiled rate limit of 5000,"):
        headway.predict(limited, rate=2000.0, min_offsets=5001)


def test_rows_that_arrive_within_a_millisecond_are_not_waited_for() -> None:
    at_once = headway.predict(a_profile(), rate=2000.0, trigger=0)
    assert headway.predict(a_profile(), rate=2000.0, trigger=0, min_offsets=1) == at_once


def test_the_command_takes_switches_and_limits(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--rate", "16k/s", "--target", "p99 <= 30s", "--cores", "2"]
    allowed = ["--allow", "changelog", "--allow", "async-progress", "--limit", "files <= 5k/h"]
    run(["plan", "examples/word-count.profile.yaml", *options, *allowed, "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert plan["writes"]["files_per_hour"] <= 5000
    codes = [finding["code"] for finding in plan["findings"]]
    assert codes.count("switch_not_turned") == 2


def test_every_switch_has_settings_and_can_be_asked_about() -> None:
    for switch in Switch:
        setting = switch_setting(switch, (4, 3))
        assert setting.settings
        assert isinstance(why_not(a_profile(), switch), str | None)


def test_a_plan_on_record_is_judged_with_what_it_turns() -> None:
    profile = to_kafka()
    as_planned = {"trigger": "0 seconds", "asyncProgressTrackingEnabled": "true"}
    ((_, with_switch),) = variants(profile, [Switch.ASYNC_PROGRESS], None, Metric.TUPLE)
    assert with_switches_of(profile, as_planned) == with_switch
    assert with_switches_of(profile, {"trigger": "0 seconds"}) == profile
    # What is on in the log is not turned again.
    assert with_switches_of(with_switch, as_planned) == with_switch
