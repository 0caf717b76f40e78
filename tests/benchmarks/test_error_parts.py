"""Where errors come from: shares that add up, of made-up batches and of the committed ones."""

from __future__ import annotations

import gzip
import json
from typing import Any

import error_parts
import numpy as np
import pytest
from campaign.parts import latency_given_duration, parts_of
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import Arrivals, JobProfile
from headway.models.job.setting import duration_model
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    QueryRun,
    StageSample,
    StateSample,
)
from tests.factories import a_configuration, a_profile, a_stage_sample

Row = dict[str, Any]
seconds = st.floats(0.01, 10.0)


@given(
    predicted=st.lists(seconds, min_size=6, max_size=6),
    seen=st.lists(seconds, min_size=6, max_size=6),
)
def test_shares_make_the_whole_error(predicted: list[float], seen: list[float]) -> None:
    parts = {
        "duration": [sum(predicted[:4]), sum(seen[:4])],
        "checkpoint": [predicted[0], seen[0]],
        "driver": [predicted[1], seen[1]],
        "levels": [
            {"shuffled": False, "tasks": [predicted[4], seen[4]], "span": [predicted[2], seen[2]]},
            {"shuffled": True, "tasks": [predicted[5], seen[5]], "span": [predicted[3], seen[3]]},
        ],
    }
    error = sum(predicted[:4]) / sum(seen[:4]) - 1
    assert sum(error_parts.contributions(parts).values()) == pytest.approx(error)


def test_shares_of_the_committed_runs_make_their_errors() -> None:
    lines = gzip.decompress(error_parts.RESULTS.read_bytes()).splitlines()
    judged = error_parts.with_parts([json.loads(line) for line in lines])
    assert len(judged) > 50
    for row in judged:
        predicted, seen = row["parts"]["duration"]
        shares = error_parts.contributions(row["parts"])
        # Spans and phases are read from other events than the duration.
        assert sum(shares.values()) == pytest.approx(predicted / seen - 1, abs=0.03), row["name"]


def a_stage(level: int, num_tasks: int, task_s: float, span_s: float) -> StageSample:
    """Tasks that are all alike."""
    return a_stage_sample(
        level=level,
        num_tasks=num_tasks,
        rows=5000.0,
        rows_largest=0.0,
        task_mean_s=task_s,
        outside_run_s=0.004,
        span_s=span_s,
    )


def a_run(profile: JobProfile, slowness: float) -> QueryRun:
    """Two batches of 5000 rows that take so many times what the profile foretells."""
    configuration = a_configuration()
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    spans_s = [slowness * float(level.at(5000.0)) for level in model.levels]
    stages = tuple(
        a_stage(level, num_tasks, 0.9 * span_s, span_s)
        for level, (num_tasks, span_s) in enumerate(zip((4, 8), spans_s, strict=True))
    )
    phases_s = {phase.name: slowness * phase.mean_s for phase in profile.driver_phases}
    batches = tuple(
        BatchSample(
            batch_id=number,
            started_s=float(number),
            interval_s=1.0,
            jvm_age_s=300.0,
            duration_s=sum(phases_s.values()) + sum(spans_s),
            phases_s=phases_s,
            num_rows=5000,
            state_commit_s=0.01,
            state=StateSample(num_rows=1000, memory_bytes=1000, num_stores=8),
            event_time_lag_s=None,
            stages_s=sum(spans_s),
            stages=stages,
        )
        for number in (1, 2)
    )
    return QueryRun(
        query_id="1",
        query_name="orders",
        shape=profile.shape,
        configuration=configuration,
        arrivals=ArrivalSeries(
            counted="rows",
            arrived_rows=np.full(2, 5000.0),
            interval_s=np.ones(2),
            lag_rows=None,
            partition_rows={},
        ),
        rate_per_s=5000.0,
        num_cut=0,
        pinned_state_partitions=8,
        source_partitions=4,
        batches=batches,
    )


def test_a_run_that_is_slower_in_all_its_parts() -> None:
    profile = a_profile()
    parts = parts_of(profile, a_run(profile, 1.25), from_s=0.0, factor=1.0)
    assert parts is not None
    predicted, seen = parts["duration"]
    assert seen / predicted == pytest.approx(1.25)
    for name in ("checkpoint", "driver"):
        assert parts[name][1] / parts[name][0] == pytest.approx(1.25), name
    for level in parts["levels"]:
        assert level["span"][1] / level["span"][0] == pytest.approx(1.25)
    assert [level["shuffled"] for level in parts["levels"]] == [False, True]
    assert sum(error_parts.contributions(parts).values()) == pytest.approx(predicted / seen - 1)
    assert parts_of(profile, a_run(profile, 1.25), from_s=9.0, factor=1.0) is None


def test_latency_where_the_mean_duration_is_put_right() -> None:
    profile = a_profile()
    arrivals = Arrivals(rate_per_s=5000.0, dispersion_ratio=0.0)
    run = a_run(profile, 1.25)
    predicted_s = run.batches[0].duration_s / 1.25
    given_right = latency_given_duration(profile, run, arrivals, 1.25 * predicted_s)
    assert given_right is not None
    assert given_right["factor"] == pytest.approx(1.25, rel=0.01)
    # Half a trigger and the batch, less the offsets' commit, which no row waits for.
    assert given_right["mean"] == pytest.approx(0.5 + 1.25 * (predicted_s - 0.028), rel=0.01)
    assert latency_given_duration(profile, run, arrivals, 1e6) is None
