"""Backlogs of streams: a query that reads what there is and ends has a deadline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.api.check import check
from headway.api.lock import lock
from headway.ci.nouns import Rule
from headway.cli.main import run
from headway.domain import (
    BatchAnswer,
    Deadline,
    Drain,
    DurationGrowth,
    JobProfile,
    StateProfile,
    StreamBacklog,
)
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import load_any_plan
from headway.formats.lock_file import save_lock
from headway.formats.profile_file import load_profile, save_profile
from headway.models.job.setting import duration_model
from headway.planner.kinds.batch_run_time import BacklogRunTime
from headway.planner.kinds.deadline import fewest_in_time, plan_for_deadline
from headway.planner.question import SearchSpace
from tests.factories import a_profile
from tests.planner.jobs import GIB

BATCH_ROWS = 16_000.0
NUM_BATCHES = 25
SPEC = """\
apiVersion: headway/v1
kind: BatchJob
metadata: {name: nightly}
spec:
  profile: nightly.profile.yaml
  deadline: 4min
  rows: 2M
"""


def usual_batch_s(profile: JobProfile, slots: int, rows: float = BATCH_ROWS) -> float:
    model = duration_model(profile, slots, profile.baseline.shuffle_partitions, rows)
    return float(model.mean_s(rows))


def ended(more_batches: float = 3.0, *, rest_rows: float = 0.0) -> JobProfile:
    """A query that read a backlog: its first batches took as long as some more would."""
    profile = a_profile()
    batch_s = usual_batch_s(profile, profile.baseline.num_slots)
    rest_s = usual_batch_s(profile, profile.baseline.num_slots, rest_rows) if rest_rows else 0.0
    drain = Drain(
        backlog_rows=NUM_BATCHES * BATCH_ROWS + rest_rows,
        batch_rows=BATCH_ROWS,
        num_batches=NUM_BATCHES + (rest_rows > 0),
        duration_s=(NUM_BATCHES + more_batches) * batch_s + rest_s,
    )
    return replace(profile, drain=drain)


def backlog(profile: JobProfile, rows: float | None = None) -> StreamBacklog:
    assert profile.drain is not None
    return StreamBacklog(
        profile=profile, drain=profile.drain, backlog_rows=rows or profile.drain.backlog_rows
    )


def time_of(profile: JobProfile, rows: float | None = None) -> BacklogRunTime:
    return BacklogRunTime(backlog=backlog(profile, rows))


@pytest.mark.parametrize("more_batches", [3.0, 0.0, -5.0])
@pytest.mark.parametrize("rest_rows", [0.0, 7_000.0])
def test_the_profiled_run_takes_as_long_as_it_did(more_batches: float, rest_rows: float) -> None:
    profile = ended(more_batches, rest_rows=rest_rows)
    assert profile.drain is not None
    time = time_of(profile)
    assert time.mean_s(time.seen_slots) == pytest.approx(profile.drain.duration_s)
    assert sum(time.parts_s(8).values()) == pytest.approx(time.mean_s(8))


def test_more_rows_are_more_batches_and_the_first_ones_are_slow_once() -> None:
    profile = ended(more_batches=3.0)
    seen = profile.baseline.num_slots
    batch_s = usual_batch_s(profile, seen)
    ten_times = time_of(profile, 10 * NUM_BATCHES * BATCH_ROWS).mean_s(seen)
    assert ten_times == pytest.approx((10 * NUM_BATCHES + 3) * batch_s)
    with_rest = time_of(profile, 10.5 * BATCH_ROWS).mean_s(seen)
    rest_s = usual_batch_s(profile, seen, BATCH_ROWS / 2)
    assert with_rest == pytest.approx((10 + 3) * batch_s + rest_s)


def test_the_batches_keep_their_size_and_are_counted() -> None:
    planned = backlog(ended(), 10.5 * BATCH_ROWS).planned
    assert (planned.num_batches, planned.batch_rows) == (11, BATCH_ROWS)
    few = backlog(ended(), 100.0).planned
    assert (few.num_batches, few.batch_rows) == (1, 100.0)


def test_slots_shorten_the_stages_and_speed_does_not_shorten_the_driver() -> None:
    time = time_of(ended())
    at_two, at_eight = time.parts_s(2), time.parts_s(8)
    assert at_eight["stages"] < at_two["stages"]
    assert at_eight["driver"] == at_two["driver"]
    on_fast_cores = replace(time, core_speed_ratio=2.0).parts_s(2)
    assert on_fast_cores["stages"] == pytest.approx(at_two["stages"] / 2.0)
    assert on_fast_cores["driver"] == at_two["driver"]
    assert time.floor_s() <= min(time.mean_s(slots) for slots in range(1, 200))


def test_the_fewest_nodes_are_those_of_a_scan() -> None:
    rng = np.random.default_rng(3)
    space = SearchSpace(max_nodes=12, executors_per_node=1, cores_per_executor=2)
    for _ in range(40):
        job = backlog(ended(float(rng.uniform(-5, 20))), float(rng.uniform(1e5, 5e6)))
        time = BacklogRunTime(backlog=job)
        deadline = Deadline(limit_s=time.mean_s(4) * float(rng.uniform(0.5, 3.0)))
        confidence = float(rng.uniform(0.5, 0.99))
        kept = [
            nodes
            for nodes in range(1, 13)
            if time.planned_s(space.num_slots(nodes), confidence) <= deadline.limit_s
        ]
        found = plan_for_deadline(job, deadline, [space], confidence=confidence)
        assert found.feasible == bool(kept)
        assert fewest_in_time(job, deadline, space, confidence) == min(kept, default=None)
        if kept:
            assert found.nodes == kept[0]
            assert found.kept_probability is not None
            assert found.kept_probability >= confidence


def test_other_slots_and_few_batches_are_less_certain() -> None:
    time = time_of(ended())
    assert time.spread_ratio(16) > time.spread_ratio(time.seen_slots)
    few = time_of(ended(), 2 * BATCH_ROWS)
    assert few.spread_ratio(2) > time.spread_ratio(2)
    assert time.is_calibrated(time.seen_slots)
    assert not time.is_calibrated(64)
    assert [one.code.value for one in time.findings(64)] == ["slots_far_off"]


def test_state_needs_the_memory_of_several_nodes() -> None:
    state = StateProfile(
        rows=10_000_000, memory_bytes=100 * GIB, commit_per_partition_s=0.01, growth_per_s=0.0
    )
    profile = replace(ended(), state=state, state_partitions=8, state_store="hdfs")
    asked: dict[str, Any] = {"target": "deadline <= 2h", "executor_memory_bytes": 8 * GIB}
    found = headway.plan(profile, **asked)
    assert found.feasible
    assert found.nodes >= 100 / 8
    assert any("no room for the state" in text for text in found.binding)
    with pytest.raises(InputError, match="have no memory for the state"):
        headway.plan(profile, max_nodes=5, **asked)


def test_what_cannot_have_a_deadline_says_why() -> None:
    with pytest.raises(InputError, match="profile a run that read a backlog and ended"):
        headway.plan(a_profile(), target="deadline <= 1h")
    growth = DurationGrowth(
        first_s=0.7, last_s=3.2, span_s=780.0, part="stage 1", part_first_s=0.3, part_last_s=2.6
    )
    with pytest.raises(InputError, match=r"grew from 700 ms to 3.20 s for the same rows"):
        headway.plan(replace(ended(), growth=growth), target="deadline <= 1h")
    with pytest.raises(InputError, match=r"^rows: only with a deadline"):
        headway.plan(ended(), target="p99 <= 3s", rate="5k/s", rows="40M")
    for rows in (0, -1.0, "many", float("nan"), True):
        with pytest.raises(InputError, match="rows"):
            headway.plan(ended(), target="deadline <= 1h", rows=rows)
    with pytest.raises(InputError, match=r"^rate: not with a deadline"):
        headway.plan(ended(), target="deadline <= 1h", rate="5k/s")


def test_a_plan_says_what_is_read_in_every_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page, saved = (tmp_path / name for name in ("a.profile.yaml", "a.html", "plan.json"))
    save_profile(ended(), path)
    assert load_profile(path).drain is not None
    asked = ["plan", str(path), "--target", "deadline <= 5m", "--rows", "4M"]
    assert run([*asked, "-o", str(page)]) == 0
    text = capsys.readouterr().out
    read = "4,000,000 rows, in 250 batches of up to 16,000 rows"
    assert read in text
    assert read in page.read_text(encoding="utf-8")
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["backlog"] == {"backlog_rows": 4e6, "batch_rows": 16e3, "num_batches": 250}
    saved.write_text(json.dumps(found), encoding="utf-8")
    assert run(["explain", str(saved)]) == 0
    explained = capsys.readouterr().out
    assert read in explained
    assert "(P29)" in explained
    assert "(P16)" not in explained
    again = load_any_plan(saved)
    assert json.loads(json_text(plan_json(again))) == found
    assert run(["plan", str(path), "--target", "deadline <= 1s"]) == 3
    assert "no number of nodes suffices" in capsys.readouterr().out


def test_a_spec_is_planned_locked_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_profile(ended(), "nightly.profile.yaml")
    Path("nightly.yaml").write_text(SPEC, encoding="utf-8")
    found = headway.plan_spec("nightly.yaml").plan
    assert isinstance(found, BatchAnswer)
    assert found.backlog is not None
    assert found.backlog.backlog_rows == 2e6
    save_lock(lock(["nightly.yaml"]), "headway.lock")
    assert list(check(["nightly.yaml"], baseline="headway.lock").findings) == []
    Path("nightly.yaml").write_text(SPEC.replace("2M", "3M"), encoding="utf-8")
    report = check(["nightly.yaml"], baseline="headway.lock")
    rules = {finding.rule: finding.message for finding in report.findings}
    assert rules[Rule.RATE] == "the backlog is 3,000,000 rows, was 2,000,000"
    assert Rule.DRIFT not in rules
    Path("nightly.yaml").write_text(SPEC.replace("2M", "400G"), encoding="utf-8")
    report = check(["nightly.yaml"], baseline="headway.lock")
    assert report.exit_code == 3
    assert Rule.LOCKED in {finding.rule for finding in report.findings}
