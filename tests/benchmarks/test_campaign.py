"""The accuracy campaign: what is measured of made-up progress, and what may be quoted."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import campaign_page
import pytest
import terms
from campaign import figures
from campaign.kept_runs import kept_run, run_of, write_lines
from campaign.missed_table import missed_table
from campaign.reading import read_group
from campaign.schedule import (
    ACROSS,
    FIT,
    FIT_SET,
    FITTED,
    GROUPS,
    JUDGED,
    MORE,
    NUM_REPEATS,
    ONCE,
    fit_set_digest,
    runs_of,
)
from campaign.truth import truth_of
from campaign.verdict_table import verdict_table
from campaign.workloads import WORKLOADS, WindowShape

from headway.domain import EventTimeWindow
from headway.errors import HeadwayError
from tests.profiler.streaming.test_stage_fit import a_run

Row = dict[str, Any]
START_S = 1_900_000_000.0


def progress(
    begun_s: float, duration_s: float, first_s: float, last_s: float, **metrics: Any
) -> dict[str, Any]:
    """A batch of a thousand rows; instants count from the start of the run."""
    arrivals = {
        "num_rows": 1000,
        "first_us": round((START_S + first_s) * 1e6),
        "last_us": round((START_S + last_s) * 1e6),
    }
    begun = datetime.fromtimestamp(START_S + begun_s, UTC)
    return {
        "timestamp": begun.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "numInputRows": 1000,
        "durationMs": {"triggerExecution": round(duration_s * 1e3), "commitOffsets": 0},
        "observedMetrics": {"arrivals": arrivals, **metrics},
    }


def test_latency_is_from_arrival_to_commit() -> None:
    events = [progress(at_s, 0.4, at_s - 1.0, at_s) for at_s in (1.0, 2.0, 3.0, 4.0)]
    truth = truth_of(events, START_S, None)
    assert truth is not None
    assert truth.latency.mean == pytest.approx(0.9)
    assert truth.latency.p99 == pytest.approx(0.4 + 0.99)
    assert truth.duration.mean == pytest.approx(0.4)
    assert truth.rows_per_s == pytest.approx(1000.0)
    assert truth.kept_up


def test_rows_that_come_in_bursts_are_counted_in_parts() -> None:
    # Nine tenths of the rows come in the last tenth of the interval.
    ends_s = [0.0, 0.9, *(0.9 + 0.1 * part / 9 for part in range(1, 10))]
    events = [
        progress(at_s, 0.4, at_s - 1.0, at_s)
        | {
            "observedMetrics": {
                "arrivals": {
                    "num_rows": 1000,
                    "quantiles_us": [(START_S + at_s - 1.0 + end_s) * 1e6 for end_s in ends_s],
                }
            }
        }
        for at_s in (1.0, 2.0, 3.0)
    ]
    truth = truth_of(events, START_S, None)
    assert truth is not None
    assert truth.latency.mean == pytest.approx(0.4 + 0.1 * 0.55 + 0.9 * 0.05)


def test_what_came_before_the_end_of_the_warm_up_does_not_count() -> None:
    slow = progress(0.0, 9.0, -9.0, 0.0)
    steady = [progress(at_s, 0.4, at_s - 1.0, at_s) for at_s in (11.0, 12.0, 13.0)]
    truth = truth_of([slow, *steady], START_S + 10.0, None)
    assert truth is not None
    assert truth.num_batches == 3
    assert truth_of([slow], START_S + 10.0, None) is None


def test_a_query_that_falls_behind_has_ever_older_rows() -> None:
    events = [progress(1.5 * k, 1.5, k, k + 1.0) for k in range(8)]
    truth = truth_of(events, START_S, None)
    assert truth is not None
    assert not truth.kept_up


def test_a_window_is_final_with_the_last_batch_that_emits_it() -> None:
    ends_us = [round((START_S + 2.0 * k) * 1e6) for k in range(12)]
    events = [
        progress(k + 0.0, 0.5, k - 1.0, k + 0.0, windows={"ends_us": ends_us[k // 2 : k // 2 + 1]})
        for k in range(24)
    ]
    truth = truth_of(events, START_S + 1.0, WindowShape(size_s=2.0, watermark_delay_s=1.0))
    assert truth is not None
    assert truth.windows is not None
    # Emitted by the batches at its end and a second later, which commits half a second on.
    assert truth.windows.mean == pytest.approx(1.5)


def a_row(**changes: Any) -> Row:
    latency = {"mean": 1.1, "p50": 1.0, "p95": 1.5, "p99": 2.0}
    row: Row = {
        "group": "two-cores",
        "workload": "json",
        "setting": {"trigger_s": 1.0, "partitions": 2, "share": 0.5, "backlog": False},
        "cores_of_others": 0.0,
        "truth": {
            "kept_up": True,
            "latency": {"mean": 1.0, "p50": 1.0, "p95": 1.5, "p99": 2.5},
            "duration": {"p95": 0.5},
        },
        "predicted": {
            "stable": True,
            "near_saturation": False,
            "latency": {**latency, "mean90": [0.9, 1.3], "p99_90": [1.8, 2.2]},
        },
    }
    return row | changes


def test_errors_are_predicted_over_measured() -> None:
    assert figures.errors([a_row()], "latency", "mean") == pytest.approx([0.1])
    assert figures.errors([a_row()], "latency", "p99") == pytest.approx([-0.2])
    assert figures.covered([a_row()]) == (1, 2)


def a_repeat(mean_s: float, **changes: Any) -> Row:
    row = a_row(**changes)
    latency = row["truth"]["latency"] | {"mean": mean_s}
    return row | {"truth": row["truth"] | {"latency": latency}}


def test_a_setting_is_the_mean_of_its_repeats() -> None:
    other = a_repeat(2.0, workload="join")
    setting, alone = figures.by_setting([a_repeat(0.9), other, a_repeat(1.3)])
    assert figures.errors([setting], "latency", "mean") == pytest.approx([0.0])
    assert figures.errors([alone], "latency", "mean") == pytest.approx([-0.45])
    assert figures.repeat_differences([setting, alone], "mean") == pytest.approx([-0.4 / 1.1])
    assert figures.repeats_of([setting]) == [a_repeat(0.9), a_repeat(1.3)]
    # Intervals are those of single repeats: both means are inside, none of the p99.
    assert figures.covered([setting]) == (2, 4)


def test_the_floor_is_the_same_statistic_with_the_other_repeat_as_prediction() -> None:
    (setting,) = figures.by_setting([a_repeat(0.9), a_repeat(1.2)])
    assert figures.repeat_errors([setting], "latency", "mean") == pytest.approx(
        [0.9 / 1.2 - 1, 1.2 / 0.9 - 1]
    )
    assert figures.repeat_errors([setting], "windows", "mean") == []
    assert figures.repeat_errors([a_repeat(0.9)], "latency", "mean") == []


def test_what_the_prediction_leaves_out_counts_in_the_total() -> None:
    warned, unavailable = a_repeat(1.0), a_repeat(1.0)
    warned = {**warned, "predicted": {**warned["predicted"], "near_saturation": True}}
    unavailable = {
        **unavailable,
        "predicted": {**unavailable["predicted"], "latency": None, "stable": False},
    }
    rows = [a_repeat(1.0), warned, unavailable]
    assert len(figures.errors(rows, "latency", "mean")) == 1
    assert figures.errors_of_all(rows, "mean")[2] == float("inf")
    table = list(verdict_table(rows))
    by_name = {
        line.split(" | ")[0][2:]: line.split(" | ")[1:3] for line in table if ": " in line[:60]
    }
    assert by_name["all: judged"] == ["1", "0"]
    assert by_name["all: left out"] == ["2", "1"]
    assert by_name["all: in total"] == ["3", "1"]


def test_the_fit_set_is_read_from_its_file() -> None:
    written = json.loads(FIT_SET.read_text())
    assert [setting._asdict() for setting in FITTED] == [
        {**one, "backlog": False} for one in written["fitted"]
    ]
    assert written["repeats"] == NUM_REPEATS
    assert fit_set_digest() == hashlib.sha256(FIT_SET.read_bytes()).hexdigest()[:12]


def test_runs_of_another_fit_set_are_refused(tmp_path: Path) -> None:
    (tmp_path / "truth.jsonl").write_text(json.dumps({"name": "a", "fit_set": "another"}) + "\n")
    with pytest.raises(HeadwayError, match="another fit set"):
        read_group(GROUPS["two-cores"], tmp_path)


def test_a_kept_run_is_the_run_but_for_digits() -> None:
    run = a_run(1000, 4, grows=True)
    kept = json.loads(json.dumps(kept_run(replace(run, without_rows=run.batches[:1]))))
    again = run_of(kept)
    assert again.configuration == run.configuration
    assert again.without_rows == again.batches[:1]
    for batch, reread in zip(run.batches, again.batches, strict=True):
        assert reread.stages[1].task_mean_s == pytest.approx(batch.stages[1].task_mean_s, rel=1e-4)
        assert (reread.num_rows, reread.state) == (
            batch.num_rows,
            batch.state,
        )
    assert kept_run(again) == kept_run(run_of(json.loads(json.dumps(kept_run(again)))))


def test_a_kept_run_still_has_its_windows_and_its_state() -> None:
    run = a_run(1000, 4, grows=True)
    window = EventTimeWindow(kind="sliding", size_s=60.0, slide_s=5.0)
    shape = replace(run.shape, windows=(window,))
    stored = replace(run, shape=shape, state_store="RocksDB", pinned_state_partitions=4)
    again = run_of(json.loads(json.dumps(kept_run(stored))))
    assert again.shape == shape
    assert (again.state_store, again.pinned_state_partitions) == ("RocksDB", 4)


def test_terms_are_judged_on_kept_runs(tmp_path: Path) -> None:
    rows = []
    for number, (size, partitions) in enumerate(
        ((40_000, 2), (90_000, 4), (20_000, 8), (60_000, 2))
    ):
        run = a_run(size, partitions, grows=False)
        truth = {"latency": {"mean": 0.9, "p99": 1.4}, "kept_up": True}
        rows.append(
            {
                "group": "made up",
                "workload": "orders",
                "setting": {"number": number},
                "rate_per_s": run.rate_per_s,
                "jvm_age_s": 300.0,
                "dispersion": 0.0,
                "truth": truth,
                "run": kept_run(run),
            }
        )
    write_lines(tmp_path / "kept.jsonl.gz", rows)
    table = terms.text(Namespace(runs=tmp_path / "kept.jsonl.gz", fits=2))
    assert "| made up, orders |" in table
    assert all(f"| without {name} |" in table for name in terms.TERMS)


def test_a_disturbed_repeat_leaves_the_other() -> None:
    setting = figures.by_setting([a_repeat(9.0, cores_of_others=0.5), a_repeat(1.1)])
    assert figures.errors(setting, "latency", "mean") == pytest.approx([0.0])


def test_a_setting_that_fell_behind_once_is_not_judged() -> None:
    behind = a_row(truth=a_row()["truth"] | {"kept_up": False, "duration": {"p95": 1.2}})
    for repeats in ([a_row(), behind], [behind, a_row()]):
        (setting,) = figures.by_setting(repeats)
        assert figures.fell_behind(setting)
        assert not figures.is_judged(setting)


@pytest.mark.parametrize(
    "changes",
    [
        {"cores_of_others": 0.5},
        {"setting": {"trigger_s": 0.0, "partitions": 2, "share": 0.0, "backlog": True}},
        {"predicted": {"stable": False, "latency": None}},
        {"predicted": {**a_row()["predicted"], "near_saturation": True}},
        {"truth": a_row()["truth"] | {"kept_up": False, "duration": {"p95": 1.2}}},
    ],
    ids=["disturbed", "backlog", "called unstable", "warned", "fell behind"],
)
def test_what_is_not_judged(changes: Row) -> None:
    assert figures.errors([a_row(**changes)], "latency", "mean") == []


def test_the_p99_of_a_few_windows_is_held_against_the_longest_of_as_many() -> None:
    windows = {"mean": 2.0, "p99": 3.0, "count": 10}
    reread = {"mean": 2.0, "p99": 6.0, "longest": 3.3}
    row = a_row(
        truth=a_row()["truth"] | {"windows": windows},
        predicted=a_row()["predicted"] | {"windows": reread},
    )
    assert figures.error_ratio(row, "windows", figures.LONGEST) == pytest.approx(0.1)


def test_settings_that_miss_are_listed_with_how_far_their_repeats_lie_apart() -> None:
    def two_repeats(name: str, predicted_s: float, repeats_s: tuple[float, float]) -> Row:
        true = a_row()["truth"]
        right = {"mean": predicted_s, "p99": true["latency"]["p99"]}
        latency = a_row()["predicted"]["latency"] | right
        (setting,) = figures.by_setting(
            a_row(
                name=f"{name}/1s-p2-30%/judge/{repeat}",
                workload=name,
                play=repeat,
                predicted=a_row()["predicted"] | {"latency": latency},
                truth=true | {"latency": true["latency"] | {"mean": seen_s}},
            )
            for repeat, seen_s in enumerate(repeats_s, start=1)
        )
        return setting

    rows = [
        two_repeats("far", 3.0, (1.0, 3.0)),
        two_repeats("near", 2.0, (2.0, 2.0)),
        two_repeats("agreed", 3.0, (2.0, 2.0)),
    ]
    sentence, *table = missed_table(rows, every=rows[:1])
    assert sentence.startswith("2 of the judged configurations miss")
    assert "In 1 of them, the repeats themselves differ by more" in sentence
    far, agreed = table[3:5]
    assert far.startswith("| far/1s-p2-30%, ")
    assert far.count("| +50% |") == 2
    assert "| +100% |" in far
    assert "| - | - | +0% |" in agreed


def test_a_growing_state_that_is_done_in_time_is_judged() -> None:
    growing = a_row(truth=a_row()["truth"] | {"kept_up": False})
    assert figures.is_judged(growing)


def test_the_half_that_is_worked_on_is_drawn_by_hash() -> None:
    names = sorted(
        GROUPS["two-cores"].workloads, key=lambda name: hashlib.sha256(name.encode()).hexdigest()
    )
    assert set(figures.WORKED_ON) == set(names[: (len(names) + 1) // 2])


def test_fitted_settings_are_never_judged() -> None:
    assert not set(FITTED) & set(JUDGED)
    for group in GROUPS.values():
        names = [run.name for run in runs_of(group)]
        assert len(names) == len(set(names))
        assert names != sorted(names)
        for workload in group.workloads:
            assert workload in WORKLOADS
            fitted = [r for r in runs_of(group) if r.workload == workload and r.role == FIT]
            assert len(fitted) == 3 * NUM_REPEATS
    assert all(first in GROUPS and second in GROUPS for first, second in ACROSS)


def test_a_setting_is_repeated_only_after_all_others() -> None:
    repeats = [run.repeat for run in runs_of(GROUPS["two-cores"])]
    assert repeats == sorted(repeats)
    again = [run for run in runs_of(GROUPS["two-cores"]) if run.repeat == 2]
    assert {run.setting for run in again} == {*FITTED, *JUDGED, *MORE} - {ONCE}


def test_the_committed_results_make_the_published_page() -> None:
    page = campaign_page.page(campaign_page.RESULTS)
    assert page == (campaign_page.RESULTS.parents[2] / "docs" / "accuracy.md").read_text()
