"""Backlogs of the campaign: the state that their rows leave, and what is left to be run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import live_backlogs
import pytest
from campaign.backlog_table import backlog_floor, backlog_table
from campaign.blocks import MAIN
from campaign.figures import by_setting
from campaign.predicting import worked_off

from headway.domain import JobProfile, StateProfile
from headway.models.job.setting import duration_model
from tests.factories import a_configuration, a_profile

Row = dict[str, Any]
STATE_ROW_S = 1e-6


def a_backlog(rate_per_s: float, ran_per_s: float = 0.0, repeat: int = 1) -> Row:
    return {
        "group": "two-cores",
        "workload": "join",
        "name": f"join/asap-p8-backlog/judge/{repeat}",
        "role": "judge",
        "setting": {"trigger_s": 0.0, "partitions": 8, "share": 0.0, "backlog": True},
        "max_rows": 200_000,
        "rate_per_s": rate_per_s,
        "cores_of_others": 0.0,
        "truth": {"rows_per_s": ran_per_s},
        "predicted": {"rows_per_s": 100_000.0},
    }


def with_state(operator: str, **figures: float) -> JobProfile:
    profile = a_profile(
        state=StateProfile(rows=30_000, memory_bytes=10**6, commit_per_partition_s=0.001, **figures)  # type: ignore[arg-type]
    )
    *others, holding = profile.stages
    stages = (*others, replace(holding, task_per_state_row_s=STATE_ROW_S))
    shape = replace(profile.shape, stateful_operators=(operator,))
    return replace(profile, stages=stages, shape=shape)


def test_a_backlog_is_worked_off_with_the_state_that_it_leaves() -> None:
    setting = a_configuration()
    growing = with_state("stateStoreSave", growth_per_s=5000.0)
    rate_per_s = growing.settings[-1].rate_per_s
    join = with_state("symmetricHashJoin", growth_per_s=0.0, rate_exponent=1.0, updated_rows=1e4)
    grown, all_kept = worked_off(growing, setting, a_backlog(1e6), 1.0), a_backlog(1e9)
    # Of a backlog that arrived at twice the profiled rate, a join holds twice its 20,000 rows.
    live = worked_off(join, setting, a_backlog(2.0 * rate_per_s), 1.0)
    holds = replace(join, arrivals=replace(join.arrivals, rate_per_s=2.0 * rate_per_s))
    model = duration_model(holds, setting.num_slots, setting.shuffle_partitions)
    assert live["duration_mean"] == pytest.approx(float(model.mean_s(200_000.0)), rel=1e-3)
    kept = worked_off(join, setting, all_kept, 1.0)
    # Both keep every row, so batches become longer and longer.
    assert kept["duration_mean"] > 1.2 * live["duration_mean"]
    assert growing.state_growth_per_s == pytest.approx(rate_per_s)
    assert grown["duration_mean"] == pytest.approx(kept["duration_mean"], rel=0.1)


def test_the_table_has_the_floor_of_the_repeats() -> None:
    rows = by_setting([a_backlog(1e6, 90_000.0), a_backlog(1e6, 108_000.0, repeat=2)])
    assert backlog_floor(rows) == pytest.approx([0.2, -1 / 6])
    text = "\n".join(backlog_table(rows))
    assert "| 99,000/s | 90,000, 108,000 | +1.0% |" in text
    assert "1 of 1 are within 10%" in text
    assert "within 10% in 0% of the cases" in text


def test_what_is_on_record_is_not_run_again(tmp_path: Path) -> None:
    every = live_backlogs.left(tmp_path, ("join",), 1)
    assert sorted(str(run.setting) for run in every) == [
        "2s-p8-45%", "3s-p2-60%", "asap-p2-30%", "asap-p2-backlog"
    ]  # fmt: skip
    (tmp_path / "truth.jsonl").write_text(json.dumps({"name": every[0].name}) + "\n")
    assert live_backlogs.left(tmp_path, ("join",), 1) == every[1:]
    assert set(live_backlogs.AFFECTED) <= set(MAIN.workloads)
