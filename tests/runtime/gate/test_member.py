"""What a member learns from progress, and the log of decisions, without Spark."""

from __future__ import annotations

import itertools
import json
import math
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.domain import Decision, Policy, QueryState, ScheduledQuery, Target, WindowGrid
from headway.errors import InputError
from headway.models.scheduling.order import MemoryReading, slack_s
from headway.runtime.gate.arbiter import Gate
from headway.runtime.gate.decision_log import BatchEnd, DecisionLog, read_decision_log
from headway.runtime.gate.learned import BatchDurations
from headway.runtime.gate.member import Member
from headway.runtime.gate.sizes import Sizes
from headway.runtime.gate.turn import Turn
from headway.runtime.gate.windows import windows_of_plan
from headway.runtime.gate.works import learned_work


class Progress:
    """Stands for Spark's query and its last progress."""

    def __init__(self) -> None:
        self.declared: dict[str, Any] | None = None

    def batch(self, number: int, start_s: float, *, rows: int = 100, **event: str) -> None:
        self.declared = {
            "batchId": number,
            "timestamp": f"1970-01-01T00:{int(start_s) // 60:02}:{start_s % 60:06.3f}Z",
            "numInputRows": rows,
            "durationMs": {"triggerExecution": 400, "addBatch": 250, "commitOffsets": 50},
            "eventTime": event,
        }


class AQuery:
    """A query of a session without a JVM, and the hub in which it takes part."""

    id, exception = "3f1c7e0a", staticmethod(lambda: None)

    def __init__(self, run_id: str) -> None:
        self.runId, self.isActive, self._jsq = run_id, True, self

    def join(self, *_: object) -> None:
        pass

    leave = join


def at(seconds: int) -> str:
    return f"1970-01-01T00:{seconds // 60:02}:{seconds % 60:02}.000Z"


def a_member(progress: Progress, **changes: Any) -> Member:
    declared = ScheduledQuery(name="q", trigger_s=1.0, **changes)
    return Member(progress, progress, declared, now_s=100.0)  # type: ignore[arg-type]


def idle(member: Member, progress: Progress, at_s: float, target_s: float) -> BatchEnd | None:
    """As the hub posts it; what was learned is learned at once."""
    declared = "" if progress.declared is None else json.dumps(progress.declared)
    ended = member.became_idle(at_s, target_s, declared)
    member.learn()
    return ended


def test_a_window_is_due_when_the_row_that_closes_it_is_read() -> None:
    progress = Progress()
    member = a_member(
        progress,
        windows=WindowGrid(slide_s=10.0, watermark_delay_s=2.0),
        window_target=Target.parse("window p99 <= 5s"),
    )
    progress.batch(1, 109.0, max=at(108), watermark=at(95))
    idle(member, progress, 109.4, 110.0)
    state = member.state(109.5)
    # The window that ends at 100 has been passed by no watermark yet: 108 - 2 closes it.
    assert state.emits
    assert state.closing_s == pytest.approx(100.0 + 2.0 + 1.0)
    assert state.window_limit_s == pytest.approx(5.0 - 2.0 - 1.0)
    member.grant(109.5, 1)
    progress.batch(2, 109.5, max=at(108), watermark=at(106))
    ended = idle(member, progress, 109.9, 110.0)
    assert ended is not None
    state = member.state(110.0)
    assert not state.emits
    assert state.closing_s == pytest.approx(110.0 + 2.0 + 1.25)
    report = member.report()
    # 109.5 and 350 ms until the sink had it, from 100 on.
    assert (report.num_windows, report.num_windows_late, report.num_rows) == (1, 1, 200)


def test_a_grant_that_finds_nothing_backs_off_to_the_trigger() -> None:
    progress = Progress()
    member = a_member(progress)
    progress.batch(0, 100.0)
    idle(member, progress, 100.4, 101.0)
    assert member.state(100.5).ready_s == pytest.approx(100.4)
    member.grant(100.5, 1)
    assert idle(member, progress, 100.52, 101.0) is None
    assert member.state(100.6).ready_s == 101.0
    assert member.report().num_batches == 1


