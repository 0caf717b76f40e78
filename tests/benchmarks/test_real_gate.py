"""What is measured of queries under the gate: latencies from progress, results, the page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import real_gate
import real_gate_page
from real.busy import busy_ratio, measured_busy_ratio
from real.cells import CELLS, WAYS, ways_of_run
from real.comparison import difference
from real.measured import epoch_s, outcome
from real.records import mean_of_ways_s
from real.shedding import FOREVER_S, Limits, RowCosts, in_time, limits_of
from result_lines import keep, lines_of, this_machine

from headway.domain import WindowGrid
from headway.formats.profile_file import save_profile
from tests.factories import a_profile


def stamp(second: float) -> str:
    return f"1970-01-01T00:{int(second) // 60:02}:{second % 60:06.3f}Z"


def a_batch(start_s: float, watermark_s: float, *, rows: int = 100) -> dict[str, Any]:
    return {
        "timestamp": stamp(start_s),
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 500, "commitOffsets": 100},
        "eventTime": {"watermark": stamp(watermark_s), "min": stamp(9.0), "max": stamp(start_s)},
    }


def test_windows_leave_when_the_sink_has_them_and_open_ones_count() -> None:
    progress = [a_batch(10.0, 0.0), a_batch(12.0, 9.5), a_batch(16.0, 11.0), a_batch(21.0, 15.5)]
    grid = WindowGrid(slide_s=5.0)
    found = outcome(progress, grid, 10.0, 29.0)
    # The window to 10 leaves at 16.4, that to 15 at 21.4; that to 20 is open, 25 not yet late.
    assert found.window_latency_s == pytest.approx([6.4, 6.4, 9.0, 4.0])
    assert found.num_open == 2
    # What came between the starts of batches waited for the second of them, and 400 ms.
    assert found.row_wait_s[:, 0] == pytest.approx([0.4, 0.4, 0.4])
    assert found.row_wait_s[:, 1] == pytest.approx([2.4, 4.4, 5.4])
    later = outcome(progress, grid, 12.0, 29.0)
    assert later.window_latency_s == pytest.approx([6.4, 9.0, 4.0])


def test_a_query_that_emits_nothing_is_late_with_all_its_windows() -> None:
    found = outcome([], WindowGrid(slide_s=5.0), 11.0, 29.0)
    assert found.num_open == 3
    assert found.window_latency_s == pytest.approx([14.0, 9.0, 4.0])
    assert epoch_s(stamp(75.25)) == 75.25


def test_lines_that_were_cut_are_left_out_and_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    keep(file, {"run": 0})
    with file.open("a") as out:
        out.write('{"run": 1, "way": "pro')
    assert lines_of(file) == [{"run": 0}]
    keep(file, {"run": 1})
    assert lines_of(file) == [{"run": 0}, {"run": 1}]


def test_ways_come_in_another_order_each_run_and_the_same_when_asked_again() -> None:
    names = [way.name for way in WAYS]
    orders = [[way.name for way in ways_of_run(CELLS[0], run, names, {}, 1)] for run in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(names)


def test_a_paired_difference_is_tighter_than_the_runs_are_apart() -> None:
    generator = np.random.default_rng(3)
    slower = {run: generator.normal(3.0 + run, 0.3, 120) for run in range(4)}
    faster = {run: 0.5 * generator.normal(3.0 + run, 0.3, 120) for run in range(4)}
    found = difference(faster, slower)
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < -0.5 < found.high
    assert found.high - found.low < 0.05
    assert difference({0: slower[0]}, {1: slower[1]}) is None


def test_rows_in_time_are_those_kept_whose_batch_ends_within_the_limit() -> None:
    progress = [a_batch(10.0, 0.0), a_batch(11.0, 0.0), a_batch(13.0, 0.0)]
    for one, shed in zip(progress, (0, 30, 60), strict=True):
        one["observedMetrics"] = {"shedding": {"rows": 100, "shed": shed}}
    found = in_time(progress, Limits(cheap_s=1.0, dear_s=0.5), 10.0)
    # A second's rows: the cheap ones whole, the dear to half; of two seconds half as many.
    assert found.in_time == pytest.approx(100 * (0.8 + 0.2 * 0.5) + 100 * (0.8 + 0.2 * 0.5) / 2)
    assert (found.rows, found.shed, found.differing) == (200, 90, 0)
    # Without shedding only rows younger than the limit less the batch are in time.
    free = in_time(progress, Limits(cheap_s=FOREVER_S, dear_s=FOREVER_S), 10.0)
    assert free.in_time == pytest.approx(100 + 100 * 1.6 / 2)


def test_ages_fill_the_trigger_interval() -> None:
    costs = RowCosts(fixed_s=0.1, cheap_s=3e-6, dear_s=2e-5, shed_s=1e-6)
    rate = 1.6 * costs.capacity_per_s
    for way in ("blind", "by-cost"):
        limits = limits_of(way, rate, costs)
        cheap, dear = min(limits.cheap_s, 1.0), min(limits.dear_s, 1.0)
        work_s = 0.1 + rate * 1e-6 + rate * (0.8 * cheap * 2e-6 + 0.2 * dear * 1.9e-5)
        assert work_s == pytest.approx(0.9)
    assert (
        limits_of("by-cost", rate, costs).kept_ratio()
        > 0.1 + limits_of("blind", rate, costs).kept_ratio()
    )


def a_run(run: int, way: str, latency_s: float, machine: str) -> dict[str, Any]:
    """A line of results: one query with two windows."""
    query = {
        "name": "windowed0", "windows_s": [latency_s, latency_s + 0.1 + 0.1 * run],
        "num_open": 0, "num_batches": 9, "row_mean_s": 1.0, "row_p99_s": 2.0,
        "rows": 990, "offered_rows": 1000.0,
    }  # fmt: skip
    report = {
        "policy": "promise", "at_once": 2 - run, "num_decisions": 40, "decision_p50_s": 0.001,
        "decision_p99_s": 0.004, "predicted_duration_s": [0.2],
        "observed_duration_s": [0.25],
    }  # fmt: skip
    line = {"cell": "spread-8-0.7", "run": run, "way": way, "machine": machine, "failed": []}
    line |= {"counted_s": 75.0, "load_average": 2.5, "at": "2026-11-22T19:21:09+00:00"}
    return {**line, "queries": [query], "report": report if way == "promise" else None}


def a_verdict(machine: str, gain_ratio: float) -> dict[str, Any]:
    return {
        "cell": "spread-8-0.7", "pays": True, "policy": "promise", "machine": machine,
        "gain_ratio": {"promise": gain_ratio},
        "figures": {
            "free": {"mean_s": 2.4, "at_once": 8}, "promise": {"mean_s": 1.2, "at_once": 1},
        },
    }  # fmt: skip


def test_a_verdict_is_judged_on_the_machine_that_it_was_made_for(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for run, (machine, latency_s) in enumerate((("one", 1.0), ("other", 1.6))):
        keep(tmp_path / "runs.jsonl", a_run(run, "fifo", 2.0, machine))
        keep(tmp_path / "runs.jsonl", a_run(run, "promise", latency_s, machine))
    for machine, gain_ratio in (("one", 0.45), ("other", 0.6), ("a third", 0.5)):
        keep(tmp_path / "verdicts.jsonl", a_verdict(machine, gain_ratio))
    page = real_gate_page.text(argparse.Namespace(results=tmp_path, pictures=tmp_path / "img"))
    assert "on 2 machines" in page
    said = "promise | promise | yes | promise"
    assert f"| spread-8-0.7, machine 1 | {said} | 45% | 49% | yes |" in page
    assert f"| spread-8-0.7, machine 2 | {said} | 60% | 19% | no |" in page
    assert "Right in 2 of 2 cells (goal: 6 of 7); gain within 15 points in 1 (goal: all)." in page


def test_a_load_of_one_is_what_the_queries_of_a_cell_take_together(tmp_path: Path) -> None:
    given = argparse.Namespace(results=tmp_path, calibrate=20.0)
    (cell,) = (one for one in CELLS if one.name == "mix-8-0.7")
    for machine, ratio in ((this_machine(), 0.8), ("another", 0.5)):
        for kind, capacity_per_s in (("windowed", 1000.0), ("stateless", 2000.0), ("join", 400.0)):
            found = {"kind": kind, "capacity_per_s": capacity_per_s / ratio, "machine": machine}
            keep(tmp_path / "calibration.jsonl", found)
        queries = "4 windowed, 3 stateless, 1 join"
        together = {"queries": queries, "together_ratio": ratio, "machine": machine}
        keep(tmp_path / "calibration.jsonl", together)
    # All is known of this machine: nothing is measured.
    capacities = real_gate._calibration([cell], given, tmp_path)[cell.name]
    assert capacities == pytest.approx({"windowed": 1000.0, "stateless": 2000.0, "join": 400.0})
    assert cell.rates_per_s(capacities)[0] == pytest.approx(0.7 / 8 * 1000.0)


def test_cores_are_busy_with_batches_and_rows(tmp_path: Path) -> None:
    (tmp_path / "profiles" / "one").mkdir(parents=True)
    save_profile(a_profile(), tmp_path / "profiles" / "one" / "windowed.profile.yaml")
    line = a_run(0, "fifo", 2.0, "one")
    ratios = []
    for num_batches, rows in ((0, 0), (10, 0), (20, 0), (20, 100_000)):
        line["queries"][0] |= {"num_batches": num_batches, "rows": rows}
        ratios.append(busy_ratio([line], tmp_path, 2) or 0.0)
    assert ratios[0] == 0.0
    assert ratios[2] == pytest.approx(2.0 * ratios[1])
    assert ratios[3] > ratios[2] > 0.0
    assert busy_ratio([{**line, "machine": "another"}], tmp_path, 2) is None
    assert measured_busy_ratio([line], 2) is None


def test_the_page_says_what_was_measured_and_that_nothing_was(tmp_path: Path) -> None:
    given = argparse.Namespace(results=tmp_path, pictures=tmp_path / "img")
    assert "Nothing has been measured yet" in real_gate_page.text(given)
    pytest.importorskip("matplotlib")
    for run in range(2):
        for way, latency_s in (("fifo", 3.0), ("trigger-1s", 2.0), ("promise", 1.0)):
            keep(tmp_path / "runs.jsonl", a_run(run, way, latency_s, "one"))
    keep(tmp_path / "verdicts.jsonl", a_verdict("one", 0.45))
    shed = {
        "load": 1.2, "way": "by-cost", "run": 0, "in_time_ratio": 0.87, "predicted_ratio": 0.9,
        "rows": 1000, "shed": 100, "differing": 0,
    }  # fmt: skip
    keep(tmp_path / "shedding.jsonl", shed)
    page = real_gate_page.text(given)
    assert "| 1.2 | by-cost | 1 | 87.0% | 90.0% | yes | 10.0% | 0 |" in page
    # The best of Spark's own is the trigger of 1 s; promise halves it.
    assert "| spread-8-0.7 | trigger-1s | 2.08 s | promise | 1.08 s | -48% |" in page
    assert "| met |" in page
    assert "| promise | 45% | 48% | yes |" in page
    assert "Right in 1 of 1 cells" in page
    assert "| spread-8-0.7 | fifo | 2.40 s | - | 3.08 s | - | 0.78 |" in page
    assert "| spread-8-0.7 | promise | 1.20 s | 1 | 1.08 s | 2, 1 | 1.12 |" in page
    assert "Median error 17%; floor, " in page
    assert "other runs of its way: 3%." in page
    assert "Not measured: fair of spread-8-0.7, trigger-500ms of spread-8-0.7," in page
    assert "less than half of its rows" not in page
    assert {file.name for file in (tmp_path / "img").iterdir()} == {
        "scheduling-ways.svg", "scheduling-distributions.svg", "scheduling-gains.svg",
        "shedding.svg",
    }  # fmt: skip


def test_a_run_that_starves_a_query_is_named_unless_pools_starve_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    keep(tmp_path / "verdicts.jsonl", a_verdict("one", 0.45))
    keep(tmp_path / "runs.jsonl", a_run(0, "trigger-1s", 4.0, "one"))
    for way in ("fifo", "fair", "promise"):
        line = a_run(0, way, 2.0, "one")
        if way != "promise":
            line["queries"][0]["rows"] = 400
        keep(tmp_path / "runs.jsonl", line)
    page = real_gate_page.text(argparse.Namespace(results=tmp_path, pictures=tmp_path / "img"))
    assert "in 1 run: fifo of spread-8-0.7, run 1. The run counts" in page
    # Neither of the two that starve it is the best of Spark's own, whatever its latency.
    assert "| spread-8-0.7 | trigger-1s | 4.05 s | promise | 2.05 s | -49% |" in page
    assert "| trigger of 1 s * | 1 |" in page
    assert "| promise | 45% | 49% | yes |" in page


def test_a_way_that_starves_a_query_does_not_keep_others_from_being_repeated() -> None:
    lines = [a_run(0, way, 2.0, "one") for way in ("fifo", "fair", "promise")]
    lines[1]["queries"][0] |= {"rows": 400, "windows_s": [1.0]}
    means_s = mean_of_ways_s(lines, "spread-8-0.7", 1)
    assert means_s == {"fifo": pytest.approx(2.05), "fair": np.inf, "promise": pytest.approx(2.05)}
    ways = ways_of_run(CELLS[0], 2, ("fifo", "fair", "promise"), means_s, 1)
    assert {way.name for way in ways} == {"fifo", "promise"}


def shares_in_time(
    way: str, load: float, costs: RowCosts, *, noise_ratio: float, seed: int
) -> tuple[float, float]:
    """Rows in time of a query that is simulated batch by batch, and what the formula says."""
    generator = np.random.default_rng(seed)
    rate = load * costs.capacity_per_s
    limits = limits_of(way, rate, costs)
    kinds = ((0.8, costs.cheap_s, limits.cheap_s), (0.2, costs.dear_s, limits.dear_s))
    now, read_to, offered, punctual = 1.0, 0.0, 0.0, 0.0
    while now < 400.0:
        interval = now - read_to
        rows = rate * interval
        work_s = costs.fixed_s + rows * costs.shed_s
        for share, cost_s, limit_s in kinds:
            kept = min(limit_s / interval, 1.0)
            work_s += rows * share * kept * (cost_s - costs.shed_s)
        end = now + work_s * generator.lognormal(-0.5 * noise_ratio**2, noise_ratio)
        for share, _, limit_s in kinds:
            youngest_late = min(limit_s, 2.0 - (end - now))
            punctual += rows * share * min(max(youngest_late / interval, 0.0), 1.0)
        offered += rows
        # Spark's trigger: the next multiple of a second after the start, or at once.
        read_to, now = now, max(end, np.floor(now) + 1.0)
    return punctual / offered, limits.kept_ratio()


@pytest.mark.parametrize("load", [1.2, 1.6])
@pytest.mark.parametrize("noise_ratio", [0.0, 0.1, 0.2])
def test_the_formula_of_shedding_is_that_of_a_simulation(load: float, noise_ratio: float) -> None:
    costs = RowCosts(fixed_s=0.15, cheap_s=4e-6, dear_s=2e-5, shed_s=1e-6)
    found = {
        way: shares_in_time(way, load, costs, noise_ratio=noise_ratio, seed=7)
        for way in ("none", "blind", "by-cost")
    }
    for way in ("blind", "by-cost"):
        simulated, formula = found[way]
        assert simulated == pytest.approx(formula, abs=0.05), way
    assert found["by-cost"][0] > found["blind"][0] > found["none"][0]
    assert found["none"][0] < 0.1
