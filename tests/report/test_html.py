from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from headway.domain import (
    Arrivals,
    FrontierPoint,
    InfeasiblePlan,
    Interval,
    LatencyDistribution,
    Plan,
    StreamAnswer,
)
from headway.formats.as_json import json_text, plan_json
from headway.report.charts import dot_charts, frontier_charts, phase_segments
from headway.report.comparison import Comparison, compared
from headway.report.page import sheet_page
from headway.report.stream_page import stream_page_sheet
from tests.factories import a_configuration, a_plan, a_prediction, about_stage, an_infeasible_plan

HOSTILE = """</script><script>alert("it's")</script><!-- & <img src=x onerror=alert(1)>"""
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements of a page; complains of those that are not closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.json_text = ""
        self._is_json = False
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._is_json = ("type", "application/json") in attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script" and self._is_json:
            self.json_text += data


MEASURED = LatencyDistribution(mean_s=1.24, p50_s=1.2, p95_s=1.85, p99_s=2.75)


def comparisons(label: str = "tuple latency") -> list[Comparison]:
    predicted = a_prediction().tuple_latency
    assert predicted is not None
    return [compared(label, predicted, MEASURED)]


def plan_page(plan: StreamAnswer, measured_runs: Sequence[Comparison] = ()) -> str:
    return sheet_page(stream_page_sheet(plan, measured_runs), data_json=json_text(plan_json(plan)))


def over_capacity() -> InfeasiblePlan:
    prediction = a_prediction(
        stable=False, tuple_latency=None, batch_duration=None, phases_s={}, calibrated=False
    )
    return an_infeasible_plan(prediction=prediction, floor_s=math.inf, planned_latency_s=math.inf)


def a_large_plan() -> Plan:
    plan = a_plan()
    frontier = tuple(
        FrontierPoint(
            nodes=nodes,
            sustainable_rate_per_s=7000.0 * nodes,
            configuration=a_configuration(executors=nodes),
            calibrated=False,
        )
        for nodes in (1, 2, 3, 5, 8, 12, 18, 27, 40, 41, 42, 43)
    )
    phases_s = {f"stage {number}": 0.1 for number in range(30)}
    return replace(plan, frontier=frontier, prediction=a_prediction(phases_s=phases_s))


