"""Pairs of runs before and after a switch: which are run, and how their gains are judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from switch_page import page_lines
from switches.facts import facts_of
from switches.judging import Gain, judged_pairs, noise_ratio, predicted_gain
from switches.pairs import (
    AFTER,
    BEFORE,
    SESSIONS,
    Pair,
    Side,
    Split,
    measured_runs,
    read_split,
    runs_of,
    split_digest,
)

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
        ),
        **changes,
    )


def a_split(*pairs: Pair) -> Split:
    return Split(
        pairs=pairs, warm_up_s=6.0, warm_s=4.0, measured_s=16.0, allowed_ratio=0.2, required=12,
        most_others_cores=0.25,
    )  # fmt: skip


def a_run(name: str, latency_s: float, **changes: Any) -> dict[str, Any]:
    pair, side, _ = name.split("/")
    truth = {"latency": {"mean": latency_s}, "duration": {"mean": 0.3}}
    facts = {"phases_s": {"addBatch": 0.2}, "num_batches": 16, "num_empty_batches": 0}
    return {
        "run": name, "split": split_digest(), "jvm": "local-1", "cores_of_others": 0.0,
        "pair": pair, "side": side, "truth": truth, "facts": facts, "day": "2026-11-29", **changes,
    }  # fmt: skip


def four_runs(name: str, *latencies_s: float) -> list[dict[str, Any]]:
    """Runs of the first pair of a split, in their order."""
    order = ("before/1", "after/1", "after/2", "before/2")
    return [
        a_run(f"{name}/{run}", latency_s) for run, latency_s in zip(order, latencies_s, strict=True)
    ]


def test_the_split_has_what_was_agreed() -> None:
    split = read_split()
    assert len(split.pairs) == 15 == len({pair.name for pair in split.pairs})
    assert {pair.session for pair in split.pairs} == set(SESSIONS)
    assert sum(map(split.takes_s, split.pairs)) + 4 * 28 <= 27 * 60
    for pair in split.pairs:
        assert pair.before != pair.after


def test_every_other_pair_begins_with_the_changed_side() -> None:
    first, second = (
        [(run.side, run.repeat) for run in runs_of(a_pair(), place)] for place in (0, 1)
    )
    assert first == [(BEFORE, 1), (AFTER, 1), (AFTER, 2), (BEFORE, 2)]
    assert second == [(AFTER, 1), (BEFORE, 1), (BEFORE, 2), (AFTER, 2)]


def test_runs_of_a_pair_count_together_undisturbed_and_in_one_jvm() -> None:
    split, runs = a_split(a_pair()), four_runs("partitions", 0.8, 0.7, 0.7, 0.8)
    assert set(measured_runs(split, runs)) == {"partitions"}
    for spoilt in ({"jvm": "local-2"}, {"cores_of_others": 0.3}, {"truth": None}):
        assert not measured_runs(split, [*runs, {**runs[1], **spoilt}])
    assert not measured_runs(split, runs[:3])


def test_noise_is_what_repeats_differ_by_beyond_an_even_drift() -> None:
    """Runs that all lose 30 ms have none; a run that is off by 30 ms, 10% of a batch, has some."""
    split = a_split(a_pair())
    drifting = measured_runs(split, four_runs("partitions", 0.83, 0.70, 0.67, 0.74))
    assert noise_ratio(split, drifting, "latency") == pytest.approx(0.0)
    noisy = measured_runs(split, four_runs("partitions", 0.80, 0.70, 0.70, 0.83))
    assert noise_ratio(split, noisy, "latency") == pytest.approx(1.96 * 0.1 / math.sqrt(20.0))
    assert noise_ratio(split, noisy, "windows") == 0.0


def predicted_s(profile: JobProfile) -> float:
    gain = predicted_gain(a_pair(), profile)
    assert isinstance(gain, Gain)
    return gain.expected_s


def test_a_prediction_is_within_a_fifth_or_the_noise_or_it_is_not() -> None:
    expected_s = predicted_s(a_profile())
    assert expected_s != 0.0

    def is_within(measured_s: float, noise_s: float) -> bool:
        after_s = 0.8 + measured_s
        runs = four_runs("partitions", 0.8 - noise_s, after_s, after_s, 0.8 + noise_s)
        (judged,) = judged_pairs(a_split(a_pair()), runs, {"partitions": a_profile()})
        return judged.is_within(0.2)

    assert is_within(expected_s / 1.19, 0.0)
    assert not is_within(expected_s / 1.3, 0.0)
    assert is_within(expected_s / 1.3, expected_s)


def test_a_pair_without_a_prediction_is_not_within_and_says_why() -> None:
    pair = a_pair(name="changelog", switch="changelog", after=Side(conf={"a": "b"}))
    runs = four_runs("changelog", 0.8, 0.8, 0.8, 0.8)
    page = "\n".join(page_lines(a_split(pair), runs, {"changelog": a_profile()}))
    assert "- changelog: the log shows no state." in page
    assert "**0 of 1 pairs" in page


def test_a_pair_of_which_a_side_failed_is_left_out_and_named() -> None:
    failed = a_run("partitions/after/1", 0.8, truth=None, failed="query ended")
    runs = [a_run("partitions/before/1", 0.8), failed]
    page = "\n".join(page_lines(a_split(a_pair()), runs, {}))
    assert "- partitions/after/1: query ended" in page
    assert "**0 of 0 pairs" in page


def test_a_minimum_of_rows_is_predicted_by_its_interval() -> None:
    """9,000 rows at 5,000/s: at 2 s instead of 1 s, half a second more, and larger batches."""
    after = Side(reader={"minOffsetsPerTrigger": "9000"})
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
