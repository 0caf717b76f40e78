from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import zstandard

from headway.models.arrays import Array
from headway.profiler.streaming.trigger import contradiction, read_trigger
from tests.shared_data import GROUND_TRUTH, RECORDED, needs


def on_grid(
    trigger_s: float, durations_s: Array, *, seed: int = 0, late_s: float = 0.004
) -> tuple[Array, Array]:
    """Starts by Spark's rule: on the grid after an idle gap, at once when a batch ran over."""
    random = np.random.default_rng(seed)
    free_s = 1.79e9 + random.uniform(0, 100)
    due_s = np.ceil(free_s / trigger_s) * trigger_s
    starts: list[float] = []
    for duration_s in durations_s:
        starts.append(round(max(free_s, due_s) + random.uniform(0, late_s), 3))
        free_s = starts[-1] + duration_s
        due_s = (np.floor(starts[-1] / trigger_s) + 1) * trigger_s
    return np.array(starts), durations_s


@pytest.mark.parametrize("trigger_s", [0.1, 0.25, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_comes_back_exactly(trigger_s: float, seed: int) -> None:
    durations_s = np.random.default_rng(seed).uniform(0.2, 0.6, 30) * trigger_s
    assert read_trigger(*on_grid(trigger_s, durations_s, seed=seed))[0] == trigger_s


def test_half_an_hour_comes_back_exactly_among_a_hundred_thousand_intervals() -> None:
    durations_s = np.random.default_rng(0).uniform(20.0, 60.0, 30)
    assert read_trigger(*on_grid(1800.0, durations_s))[0] == 1800.0


@pytest.mark.parametrize("seed", range(3))
def test_batches_that_run_over_do_not_hide_the_interval(seed: int) -> None:
    durations_s = np.random.default_rng(seed).choice([0.4, 0.8, 1.3, 2.7], 60)
    assert read_trigger(*on_grid(1.0, durations_s, seed=seed))[0] == 1.0


def test_batches_back_to_back_are_as_fast_as_possible() -> None:
    durations_s = np.random.default_rng(0).uniform(0.2, 0.4, 50)
    started_s = 1.79e9 + np.concatenate([[0.0], np.cumsum(durations_s + 0.003)[:-1]])
    assert read_trigger(started_s, durations_s)[0] == 0.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("num_batches", [5, 8, 40])
def test_pauses_without_a_grid_name_no_interval(seed: int, num_batches: int) -> None:
    random = np.random.default_rng(seed)
    durations_s = random.uniform(0.05, 0.1, num_batches)
    pauses_s = random.exponential(0.5, num_batches) + 0.05
    started_s = np.round(1.79e9 + np.cumsum(durations_s + pauses_s), 3)
    trigger_s, why = read_trigger(started_s, durations_s)
    assert trigger_s is None
    assert "no common grid" in why


@pytest.mark.parametrize("num_batches", [0, 1, 3])
def test_few_batches_tell_nothing(num_batches: int) -> None:
    started_s = 1.79e9 + np.arange(float(num_batches))
    assert read_trigger(started_s, np.full(num_batches, 0.1))[0] is None


def test_a_clock_that_is_set_back_once_does_not_matter() -> None:
    started_s, durations_s = on_grid(2.0, np.full(30, 0.5))
    started_s[15:] -= 600.0
    assert read_trigger(started_s, durations_s)[0] == 2.0


def test_two_late_starts_in_a_short_log_do_not_halve_the_interval() -> None:
    # A query on Kafka with a trigger of 1 s, restarted after an outage: the first batch starts at
    # once, and a busy driver starts two of the others 6 ms and 13 ms late.
    milliseconds = [-251, 140, 1000, 2000, 3000, 4001, 5001, 6001, 7001, 8006, 9000, 10013, 11001,
                    12001, 13001, 14000, 15000]  # fmt: skip
    durations_s = np.array([389, 231, 241, 336, 189, 210, 193, 187, 205, 234, 205, 277, 168, 300,
                            228, 234, 166]) / 1e3  # fmt: skip
    started_s = 1795284730.0 + np.array(milliseconds) / 1e3
    assert read_trigger(started_s, durations_s)[0] == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_more_late_starts_than_that_name_no_longer_interval_than_the_true_one(seed: int) -> None:
    durations_s = np.random.default_rng(seed).uniform(0.1, 0.3, 12) * 0.5
    started_s, _ = on_grid(0.5, durations_s, seed=seed)
    started_s[[3, 7]] += 0.02
    assert read_trigger(started_s, durations_s)[0] == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_busy_driver_does_not_hide_the_interval(seed: int) -> None:
    # 39 of 44 batches within 6 ms of a grid of 5 s, the others up to half a second late.
    random = np.random.default_rng(seed)
    started_s, durations_s = on_grid(5.0, random.uniform(0.8, 2.5, 44), seed=seed, late_s=0.006)
    started_s[random.choice(np.arange(1, 44), 5, replace=False)] += random.uniform(0.02, 0.5, 5)
    assert read_trigger(started_s, durations_s)[0] == 5.0
    assert contradiction(5.0, started_s, durations_s) is None


@pytest.mark.parametrize("seed", range(3))
def test_an_interval_that_most_batches_overrun_is_found(seed: int) -> None:
    durations_s = np.random.default_rng(seed).choice([3.1, 6.2, 7.7], 60, p=[0.2, 0.4, 0.4])
    assert read_trigger(*on_grid(5.0, durations_s, seed=seed))[0] == 5.0


def as_fast_as_possible(seed: int, num_batches: int, pause_share: float) -> tuple[Array, Array]:
    """Each batch follows at once, unless rows are waited for."""
    random = np.random.default_rng(seed)
    durations_s = np.round(random.uniform(0.05, 0.9, num_batches), 3)
    waits = random.random(num_batches) < pause_share
    gaps_s = np.where(waits, random.exponential(0.5, num_batches), random.uniform(0, 0.004))
    started_s = 1.79e9 + np.cumsum(np.append(0.0, (durations_s + gaps_s)[:-1]))
    return np.round(started_s, 3), durations_s


@pytest.mark.parametrize("pause_share", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("num_batches", [6, 20, 44, 200])
def test_as_fast_as_possible_is_no_grid(num_batches: int, pause_share: float) -> None:
    for seed in range(10):
        assert not read_trigger(*as_fast_as_possible(seed, num_batches, pause_share))[0], seed


@pytest.mark.parametrize("phase_s", [0.13, 0.377, 0.71])
@pytest.mark.parametrize("every_s", [1.0, 10.0])
def test_rows_that_come_at_intervals_of_their_own_are_no_trigger(
    every_s: float, phase_s: float
) -> None:
    # Spark's rate source counts seconds from its own start.
    random = np.random.default_rng(3)
    durations_s = np.round(random.uniform(0.1, 0.6, 40), 3)
    started_s = 1.79e9 + phase_s + every_s * np.arange(40) + random.uniform(0, 0.010, 40)
    assert read_trigger(np.round(started_s, 3), durations_s)[0] is None


def test_available_now_leaves_no_interval() -> None:
    # All there is in a few batches, one after the other; the query then ends.
    durations_s = np.array([4.2, 3.9, 4.0, 3.8, 1.1])
    started_s = 1.79e9 + 0.4 + np.append(0.0, np.cumsum(durations_s + 0.002)[:-1])
    assert read_trigger(np.round(started_s, 3), durations_s)[0] == 0.0


def test_a_stated_interval_is_held_against_the_log() -> None:
    log = on_grid(5.0, np.random.default_rng(1).uniform(0.8, 2.5, 44))
    assert contradiction(5.0, *log) is None
    for stated_s in (0.0, 2.0, 10.0):
        assert contradiction(stated_s, *log) == "batches start on the grid of 5.00 s"
    fast = as_fast_as_possible(1, 44, pause_share=0.0)
    assert contradiction(5.0, *fast) == "batches follow each other without a pause"
    assert contradiction(0.01, *fast) is None  # which they all overrun


def test_recorded_runs_tell_their_trigger() -> None:
    stated = json.loads((RECORDED / "truth.json").read_text(encoding="utf-8"))
    batches = batches_by_query(next(RECORDED.glob("eventlog_v2_*/events_1_*")))
    found = [read_trigger(*batches[run["name"]])[0] for run in stated]
    assert found == [1.0, 2.0, 1.0] == [run["trigger_s"] for run in stated]


@needs(
    GROUND_TRUTH,
    stand_in="tests/profiler/streaming/test_trigger.py::test_recorded_runs_tell_their_trigger",
)
def test_measured_runs_tell_their_trigger() -> None:
    num_runs = 0
    for truth in GROUND_TRUTH.glob("*/truth.jsonl"):
        stated = [json.loads(line) for line in truth.read_text(encoding="utf-8").splitlines()]
        batches = batches_by_query(next(truth.parent.glob("eventlog_v2_*/events_1_*")))
        for run in stated:
            started_s, durations_s = batches[run["query_id"]]
            found = read_trigger(started_s, durations_s)[0]
            if float(np.median(durations_s)) < (run["trigger_s"] or np.inf):
                assert found == run["trigger_s"], run
            else:
                assert found in (0.0, run["trigger_s"]), run  # overruns, as fast as possible
            num_runs += 1
    assert num_runs > 20


def batches_by_query(log: Path) -> dict[str, tuple[Array, Array]]:
    """Starts and durations of the batches with rows in a log, by name and id of the query."""
    by_query: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    with zstandard.open(log, "rt", encoding="utf-8") as lines:
        for line in lines:
            if "QueryProgressEvent" in line[:120]:
                progress = json.loads(line)["progress"]
                if any(source["numInputRows"] for source in progress["sources"]):
                    started = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
                    took_s = progress["durationMs"]["triggerExecution"] / 1e3
                    place = progress["batchId"]
                    for query in (progress["name"], progress["id"]):
                        by_query[query][place] = (started.timestamp(), took_s)
    found = {}
    for query, of_query in by_query.items():
        started_s, durations_s = np.array([of_query[place] for place in sorted(of_query)]).T
        found[query] = (started_s, durations_s)
    return found
