from __future__ import annotations

import math

import pytest

from headway.domain import Interval, LatencyDistribution
from headway.report.comparison import Comparison, compared, comparison_sections
from headway.report.sheet_text import text_of_sections

PREDICTED = LatencyDistribution(
    mean_s=1.1,
    p50_s=1.0,
    p95_s=1.8,
    p99_s=2.2,
    interval90_mean_s=Interval(low=0.9, high=1.2),
    interval90_p99_s=Interval(low=2.1, high=2.6),
)
MEASURED = LatencyDistribution(mean_s=1.0, p50_s=1.0, p95_s=2.0, p99_s=3.0)


def a_row(
    predicted: LatencyDistribution = PREDICTED, measured: LatencyDistribution = MEASURED
) -> Comparison:
    return compared("tuple latency", predicted, measured)


def test_each_statistic_has_its_error_and_its_verdict() -> None:
    lines = text_of_sections(comparison_sections([a_row()])).split("\n")
    assert lines[0] == "tuple latency"
    mean, p50, p95, p99 = (line.split("  ") for line in lines[2:6])
    assert mean[-1] == "0.900 s to 1.20 s, inside"
    assert p99[-1] == "2.10 s to 2.60 s, outside"
    assert p50[-1] == p95[-1] == "-"
    assert "+10%" in lines[2]
    assert "-10%" in lines[4]
    assert "-27%" in lines[5]


def test_each_row_has_a_table() -> None:
    text = text_of_sections(comparison_sections([a_row(), a_row()]))
    assert text.count("tuple latency\n") == 2
    assert text.count("error: ") == 1
    assert all(len(line) <= 100 for line in text.split("\n"))
    assert text_of_sections(comparison_sections([])) == ""


@pytest.mark.parametrize(("measured_s", "inside"), [(0.9, True), (1.2, True), (1.21, False)])
def test_the_ends_belong_to_the_interval(measured_s: float, inside: bool) -> None:
    measured = LatencyDistribution(mean_s=measured_s, p50_s=1.0, p95_s=2.0, p99_s=3.0)
    assert a_row(measured=measured)[1][0].cells[-1].endswith("inside" if inside else "outside")


def test_an_interval_may_have_no_upper_end() -> None:
    open_ended = LatencyDistribution(
        mean_s=1.0,
        p50_s=1.0,
        p95_s=2.0,
        p99_s=3.0,
        interval90_mean_s=Interval(low=0.9, high=math.inf),
    )
    assert a_row(predicted=open_ended)[1][0].cells[-1] == "900 ms or more, inside"


def test_against_nothing_measured_there_is_no_error() -> None:
    nothing = LatencyDistribution(mean_s=0.0, p50_s=0.0, p95_s=0.0, p99_s=0.0)
    assert {figure.error_text for figure in a_row(measured=nothing)[1]} == {"-"}
