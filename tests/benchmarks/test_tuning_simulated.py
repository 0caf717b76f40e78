"""Traces of the tuning page: the fixed ones stay, the drawn ones follow from the frozen commit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import traces
import tuning_simulated
from traces import NamedTrace, Shape

from headway.domain.live import PolicyOutcome

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


def test_drawn_traces_differ_by_seed_only() -> None:
    one, same, other = (traces.drawn_traces(seed) for seed in (1, 1, 2))
    assert [each.kind for each in one] == list(traces._RATES)
    assert all(
        np.array_equal(a.trace.rates_per_s, b.trace.rates_per_s)
        for a, b in zip(one, same, strict=True)
    )
    assert not np.array_equal(one[0].trace.rates_per_s, other[0].trace.rates_per_s)


def test_the_page_is_of_the_commits_that_the_makefile_names() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "tuning-simulated.md").read_text(encoding="utf-8")
    for commit in re.findall(r"^(?:FROZEN_RULE|SEEN_RULE) \?= (\w{40})$", makefile, re.M):
        assert commit in page


def outcome(policy: str, hours: float, kept: float) -> PolicyOutcome:
    return PolicyOutcome(
        policy=policy, constant=f"{hours:g}", executor_s=3600.0 * hours, late_ratio=0.0,
        kept_share=kept, changes_per_run=0.0, reversals_per_run=0.0, steps=(),
        stretch_late_ratio=(),
    )  # fmt: skip


def test_others_are_judged_at_no_more_node_hours() -> None:
    found = tuning_simulated.TraceResult(
        trace="x", kind="step", num_steps=2, headway=outcome("headway", 10.0, 0.9),
        others=(
            outcome("hpa", 8.0, 0.8), outcome("hpa", 10.1, 0.85), outcome("hpa", 11.0, 1.0),
            outcome("static", 30.0, 1.0),
        ),
        optimum=outcome("optimum", 8.0, 0.9),
    )  # fmt: skip
    best = found.best("hpa")
    assert best is not None
    assert best.kept_share == 0.85
    assert found.best("static") is None
    assert found.is_won
    lost = replace(found, others=(outcome("ds2", 9.0, 0.95),))
    assert not lost.is_won
    assert lost.lost_by == pytest.approx(0.05)


def test_the_smallest_setting_of_the_benchmark_runs() -> None:
    short = Shape(low=60e3, high=120e3, hours=0.25, noise_ratio=0.02, seed=1)
    made: NamedTrace = traces.trace_of("step", short)
    found = tuning_simulated.result_of(made, seeds=(1,))
    assert found.optimum.late_ratio <= 0.05
    assert {one.policy for one in found.others} == set(tuning_simulated.CONSTANTS)
    rows = list(tuning_simulated._table([found]))
    assert rows[-1].startswith("| step |")
