"""Traces of the tuning page: the fixed ones stay, the drawn ones follow from the frozen rule."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import lost_windows
import numpy as np
import pytest
import traces
import tuning_simulated
import tuning_simulated_page
from result_lines import lines_of
from traces import NamedTrace, Shape
from tuning_simulated import Unit
from tuning_simulated_page import FIXED, OPTIMUM, TraceResult

from headway.domain.live import ExecutorStep, PolicyOutcome
from headway.errors import InputError
from headway.models.simulation.closed_loop import LoopRun, LoopTrace

ROOT = Path(__file__).parents[2]


def test_the_fixed_traces_are_nine_and_stay() -> None:
    fixed = traces.fixed_traces()
    assert [one.name for one in fixed] == list(traces._RATES)
    again = traces.fixed_traces()
    for one, other in zip(fixed, again, strict=True):
        assert np.array_equal(one.trace.rates_per_s, other.trace.rates_per_s)
    step = fixed[0].trace
    assert np.median(step.rates_per_s[80:160]) == pytest.approx(200e3, rel=0.02)
    assert step.edges_s[-1] == 4 * 3600.0


@pytest.mark.parametrize("drawn", [traces.drawn_traces, traces.long_traces])
def test_drawn_traces_differ_by_seed_only(drawn: Callable[[int], list[NamedTrace]]) -> None:
    one, same, other = (drawn(seed) for seed in (1, 1, 2))
    assert [each.kind for each in one] == list(traces._RATES)
    assert all(
        np.array_equal(a.trace.rates_per_s, b.trace.rates_per_s)
        for a, b in zip(one, same, strict=True)
    )
    assert not np.array_equal(one[0].trace.rates_per_s, other[0].trace.rates_per_s)


def test_traces_that_were_drawn_for_an_earlier_rule_are_drawn_again() -> None:
    # Node-hours of fixed sizes on the page of the rule before, by the executors of these sizes.
    hours = {"random steps": 16 / 4, "ramp": 20 / 4, "spikes": 42 / 6, "outage": 24 / 3}
    drawn = {one.name: one.trace.edges_s[-1] for one in traces.drawn_traces(0x99BA9D95)}
    assert {name: drawn[name] / 3600.0 for name in hours} == hours


def test_a_late_window_counts_under_the_first_cause_that_applies() -> None:
    trace = LoopTrace(
        edges_s=np.array([0.0, 3600.0, 7200.0]),
        rates_per_s=np.array([1.0, 2.0]),
        outages_s=((2400.0, 2500.0),),
    )
    steps = [(0.0, 2), (3700.0, 4), (5400.0, 3), (6600.0, 4)]

    def cause(begin_s: float, num_steps: int = 4) -> str:
        of_run = tuple(
            ExecutorStep(at_s=at_s, executors=num, trigger_s=1.0) for at_s, num in steps[:num_steps]
        )
        return lost_windows.cause_of(begin_s, trace, cast(LoopRun, SimpleNamespace(steps=of_run)))

    assert [cause(begin_s) for begin_s in (2700.0, 3600.0, 5400.0, 6600.0, 1200.0)] == [
        "outage", "new high", "step down", "returned", "no change",
    ]  # fmt: skip
    assert cause(3900.0, num_steps=2) == "first size"


def test_long_traces_repeat_daily_but_for_the_height_of_a_day() -> None:
    of_kind = {one.kind: one for one in traces.long_traces(7)}
    for kind in traces.DAILY_KINDS:
        rates = of_kind[kind].trace.rates_per_s
        assert len(rates) == 4 * 24 * 60
        days = np.log(rates).reshape(4, -1)
        heights = days.mean(axis=1) - days[0].mean()
        assert 0.0 < np.abs(heights[1:]).max() < 0.5
        # What is left are the noises of two days.
        assert (days - heights[:, None] - days[0]).std() < 0.2
    assert of_kind["step"].num_steps == 8
    assert len(of_kind["noise"].trace.rates_per_s) <= 8 * 60


def test_the_page_is_of_the_trees_that_the_makefile_names() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "tuning-simulated.md").read_text(encoding="utf-8")
    trees = re.findall(r"^(?:FROZEN_RULE|SEEN_RULE) \?= (\w{40})$", makefile, re.M)
    assert len(trees) == 2
    assert all(tree in page for tree in trees)


def test_the_page_is_made_from_its_lines() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "tuning-simulated.md").read_text(encoding="utf-8")
    frozen, seen = (
        re.search(rf"^{name} \?= (\w{{40}})$", makefile, re.M)
        for name in ("FROZEN_RULE", "SEEN_RULE")
    )
    assert frozen is not None and seen is not None
    given = argparse.Namespace(frozen=frozen[1], seen=seen[1], minutes=0.0, jobs=1)
    made = tuning_simulated.text(given)
    assert made is not None, "runs are left"
    dated = re.compile(r"^Made .*$", re.M)
    assert dated.sub("", made) == dated.sub("", page)


def test_no_other_rule_is_judged_than_the_one_for_which_traces_are_drawn() -> None:
    given = argparse.Namespace(frozen="0" * 40, seen="1" * 40, minutes=0.0, jobs=1)
    with pytest.raises(InputError, match="a changed rule needs traces of its own"):
        tuning_simulated.text(given)


@pytest.mark.statistical
def test_the_rule_still_decides_as_when_it_was_judged() -> None:
    """Its code may be written anew; what it did on the shortest of the judged traces stays."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    trees = dict(re.findall(r"^(FROZEN_RULE|SEEN_RULE) \?= (\w{40})$", makefile, re.M))
    units = tuning_simulated.units_of(trees["FROZEN_RULE"], trees["SEEN_RULE"])
    judged = [unit for unit in units if unit.rule is not None]
    judged.sort(key=lambda unit: float(unit.named.trace.edges_s[-1]))
    lines = {
        (line["seed"], line["trace"], line["rule"]): line
        for line in lines_of(tuning_simulated.RESULTS)
    }
    for unit in judged[:6]:
        line = lines[unit.seed, unit.named.name, unit.rule]
        assert json.loads(json.dumps(unit.line())).items() <= line.items()


