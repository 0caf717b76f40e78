"""Time to catch up with the start of the application, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.api.plan import plan
from headway.domain import JobProfile, Plan, StateProfile, WarmUp
from headway.formats.as_json import plan_json
from headway.models.job.duration import DurationModel
from headway.models.job.restart import StartAgain
from headway.models.job.setting import duration_model
from headway.planner.recovery import Pace, limited_recovery_s, recovery_s, start_after_outage
from headway.report.explanation import explanation_text
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from tests.factories import a_profile, kept

STEADY = Pace(model=DurationModel(2.0, ()), rate_per_s=100.0, trigger_s=5.0)
"""Two seconds whatever the rows."""


def test_the_start_comes_before_the_first_batch_which_takes_longer() -> None:
    """8 s to start, then a batch of 2 + 7 s; 900 rows wait, more than usual: 5 s more."""
    start = StartAgain(jvm_s=8.0, extra_s=7.0)
    assert float(recovery_s(STEADY, 60.0, start)) == 8.0 + 9.0 + 5.0
    # A batch that is over before the next trigger is due delays nothing.
    short = StartAgain(jvm_s=8.0, extra_s=2.5)
    assert float(recovery_s(STEADY, 60.0, short)) == 8.0 + 5.0


def test_a_start_counts_after_the_shortest_outage() -> None:
    """One second brings no backlog, but the first batch takes 9 s, and the next one its rows."""
    start = StartAgain(jvm_s=2.0, extra_s=7.0)
    assert float(recovery_s(STEADY, 1.0, start)) == 2.0 + 9.0 + 5.0


def test_full_batches_also_work_off_what_came_during_the_start() -> None:
    # 60 + 10 s of 100 rows/s; the first full batch takes 4 s beyond the trigger, 400 rows more.
    # Each full batch of 1000 rows works off 500: 13 of them leave 900, and one more is usual.
    start = StartAgain(jvm_s=10.0, extra_s=7.0)
    with_start_s = limited_recovery_s(STEADY, 60.0, 1000.0, start)
    assert with_start_s == 10.0 + 4.0 + 13 * 5.0 + 5.0
    # Without it: 6000 rows, ten full batches, and one more.
    assert limited_recovery_s(STEADY, 60.0, 1000.0) == 55.0


def stateful(extra_s: float = 2.0, rows: int = 10**6) -> JobProfile:
    profile = a_profile(
        state=StateProfile(
            rows=rows, memory_bytes=10**8, commit_per_partition_s=0.001, growth_per_s=0.0
        )
    )
    warm_up = WarmUp(start_age_s=3.0, first_batch_extra_s=extra_s, steady_age_s=60.0)
    return replace(profile, warm_up=warm_up)


def planned(profile: JobProfile) -> Plan:
    targets = ["p99 <= 4s", "catch_up <= 10m after 10m"]
    return kept(plan(profile, rate="5k/s", target=targets, max_nodes=4))


def caught_up_s(profile: JobProfile) -> float:
    """Of four slots on a trigger of a second, after ten minutes."""
    pace = Pace(model=duration_model(profile, 4, 8), rate_per_s=5000.0, trigger_s=1.0)
    return float(recovery_s(pace, 600.0, start_after_outage(profile, (4, 8), pace)))


def test_the_start_that_is_on_record_counts() -> None:
    without_s = caught_up_s(replace(stateful(), warm_up=None))
    with_start_s = caught_up_s(stateful())
    # A JVM and a session take 5.5 s, and the first batch at least its extra 2 s.
    assert with_start_s >= without_s + 5.0
    assert caught_up_s(stateful(extra_s=30.0)) > with_start_s + 20.0
    assert caught_up_s(stateful(rows=10**8)) > with_start_s


def test_a_plan_lists_the_parts_of_a_start() -> None:
    found = planned(stateful())
    assert found.after_start is not None
    restart = found.after_start.restart
    assert restart is not None
    assert restart.session_s == 3.0
    assert restart.load_s > 0
    assert restart.replay_s > 0
    words = " ".join(explanation_text(found).split())
    assert "to load the snapshot of the state" in words
    assert "until the first batch begins" in words
    assert "starting takes up to" in " ".join(sheet_text(stream_sheet(found)).split())
    after = plan_json(found)["after_start"]
    assert isinstance(after, dict)
    assert after["restart"]["session_s"] == 3.0


def test_without_state_nothing_is_loaded() -> None:
    found = planned(replace(stateful(), state=None))
    assert found.after_start is not None
    assert found.after_start.restart is not None
    assert found.after_start.restart.load_s == pytest.approx(0.0)
    assert "load the snapshot" not in explanation_text(found)
