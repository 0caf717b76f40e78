"""A simulated plan as text, data and page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from headway.api.results import figures_of
from headway.domain import (
    Arrivals,
    CatchUp,
    DuringBurst,
    Outage,
    Playback,
    RateTrace,
    StreamAnswer,
    Target,
)
from headway.formats.as_json import json_text
from headway.planner.playback import simulate_plan
from headway.planner.question import SearchSpace
from headway.report.axes import axis, counts
from headway.report.page import sheet_page
from headway.report.playback import playback_sheet
from headway.report.sheet_text import sheet_text
from tests.factories import a_profile
from tests.planner.plans import plan


@cache
def simulated() -> tuple[StreamAnswer, Playback]:
    space = SearchSpace(max_nodes=2, cores_per_executor=4)
    found = plan(a_profile(), Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 2s"), space)
    trace = RateTrace(times_s=(0.0, 300.0), rates_per_s=(5000.0, 9000.0), end_s=600.0)
    return found, simulate_plan(
        found, trace, outages=[Outage(start_s=100.0, length_s=30.0)], num_runs=4
    )


def playback_text(plan: StreamAnswer, playback: Playback) -> str:
    return sheet_text(playback_sheet(playback, plan))


def playback_page(plan: StreamAnswer | None, playback: Playback) -> str:
    return sheet_page(playback_sheet(playback, plan))


def test_the_text_has_the_figures_and_fits_a_terminal() -> None:
    text = playback_text(*simulated())
    for part in ("10 min of 5k/s to 9k/s", "4 runs", "rows above 2.00 s", "recovery after"):
        assert part in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(text.splitlines()) <= 40


def light() -> tuple[StreamAnswer, Playback]:
    """The same plan without the outage, in which it meets its target."""
    planned, _ = simulated()
    trace = RateTrace(times_s=(0.0, 300.0), rates_per_s=(5000.0, 9000.0), end_s=600.0)
    return planned, simulate_plan(planned, trace, num_runs=2)


def heavy(target: str = "p99 <= 2s") -> tuple[StreamAnswer, Playback]:
    """A plan under half an hour in which far more rows arrive than it was made for."""
    planned, _ = simulated()
    planned = replace(planned, target=Target.parse(target))
    trace = RateTrace(times_s=(0.0, 300.0, 600.0), rates_per_s=(5e3, 5e6, 5e3), end_s=1800.0)
    return planned, simulate_plan(planned, trace, num_runs=2)


def test_a_trace_has_its_own_verdict_on_the_target_first_in_the_text() -> None:
    planned, playback = heavy()
    assert planned.feasible
    assert playback.feasible is False
    first, *_ = playback_text(planned, playback).splitlines()
    assert first.startswith("p99 <= 2.00 s missed under 30 min of 5k/s to 5M/s: p99 ")
    assert "times its limit" in first
    planned, playback = light()
    assert playback.feasible
    first, *_ = playback_text(planned, playback).splitlines()
    assert first.startswith("p99 <= 2.00 s met under 10 min of 5k/s to 9k/s: p99 ")
    assert " with 1 outage: p99 " in playback_text(*simulated()).splitlines()[0]


def test_a_steady_trace_has_one_rate() -> None:
    """Not "10 min of 5k/s to 5k/s, 5k/s on average"."""
    planned, _ = simulated()
    trace = RateTrace(times_s=(0.0, 300.0), rates_per_s=(5000.0, 5000.0), end_s=600.0)
    text = playback_text(planned, simulate_plan(planned, trace, num_runs=2))
    assert "  input rate         10 min of 5k/s\n" in text


def test_the_page_of_a_missed_target_does_not_begin_with_the_plan_that_meets_it() -> None:
    page = playback_page(*heavy())
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)
    assert heading is not None
    # A target stays on one line, and a number with its unit.
    assert "p99\u00a0&lt;=\u00a02.00\u00a0s missed under 30\u00a0min" in heading[1]
    assert '<h1 class="bad">' in page
    assert '<h1 class="good">' in playback_page(*light())
    assert "missed" in playback_page(None, heavy()[1])


@pytest.mark.parametrize(
    ("target", "level"), [("p95 <= 2s", 0.95), ("mean <= 2s", None), ("p50 <= 2s", 0.5)]
)
def test_each_statistic_is_that_of_the_trace(target: str, level: float | None) -> None:
    _, playback = heavy(target)
    (found,) = playback.targets
    values = {None: playback.mean_s, 0.5: playback.p50_s, 0.95: playback.p95_s}
    assert found.value_s == pytest.approx(values[level])
    assert found.met is (values[level] <= 2.0)


def test_targets_on_batches_and_outages_are_judged_and_others_say_why_not() -> None:
    planned, _ = simulated()
    promises = (
        CatchUp.parse("catch_up <= 5m after 1m"),
        DuringBurst.parse("p99 <= 5s during 9k/s for 2m"),
    )
    planned = replace(planned, target=Target.parse("batch p99 <= 20s"), also=promises)
    trace = RateTrace(times_s=(0.0,), rates_per_s=(5e3,), end_s=600.0)
    playback = simulate_plan(
        planned, trace, outages=[Outage(start_s=100.0, length_s=60.0)], num_runs=2
    )
    assert [target.met for target in playback.targets] == [True, True, None]
    assert playback.targets[1].value_s == playback.recoveries[0].worst_s
    without = simulate_plan(planned, trace, num_runs=2)
    assert [target.met for target in without.targets] == [True, None, None]
    assert "unavailable: no such outage in the simulation" in playback_text(planned, without)


def test_a_backlog_that_still_grows_misses_whatever_was_read() -> None:
    _, playback = light()
    assert replace(playback, ends_behind=True).feasible is False
    unjudged = replace(playback, targets=())
    assert unjudged.feasible is None
    assert "p99 of the tuple latency" in playback_text(simulated()[0], unjudged)


def labels(ticks: Sequence[tuple[float, str]]) -> list[str]:
    return [label for _, label in ticks]


def test_ticks_are_round_and_in_one_unit() -> None:
    planned, playback = heavy()
    latency, arrivals, _ = (
        section.charts[0] for section in playback_sheet(playback, planned).sections[:3]
    )
    assert labels(latency.axes.x_ticks) == ["0", *(f"{5 * count} min" for count in range(1, 7))]
    assert {label.partition(" ")[2] for label in labels(latency.axes.ticks)[1:]} == {"min"}
    assert labels(arrivals.axes.ticks)[1:3] == ["1M/s", "2M/s"]
    (table,) = (part for part in playback_sheet(playback).sections if part.title == "over time")
    assert [row[0] for row in table.rows[:3]] == ["0", "2 min", "4 min"]
    assert {row[0].partition(" ")[2] for row in table.rows[1:]} == {"min"}


@pytest.mark.parametrize(
    ("length_s", "moments", "num_rows"),
    [
        (90.0, ["0", "5 s", "10 s"], 18),
        (750.0, ["0", "0.5 min", "1.0 min"], 25),
        (1234.5, ["0", "1 min", "2 min"], 21),
        (3600.0, ["0", "5 min", "10 min"], 12),
        (36_000.0, ["0", "0.5 h", "1.0 h"], 20),
    ],
)
def test_a_trace_of_any_length_is_listed_at_round_moments(
    length_s: float, moments: list[str], num_rows: int
) -> None:
    """Not every 37.5 s or 1.04 min, which no change of a rate falls on."""
    planned, _ = simulated()
    # As traces of Prometheus and of the progress of a query are: from a moment of the epoch.
    first_s = 1_700_000_123.0
    trace = RateTrace(times_s=(first_s,), rates_per_s=(4e3,), end_s=first_s + length_s)
    playback = simulate_plan(planned, trace, num_runs=1)
    (table,) = (part for part in playback_sheet(playback).sections if part.title == "over time")
    assert [row[0] for row in table.rows[:3]] == moments
    assert len(table.rows) == num_rows
    assert {row[1] for row in table.rows} == {"4k/s"}
    widths_s = [late.start_s - early.start_s for early, late in pairwise(playback.stretches)]
    assert trace.round_step_s / widths_s[0] in {3.0, 4.0, 5.0, 6.0}
    assert widths_s == pytest.approx([widths_s[0]] * len(widths_s))


def test_rates_and_backlogs_of_a_burst_are_those_of_its_minutes() -> None:
    """Not an average with the minute before, nor a backlog that was read when a minute began."""
    planned, _ = simulated()
    trace = RateTrace(
        times_s=(0.0, 600.0, 720.0), rates_per_s=(2000.0, 8000.0, 2000.0), end_s=1500.0
    )
    sheet = playback_sheet(simulate_plan(planned, trace, num_runs=1))
    (table,) = (part for part in sheet.sections if part.title == "over time")
    rates = {row[0]: row[1] for row in table.rows}
    assert [rates[f"{minute} min"] for minute in (9, 10, 11, 12)] == [
        "2k/s",
        "8k/s",
        "8k/s",
        "2k/s",
    ]
    backlogs = {row[0]: float(row[5].replace(",", "")) for row in table.rows}
    trigger_s = planned.configuration.trigger_s
    assert backlogs["11 min"] == pytest.approx(8000.0 * trigger_s, rel=0.1)
    assert backlogs["12 min"] == pytest.approx(2000.0 * trigger_s, rel=0.1)


def test_a_miss_is_in_the_unit_of_its_limit() -> None:
    planned, playback = light()
    (target,) = playback.targets
    missed = replace(playback, targets=(replace(target, value_s=2.06),))
    assert playback_text(planned, missed).startswith(
        "p99 <= 2.00 s missed under 10 min of 5k/s to 9k/s: p99 2.06 s, 3% above its limit"
    )


def test_executors_have_whole_ticks() -> None:
    ticks, _ = axis([0.0, 1.0], counts)
    assert labels(ticks) == ["0", "1"]
    ticks, _ = axis([0.0, 12.0], counts)
    assert labels(ticks) == ["0", "5", "10"]


@pytest.mark.parametrize(("longest_s", "text"), [(0.0, "none"), (4.0, "4.00 s")])
def test_the_longest_late_time_says_of_which_run_it_is(longest_s: float, text: str) -> None:
    planned, playback = light()
    playback = replace(playback, max_s=2.2, late_ratio_worst_run=0.001, longest_late_s=longest_s)
    assert f"longest time above it  {text} in the median run" in playback_text(planned, playback)


def test_the_data_is_json() -> None:
    found = json.loads(json_text(figures_of(simulated()[1])))
    assert found["schema"] == "headway.playback/v1"
    assert found["feasible"] is False
    assert found["headline"].startswith("p99 <= 2.00 s missed under ")
    assert [target["met"] for target in found["targets"]] == [False]
    starts_s = [stretch["start_s"] for stretch in found["stretches"]]
    assert starts_s == [5.0 * index for index in range(120)]
    assert found["recoveries"][0]["outage"]["length_s"] == 30


def test_the_page_needs_nothing_and_draws_every_line() -> None:
    page = playback_page(*simulated())
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<script") == 1  # its own, named by its hash
    lines = re.findall(r'<polyline[^>]*points="([^"]+)"', page)
    assert len(lines) == 4
    for points in lines:
        pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
        assert len(pairs) == 120
        assert pairs[0][0] == 0.42  # in the middle of the first stretch
        assert all(0 <= x <= 100 and 0 <= y <= 100 for x, y in pairs)
    assert page.count('class="outage" x=') == 3