def outcome(policy: str, hours: float, kept: float, late: float = 0.0) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy, constant=f"{hours:g}", executor_s=3600.0 * hours, late_ratio=late,
        kept_share=kept, changes_per_run=0.0, reversals_per_run=0.0, steps=(),
        stretch_late_ratio=(),
    )  # fmt: skip


def a_result(headway: PolicyOutcome, *others: PolicyOutcome) -> TraceResult:
    return TraceResult(
        part="drawn", trace="x", kind="step", num_steps=2, length_s=3600.0, purses_s=0.0,
        headway=headway, others=others, optimum=outcome("optimum", 8.0, 0.9),
    )  # fmt: skip


def test_others_are_judged_at_no_more_node_hours() -> None:
    found = a_result(
        outcome("headway", 10.0, 0.9),
        outcome("hpa", 8.0, 0.8), outcome("hpa", 10.1, 0.85), outcome("hpa", 11.0, 1.0),
        outcome("static", 30.0, 1.0),
    )  # fmt: skip
    best = found.best("hpa")
    assert best is not None
    assert best.kept_share == 0.85
    assert found.best("static") is None
    assert found.is_won("hpa", "static")
    lost = replace(found, others=(outcome("ds2", 9.0, 0.95),))
    assert not lost.is_won("ds2")
    assert lost.lost_by("ds2") == pytest.approx(0.05)
    assert lost.is_won("static")


def test_regret_counts_nodes_and_late_rows() -> None:
    # Half a percent late of an hour are 18 s, and 400 node-seconds each.
    found = a_result(
        outcome("headway", 3.0, 0.9, 0.005), outcome("static", 2.0, 0.5, 0.5),
        outcome("static", 3.5, 1.0), outcome("hpa", 1.0, 1.0),
    )  # fmt: skip
    assert found.cost_s(found.headway) == pytest.approx(3 * 3600.0 + 18.0 * 400.0)
    assert found.cheapest_size.executor_s == 3.5 * 3600.0
    assert found.regret_s == pytest.approx(1.5 * 3600.0)


def test_the_smallest_setting_of_the_benchmark_runs() -> None:
    short = Shape(low=60e3, high=120e3, hours=0.25, noise_ratio=0.02, seed=1)
    made: NamedTrace = traces.trace_of("step", short)
    units = [
        Unit(part="drawn", seed=1, named=made, policy=policy, constant=constant, rule=None)
        for policy, constant in (("headway", None), (OPTIMUM, None), (FIXED, 2.0), ("hpa", 0.5))
    ]
    assert list(tuning_simulated._simulated(units, 1, ends_s=0.0)) == []
    lines = [json.loads(json.dumps(unit.line())) for unit in units]
    assert [(line["policy"], line["value"]) for line in lines[2:]] == [(FIXED, 2.0), ("hpa", 0.5)]
    found = TraceResult.of("drawn", lines)
    assert found.optimum.late_ratio <= 0.05
    assert [one.policy for one in found.others] == [FIXED, "hpa"]
    rows = list(tuning_simulated_page._table([found]))
    assert rows[-1].startswith("| step |")
