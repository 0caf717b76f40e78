"""A simulated plan as text, data and page."""

from __future__ import annotations

import json
import re
from functools import cache

from headway.domain import (
    Arrivals,
    Outage,
    Playback,
    RateTrace,
    StreamAnswer,
    Target,
)
from headway.formats.as_json import json_text
from headway.planner.playback import simulate_plan
from headway.planner.search import plan
from headway.planner.space import SearchSpace
from headway.report.playback import playback_json, playback_page, playback_text
from tests.factories import a_profile


@cache
def simulated() -> tuple[StreamAnswer, Playback]:
    space = SearchSpace(max_nodes=2, cores_per_executor=4)
    found = plan(a_profile(), Arrivals(rate_per_s=5000.0), Target.parse("p99 <= 2s"), space)
    trace = RateTrace(times_s=(0.0, 300.0), rates_per_s=(5000.0, 9000.0), end_s=600.0)
    return found, simulate_plan(
        found, trace, outages=[Outage(start_s=100.0, length_s=30.0)], num_runs=4
    )


def test_the_text_has_the_figures_and_fits_a_terminal() -> None:
    text = playback_text(*simulated())
    for part in ("10 min of 5k/s to 9k/s", "4 runs", "rows above 2.00 s", "recovery after"):
        assert part in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(text.splitlines()) <= 40


def test_the_data_is_json() -> None:
    found = json.loads(json_text(playback_json(simulated()[1])))
    assert found["schema"] == "headway.playback/v1"
    assert len(found["stretches"]) == 96
    assert found["recoveries"][0]["outage"]["length_s"] == 30


def test_the_page_needs_nothing_and_draws_every_line() -> None:
    page = playback_page(*simulated())
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<script") == 1  # its own, named by its hash
    lines = re.findall(r'<polyline[^>]*points="([^"]+)"', page)
    assert len(lines) == 4
    for points in lines:
        pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
        assert len(pairs) == 96
        assert pairs[0][0] == 0.52  # in the middle of the first stretch
        assert all(0 <= x <= 100 and 0 <= y <= 100 for x, y in pairs)
    assert page.count('class="outage" x=') == 3
