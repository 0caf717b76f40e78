"""Results as a line, a notebook view, data, a table and a file: behind their methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.errors import InputError, require_packages
from headway.formats.profile_file import save_profile
from headway.report.columns import headline_of, printable
from headway.units import counted

if TYPE_CHECKING:
    from headway.domain.result import Result

Row: TypeAlias = Mapping[str, object]
Facts: TypeAlias = Sequence[tuple[str, str]]
_MOST_ROWS = 20


def _function(entry_point: str) -> Callable[[Any], Any]:
    """A function of another package, ``module:name``, loaded when it is called."""
    module, name = entry_point.split(":")

    def call(result: Any) -> Any:
        return getattr(import_module(f"headway.{module}"), name)(result)

    return call


def _of_profile(profile: Any) -> str:
    application = profile.application
    stages = counted(len(profile.stages), "stage")
    return f"{application.name} on Spark {application.spark_version}, {stages}"


def _of_capacity(capacity: Any) -> str:
    first, *_ = _function("report.capacity:capacity_text")(capacity).splitlines()
    return str(first)


def _check_data(report: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_function("gate.formats.machine:check_json_text")(report))
    return data


def _stream_facts(plan: Any) -> Facts:
    wording = import_module("headway.report.wording")
    planned = [(f"planned {plan.target.statistic}", wording.promise_text(plan))]
    settings = {**plan.spark_conf, **plan.query_options}
    return [*(planned if plan.feasible else []), *wording.facts(plan), *settings.items()]


def _batch_facts(plan: Any) -> Facts:
    configuration = _function("report.deadline:configuration_text")(plan)
    return [("configuration", configuration), *plan.spark_conf.items()]


def _prediction_facts(prediction: Any) -> Facts:
    return [("configuration", _function("report.wording:setting_text")(prediction.configuration))]


def _latency_table(prediction: Any) -> Sequence[Sequence[str]]:
    rows: Sequence[Sequence[str]] = _function("report.wording:latency_rows")(prediction)
    return rows


def _statistics(prediction: Any) -> Iterable[Row]:
    latencies = _function("report.wording:latencies")(prediction)
    for statistic in ("mean", "p50", "p95", "p99"):
        row: dict[str, object] = {"statistic": statistic}
        for name, distribution in latencies.items():
            row[f"{name.replace(' ', '_')}_s"] = distribution.statistics_s[statistic]
        yield row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doors:
    """How results of one kind are shown: as a sentence, as data, and as their main list.

    ``main`` is a path of keys, empty if there is no list: then each figure is a row. ``rows`` and
    ``table`` are given if people need another table than the list in the data.
    """

    sentence: Callable[[Any], str]
    data: Callable[[Any], dict[str, Any]]
    text: Callable[[Any], str] | None = None
    main: str = ""
    facts: Callable[[Any], Facts] = lambda _: ()
    rows: Callable[[Any], Iterable[Row]] | None = None
    table: Callable[[Any], Sequence[Sequence[str]]] | None = None
    endings: tuple[str, ...] = (".json", ".html")
    is_page_of_data: bool = False


def _worded(text: str, data: str, main: str = "") -> _Doors:
    """For a result whose text begins with the answer, and whose page is made from its data."""
    return _Doors(
        sentence=lambda result: _first_line(text, result),
        data=_function(data),
        text=_function(text),
        main=main,
        is_page_of_data=True,
    )


def _first_line(text: str, result: Any) -> str:

    return headline_of(_function(text), result)


def _fields(noun: Any) -> dict[str, Any]:
    data: dict[str, Any] = _function("formats.codec:data_of")(noun)
    return data


def _frontier_of_stream(plan: Any) -> Iterable[Row]:
    """The frontier as text and page show it: with the plan's own setting, which is marked."""
    for row in _function("report.frontier:frontier_rows")(plan):
        yield {**_flat(_fields(row.point)), "is_plan": row.is_plan}


def _frontier_of_batch(plan: Any) -> Iterable[Row]:
    """The table of nodes, with the plan's own number, which is marked."""
    for point in _function("report.deadline:all_points")(plan):
        yield {**_fields(point), "is_plan": plan.feasible and point.nodes == plan.nodes}


