"""Runs of a campaign that began beside the state of a query that had ended."""

from __future__ import annotations

from typing import Any

import pytest
from campaign.left_state import beside_left_state, duration_ratios, left_state_tables

Row = dict[str, Any]


def a_kept_run(
    name: str, began_s: float, *, jvm_s: float = 0.0, state_bytes: float = 0.0, mean_s: float = 1.0
) -> Row:
    """A run of 25 s, of which the last 20 count, in a JVM that was started at some time."""
    workload, setting, role, _ = name.split("/")
    truth = {
        "from_s": began_s + 5.0,
        "to_s": began_s + 25.0,
        "duration": {"mean": mean_s},
    }
    return {
        "group": "two-cores",
        "name": name,
        "workload": workload,
        "setting": setting,
        "role": role,
        "started_s": began_s,
        "truth": truth,
        "jvm_age_s": began_s + 15.0 - jvm_s,
        "run": {"batches": {"state": {"memory_bytes": [1.0, state_bytes]}}},
    }


RUNS = [
    a_kept_run("growing/asap/judge/1", 100.0, state_bytes=6e8),
    a_kept_run("json/1s/judge/1", 126.0, mean_s=1.5),
    a_kept_run("json/2s/judge/1", 160.0, mean_s=1.1),
    a_kept_run("json/3s/judge/1", 190.0),
    # The second repeat has a JVM of its own.
    a_kept_run("json/1s/judge/2", 200.0, jvm_s=150.0),
    a_kept_run("json/2s/judge/2", 230.0, jvm_s=150.0),
    a_kept_run("json/3s/judge/2", 260.0, jvm_s=150.0, mean_s=0.9),
]


def test_a_state_is_left_for_a_minute_in_its_own_jvm() -> None:
    beside = beside_left_state(RUNS)
    assert {name for _, name in beside} == {"json/1s/judge/1", "json/2s/judge/1"}
    ratios = duration_ratios(RUNS, beside)
    assert sorted(ratios["one"]) == pytest.approx([1.1, 1.5])
    assert ratios["neither"] == pytest.approx([0.9])
    small = [a_kept_run("join/asap/judge/1", 100.0, state_bytes=1.3e8), *RUNS[1:]]
    assert beside_left_state(small) == set()


def test_the_tables_have_both_kinds_of_repeats() -> None:
    text = "\n".join(left_state_tables(RUNS, []))
    assert "| one beside a left state | 2 | 1.30 |" in text
    assert "| neither beside a left state | 1 | 0.90 |" in text
    assert "| beside a left state | 0 | - |" in text
