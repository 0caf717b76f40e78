"""What a row of state costs: the update, and its part in the commit where batches tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headway.domain import JobProfile
from headway.profiler.streaming.observations import observe_state
from headway.profiler.streaming.samples import QueryRun
from tests.factories import a_profile
from tests.profiler.streaming.test_stage_fit import a_run

UPDATE_S, COMMIT_S, EMPTY_S = 4e-6, 2e-6, 0.03


def writing(rows: Sequence[int]) -> QueryRun:
    """A run whose batches write these many rows of state."""
    run = a_run(1000, 4, grows=False)
    return replace(
        run,
        batches=tuple(
            replace(
                batch,
                state_commit_s=4 * EMPTY_S + COMMIT_S * number,
                state=replace(batch.state, num_updated=number, updates_s=UPDATE_S * number),
            )
            for batch, number in zip(run.batches, rows, strict=False)
        ),
    )


def test_batches_that_write_more_and_fewer_rows_tell_the_commit_of_a_row() -> None:
    state = observe_state([writing([1000, 5000] * 4)])
    assert state is not None
    assert state.updated_rows == pytest.approx(3000)
    assert state.updated_row_s == pytest.approx(UPDATE_S + COMMIT_S)


def test_several_runs_tell_it_where_each_alone_writes_as_many() -> None:
    state = observe_state([writing([1000] * 8), writing([5000] * 8)])
    assert state is not None
    assert state.updated_rows == pytest.approx(5000)
    assert state.updated_row_s == pytest.approx(UPDATE_S + COMMIT_S)


def test_where_all_write_as_many_only_updates_count() -> None:
    state = observe_state([writing([1000] * 8)])
    assert state is not None
    assert state.updated_row_s == pytest.approx(UPDATE_S)


def test_what_is_not_on_record_stays_unknown() -> None:
    state = observe_state([writing([0] * 8)])
    assert state is not None
    assert (state.updated_rows, state.updated_row_s) == (None, None)


def with_state(rate_per_s: float, sizes: Sequence[int]) -> QueryRun:
    """A run at a rate whose state has these sizes, batch after batch."""
    run = replace(a_run(1000, 4, grows=False), rate_per_s=rate_per_s)
    return replace(
        run,
        batches=tuple(
            replace(batch, state=replace(batch.state, num_rows=size))
            for batch, size in zip(run.batches, sizes, strict=True)
        ),
    )


def filling(rate_per_s: float) -> QueryRun:
    """Rows are kept for two seconds, and the run began without any."""
    sizes = [int(rate_per_s * min(seconds, 2.0)) for seconds in (0.5, 1.5, 2, 2, 2, 2, 2, 2)]
    return with_state(rate_per_s, sizes)


@pytest.mark.parametrize("rates", [[10_000.0], [10_000.0, 30_000.0]])
def test_a_state_that_drops_what_is_old_follows_the_rate(rates: list[float]) -> None:
    state = observe_state([filling(rate) for rate in rates])
    assert state is not None
    assert state.rate_exponent == pytest.approx(1.0)


def test_a_state_that_goes_on_growing_does_not() -> None:
    state = observe_state(
        [with_state(rate, [int(rate * k) for k in range(1, 9)]) for rate in (1e4, 3e4)]
    )
    assert state is not None
    assert state.rate_exponent == 0.0


def test_a_state_of_so_many_keys_does_not() -> None:
    state = observe_state([with_state(rate, [999] * 8) for rate in (1e4, 3e4)])
    assert state is not None
    assert state.rate_exponent == pytest.approx(0.0, abs=1e-9)


def test_a_prediction_prices_the_state_at_its_rate() -> None:
    profile = a_profile()
    state = observe_state([filling(profile.settings[-1].rate_per_s)])
    assert state is not None
    asked = replace(
        profile, state=state, arrivals=replace(profile.arrivals, rate_per_s=0.25 * filled(profile))
    )
    assert asked.num_state_rows == pytest.approx(0.25 * state.rows)
    kept = replace(asked, state=replace(state, rate_exponent=0.0))
    assert kept.num_state_rows == state.rows


def filled(profile: JobProfile) -> float:
    """The rate that the state was seen at."""
    return profile.settings[-1].rate_per_s
