"""A command computes what it prints: the rest of a plan is there when somebody reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.results import as_text
from headway.domain import Plan
from headway.formats.as_json import json_text, plan_json
from headway.models.batches import batch_chain
from headway.planner.explain import explained, rules
from headway.report.explanation import explanation_text
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from tests.factories import a_profile

ROOT = Path(__file__).parents[2]
# What explains a plan, by the function that computes it.
RULES, INPUTS, ROWS = "rules_of_thumb", "sensitivities", "frontier_around"
NEIGHBOURS, ADVICE, START = "retuned", "advice_of", "after_start"


class Computed:
    """Which of the explaining functions ran."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        homes = {RULES: rules}
        for name in (RULES, INPUTS, ROWS, NEIGHBOURS, ADVICE, START):
            home = homes.get(name, explained)
            patch.setattr(home, name, self._noting(name, getattr(home, name)))

    def _noting(self, name: str, function: Any) -> Any:
        def noting(*given: Any) -> Any:
            self.names.append(name)
            return function(*given)

        return noting


def planned(rate: str = "5k/s", target: str = "p99 <= 5s") -> Any:
    return headway.plan(a_profile(), rate=rate, target=target)


def test_the_text_of_a_plan_computes_no_rules_no_neighbours_and_no_sensitivities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = Computed(monkeypatch)
    found = planned()
    assert isinstance(found, Plan)
    assert computed.names == []
    as_text(found)
    # That there is advice shows the first one.
    assert set(computed.names) == {ROWS, START}
    as_text(found)
    assert len(computed.names) == 2, "each part once"
    explanation_text(found)
    assert {RULES, INPUTS, NEIGHBOURS, ADVICE} < set(computed.names)
    assert found.advice[0] == found.first_advice


def test_a_check_computes_nothing_of_what_explains_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = Computed(monkeypatch)
    report = headway.check(
        [ROOT / "configs" / "orders.yaml"], baseline=ROOT / "configs" / "headway.lock"
    )
    assert report.exit_code == 0
    assert computed.names == []


@pytest.mark.parametrize("target", ["p99 <= 5s", "p99 <= 50ms"])
def test_json_is_complete_however_little_was_read_before(target: str) -> None:
    read_before, unread = planned(target=target), planned(target=target)
    sheet_text(stream_sheet(read_before))
    data = plan_json(unread)
    assert json_text(data) == json_text(plan_json(read_before))
    assert data["sensitivities"]
    assert data["frontier"]
    assert data["prediction"]["next_run"] is not None or not unread.feasible  # type: ignore[index]
    if unread.feasible:
        assert data["rules"]
        assert data["rejected"] is not None


def test_the_text_of_a_plan_asks_for_fewer_chains_than_its_json() -> None:
    """The law of a setting whose batches overrun takes milliseconds; few are waited for."""
    batch_chain._chain_of.cache_clear()
    batch_chain._amplification_ratio.cache_clear()

    def num_chains() -> int:
        return batch_chain._chain_of.cache_info().misses

    profile = ROOT / "examples" / "word-count.profile.yaml"
    found = headway.plan(profile, rate="24k/s", target="p99 <= 2s")
    assert num_chains() == 0
    as_text(found)
    of_text = num_chains()
    plan_json(found)
    assert 0 < of_text < 0.7 * num_chains()