def test_durations_are_learned_or_a_prediction_is_corrected() -> None:
    learned, corrected = BatchDurations(), BatchDurations(lambda rows: 0.1 + 1e-5 * rows)
    for number in range(40):
        rows = 1000.0 * (number % 7)
        # The first ones take long, and are not what the others are like.
        slow = 30.0 if number < 2 else 1.0
        for durations in (learned, corrected):
            durations.observe(rows, slow * 2.0 * (0.1 + 1e-5 * rows))
    for durations in (learned, corrected):
        assert durations.mean_s(10_000.0) == pytest.approx(0.4, rel=0.01)
        assert durations.quantile_s(10_000.0, 0.999) == pytest.approx(0.4, rel=0.02)
        assert durations.line == pytest.approx((0.2, 2e-5), rel=0.02)


PLAN = """\
WriteToMicroBatchDataSource noop-table
+- ~Aggregate [window#6-T1000ms], [window#6-T1000ms, count(1) AS count#2L]
   +- ~Project [named_struct(start, ((conversion(ts#0, TimestampType, LongType) - CASE WHEN \
(((conversion(ts#0, TimestampType, LongType) - 2000000) % 5000000) < 0) END) - 2000000), \
LongType, TimestampType)), end, ((((conversion(ts#0, TimestampType, LongType) - 0) + 10000000), \
LongType, TimestampType)))]
      +- ~EventTimeWatermark 5340a76a, ts#0: timestamp, 1 minutes 30 seconds
"""


def test_windows_as_spark_writes_them() -> None:
    assert windows_of_plan(PLAN) == WindowGrid(slide_s=5.0, offset_s=2.0, watermark_delay_s=90.0)
    assert windows_of_plan(PLAN.replace("EventTimeWatermark", "")) is None
    assert windows_of_plan("Project [value#1]") is None


def a_decision() -> Decision:
    state = QueryState(
        name="a", ready_s=0.0, oldest_unread_s=1.0, last_grant=0, duration_s=0.2, pair_s=0.4
    )
    return Decision(
        at_s=2.0,
        policy=Policy.PROMISE,
        num_running=0,
        at_once=1,
        states=(state,),
        order=("a",),
        granted=("a",),
    )


def test_the_log_comes_back_as_it_was_and_survives_a_killed_driver(tmp_path: Path) -> None:
    file = tmp_path / "gate.jsonl"
    end = BatchEnd(at_s=2.5, name="a", batch_id=3, rows=10, predicted_s=0.2, observed_s=0.3)
    log = DecisionLog(file)
    log.write(a_decision())
    log.write(end)
    log.close()
    assert list(read_decision_log(file)) == [a_decision(), end]
    with file.open("ab") as torn:
        torn.write(b'{"decision": {"at_s": 3.')
    assert list(read_decision_log(file)) == [a_decision(), end]
    DecisionLog(None).write(end)


def test_a_decision_log_on_a_full_disk_ends_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    log = DecisionLog("/dev/full")
    log.write(a_decision())
    log.flush()
    assert log.ended_because == "/dev/full: cannot be written any more (No space left on device)"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == f"the log of decisions has ended, the gate goes on: {log.ended_because}"
    log.write(a_decision())
    log.flush()
    log.close()


def test_a_second_gate_does_not_write_to_the_log_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "gate.jsonl"
    log = DecisionLog(file)
    with pytest.raises(InputError, match=r"decisions: .*gate\.jsonl: another writer appends to it"):
        DecisionLog(file)
    log.close()
    DecisionLog(file).close()


