"""How predictions and plans of streaming queries are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.domain import Prediction, StreamAnswer
from headway.domain.sheet import Kind, Sheet
from headway.formats.as_json import prediction_json, stream_json
from headway.formats.codec import data_of
from headway.report.frontier import frontier_rows
from headway.report.stream import obstacles_sheet, prediction_sheet, stream_sheet
from headway.report.wording import headline, latencies, stability_text


def _frontier_data(plan: StreamAnswer) -> Iterator[Mapping[str, object]]:
    """The frontier as text and page show it: with the plan's own setting, which is marked."""
    for point, is_plan in frontier_rows(plan):
        yield {**data_of(point), "is_plan": is_plan}


def _statistics(prediction: Prediction) -> Iterator[Mapping[str, object]]:
    """The quoted latencies, a row for each statistic."""
    for statistic in ("mean", "p50", "p95", "p99"):
        yield {
            "statistic": statistic,
            **{
                f"{name.replace(' ', '_')}_s": distribution.statistics_s[statistic]
                for name, distribution in latencies(prediction).items()
            },
        }


def _brief_sheet(plan: StreamAnswer) -> Sheet:
    """A plan in full, and of an infeasible one what prevents it."""
    return stream_sheet(plan) if plan.feasible else obstacles_sheet(plan)


def _page_sheet(plan: StreamAnswer) -> Sheet:
    """A plan with its charts, without which commands that make no page start faster."""
    from headway.report.stream_page import stream_page_sheet

    return stream_page_sheet(plan)


KINDS = {
    "plan": Kind(
        headline=headline,
        sheet=_page_sheet,
        brief=_brief_sheet,
        data=stream_json,
        main=_frontier_data,
        is_read_back=True,
    ),
    "prediction": Kind(
        headline=stability_text,
        sheet=prediction_sheet,
        data=prediction_json,
        main=_statistics,
        is_read_back=True,
    ),
}