_STREAM = _Doors(
    sentence=_function("report.wording:headline"),
    data=_function("formats.as_json:plan_json"),
    text=_function("report.text:plan_text"),
    main="frontier",
    rows=_frontier_of_stream,
    facts=_stream_facts,
    table=lambda plan: _latency_table(plan.prediction),
)
_BATCH = _Doors(
    sentence=_function("report.deadline:deadline_headline"),
    data=_function("formats.as_json:plan_json"),
    text=_function("report.text:plan_text"),
    main="frontier",
    rows=_frontier_of_batch,
    facts=_batch_facts,
)
_PROFILE = _Doors(
    sentence=_of_profile,
    data=_function("formats.yaml_text:plain_data"),
    main="stages",
    endings=(".yaml", ".yml", ".html"),
)
_DSTREAMS = _worded(
    "report.dstreams:dstreams_plan_text", "formats.as_json:dstreams_plan_json", "frontier"
)
_DOORS: Mapping[str, _Doors] = {
    "Plan": _STREAM,
    "InfeasiblePlan": _STREAM,
    "DeadlinePlan": _BATCH,
    "InfeasibleDeadlinePlan": _BATCH,
    "JobProfile": _PROFILE,
    "ApplicationProfile": _PROFILE,
    "Prediction": _Doors(
        sentence=_function("report.wording:stability_text"),
        data=_function("formats.as_json:prediction_json"),
        text=_function("report.text:prediction_text"),
        facts=_prediction_facts,
        rows=_statistics,
        table=_latency_table,
        is_page_of_data=True,
    ),
    "Backtest": _Doors(
        sentence=_function("report.backtest:backtest_headline"),
        data=_function("report.backtest:backtest_json"), main="runs"
    ),
    "Playback": _Doors(
        sentence=_function("report.playback:verdict_text"),
        data=_function("report.playback:playback_json"),
        main="stretches",
        facts=_function("report.playback:figures"),
    ),
    "Capacity": _Doors(
        sentence=_of_capacity,
        data=_function("report.capacity:capacity_json"),
        main="jobs",
        is_page_of_data=True,
    ),
    "Difference": _Doors(
        sentence=_function("report.difference:headline"),
        data=_function("report.difference:difference_json"),
        main="figures",
        is_page_of_data=True,
    ),
    "Report": _Doors(
        sentence=lambda report: report.headline,
        data=_check_data,
        main="findings",
        is_page_of_data=True,
    ),
    "DStreamsPrediction": _worded(
        "report.dstreams:dstreams_prediction_text",
        "formats.as_json:dstreams_prediction_json",
    ),
    "DStreamsPlan": _DSTREAMS,
    "InfeasibleDStreamsPlan": _DSTREAMS,
    "RealTimePrediction": _worded(
        "report.real_time:real_time_prediction_text",
        "formats.as_json:real_time_prediction_json",
    ),
    "RealTimePlan": _worded(
        "report.real_time:real_time_plan_text", "formats.as_json:real_time_plan_json"
    ),
    "PipelinePrediction": _worded(
        "report.pipelines:pipeline_prediction_text",
        "report.pipelines:pipeline_prediction_json",
        "latency_s.phases",
    ),
    "RoundsPlan": _worded(
        "report.pipelines:rounds_plan_text", "report.pipelines:rounds_plan_json", "rounds"
    ),
    "PipelineRuns": _worded(
        "report.pipelines:pipeline_runs_text", "report.pipelines:pipeline_runs_json"
    ),
    "OperatorsPrediction": _worded(
        "report.operators:operators_text", "report.operators:operators_json", "operators"
    ),
    "OperatorsPlan": _worded(
        "report.operators:operators_plan_text", "report.operators:operators_plan_json"
    ),
    "OperatorsRuns": _worded(
        "report.operators:operators_runs_text", "report.operators:operators_runs_json", "schedulers"
    ),
    "PolicyComparison": _worded(
        "report.policies:headline", "report.policies:policies_json", "outcomes"
    ),
    "Verdict": _worded("report.schedule:headline", "report.schedule:schedule_json", "policies"),
    "SharingGain": _worded("report.sharing:sharing_text", "report.sharing:sharing_json", "ways"),
    "OrderedPlan": _worded("report.ordered:ordered_text", "report.ordered:ordered_json", "choices"),
    "Explored": _worded(
        "report.advice:exploration_text", "report.advice:exploration_json", "plan.frontier"
    ),
    "Look": _worded("report.watched:look_text", "report.watched:look_json"),
}  # fmt: skip


