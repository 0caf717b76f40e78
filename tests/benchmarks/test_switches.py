"""Pairs of runs before and after a switch: which are run, and how their gains are judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from switch_page import page_lines
from switches.facts import facts_of
from switches.judging import Gain, judged_pairs, noise_ratio, predicted_gain
from switches.pairs import AFTER, BEFORE, SESSIONS, Pair, Side, Split, read_split, runs_of

from headway.domain import JobProfile
from tests.factories import a_profile


def a_pair(**changes: Any) -> Pair:
    return replace(
        Pair(
            name="partitions",
            switch="partitions",
            session="default",
            job="totals",
            trigger_s=1.0,
            rate_per_s=5000.0,
            partitions=8,
            before=Side(),
            after=Side(partitions=2),
            repeated=True,
        ),
        **changes,
    )


def a_split(*pairs: Pair) -> Split:
    return Split(pairs=pairs, warm_s=10.0, measured_s=35.0, allowed_ratio=0.2, required=12)


def a_run(name: str, latency_s: float, duration_s: float = 0.3) -> Mapping[str, Any]:
    truth = {
        "latency": {"mean": latency_s},
        "windows": None,
        "duration": {"mean": duration_s},
    }
    facts = {"phases_s": {"addBatch": 0.2}, "num_batches": 35, "num_empty_batches": 0}
    return {"run": name, "truth": truth, "facts": facts, "day": "2026-11-29"}


def test_the_split_has_what_was_agreed() -> None:
    split = read_split()
    assert len(split.pairs) == 15 == len({pair.name for pair in split.pairs})
    assert {pair.session for pair in split.pairs} == set(SESSIONS)
    num_runs = sum(len(list(runs_of(pair, number))) for number, pair in enumerate(split.pairs))
    assert num_runs == 2 * 15 + 5
    assert num_runs * split.run_s <= 30 * 60
    for pair in split.pairs:
        assert pair.before != pair.after


def test_every_other_pair_begins_with_the_changed_side() -> None:
    first, second = (
        [(run.side, run.repeat) for run in runs_of(a_pair(), place)] for place in (0, 1)
    )
    assert first == [(BEFORE, 1), (AFTER, 1), (BEFORE, 2)]
    assert second == [(AFTER, 1), (BEFORE, 1), (BEFORE, 2)]


def test_noise_is_that_of_repeats_over_the_batch() -> None:
    """Repeats that differ by 10% of a batch: 95% of differences are within 1.96 times that."""
    runs = [a_run("partitions/before/1", 0.80), a_run("partitions/before/2", 0.83)]
    by_name = {run["run"]: run for run in runs}
    assert noise_ratio(a_split(a_pair()), by_name, "latency") == pytest.approx(0.196)
    assert noise_ratio(a_split(a_pair()), by_name, "windows") == 0.0


def predicted_s(profile: JobProfile) -> float:
    gain = predicted_gain(a_pair(), profile)
    assert isinstance(gain, Gain)
    return gain.expected_s


def test_a_prediction_is_within_a_fifth_or_the_noise_or_it_is_not() -> None:
    expected_s = predicted_s(a_profile())
    assert expected_s != 0.0

    def is_within(measured_s: float, repeat_s: float) -> bool:
        runs = [
            a_run("partitions/before/1", 0.8),
            a_run("partitions/after/1", 0.8 + measured_s),
            a_run("partitions/before/2", 0.8 + repeat_s),
        ]
        (judged,) = judged_pairs(a_split(a_pair()), runs, {"partitions": a_profile()})
        return judged.is_within(0.2)

    assert is_within(expected_s / 1.19, 0.0)
    assert not is_within(expected_s / 1.3, 0.0)
    assert is_within(expected_s / 1.3, expected_s)


def test_a_pair_without_a_prediction_is_not_within_and_says_why() -> None:
    pair = a_pair(name="changelog", switch="changelog", after=Side(conf={"a": "b"}))
    runs = [a_run("changelog/before/1", 0.8), a_run("changelog/after/1", 0.8)]
    page = "\n".join(page_lines(a_split(pair), runs, {"changelog": a_profile()}))
    assert "- changelog: the log shows no state." in page
    assert "**0 of 1 pairs" in page


def test_a_pair_of_which_a_side_failed_is_left_out_and_named() -> None:
    failed = {**a_run("partitions/after/1", 0.8), "truth": None, "failed": "query ended"}
    runs = [a_run("partitions/before/1", 0.8), failed]
    page = "\n".join(page_lines(a_split(a_pair()), runs, {}))
    assert "- partitions/after/1: query ended" in page
    assert "**0 of 0 pairs" in page


def test_a_minimum_of_rows_is_predicted_by_its_interval() -> None:
    """10,000 rows at 5,000/s take 2 s instead of 1 s: half a second more, and larger batches."""
    after = Side(reader={"minOffsetsPerTrigger": "10000"})
    gain = predicted_gain(a_pair(switch="min-offsets", after=after), a_profile())
    assert isinstance(gain, Gain)
    assert 0.5 < gain.expected_s < 0.7


def test_facts_are_means_over_batches_that_ran() -> None:
    def event(second: int, rows: int, wal_ms: int, **durations: int) -> dict[str, Any]:
        return {
            "timestamp": f"2030-01-01T00:00:{second:02}.000Z",
            "numInputRows": rows,
            "durationMs": {"walCommit": wal_ms, **durations},
            "stateOperators": [{"commitTimeMs": 10, "customMetrics": {"loads": 2}}],
        }

    events = [
        event(0, 5, 999, addBatch=1),
        event(10, 5, 10, addBatch=1),
        event(12, 0, 40, addBatch=1),
        event(13, 0, 0),
        event(14, 5, 20, addBatch=1),
    ]
    facts = facts_of(events, 1893456005.0)
    assert (facts["num_batches"], facts["num_empty_batches"]) == (2, 1)
    assert facts["interval_s"] == 4.0
    assert facts["phases_s"]["walCommit"] == pytest.approx(0.015)
    assert facts["empty_phases_s"]["walCommit"] == pytest.approx(0.04)
    assert facts["state"]["commitTimeMs"] == 10
    assert facts["state"]["loads"] == 2
    assert math.isfinite(facts["phases_s"]["addBatch"])