PLANS: dict[str, StreamAnswer] = {
    "feasible": a_plan(),
    "over capacity": over_capacity(),
    "large": a_large_plan(),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_page_is_whole_small_and_needs_nothing_else(name: str) -> None:
    text = plan_page(PLANS[name], comparisons())
    page = Page(text)
    assert len(text.encode()) < 150_000
    assert not re.search(r"https?://|//[a-z]|@import|url\(", text)
    assert not {"src", "srcset", "onload", "onclick"} & {key for key, _ in page.attributes}
    assert {value for key, value in page.attributes if key == "href"} == {"#content"}
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert "nan%" not in text
    assert "inf%" not in text


@pytest.mark.parametrize("name", PLANS)
def test_the_embedded_plan_is_the_plan(name: str) -> None:
    page = Page(plan_page(PLANS[name]))
    assert json.loads(page.json_text) == json.loads(json_text(plan_json(PLANS[name])))


def test_the_page_follows_the_scheme_and_the_width() -> None:
    text = plan_page(a_plan())
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_a_feasible_plan() -> None:
    text = plan_page(a_plan(), comparisons())
    for part in (
        "2 nodes meet",
        "Binding constraint",
        "stage aggregate holds the slots",
        "by number of nodes",
        "[rows/s]",
        "Where the p99 of the ",
        "addBatch outside its stages",
        "from the mean to the p99",
        "Predicted and measured",
        "-16%",
        "2.10 s to 2.60 s, outside",
        "Rejected neighbours",
        "1 node less",
        "Changes against the profiled run",
        "when the query restarts",
        "spark.executor.instances 2",
        "maxOffsetsPerTrigger 100000",
    ):
        assert part in re.sub(" +", " ", text), part
    assert "2, the plan</th>" in text
    assert "✓ met" in text
    assert "✗ missed" in text


def test_without_a_run_nothing_is_compared() -> None:
    assert '"measured":' not in Page(plan_page(a_plan())).json_text
    assert "Predicted and measured" not in plan_page(a_plan())


def test_an_infeasible_plan_quotes_no_latency() -> None:
    text = plan_page(over_capacity())
    assert "Infeasible: no configuration" in text
    assert "over capacity" in text
    assert "so there is no latency" in text
    assert "Where the p99 of the " not in text
    assert "the plan</th>" not in text


def test_names_cannot_break_out_of_their_place() -> None:
    plan = a_plan(
        binding=(HOSTILE,),
        findings=(about_stage(HOSTILE),),
        spark_conf={HOSTILE: HOSTILE},
        query_options={HOSTILE: HOSTILE},
        prediction=a_prediction(phases_s={HOSTILE: 1.0}),
    )
    change = replace(plan.changes[0], setting=HOSTILE, before=HOSTILE, after=HOSTILE)
    rejected = replace(plan.rejected[0], change=HOSTILE, reason=HOSTILE)
    plan = replace(plan, changes=(change,), rejected=(rejected,))
    text = plan_page(plan, comparisons(label=HOSTILE))
    page = Page(text)
    assert page.tags.count("script") == 2  # the plan as JSON, and the page's own script
    assert "img" not in page.tags
    assert not any(key.startswith("on") for key, _ in page.attributes)
    assert text.count("</script") == 2
    assert json.loads(page.json_text)["binding"] == [HOSTILE]


def test_feasible_is_reported_by_symbol_and_not_by_colour_alone() -> None:
    text = plan_page(a_plan())
    assert text.count('class="bad-mark cross"') == 2  # the legend and one node
    assert text.count('<circle class="good-mark"') == 2  # the legend and two nodes


def test_marks_of_the_frontier_stand_in_proportion() -> None:
    (chart,) = frontier_charts(a_plan())
    low, high = chart["marks"]
    assert (low["keeps_rate"], high["keeps_rate"]) == (False, True)
    assert (low["is_plan"], high["is_plan"]) == (False, True)
    assert low["height_percent"] / high["height_percent"] == pytest.approx(31 / 80)
    assert chart["asked_percent"] / high["height_percent"] == pytest.approx(50 / 80)
    assert not chart["has_gaps"]
    assert [label for _, label in chart["ticks"]] == ["0", "20k/s", "40k/s", "60k/s", "80k/s"]


def test_the_ring_stands_at_the_rate_of_the_plan_itself() -> None:
    plan = a_plan()
    other = replace(plan.configuration, trigger_s=0.0, max_offsets_per_trigger=None)
    assert plan.chosen is not None
    exceeded = replace(
        plan,
        frontier=(plan.frontier[0], replace(plan.frontier[1], configuration=other)),
        chosen=replace(plan.chosen, sustainable_rate_per_s=60000.0),
    )
    (chart,) = frontier_charts(exceeded)
    mark = chart["marks"][1]
    assert mark["is_plan"]
    assert not mark["is_own"]
    assert (mark["rate"], mark["plan_rate"]) == ("80k/s", "60k/s")
    assert mark["plan_height_percent"] == pytest.approx(mark["height_percent"] * 60 / 80)
    page = plan_page(exceeded)
    assert page.count('class="chosen"') == 1
    assert re.search(r'class="chosen">.*>2, the plan</th><td class="num">60k/s</td>', page)


@pytest.mark.parametrize("rate_per_s", [0.0, 1e-3, 7.3, 1e12, math.inf])
def test_every_rate_has_a_place_on_the_chart(rate_per_s: float) -> None:
    point = replace(a_plan().frontier[0], sustainable_rate_per_s=rate_per_s)
    (chart,) = frontier_charts(a_plan(frontier=(point,), arrivals=Arrivals(rate_per_s=5.0)))
    assert 0 <= chart["marks"][0]["height_percent"] <= 100
    assert 2 <= len(chart["ticks"]) <= 7
    assert frontier_charts(a_plan(frontier=())) == ()


def test_segments_fill_the_bar_and_keep_their_order() -> None:
    phases_s: dict[str, Any] = {f"phase {number}": 0.01 * number for number in range(1, 13)}
    segments = phase_segments(phases_s)
    assert len(segments) == 8
    assert segments[-1]["name"] == "5 shorter phases"
    assert [one["name"] for one in segments[:2]] == ["phase 6", "phase 7"]
    assert sum(one["width_percent"] for one in segments) == pytest.approx(100)
    assert segments[3]["start_percent"] == pytest.approx(
        sum(one["width_percent"] for one in segments[:3])
    )
    assert phase_segments({}) == []


def test_an_interval_without_upper_end_reaches_the_edge() -> None:
    predicted = a_prediction().tuple_latency
    assert predicted is not None
    predicted = replace(predicted, interval90_p99_s=Interval(low=2.0, high=math.inf))
    (chart,) = dot_charts([compared("tuple latency", predicted, MEASURED)])
    assert chart["rows"][-1]["high_percent"] == 100
    assert chart["rows"][1]["high_percent"] is None
    assert "2.00 s or more" in chart["rows"][-1]["tooltip"]


def test_the_axis_of_runs_is_named_by_what_they_compare() -> None:
    predicted = a_prediction().tuple_latency
    assert predicted is not None
    (chart,) = dot_charts([compared("run-1", predicted, MEASURED)], "tuple latency")
    assert (chart["label"], chart["x_title"]) == ("run-1", "tuple latency")


def test_importing_the_room_imports_nothing_heavy() -> None:
    code = (
        "import sys, headway.report.stream, headway.report.stream_page, headway.formats.as_json\n"
        "print(*{'jinja2', 'numpy', 'pandas', 'scipy', 'pyspark'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
