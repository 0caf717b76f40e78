"""The paper's own formulas, phase by phase."""

from __future__ import annotations

from typing import get_args

import pytest

from headway.models.laws.distributions import max_normal
from headway.models.pipeline.as_published import ReducerArrivals, published_tuple_latency
from headway.models.pipeline.latency import PHASES
from headway.models.pipeline.parameters import Finalizing
from tests.models.pipeline.pipeline_cases import pipeline, published, published_window


def test_published_phases() -> None:
    latency = published(pipeline(0.2, 0.2, 0.3, map_busy=0.3))
    assert [part.name for part in latency.parts] == list(PHASES)
    by_name = {part.name: part for part in latency.parts}
    service = 0.3 * 0.2 / 8.0
    update = by_name["update"]
    assert float(update.mean_s) == pytest.approx(service / 2.0)
    assert float(update.variance_s2) == pytest.approx(service**2 / 12.0)
    poll = by_name["wait for the poll"]
    assert (float(poll.mean_s), float(poll.variance_s2)) == pytest.approx((0.1, 0.04 / 12.0))
    # Eight batches at a time: gaps of 0 seven times, then of a period, so a variation of 7.
    queue = by_name["queue of the reducer"]
    assert float(queue.mean_s) == pytest.approx(0.3 / 0.7 * 7.0 / 2.0 * service)
    independent = latency.with_independent_phases()
    assert float(latency.variance_s2) == pytest.approx(float(independent.variance_s2), abs=1e-12)
    assert float(latency.quantile_s(0.99)) == pytest.approx(
        float(latency.mean_s + 2.32635 * latency.sd_s), rel=1e-5
    )


def test_published_readings_of_the_reducer_queue() -> None:
    case = pipeline(0.2, 0.2, 0.5, map_busy=0.3)
    waits = {
        arrivals: float(published_tuple_latency(case, arrivals).parts[10].mean_s)
        for arrivals in get_args(ReducerArrivals)
    }
    service = 0.5 * 0.2 / 8.0
    assert waits["Poisson"] == pytest.approx(0.5 / 0.5 * 0.5 * service)
    assert waits["in bulk"] == pytest.approx(7.0 * waits["Poisson"])
    assert waits["clocked"] == pytest.approx(0.0, abs=1e-9)


def test_published_cpu_share() -> None:
    # 4 cores, 2 mappers of 0.3 and 4 reducers of 0.7: a reducer is left 4 - 2.7 cores, so one.
    spare = published(pipeline(0.2, 0.2, 0.7, mappers=2, reducers=4, num_cores=4))
    alone = published(pipeline(0.2, 0.2, 0.7, mappers=2, reducers=4, num_cores=64))
    assert float(spare.parts[-1].mean_s) == pytest.approx(float(alone.parts[-1].mean_s))
    full = published(pipeline(0.2, 0.2, 0.7, map_busy=0.5, mappers=2, reducers=4, num_cores=4))
    # Now 0.9 of one: a mapper at 0.5 gets 4 - 0.5 - 2.8 = 0.7.
    slowed = {part.name: part for part in full.parts}
    base = {part.name: part for part in published(
        pipeline(0.2, 0.2, 0.7, map_busy=0.5, mappers=2, reducers=4, num_cores=64)
    ).parts}  # fmt: skip
    assert float(slowed["update"].mean_s / base["update"].mean_s) == pytest.approx(1.0 / 0.9)
    assert float(slowed["map"].mean_s / base["map"].mean_s) == pytest.approx(1.0 / 0.7)


def test_published_window() -> None:
    final = Finalizing(num_keys=10, per_key_s=0.01, slide_s=5.0)
    case = pipeline(0.2, 0.2, 0.3, finalizing=final)
    row, window = published(case), published_window(case)
    largest = max_normal(8)
    last, finalize = window.parts
    assert float(last.mean_s) == pytest.approx(float(row.mean_s + largest.mean * row.sd_s))
    assert float(last.variance_s2) == pytest.approx(float(largest.sd**2 * row.variance_s2))
    assert float(finalize.mean_s) == pytest.approx(1.1 * 0.1 / 2.0)
    assert float(finalize.variance_s2) == pytest.approx(0.99 * 0.01 / 12.0)
