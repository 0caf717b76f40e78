"""What a row of state costs: the update, and its part in the commit where batches tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headway.profiler.streaming.observations import observe_state
from headway.profiler.streaming.samples import QueryRun
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
