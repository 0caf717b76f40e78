"""Logs of days: what grows slowly, by how much in a day, and when a target is missed by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.cli.main import run
from headway.domain import FindingCode, JobProfile, SlowGrowth, SlowMeasure
from headway.formats.profile_file import load_profile, save_profile
from headway.profiler.streaming import trigger
from headway.words import words_of
from tests.profiler.event_log import AppLog, Query

DAY_S, TRIGGER_S, NUM_DAYS = 86_400.0, 1800.0, 4
NUM_BATCHES = int(NUM_DAYS * DAY_S / TRIGGER_S)
LONG = Query(name="orders", rate_per_s=50.0, trigger_s=TRIGGER_S, num_batches=NUM_BATCHES, seed=7)
DAY = replace(LONG, num_batches=NUM_BATCHES // NUM_DAYS)
Change = Callable[[dict[str, Any], int], None]


def profiled(
    folder: Path, query: Query, change: Change | None = None, **properties: str
) -> JobProfile:
    """The profile of a query's log; ``change`` alters its progress, by the number of the batch.

    ``properties`` are settings below ``spark.sql.streaming``.
    """
    events = [json.loads(line) for line in AppLog(executors=(4,)).add(query).lines]
    stated = {f"spark.sql.streaming.{key}": value for key, value in properties.items()}
    for event in events:
        event.get("Spark Properties", {}).update(stated)
        if change is not None and "progress" in event:
            change(event["progress"], event["progress"]["batchId"])
    path = folder / "app-1"
    path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    return headway.profile(path)


@pytest.fixture(scope="module", autouse=True)
def intervals_of_whole_minutes() -> Iterator[None]:
    """Around a trigger of half an hour a hundred thousand intervals would be tried for each log."""
    with pytest.MonkeyPatch.context() as patch:
        every_ms = trigger._candidates_ms
        patch.setattr(trigger, "_candidates_ms", lambda starts: whole_minutes(every_ms(starts)))
        yield


def whole_minutes(intervals_ms: Any) -> Any:
    return intervals_ms[intervals_ms % 60_000 == 0]


def longer(progress: dict[str, Any], phase: str, extra_ms: float) -> None:
    progress["durationMs"][phase] += round(extra_ms)
    progress["durationMs"]["triggerExecution"] += round(extra_ms)


def age_days(batch: int) -> float:
    return batch * TRIGGER_S / DAY_S


def checkpoint_grows(progress: dict[str, Any], batch: int) -> None:
    """Commits of 28 ms that take 5 ms longer each day: too little for growth of batches."""
    longer(progress, "commitOffsets", 5.0 * age_days(batch))


def state_grows(progress: dict[str, Any], batch: int) -> None:
    operator = progress["stateOperators"][0]
    operator["numRowsTotal"] = 1_000_000 + round(20_000 * age_days(batch))
    operator["memoryUsedBytes"] = 300_000_000 + round(6_000_000 * age_days(batch))


def sink_compacts(progress: dict[str, Any], batch: int) -> None:
    """Every tenth batch rewrites the log of the sink: 40 ms, and 30 ms more each day."""
    progress["sink"]["description"] = "FileSink[s3a://bucket/out]"
    if batch % 10 == 9:
        longer(progress, "addBatch", 40.0 + 30.0 * age_days(batch))


def measured(profile: JobProfile, measure: SlowMeasure, part: str) -> SlowGrowth:
    (growth,) = (one for one in profile.slow_growth if one.measure == measure and one.part == part)
    return growth


@pytest.fixture(scope="module")
def folder_of_commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the log of `grown_commits` is."""
    return tmp_path_factory.mktemp("commits")


@pytest.fixture(scope="module")
def grown_commits(folder_of_commits: Path) -> JobProfile:
    """The profile of a log of days whose commits take longer each day."""
    return profiled(folder_of_commits, LONG, checkpoint_grows)


def test_a_steady_log_of_days_grows_nowhere(tmp_path: Path) -> None:
    assert profiled(tmp_path, LONG).slow_growth == ()


def test_a_phase_grows_by_the_day(grown_commits: JobProfile) -> None:
    assert grown_commits.growth is None
    growth = measured(grown_commits, "phase", "commit_offsets")
    # Times are whole milliseconds.
    assert growth.rise_per_day == pytest.approx(0.005, rel=0.02)
    assert growth.rise_low_per_day <= growth.rise_per_day <= growth.rise_high_per_day
    assert growth.rise_high_per_day - growth.rise_low_per_day < 0.0005
    assert growth.span_s == pytest.approx(NUM_DAYS * DAY_S, rel=0.05)
    assert growth.cause == "checkpoint"
    assert "commit_offsets grows by 4.9" in words_of(growth.finding)
    assert len(grown_commits.slow_growth) == 1


def test_one_day_is_too_short_to_tell(tmp_path: Path) -> None:
    assert profiled(tmp_path, DAY, checkpoint_grows).slow_growth == ()


def test_a_daily_cycle_of_the_load_is_no_growth(tmp_path: Path) -> None:
    hours = np.arange(1, NUM_DAYS * 24)
    load = tuple((3600.0 * hour, 50.0 - 30.0 * np.cos(2 * np.pi * hour / 24)) for hour in hours)

    def commits_follow_rows(progress: dict[str, Any], _: int) -> None:
        longer(progress, "commitOffsets", progress["sources"][0]["numInputRows"] / 2000.0)

    query = replace(LONG, rate_per_s=20.0, load=load)
    assert profiled(tmp_path, query, commits_follow_rows).slow_growth == ()