def test_what_is_no_log_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "gate.jsonl"
    file.write_text('{"decision": {"at_s": "soon"}}\n{}\n')
    with pytest.raises(InputError, match=r"gate\.jsonl:1: not a line of a decision log"):
        list(read_decision_log(file))
    with pytest.raises(InputError, match="no such file"):
        list(read_decision_log(tmp_path / "none"))


def test_only_the_batch_that_emits_frees_state_and_rocksdb_does_not_count() -> None:
    progress = Progress()
    member = a_member(progress, windows=WindowGrid(slide_s=10.0))

    def batch(number: int, start_s: float, newest: int, watermark: int, removed: int) -> None:
        progress.batch(number, start_s, max=at(newest), watermark=at(watermark))
        assert progress.declared is not None
        heap = {"numRowsRemoved": removed, "memoryUsedBytes": 700, "customMetrics": {}}
        rocksdb = {"memoryUsedBytes": 9000, "customMetrics": {"rocksdbGetCount": 3}}
        progress.declared["stateOperators"] = [heap, rocksdb]
        idle(member, progress, start_s + 0.4, start_s + 1.0)

    batch(1, 109.0, 108, 95, 0)
    batch(2, 111.0, 110, 108, 40)
    # The window to 110 is open: 40 rows leave with it, and not before.
    batch(3, 112.0, 109, 108, 0)
    assert member.heap_state_bytes == 700.0
    assert member.state(113.0).emits
    assert member.state(113.0).removed_rows == 40.0
    batch(4, 113.0, 112, 110, 30)
    assert not member.state(114.0).emits
    assert member.state(114.0).removed_rows == 0.0


def after_ten_batches(*, num_at_once: int) -> Member:
    progress = Progress()
    member = a_member(progress)
    for number in range(2, 12):
        member.grant(100.0 + number, number, num_at_once)
        progress.batch(number, 100.0 + number)
        idle(member, progress, 100.4 + number, 101.0 + number)
    return member


def test_what_the_driver_does_is_no_work_of_the_cores() -> None:
    member = after_ten_batches(num_at_once=2)
    # 250 ms of executors, 50 ms to commit, 100 ms before; 0.16 core-s beside another on two cores.
    work = learned_work(member, 2.0, busy_cores=0.64)
    assert work.fixed_core_s + 100 * work.per_row_core_s == pytest.approx(0.16)
    assert work.duration_s(100.0, cores=1.0) == pytest.approx(0.4)
    assert work.duration_s(100.0, cores=2.0) == pytest.approx(0.32)
    # Where nothing is known of tasks a batch kept its share of the cores busy, and no more.
    unknown = learned_work(member, 2.0, busy_cores=None)
    assert unknown.duration_s(100.0, cores=1.0) == pytest.approx(0.4)
    assert unknown.duration_s(100.0, cores=2.0) == pytest.approx(0.275)


def test_a_driver_on_the_executors_cores_takes_one_and_is_slowed_down_with_them() -> None:
    member = after_ten_batches(num_at_once=4)
    # Of 400 ms beside three others on two cores, half is waiting for a core.
    local = learned_work(member, 2.0, busy_cores=0.5, driver_cores=1.0)
    assert local.driver_cores == 1.0
    assert local.before_s + local.after_s == pytest.approx(0.5 * (0.1 + 0.05))
    assert local.duration_s(100.0, cores=1.0) == pytest.approx(0.2)
    # Alone it has a core to itself.
    cluster = learned_work(member, 2.0, busy_cores=0.5)
    assert cluster.driver_cores == 0.0
    assert cluster.before_s + cluster.after_s == pytest.approx(0.15)


