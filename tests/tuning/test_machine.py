"""The states of the tuner on a clock of its own: what it does, when, and what it leaves alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.domain import Configuration
from headway.domain.live import ChangeKind, Reason
from headway.domain.tuner import Phase
from headway.errors import HeadwayError, InputError
from headway.formats.tuner_files import (
    audit_file,
    load_tuner,
    read_audit,
    save_tuner,
    switch_file,
)
from headway.runtime.tuning.clean_stop import NoGapError
from headway.tuner.machine import TunerMachine
from tests.factories import a_configuration
from tests.tuning.simulated import SimulatedQuery, a_machine, begun, phase_of, run_for

# One executor is expected to sustain 600,000 rows/s, two 760,000.
STEP_AT_S = 300.0
ONE = a_configuration(executors=1)


def step(since_s: float) -> float:
    return 20_000.0 if since_s < STEP_AT_S else 700_000.0


def events(path: Path) -> list[str]:
    return [str(one["event"]) for one in read_audit(audit_file(path))]


def audited(path: Path, event: str) -> list[dict[str, object]]:
    return [entry for entry in read_audit(audit_file(path)) if entry["event"] == event]


def test_a_step_of_the_rate_is_followed_by_executors_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step, comes_after_s=20.0)
    machine = begun(query, path, STEP_AT_S, first=ONE)
    assert phase_of(machine) is Phase.HOLD
    assert machine.state.num_changes == 0
    run_for(machine, query, 120)
    assert machine.running.executors == 2
    assert phase_of(machine) in (Phase.APPLYING, Phase.SETTLING)
    run_for(machine, query, 400)
    assert phase_of(machine) is Phase.HOLD
    assert machine.state.last_good.executors == machine.running.executors
    assert machine.state.num_changes <= 2
    assert query.starts == [ONE]
    proposed = audited(path, "proposed")[0]
    assert proposed["expected"]["duration_s"]["high"] > 0  # type: ignore[index]
    assert "verified" in events(path)
    first_s = machine.state.provisioning_s[0]
    assert first_s == pytest.approx(20.0, abs=2.0)  # not until a batch ends, nor before they came


def proposed_after_s(path: Path, *, shows_running: bool) -> float:
    """How long after a jump that makes batches of many seconds a change is proposed."""
    query = SimulatedQuery(
        executors=1,
        rate_per_s=lambda since_s: 20_000.0 if since_s < STEP_AT_S else 1_500_000.0,
        shows_running=shows_running,
    )
    machine = begun(query, path, STEP_AT_S, first=ONE)
    for passed_s in range(1, 121):
        run_for(machine, query, 1)
        if "proposed" in events(path):
            return float(passed_s)
    pytest.fail("nothing was proposed")


def test_a_jump_is_answered_while_a_long_batch_still_runs(tmp_path: Path) -> None:
    within, after = (
        proposed_after_s(tmp_path / f"{shows}.tuner.json", shows_running=shows)
        for shows in (True, False)
    )
    assert within < after
    assert within <= 45.0


def test_recommending_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step)
    machine = begun(query, path, STEP_AT_S + 200, acts=False, first=ONE)
    assert (query.executors, query.starts) == (1, [ONE])
    assert machine.rule.proposal is not None
    proposed = audited(path, "proposed")
    assert proposed and all(one["refused"] == "mode is recommend" for one in proposed)


def test_recommending_counts_the_executors_that_are_there(tmp_path: Path) -> None:
    # The state says three; somebody else gave the query one.
    query = SimulatedQuery(executors=1, rate_per_s=step)
    path = tmp_path / "orders.tuner.json"
    three = replace(ONE, executors=3)
    machine = begun(query, path, STEP_AT_S, acts=False, first=three)
    assert machine.running.executors == 1
    run_for(machine, query, 120)
    proposed = audited(path, "proposed")
    assert proposed[0]["now"]["executors"] == 1  # type: ignore[index]


def test_a_supervised_application_has_the_executors_of_its_command(tmp_path: Path) -> None:
    # The profile has one, and the command starts three; they sustain the step.
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(
        executors=3, rate_per_s=step, executors_are_given=True, live_executors=False
    )
    machine = begun(query, path, STEP_AT_S + 200, executors=(1, 1), first=ONE)
    assert machine.running.executors == 3
    assert machine.rule.table(machine.running).sizes[1.0] == (3,)
    assert "proposed" not in events(path)
    # Nothing to restore: the setting differs from the first one only in what the command gives.
    machine.end(restore=True)
    assert query.starts == [ONE]


def test_quiet_times_and_a_switch_hold_it_back(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step)
    machine = begun(query, path, STEP_AT_S + 120, is_quiet=lambda _at_s: True)
    assert machine.state.num_changes == 0
    switch_file(path).write_text("off\n")
    run_for(machine, query, 5)
    assert phase_of(machine) is Phase.OFF
    switch_file(path).unlink()
    run_for(machine, query, 2)
    assert phase_of(machine) is Phase.LEARN


def test_a_switch_that_says_restore_goes_back_first(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step)
    machine = begun(query, path, STEP_AT_S + 120, first=ONE)
    assert machine.running.executors == 2
    switch_file(path).write_text("restore\n")
    run_for(machine, query, 2)
    assert machine.running == machine.state.original == ONE
    assert phase_of(machine) is Phase.OFF
    # It was asked for, and missed nothing: what it took back may be made again.
    assert not machine.state.blocked


def test_a_return_that_was_asked_for_waits_for_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(sink="ForeachBatchSink")
    machine = begun(query, path, 100, triggers_s=(0.5,))
    machine.rule.table(machine.running)
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    assert machine.running.trigger_s == 0.5
    query.has_gap = False
    switch_file(path).write_text("restore\n")
    run_for(machine, query, 2)
    assert phase_of(machine) is Phase.OFF and machine.running.trigger_s == 0.5
    # A gap that ends before the stop comes again, too.
    query.has_gap = True
    query.at = lambda point: setattr(query, "has_gap", point != "before stop")
    machine.step()
    assert phase_of(machine) is Phase.OFF and machine.running.trigger_s == 0.5
    query.at, query.has_gap = (lambda _point: None), True
    machine.step()
    assert phase_of(machine) is Phase.OFF and machine.running == machine.state.original


def test_executors_that_do_not_come_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(executors=1, rate_per_s=step, comes_after_s=1e6)
    machine = begun(query, path, STEP_AT_S + 500, first=ONE)
    assert "restored" in events(path)
    blocked = machine.state.blocked
    assert blocked and blocked[0].now.executors == 1


def slower_than_said(configuration: Configuration) -> float:
    return 1.0 if configuration.trigger_s == 1.0 else 30.0


def test_a_setting_that_misses_what_the_old_one_kept_is_taken_back_once(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(factor=slower_than_said)
    machine = begun(query, path, 200)
    rule = machine.rule
    proposal = _a_proposal(machine, trigger_s=0.5)
    machine.rule.table(replace(machine.running, trigger_s=0.5))
    rule.triggers_s = (0.5,)
    rule._table = None
    machine._propose(proposal)
    assert machine.running.trigger_s == 0.5
    run_for(machine, query, 400)
    assert machine.running.trigger_s == 1.0
    assert [one.trigger_s for one in query.starts] == [1.0, 0.5, 1.0]
    assert "missed" in events(path)
    assert machine.state.is_blocked(
        machine.running, replace(machine.running, trigger_s=0.5), query.now_s
    )
    # It is not tried again.
    machine._propose(proposal)
    assert len(query.starts) == 3


def _a_proposal(machine, trigger_s: float):  # type: ignore[no-untyped-def]
    from headway.domain.live import Proposal

    assert machine.rule.decision is not None and machine.rule.decision.estimate is not None
    return Proposal(
        kind=ChangeKind.RESTART,
        reason=Reason.TRIGGER,
        at_s=machine.now(),
        before_executors=machine.running.executors,
        after_executors=machine.running.executors,
        before_trigger_s=machine.running.trigger_s,
        after_trigger_s=trigger_s,
        gain_node_s=1.0,
        cost_node_s=0.0,
        estimate=machine.rule.decision.estimate,
    )


def _asked_for_half_the_trigger(query: SimulatedQuery, path: Path) -> TunerMachine:
    machine = begun(query, path, 100, triggers_s=(0.5,))
    machine.rule.table(machine.running)
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    return machine


def test_a_restart_waits_for_a_gap_at_each_look_and_is_not_blocked_meanwhile(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(has_gap=False, sink="ForeachBatchSink")
    machine = _asked_for_half_the_trigger(query, path)
    proposal = _a_proposal(machine, trigger_s=0.5)
    machine._propose(proposal)
    assert query.is_active
    assert machine.running.trigger_s == 1.0
    assert phase_of(machine) is Phase.HOLD
    # It did not ask for a stop: nothing failed, nothing is blocked, nothing counts as a change.
    assert "failed" not in events(path)
    assert not machine.state.blocked
    assert machine.state.num_changes == 0
    waiting = audited(path, "proposed")
    assert [one["refused"] for one in waiting] == ["waits for a gap between batches"]
    query.has_gap = True
    machine._propose(proposal)
    assert machine.running.trigger_s == 0.5


def test_a_gap_that_was_missed_is_waited_for_again(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(sink="ForeachBatchSink")

    def gap_ends(point: str) -> None:
        query.has_gap = point != "before stop"

    machine = begun(query, path, 100, triggers_s=(0.5,), at=gap_ends)
    machine.rule.table(machine.running)
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    assert "failed" in events(path)
    assert not machine.state.blocked
    assert not machine.rule.memory.changes_s, "what was not made is none of the most in an hour"
    query.at, query.has_gap = (lambda _point: None), True
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    assert machine.running.trigger_s == 0.5


def test_a_query_that_has_no_gap_at_the_end_is_said_to_be_stopped_within_a_batch(
    tmp_path: Path,
) -> None:
    query = SimulatedQuery(sink="ForeachBatchSink")
    machine = begun(query, tmp_path / "orders.tuner.json", 100)
    query.has_gap = False
    with pytest.raises(NoGapError, match="was stopped within one, which runs again"):
        machine.end_query()
    assert not query.is_active


@pytest.mark.parametrize("by", ["switch", "end"])
def test_a_change_that_waits_for_its_gap_is_left_when_the_tuner_is_to_end(
    tmp_path: Path, by: str
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(sink="ForeachBatchSink")
    is_left = []

    def waits_for_its_gap(point: str) -> None:
        if point != "before stop":
            return
        # As a supervisor asks while its application has no gap.
        is_left.append(machine.watch_meanwhile())
        if by == "switch":
            switch_file(path).write_text("off\n")
        else:
            machine.is_ending = True
        is_left.append(machine.watch_meanwhile())
        query.has_gap = False

    machine = begun(query, path, 100, triggers_s=(0.5,), at=waits_for_its_gap)
    machine.rule.table(machine.running)
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    assert is_left == [False, True]
    assert query.is_active and machine.running.trigger_s == 1.0
    assert machine.state.change is None
    assert not machine.state.blocked
    if by == "switch":
        run_for(machine, query, 2)
    else:
        machine.end(restore=False)
    assert phase_of(machine) is Phase.OFF


@pytest.mark.parametrize("sink", ["FileSink[/out]", "ForeachBatchSink"])
def test_a_query_that_overruns_is_cut_only_where_its_sink_takes_a_batch_once(
    tmp_path: Path, sink: str
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(has_gap=False, sink=sink, factor=lambda _configuration: 8.0)
    machine = _asked_for_half_the_trigger(query, path)
    last = machine._live.last
    assert last is not None and last.duration_s > 1.0, "every batch overruns"
    assert machine.running.trigger_s == (0.5 if sink.startswith("File") else 1.0)
    assert not machine.state.blocked


def test_a_pause_is_learned_and_expected_of_the_next_change_after_a_crash_too(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = _asked_for_half_the_trigger(query, path)
    first = machine.state.change
    assert first is not None and first.expected is not None
    assert first.expected.pause_s == pytest.approx(1.5), "the usual pause of a restart"
    run_for(machine, query, 200)
    assert "verified" in events(path)
    known = load_tuner(path)
    assert known is not None
    assert list(known.pauses_s) == [ChangeKind.RESTART]
    # The simulated one stands still for a second, and its first batch is as long as any.
    assert known.pauses_s[ChangeKind.RESTART] == pytest.approx((1.0,), abs=0.3)
    query.is_active = False
    after = a_machine(query, path, triggers_s=(0.5, 1.0))
    after.begin()
    run_for(after, query, 60)
    again = after.rule.expectation(after.running, _a_proposal(after, trigger_s=1.0))
    assert again.pause_s == pytest.approx((known.pauses_s[ChangeKind.RESTART][0] + 1.5) / 2.0)


def test_a_state_of_before_has_no_pauses(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    begun(SimulatedQuery(), path, 30).end(restore=False)
    kept = json.loads(path.read_text())
    del kept["pauses"]
    path.write_text(json.dumps(kept))
    known = load_tuner(path)
    assert known is not None and known.pauses_s == {}


def test_a_setting_that_does_not_start_is_taken_back_and_else_it_freezes(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(fails_at=(lambda one: one.trigger_s == 0.5,))
    machine = begun(query, path, 100, triggers_s=(0.5,))
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    assert query.is_active and query.configuration == a_configuration()
    assert phase_of(machine) is Phase.HOLD
    # Now nothing starts any more.
    query.fails_at = (lambda _one: True,)
    machine.state = replace(machine.state, blocked=())
    with pytest.raises(HeadwayError, match="leaves the query alone"):
        machine._propose(_a_proposal(machine, trigger_s=0.5))
    state = load_tuner(path)
    assert state is not None and state.phase is Phase.FROZEN


def test_a_restart_after_which_the_query_fails_is_taken_back_once(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 100, triggers_s=(0.5,))
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    run_for(machine, query, 10)
    assert phase_of(machine) is Phase.SETTLING
    # What a checkpoint does that can no longer be written: the query starts, and dies.
    query.is_active, query.failed_because = False, "Permission denied: /checkpoint/offsets/8"
    machine.step()
    assert query.is_active and query.configuration == a_configuration()
    assert phase_of(machine) is Phase.HOLD
    faster = replace(a_configuration(), trigger_s=0.5)
    assert machine.state.is_blocked(a_configuration(), faster, query.now_s + 3600.0)
    failed = audited(path, "failed")[0]
    assert "failed at its new setting: Permission denied" in str(failed["why"])
    # At the setting before it dies, too: then it was not the change.
    query.is_active = False
    with pytest.raises(HeadwayError, match="has ended, not by this tuner: Permission denied"):
        machine.step()
    assert phase_of(machine) is Phase.LOST


def test_a_query_that_is_stopped_while_it_settles_is_left_stopped(tmp_path: Path) -> None:
    query = SimulatedQuery()
    machine = begun(query, tmp_path / "orders.tuner.json", 100, triggers_s=(0.5,))
    machine._propose(_a_proposal(machine, trigger_s=0.5))
    query.is_active = False
    with pytest.raises(HeadwayError, match="has ended, not by this tuner: it was stopped"):
        machine.step()
    assert not query.is_active


def test_a_query_that_ends_by_itself_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 5)
    query.is_active = False
    with pytest.raises(HeadwayError, match="the query has ended"):
        machine.step()
    state = load_tuner(path)
    assert state is not None and state.phase is Phase.LOST


def test_a_function_that_ignores_the_trigger_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = a_machine(query, path)
    machine.begin()
    query.configuration = replace(a_configuration(), trigger_s=0.7)
    with pytest.raises(InputError, match=r"asked for a trigger of 1\.00 s"):
        run_for(machine, query, 60)
    assert query.is_active


def test_a_silent_query_is_known_as_blind(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery(live_executors=False)
    machine = begun(query, path, 60)
    query.is_in_batch, query.free_s = True, query.now_s + 100
    run_for(machine, query, 30)
    assert phase_of(machine) is Phase.BLIND
    query.is_in_batch = False
    run_for(machine, query, 90)
    assert phase_of(machine) is Phase.HOLD


def test_a_query_that_had_no_rows_for_long_is_not_blind_in_its_next_batch(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    machine = begun(query, path, 60)
    query.free_s = query.now_s + 300.0
    run_for(machine, query, 290)
    query.is_in_batch = True
    run_for(machine, query, 4)
    assert phase_of(machine) is Phase.HOLD
    assert machine.rule.decision is not None
    assert machine.rule.decision.reason is not Reason.SILENT


def test_a_clock_that_is_set_back_hides_no_rate(tmp_path: Path) -> None:
    query = SimulatedQuery()
    machine = begun(query, tmp_path / "orders.tuner.json", 300)
    query.now_s, query.begun_s, query.free_s = (
        at_s - 3600.0 for at_s in (query.now_s, query.begun_s, query.free_s)
    )
    query.rate_per_s = lambda _since_s: 20_000.0
    run_for(machine, query, 90)
    decision = machine.rule.decision
    assert decision is not None and decision.estimate is not None
    assert decision.estimate.rate_per_s == pytest.approx(20_000.0, rel=0.01)


def test_the_log_of_decisions_is_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    begun(query, path, 30)
    for line in audit_file(path).read_text().splitlines():
        json.loads(line)
    assert events(path)[0] == "started"


def test_other_partitions_are_proposed_where_nothing_else_is_enough_and_made_where_allowed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    one = a_configuration(shuffle_partitions=1)
    machine = begun(query, path, 60, first=one)
    machine._other_partitions()
    said = read_audit(audit_file(path))[-1]
    assert said["event"] == "proposed"
    assert said["refused"] == "allow has no 'repartition'"
    assert said["then"]["shuffle_partitions"] > 1  # type: ignore[index]
    assert machine.running == one
    # It is asked once for a setting.
    machine._other_partitions()
    assert read_audit(audit_file(path))[-1] == said
    machine.allow, machine._asked_about = frozenset({ChangeKind.REPARTITION}), None
    machine._other_partitions()
    assert machine.running.shuffle_partitions > 1
    run_for(machine, query, 200)
    assert phase_of(machine) is Phase.HOLD
    assert "verified" in events(path)


def test_other_partitions_are_thought_of_when_the_most_executors_are_too_few(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    one = a_configuration(shuffle_partitions=1)
    machine = a_machine(query, path, executors=(2, 2), first=one)
    carried = machine.rule.table(one).expected(2, one.trigger_s, 1.0)
    query.rate_per_s = lambda since_s: (0.5 if since_s < STEP_AT_S else 1.3) * carried
    machine.begin()
    run_for(machine, query, STEP_AT_S)
    assert "proposed" not in events(path)
    run_for(machine, query, 300)
    proposed = audited(path, "proposed")
    assert proposed
    assert all(one["then"]["shuffle_partitions"] > 1 for one in proposed)  # type: ignore[index]
    assert machine.running == one, "its state is not repartitioned unasked"


def test_a_function_that_ignores_the_rate_limit_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    query = SimulatedQuery()
    limited = replace(a_configuration(), max_offsets_per_trigger=1000)
    machine = a_machine(query, path, first=limited)
    machine.begin()
    query.configuration = a_configuration()
    with pytest.raises(InputError, match="asked for at most 1,000 rows per batch"):
        run_for(machine, query, 60)
    assert query.is_active


class Apart(SimulatedQuery):
    """As an application of its own: what query it is shows in its progress only."""

    def start(self, configuration: Configuration) -> object:
        super().start(configuration)
        self.query_id = None
        return self


def test_an_application_that_starts_from_another_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "orders.tuner.json"
    begun(Apart(), path, 60).end(restore=False)
    known = load_tuner(path)
    assert known is not None and known.query_id is not None
    begun(Apart(), path, 60).end(restore=False)
    save_tuner(replace(known, query_id="0c0ffee0-0d51-4a0e-9d1d-1f2e3d4c5b6a"), path)
    query = Apart()
    machine = a_machine(query, path)
    machine.begin()
    with pytest.raises(InputError, match="its id is 3f1c7e0a, was 0c0ffee0"):
        run_for(machine, query, 30)
    assert machine.state.num_changes == known.num_changes
