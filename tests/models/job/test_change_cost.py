"""What changes cost, held against a row-by-row count and against the note's golden values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.assumptions.live import LEAST_IDLE_S
from headway.domain.live import ChangeKind
from headway.models.job.change_cost import (
    is_worth_leaving,
    late_price,
    margin_score,
    planned_rate_per_s,
    purse_node_s,
    return_late_s,
)
from headway.models.job.change_pause import (
    computing_ratio,
    expected_pause_s,
    learned_late_s,
    pause_late_s,
    prior_pause_s,
    restart_delay_s,
)
from tests.factories import a_profile, a_stage_observed
from tests.seeds import seeds


def late_by_counting(pause_s: float, slack_s: float, load: float) -> float:
    """Arrivals in small cells, processed in order at a rate of 1/load after the pause."""
    cell = 0.001
    moments = np.arange(0.0, 200.0, cell)
    # With a backlog each second of arrivals takes `load` seconds of work.
    done = np.maximum.accumulate(pause_s + load * moments)
    late = np.maximum(done, moments) - moments > slack_s
    return float(late.sum() * cell)


@pytest.mark.parametrize(
    ("pause_s", "slack_s", "load"), [(5.9, 0.4, 0.5), (60.0, 1.0, 0.3), (2.2, 0.0, 0.8)]
)
def test_a_pause_makes_late_what_a_count_of_rows_says(
    pause_s: float, slack_s: float, load: float
) -> None:
    counted = late_by_counting(pause_s, slack_s, load)
    assert pause_late_s(pause_s, slack_s, load) == pytest.approx(counted, rel=0.01)


def test_a_pause_within_the_slack_costs_nothing() -> None:
    assert pause_late_s(0.7, 1.0, 0.9) == 0.0
    assert pause_late_s(1.0, 0.0, 5.0) == pytest.approx(50.0)


def test_the_golden_values_of_the_design() -> None:
    # A removal of 5.9 s at half load and no slack, a first step up of 5 s, p99.
    assert pause_late_s(5.9, 0.0, 0.5) == pytest.approx(11.8)
    assert purse_node_s(11.8, 5.0, 0.99) == pytest.approx(6720.0)
    assert late_price(0.99) == pytest.approx(400.0)
    assert [margin_score(u) for u in (0.0, 1.0, 1.2, 9.0)] == pytest.approx([0.4, 1.7, 1.96, 1.96])
    assert planned_rate_per_s(1000.0, 1.7, 0.1) == pytest.approx(1170.0)


def late_of_return(lead_s: float, load: float, load_after: float) -> float:
    """A queue in small steps: arrivals that find a backlog, from the return of the load on."""
    step, waiting, late, at_s = 0.001, 0.0, 0.0, 0.0
    while at_s < lead_s or waiting > 0.0:
        carried = 1.0 / (load if at_s < lead_s else load_after)
        waiting = max(waiting + (1.0 - carried) * step, 0.0)
        late += step
        at_s += step
    return late


@pytest.mark.parametrize(
    ("lead_s", "load", "load_after"), [(90.0, 1.2, 0.8), (30.0, 2.0, 0.5), (10.0, 1.05, 0.9)]
)
def test_what_a_return_makes_late_is_what_a_count_says(
    lead_s: float, load: float, load_after: float
) -> None:
    counted = late_of_return(lead_s, load, load_after)
    assert return_late_s(0.0, 1.0, lead_s, load, load_after) == pytest.approx(counted, rel=0.01)


def test_a_size_that_carries_the_load_makes_its_return_cheap() -> None:
    assert return_late_s(2.0, 0.0, 90.0, 0.7, 0.5) == 2.0
    assert return_late_s(2.0, 0.1, 90.0, 0.95, 0.5) == pytest.approx(11.0)
    assert return_late_s(0.0, 0.0, 90.0, 0.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="share of late rows"):
        return_late_s(0.0, 1.5, 90.0, 0.7, 0.5)
    with pytest.raises(ValueError, match="loads"):
        return_late_s(0.0, 0.5, 90.0, -0.7, 0.5)


def test_renting_or_buying_costs_at_most_twice_what_knowing_would() -> None:
    purse, num = 3200.0, 4
    for idle_s in np.linspace(10.0, 4000.0, 200).tolist():
        clairvoyant = min(num * idle_s, purse)
        waited = next(
            (t for t in range(int(idle_s) + 1) if is_worth_leaving(num, float(t), purse)), None
        )
        ours = num * idle_s if waited is None else num * waited + purse
        assert ours <= 2.0 * clairvoyant + num


@pytest.mark.parametrize("seed", seeds(10, 100))
def test_over_many_calms_it_costs_no_more_than_the_better_of_two_and_its_changes(seed: int) -> None:
    random = np.random.default_rng(seed)
    purse, num = 3200.0, 4
    # Loads that come back soon for a while, then late for a while, and mixed ones.
    lengths_s = np.concatenate(
        [random.exponential(mean_s, int(random.integers(1, 12)))
         for mean_s in random.choice([100.0, 700.0, 900.0, 5000.0], 6)]
    )  # fmt: skip
    held = left = ours = 0.0
    num_changes, holds_first = 0, True
    for number, length_s in enumerate(lengths_s.tolist()):
        calms_s = lengths_s[:number].tolist()
        # Found by asking each second, as the rule does, after its least time.
        least_s = int(LEAST_IDLE_S.value)
        waited = next(
            (
                t
                for t in range(least_s, int(length_s) + 1)
                if is_worth_leaving(num, float(t), purse, calms_s)
            ),
            None,
        )
        ours += num * length_s if waited is None else num * waited + purse
        held, left = held + num * length_s, left + purse
        num_changes += holds_first is not (held < left)
        holds_first = held < left
    asked = num * (LEAST_IDLE_S.value + 1.0) * len(lengths_s)
    assert ours <= min(held, left) + num_changes * purse + asked
    assert not is_worth_leaving(num, LEAST_IDLE_S.value - 1.0, purse, [1e6])


def test_costs_are_learned_at_their_upper_end() -> None:
    seen = np.random.default_rng(1).exponential(3.0, 10).tolist()
    assert learned_late_s(100.0, seen) == pytest.approx(float(np.quantile(seen, 0.9)))
    assert learned_late_s(100.0, seen[:2]) < 100.0
    assert learned_late_s(7.0, []) == 7.0


def test_the_middle_of_the_pauses_is_expected_and_their_upper_end_decides() -> None:
    seen = np.random.default_rng(2).exponential(1.0, 10).tolist()
    assert expected_pause_s(ChangeKind.RESTART, 1.0, seen) == pytest.approx(float(np.median(seen)))
    assert expected_pause_s(ChangeKind.RESTART, 1.0, seen) < learned_late_s(2.2, seen)
    for kind in ChangeKind:
        assert expected_pause_s(kind, 1.0, []) <= prior_pause_s(kind, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_the_delay_of_a_restart_is_that_of_its_oldest_row(seed: int) -> None:
    """A batch read until its start; the oldest row after it waits for the first new batch."""
    generator = np.random.default_rng(seed)
    trigger_s, new_trigger_s = generator.uniform(1.0, 3.0, 2).tolist()
    before_s, after_s = generator.uniform(0.1, 1.5, 2).tolist()
    stopped_s = 2.0 * trigger_s + before_s
    paused_s = float(generator.uniform(0.0, 1.0))
    ended_s = stopped_s + paused_s + after_s
    oldest_s = ended_s - 2.0 * trigger_s
    usual_s = max(new_trigger_s, after_s) + after_s
    delay_s = restart_delay_s(paused_s, before_s, new_trigger_s, after_s)
    assert delay_s == pytest.approx(max(oldest_s - usual_s, 0.0))


def test_each_kind_has_a_prior() -> None:
    pauses = {kind: prior_pause_s(kind, 1.0) for kind in ChangeKind}
    assert pauses[ChangeKind.RESTART] < pauses[ChangeKind.REMOVE] < pauses[ChangeKind.APPLICATION]
    assert pauses[ChangeKind.ADD] == 2.0


def test_arguments_outside_their_range_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        pause_late_s(-1.0, 0.0, 0.5)
    with pytest.raises(ValueError, match="quantile"):
        purse_node_s(1.0, 1.0, 1.0)


def test_new_executors_are_slower_only_where_they_compute() -> None:
    profile = a_profile()
    driver_s = sum(phase.mean_s for phase in profile.driver_phases)
    unseen, waiting, python = (
        replace(profile, stages=tuple(replace(one, observed=seen) for one in profile.stages))
        for seen in (None, a_stage_observed(0.02), a_stage_observed(0.3, python_ratio=0.5))
    )
    assert computing_ratio(unseen, 1.0) == 1.0
    assert computing_ratio(waiting, 1.0) == pytest.approx(0.02 * (1.0 - driver_s))
    assert computing_ratio(python, 2.0) == pytest.approx(0.8 * (1.0 - driver_s / 2.0))
    assert computing_ratio(waiting, 0.5 * driver_s) == 0.0
    pause_s = expected_pause_s(ChangeKind.ADD, 1.0, [], computing_ratio(waiting, 1.0))
    usual_s = expected_pause_s(ChangeKind.ADD, 1.0, [])
    assert pause_s == pytest.approx(0.02 * (1.0 - driver_s) * usual_s)