def test_the_state_grows_in_rows_and_bytes(tmp_path: Path) -> None:
    profile = profiled(tmp_path, LONG, state_grows)
    rows = measured(profile, "state_rows", "state")
    size = measured(profile, "state_bytes", "state")
    assert rows.rise_per_day == pytest.approx(20_000, rel=0.02)
    assert size.rise_per_day == pytest.approx(6_000_000, rel=0.02)
    assert "the state grows by 20,000 rows a day" in words_of(rows.finding)
    assert "MiB a day" in words_of(size.finding)


def test_compaction_is_seen_and_its_growth_measured(tmp_path: Path) -> None:
    profile = profiled(tmp_path, LONG, sink_compacts)
    growth = measured(profile, "compaction", "add_batch")
    assert growth.every_batches == 10
    assert growth.cause == "sink_log"
    assert growth.rise_per_day == pytest.approx(0.03, rel=0.15)
    assert growth.is_certain
    assert "every 10th batch" in words_of(growth.finding)


@pytest.mark.parametrize("interval", [3, 10])
def test_compaction_is_as_often_as_its_setting_says(tmp_path: Path, interval: int) -> None:
    def every_third(progress: dict[str, Any], batch: int) -> None:
        progress["sink"]["description"] = "FileSink[s3a://bucket/out]"
        if batch % 3 == 2:
            longer(progress, "addBatch", 40.0 + 30.0 * age_days(batch))

    key = "fileSink.log.compactInterval"
    profile = profiled(tmp_path, LONG, every_third, **{key: str(interval)})
    assert profile.application.properties[f"spark.sql.streaming.{key}"] == str(interval)
    if interval == 10:
        assert all(one.measure != "compaction" for one in profile.slow_growth)
        return
    growth = measured(profile, "compaction", "add_batch")
    assert growth.every_batches == 3
    assert growth.rise_per_day == pytest.approx(0.03, rel=0.15)
    assert "every 3rd batch" in words_of(growth.finding)


def test_compaction_needs_a_sink_of_files(tmp_path: Path) -> None:
    def elsewhere(progress: dict[str, Any], batch: int) -> None:
        sink_compacts(progress, batch)
        progress["sink"]["description"] = "ForeachBatchSink"

    profile = profiled(tmp_path, LONG, elsewhere)
    assert not [one for one in profile.slow_growth if one.measure == "compaction"]


def test_the_profile_file_carries_it(grown_commits: JobProfile, tmp_path: Path) -> None:
    path = tmp_path / "job.profile.yaml"
    save_profile(grown_commits, path)
    (again,) = load_profile(path).slow_growth
    written = grown_commits.slow_growth[0].rise_per_day
    assert again.rise_per_day == pytest.approx(written, rel=1e-5)
    save_profile(replace(grown_commits, slow_growth=()), path)
    assert load_profile(path).slow_growth == ()


def test_the_plan_names_the_day_and_a_later_log_agrees(
    grown_commits: JobProfile, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"rate": 50.0, "cores": 4, "max_nodes": 1, "trigger": "1800s"}
    batch_s = headway.predict(grown_commits, rate=50.0, trigger="1800s").batch_duration
    assert batch_s is not None
    # The growth of half a year on top of today's batches.
    limit_s = 1.3 * batch_s.statistics_s["p99"] + 0.005 * 180
    plan = headway.plan(grown_commits, target=f"batch p99 <= {limit_s:.4f}s", **asked)
    assert plan.feasible
    codes = [finding.code for finding in plan.findings]
    assert FindingCode.SLOW_GROWTH in codes
    (ends,) = (one for one in plan.findings if one.code is FindingCode.SLOW_GROWTH_ENDS_PROMISE)
    held_days = ends.numbers["held_s"] / DAY_S
    assert 60.0 < held_days < 300.0
    ended = datetime.fromisoformat(grown_commits.slow_growth[0].ended)
    until = datetime.fromisoformat(f"{ends.names['until']}T00:00:00+00:00")
    assert abs((until - ended).total_seconds() - ends.numbers["held_s"]) < 1.01 * DAY_S

    def after(days: float) -> JobProfile:
        """The profile of a day's log in which commits take as long as after so many days."""
        extra_ms = 5.0 * (NUM_DAYS + days)
        folder = tmp_path / f"after-{days:.0f}"
        folder.mkdir()
        return profiled(
            folder, DAY, lambda progress, _: longer(progress, "commitOffsets", extra_ms)
        )

    target = f"batch p99 <= {limit_s:.4f}s"
    assert headway.plan(after(0.7 * held_days), target=target, **asked).feasible
    assert not headway.plan(after(1.5 * held_days), target=target, **asked).feasible


def test_a_target_that_a_year_does_not_reach_has_no_day(grown_commits: JobProfile) -> None:
    plan = headway.plan(grown_commits, rate=50.0, target="p99 <= 1h", cores=4)
    codes = [finding.code for finding in plan.findings]
    assert FindingCode.SLOW_GROWTH in codes
    assert FindingCode.SLOW_GROWTH_ENDS_PROMISE not in codes


def test_commands_print_it(
    grown_commits: JobProfile,
    folder_of_commits: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "job.profile.yaml"
    save_profile(grown_commits, path)
    assert run(["plan", str(path), "--rate", "50/s", "--target", "p99 <= 1h", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (growth,) = (one for one in found["findings"] if one["code"] == "slow_growth")
    assert growth["numbers"]["rise_per_day"] == pytest.approx(0.005, rel=0.1)
    assert any("grows by 4.9" in text and "a day" in text for text in found["warnings"])
    assert run(["profile", str(folder_of_commits / "app-1"), "--check"]) == 0
    assert "grows by 4.9" in capsys.readouterr().out
