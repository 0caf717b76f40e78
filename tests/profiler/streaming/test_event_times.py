"""How far the newest rows are behind their triggers: shares of all batches, in few groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from headway.profiler.streaming.arrivals import event_time_lags, typical_lag_s
from headway.profiler.streaming.samples import QueryRun
from tests.profiler.streaming.one_size_jobs import drawn_job, run_of


def a_run(lags_s: Sequence[float | None], trigger_s: float = 2.0) -> QueryRun:
    """A batch for each lag behind its trigger, started 3 ms after it."""
    rng = np.random.default_rng(1)
    run = run_of(drawn_job(rng), rng)
    template = run.batches[0]
    batches = tuple(
        replace(
            template,
            batch_id=number,
            started_s=2.0 * number + 0.003,
            event_time_lag_s=None if lag_s is None else lag_s + (0.003 if trigger_s else 0.0),
        )
        for number, lag_s in enumerate(lags_s, start=1)
    )
    return replace(
        run, batches=batches, configuration=replace(run.configuration, trigger_s=trigger_s)
    )


def law(*runs: QueryRun) -> dict[float, float]:
    return {lag.lag_s: lag.batch_share for lag in event_time_lags(runs)}


def test_runs_weigh_the_same_however_many_batches_they_have() -> None:
    short, long = a_run([0.0, 0.001]), a_run([0.0] * 8)
    assert law(short) == {0.0: 0.5, 0.001: 0.5}
    assert law(short, long) == {0.0: 0.75, 0.001: 0.25}


def test_runs_on_a_trigger_decide() -> None:
    free_running, triggered = a_run([0.2, 0.4], trigger_s=0.0), a_run([0.001, -0.001])
    assert law(free_running) == {0.2: 0.5, 0.4: 0.5}
    assert law(free_running, triggered) == {-0.001: 0.5, 0.001: 0.5}


def test_many_lags_are_put_together() -> None:
    lags_s = [number / 1e3 for number in range(100)]
    shares = law(a_run(lags_s))
    assert len(shares) == 12
    assert sum(shares.values()) == pytest.approx(1.0)
    assert sum(lag_s * share for lag_s, share in shares.items()) == pytest.approx(np.mean(lags_s))
    assert max(shares.values()) < 0.1


def test_batches_without_event_times_say_nothing() -> None:
    assert law(a_run([None, None])) == {}
    assert typical_lag_s(a_run([None])) is None
    assert law(a_run([None, 0.001])) == {0.001: 1.0}
    assert typical_lag_s(a_run([None, 0.001, 0.003])) == pytest.approx(0.002)