def test_a_wait_within_a_batch_is_no_part_of_what_the_batch_takes() -> None:
    progress = Progress()
    declared = ScheduledQuery(name="q", trigger_s=0.001)
    member = Member(progress, None, declared, now_s=100.0, waits_within=True)  # type: ignore[arg-type]
    progress.batch(0, 100.0)
    idle(member, progress, 100.5, 100.5)
    # Batch 1 began at 101 and has waited since 101.1.
    idle(member, progress, 101.1, 101.1)
    member.grant(101.3, 1)
    member.turn_is_over()
    assert member.granted_at_s is None
    assert not member.is_idle
    progress.batch(1, 101.0)
    ended = idle(member, progress, 102.0, 102.0)
    assert ended is not None
    assert ended.observed_s == pytest.approx(0.2)
    # Its rows are those of the second between the starts, however long it waits now.
    assert member.state(110.0).oldest_unread_s == 101.0


def test_progress_says_what_it_says_and_may_leave_the_rest_out() -> None:
    member = a_member(Progress())
    written = (
        '{"batchId": 3, "timestamp": "1970-01-01T00:01:50.500Z", "sources": [{"endOffset": 7}],'
        ' "durationMs": {"addBatch": 0}}'
    )
    assert member.became_idle(111.0, 112.0, written) is None
    assert member.last is not None
    assert (member.last.start_s, member.last.rows, member.last.watermark_s) == (110.5, 0, None)


def test_a_profile_is_asked_for_few_predictions() -> None:
    asked: list[float] = []

    def predicted_s(rows: float) -> float:
        asked.append(rows)
        return 0.1 + 1e-5 * rows + 1e-9 * math.pow(rows, 1.5)

    durations = BatchDurations(predicted_s)
    for rows in range(1000, 2000):
        found_s = durations.mean_s(float(rows))
        assert found_s == pytest.approx(0.1 + 1e-5 * rows + 1e-9 * rows**1.5, rel=1e-3)
    assert len(asked) < 12


def test_rows_that_a_rate_limit_left_behind_take_their_batches_one_by_one() -> None:
    progress = Progress()
    member = a_member(progress, row_target=Target.parse("p99 <= 20s"))
    progress.batch(0, 100.0)
    idle(member, progress, 100.5, 101.0)
    fresh = member.state(100.5)
    progress.batch(1, 101.0)
    assert progress.declared is not None
    progress.declared["sources"] = [
        {"endOffset": {"clicks": {"0": 40, "1": 60}}, "metrics": {"avgOffsetsBehindLatest": "150"}},
        {"endOffset": 7, "metrics": {}},
    ]
    idle(member, progress, 101.5, 102.0)
    state = member.state(101.5)
    # 300 rows in batches of 100; they came in the three seconds before.
    assert (fresh.num_batches, state.num_batches) == (1, 3)
    assert state.oldest_unread_s == pytest.approx(101.0 - 3.0)
    assert slack_s(state) == pytest.approx(98.0 + 20.0 - 3 * state.duration_s)
    assert slack_s(fresh) > slack_s(state) + 2 * state.duration_s


@pytest.mark.parametrize("newest", [111, 113])
def test_a_running_query_comes_back_as_was_expected(newest: int) -> None:
    progress = Progress()
    member = a_member(
        progress,
        windows=WindowGrid(slide_s=10.0, watermark_delay_s=2.0),
        window_target=Target.parse("window p99 <= 5s"),
    )
    for number in range(2, 9):
        progress.batch(number, 100.0 + number, max=at(100 + number), watermark=at(97 + number))
        idle(member, progress, 100.4 + number, 101.0 + number)
        # Who waits comes back from the turn that it may get.
        later = member.coming_back(100.5 + number, 77)
        assert later is not None
        assert (later.state.last_grant, later.state.oldest_unread_s) == (77, 100.5 + number)
        member.grant(100.5 + number, number)
    expected = member.coming_back(108.6, 77)
    assert expected is not None
    # The window to 110 is closed by a row of 112, and by none before it.
    assert expected.closes_at_s == 112.0
    progress.batch(9, 108.5, max=at(newest), watermark=at(106))
    idle(member, progress, 108.9, 109.0)
    found = member.state(108.9)
    assert found.emits == (newest >= expected.closes_at_s)
    foreseen = expected.emitting if found.emits else expected.state
    assert (foreseen.name, foreseen.emits, foreseen.last_grant) == (
        found.name,
        found.emits,
        found.last_grant,
    )
    assert foreseen.oldest_unread_s == pytest.approx(found.oldest_unread_s)
    # What is learned of delays and rates by the batch itself is not known before it.
    assert foreseen.closing_s == pytest.approx(found.closing_s, abs=2.0)
    assert foreseen.duration_s == pytest.approx(found.duration_s, rel=0.1)