def _doors(result: Result) -> _Doors:
    return _DOORS[type(result).__name__]


def in_short(result: Result) -> str:
    """A result in one line."""

    return f"<{type(result).__name__}: {printable(_doors(result).sentence(result))}>"


def as_text(result: Result) -> str:
    """A result as its command prints it for people."""
    in_words = _doors(result).text
    assert in_words is not None, "only results that a command prints have a text"
    return in_words(result)


def as_data(result: Result) -> dict[str, Any]:
    """A result as its command prints it with ``--json``; a profile as in its file."""
    return dict(_doors(result).data(result))


def as_table(result: Result) -> Any:
    """The main table of a result."""
    require_packages("logs", "a table for pandas", "pandas")
    from pandas import DataFrame  # type: ignore[import-untyped]

    return DataFrame(list(_rows(result)))


def _rows(result: Result) -> Iterable[Row]:
    """The rows of the main table; nested values have names with a dot."""
    doors = _doors(result)
    if doors.rows is not None:
        return doors.rows(result)
    node: Any = as_data(result)
    if not doors.main:
        return [{"name": name, "value": value} for name, value in _figures(node)]
    for key in doors.main.split("."):
        node = node.get(key) or {}
    if isinstance(node, Mapping):
        node = [{"name": name, **row} for name, row in node.items()]
    return [_flat(row) for row in node]


def _figures(data: dict[str, Any]) -> Iterable[tuple[str, object]]:
    from headway.formats.figures_read import figures_read

    return figures_read(data, "").figures


def _flat(row: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def first_screen(result: Result) -> str:
    """The answer, its facts and its main table, as HTML without a style of its own."""
    from markupsafe import escape

    doors = _doors(result)
    head, *body = _table(result) if doors.table is None else doors.table(result) or [()]
    parts = [
        f"<p><strong>{escape(doors.sentence(result))}</strong></p>",
        _html_table((), doors.facts(result)),
        _html_table(head, body[:_MOST_ROWS]),
        f"<p>{len(body) - _MOST_ROWS} more rows</p>" if len(body) > _MOST_ROWS else "",
    ]
    return f'<div class="headway">{"".join(parts)}</div>'


def _table(result: Result) -> list[Sequence[str]]:
    """The main table for people: names of columns, then rows; nested lists are left out."""
    rows = list(_rows(result))
    columns = (
        [name for name, value in rows[0].items() if not isinstance(value, list)] if rows else []
    )
    return [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from markupsafe import escape

    if not rows:
        return ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in others)}</tr>"
        for first, *others in rows
    )
    head_row = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table>{head_row}<tbody>{body}</tbody></table>"


def save(result: Result, path: str | Path) -> Path:
    """Write a result to a file, in the format given by the extension of its name."""
    from headway.formats.text_file import write_text

    file, ending, doors = Path(path), Path(path).suffix.lower(), _doors(result)
    if ending not in doors.endings:
        endings_text = " or ".join(doors.endings)
        raise InputError(f"{path}: the name ends in {ending or 'nothing'}; expected {endings_text}")
    if ending == ".html":
        write_text(file, _page(result), label="the page")
    elif ending == ".json":
        text: str = _function("formats.as_json:json_text")(as_data(result))
        write_text(file, f"{text}\n", label="the result")
    else:
        save_profile(result, file)  # type: ignore[arg-type]  # profiles alone end so
    return file


def _page(result: Any) -> str:
    from headway.api.page import page

    return page(with_page(result))


def with_page(result: Any) -> Any:
    """The result that a page shows: the data of one that has no page of its own."""
    from headway.formats.as_json import json_text
    from headway.formats.results_file import parse_result

    if not _doors(result).is_page_of_data:
        return result
    return parse_result(json_text(as_data(result)), name=type(result).__name__)
