"""What every result does by itself: one line, one screen, data, a table, a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.domain.result import Result
from headway.errors import InputError
from headway.formats.from_json import load_any_plan
from headway.formats.profile_file import load_any_profile
from headway.formats.results_file import load_result

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "examples" / "word-count.profile.yaml"
TOTALS = ROOT / "examples" / "nightly-totals.profile.yaml"
HOSTILE = "<script>alert('x')</script>\n\x1b[31m"


def a_plan(rate: str = "24k/s", target: str = "p99 <= 2s") -> headway.Plan:
    plan = headway.plan(PROFILE, rate=rate, target=target)
    assert plan.feasible
    return plan


MADE: dict[str, Callable[[], Result]] = {
    "plan": a_plan,
    "infeasible plan": lambda: headway.plan(PROFILE, rate="24k/s", target="p99 <= 1ms"),
    "batch plan": lambda: headway.plan(TOTALS, target="deadline <= 5m"),
    "prediction": lambda: headway.predict(PROFILE, rate="12k/s"),
    "profile": lambda: headway.load_profile(PROFILE),
    "batch profile": lambda: load_any_profile(TOTALS),
    "simulation": lambda: headway.simulate(a_plan(), ROOT / "examples" / "burst.csv", runs=2),
    "difference": lambda: headway.diff(a_plan(), a_plan(rate="12k/s")),
    "check": lambda: headway.check([ROOT / "configs" / "orders.yaml"]),
    "capacity": lambda: headway.capacity(ROOT / "configs" / "fleet.yaml"),
}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {name: make() for name, make in MADE.items()}


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_one_line_and_one_screen(name: str, results: dict[str, Result]) -> None:
    result = results[name]
    assert repr(result).startswith(f"<{type(result).__name__}: ")
    assert len(repr(result)) < 200
    assert "\n" not in repr(result)
    screen = result._repr_html_()
    assert screen.startswith('<div class="headway"><p><strong>')
    assert len(screen) < 20_000


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_data_and_a_table(name: str, results: dict[str, Result]) -> None:
    data = results[name].to_dict()
    assert json.loads(json.dumps(data)) == data
    if name != "check":
        assert len(results[name].to_pandas()) > 0
    assert str(data["schema"]).startswith("headway.")


def test_a_plan_says_what_was_asked(results: dict[str, Result]) -> None:
    plan = results["plan"]
    assert isinstance(plan, headway.Plan)
    assert (plan.rate_per_s, str(plan.target)) == (24_000, "p99 <= 2.00 s")
    assert repr(plan) == "<Plan: 1 node meets p99 <= 2.00 s at 24k/s>"
    frontier = plan.to_pandas()
    assert list(frontier["nodes"]) == [point.nodes for point in plan.frontier]
    assert "configuration.shuffle_partitions" in frontier


def test_names_of_others_stay_text() -> None:
    profile = headway.load_profile(PROFILE)
    application = replace(profile.application, name=HOSTILE)
    hostile = replace(profile, applications=(application,))
    assert "\x1b" not in repr(hostile)
    assert "<script>" not in hostile._repr_html_()


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_saved_and_read_back(
    name: str, results: dict[str, Result], tmp_path: Path
) -> None:
    result = results[name]
    is_profile = "profile" in name
    path = result.save(tmp_path / ("job.yaml" if is_profile else "a.json"))
    if is_profile:
        assert load_any_profile(path).to_dict() == result.to_dict()
    elif "plan" in name:
        assert load_any_plan(path).to_dict() == result.to_dict()
    elif name in ("simulation", "check", "capacity"):
        load_result(path)
    if name not in ("prediction", "difference"):
        assert "<html" in result.save(str(tmp_path / "a.html")).read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"the name ends in \.txt; expected"):
        result.save(tmp_path / "a.txt")