def test_a_query_that_ticks_on_its_own_comes_back_at_a_tick() -> None:
    progress = Progress()
    member = a_member(progress)
    progress.batch(0, 100.0)
    idle(member, progress, 100.4, 101.0)
    member.offset_s = 0.25
    member.grant(100.5, 1)
    expected = member.coming_back(100.6, 77)
    assert expected is not None
    assert expected.at_its_tick
    assert math.isinf(expected.closes_at_s)


def test_what_an_idle_query_reports_is_no_batch() -> None:
    progress = Progress()
    member = a_member(progress)
    for number in range(5):
        progress.batch(number, 100.0 + number)
        idle(member, progress, 100.4 + number, 101.0 + number)
    before = member.report(), member.rate_per_s, member.durations.mean_s(100.0)
    assert progress.declared is not None
    progress.batch(5, 120.0, rows=0)
    progress.declared["durationMs"] = {"triggerExecution": 2, "latestOffset": 2}
    member.grant(120.0, 1)
    assert idle(member, progress, 120.1, 121.0) is None
    assert (member.report().num_batches, member.rate_per_s) == (before[0].num_batches, before[1])
    assert member.durations.mean_s(100.0) == before[2]
    assert member.ready_s == 121.0


def test_a_clock_that_is_set_back_does_not_hide_the_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate: Any = object.__new__(Gate)
    gate._members, gate._numbered, gate._next_look_s = {}, {}, 0.0
    gate._off, gate._is_switched_off, gate.opened_because = tmp_path / "gate.off", False, None
    gate._hub, gate._task_time, gate._log = AQuery("hub"), None, DecisionLog(None)
    gate._sizes, gate._memory = (
        Sizes(Policy.FCFS, 1, None, threading.RLock()),
        MemoryReading(limit_bytes=math.inf),
    )
    gate._ahead = SimpleNamespace(give=lambda *_: None, take_back=lambda: None)
    uptime_s = 1000.0
    monkeypatch.setattr("headway.runtime.gate.arbiter.time.monotonic", lambda: uptime_s)
    gate._step("", 5000.0)
    assert gate.opened_because is None
    (tmp_path / "gate.off").touch()
    uptime_s += 1.0
    gate._step("", 5000.0 - 3600.0)
    assert gate.opened_because == f"it was switched off: {tmp_path / 'gate.off'} is there"


def test_a_query_that_was_started_anew_takes_the_place_of_the_run_that_ended() -> None:
    gate: Any = object.__new__(Gate)
    gate._lock, gate._members, gate._numbered, gate._gone = threading.RLock(), {}, {}, []
    gate._hub, gate._before, gate._numbers = AQuery("hub"), {}, itertools.count(1)
    gate._is_closing = gate._is_switched_off = False
    gate.opened_because = None
    declared = ScheduledQuery(name="q", trigger_s=1.0)
    for rows in (7, 5):
        query: Any = AQuery(f"run of {rows}")
        # The arbiter has not looked since the run before ended.
        gate.add(query, declared, in_turn=Turn(lambda _rows, _number: None))
        assert [member.query for member in gate._members.values()] == [query]
        gate._members["q"]._rows, query.isActive = rows, False
    gate.remove("q")
    # Metrics take the first of a name: the last run.
    assert [report.num_rows for report in gate._gone] == [5, 7]
