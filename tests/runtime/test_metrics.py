"""Metrics and events: each way in which they leave the process, and what they say."""

from __future__ import annotations

import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.api.watch import Watcher
from headway.domain.recorded import ShedCount
from headway.domain.tuner import Phase
from headway.errors import HeadwayError, InputError
from headway.formats.event_lines import EVENTS, EventFile, tell_event
from headway.formats.open_metrics import CONTENT_TYPE, Metric, open_metrics_text, spark_lines
from headway.formats.tuner_files import append_audit
from headway.profiler import schema
from headway.profiler.recording.recorder import Recorder
from headway.profiler.recording.shed_rows import ShedRows
from headway.report.live_metrics import (
    ABOUT,
    gate_metrics,
    recorder_metrics,
    shedding_metrics,
    tuner_metrics,
)
from headway.runtime.metrics.publishing import close_page, page_server
from headway.tuner.tuner import TunerStatus
from tests.factories import a_configuration
from tests.sources import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DASHBOARD = ROOT / "examples" / "grafana" / "headway.json"
SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)(?P<labels>\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})?'
    r" (?P<value>-?[\d.e+-]+|NaN|[+-]Inf)"
)


def samples_of(text: str) -> dict[str, float]:
    """Samples of an OpenMetrics text by name and labels, by the grammar of its standard."""
    *lines, end = text.splitlines()
    assert (end, text[-1]) == ("# EOF", "\n")
    samples: dict[str, float] = {}
    kinds: dict[str, str] = {}
    family = ""
    for line in lines:
        if line.startswith("# "):
            _, word, family, rest = line.split(" ", 3)
            if word == "TYPE":
                assert family not in kinds, "a family stands in one place"
                kinds[family] = rest
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        assert match["name"] == family + ("_total" if kinds[family] == "counter" else "")
        key = match["name"] + (match["labels"] or "")
        assert key not in samples
        samples[key] = float(match["value"])
    return samples


def test_text_keeps_to_the_grammar() -> None:
    query = 'a "b" \\ c\nd'
    text = open_metrics_text(
        [
            Metric(name="headway_gate_grants", kind="counter", about="Grants.", samples=(
                ((("query", query),), 3.0), ((("query", "e"), ("source", "x")), float("inf")),
            )),
            Metric(name="headway_gate_open", about="Open.", samples=(((), 0.125),)),
            Metric(name="headway_late_ratio", about="Unknown.", samples=()),
        ]
    )  # fmt: skip
    assert samples_of(text) == {
        'headway_gate_grants_total{query="a \\"b\\" \\\\ c d"}': 3.0,
        'headway_gate_grants_total{query="e",source="x"}': float("inf"),
        "headway_gate_open": 0.125,
    }
    assert "late_ratio" not in text


def test_names_for_sinks_of_spark_have_no_other_signs_than_theirs() -> None:
    samples = (((("query", "orders by day"), ("source", "measured")), 0.5), ((), float("nan")))
    lines = spark_lines([Metric(name="headway_gate_batch_seconds", about="", samples=samples)])
    assert lines == "gate_batch_seconds.orders_by_day.measured\t0.5\n"


def a_report(**changes: Any) -> Any:
    from headway.domain import Policy, QueryReport, ScheduleReport

    query: dict[str, Any] = {
        "num_grants": 7, "num_batches": 6, "wait_mean_s": 0.25, "wait_max_s": 1.5,
        "predicted_duration_mean_s": 0.5, "observed_duration_mean_s": None, "num_windows": 4,
        "num_windows_late": 1, "num_rows": 900,
    }  # fmt: skip
    queries = (
        QueryReport(name="orders", **query),
        QueryReport(name="orders", **query | {"num_rows": 1}),
    )
    return ScheduleReport(
        policy=Policy.FCFS, at_once=2, num_decisions=9, decision_p50_s=0.001, decision_p99_s=0.004,
        opened_because=None, queries=queries, num_ahead=5, num_queries=1,
    )  # fmt: skip


def test_a_gate_says_what_its_report_says() -> None:
    samples = samples_of(open_metrics_text(gate_metrics(a_report())))
    expected = {
        "headway_gate_open": 0.0,
        "headway_gate_queries": 1.0,
        'headway_gate_policy{policy="fcfs"}': 1.0,
        "headway_gate_decisions_total": 9.0,
        "headway_gate_grants_ahead_total": 5.0,
        'headway_gate_decision_seconds{quantile="0.99"}': 0.004,
        'headway_gate_grants_total{query="orders"}': 7.0,
        # Of a query that left and joined again, what it is now.
        'headway_gate_rows_total{query="orders"}': 900.0,
        'headway_gate_wait_max_seconds{query="orders"}': 1.5,
        'headway_gate_batch_seconds{query="orders",source="predicted"}': 0.5,
        'headway_gate_windows_late_total{query="orders"}': 1.0,
    }
    assert {name: samples[name] for name in expected} == expected
    assert not [name for name in samples if "measured" in name]


class NoStreams:
    """A session without a JVM, to whose queries a listener is added."""

    def __init__(self) -> None:
        self.streams, self.listeners = self, []  # type: ignore[var-annotated]
        self.addListener, self.removeListener = self.listeners.append, self.listeners.remove


def test_shed_rows_are_added_up_over_batches() -> None:
    session: Any = NoStreams()
    shed = ShedRows(session)

    def ended(name: str | None, metrics: object) -> None:
        progress = {"id": "1", "name": name, "observedMetrics": metrics}
        shed._hand_over(lambda: {"Event": schema.QUERY_PROGRESS, "progress": progress})

    ended("orders", {"shedding": {"rows": 100, "shed": 20}, "ordered": {"tied": 1}})
    # As Spark Connect 4.3 gives it to a client.
    fields = {"type": "struct", "fields": [{"name": "rows"}, {"name": "shed"}]}
    ended("orders", {"shedding": {"values": [50, 0], "schema": fields}})
    ended(None, {"late ones": {"rows": 5, "shed": 5}})
    ended("clicks", None)
    assert shed.counts() == [
        ShedCount(query="orders", rule="shedding", num_rows=150, num_shed=20),
        ShedCount(query="1", rule="late ones", num_rows=5, num_shed=5),
    ]
    samples = samples_of(open_metrics_text(shedding_metrics(shed.counts())))
    assert samples['headway_shedding_shed_rows_total{query="orders",rule="shedding"}'] == 20.0
    shed.stop()
    assert session.listeners == []


def test_an_address_answers_scrapers_and_no_one_else() -> None:
    texts: Iterator[str] = iter(["headway_gate_open 0\n# EOF\n"])
    server = page_server(lambda: next(texts), port=0, host="127.0.0.1")
    port = int(server.server_address[1])
    address = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(f"{address}/metrics?x=1", timeout=10) as answer:
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        assert answer.read() == b"headway_gate_open 0\n# EOF\n"
    for path, status in (("/", 404), ("/metrics", 500)):
        with pytest.raises(urllib.error.HTTPError) as said:
            urllib.request.urlopen(f"{address}{path}", timeout=10)
        assert said.value.code == status
        said.value.close()
    with pytest.raises(HeadwayError, match=f"port {port} of 127.0.0.1 cannot be"):
        page_server(str, port=port, host="127.0.0.1")
    close_page(server)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{address}/metrics", timeout=10)


def test_a_gate_reaches_spark_a_file_and_an_address(spark: SparkSession, tmp_path: Path) -> None:
    file, events = tmp_path / "headway.prom", tmp_path / "events.jsonl"
    registry = registry_of_sinks(spark._jvm)

    def names() -> set[str]:
        return {str(name).partition("driver.")[2] for name in registry.getGauges().keySet()}

    with (
        headway.schedule(spark, policy="fcfs", at_once=3) as gate,
        headway.publish_metrics(gate, spark=spark, port=0, file=file, events=events) as metrics,
    ):
        assert {"headway.gate_open", "headway.gate_policy.fcfs"} <= names()
        (name,) = (name for name in registry.getGauges().keySet() if "gate_at_once" in name)
        assert registry.getGauges().get(name).getValue() == 3.0
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as page:
            assert samples_of(page.read().decode())["headway_gate_at_once"] == 3.0
        assert "headway_gate_decisions_total 0\n" in file.read_text()
        gate.gate._break(RuntimeError("tried"))
        assert samples_of(metrics.text())["headway_gate_open"] == 1.0
    assert not [name for name in names() if name.startswith("headway.")]
    (line,) = map(json.loads, events.read_text().splitlines())
    assert (line["schema"], line["source"], line["event"]) == ("headway.event/v1", "gate", "opened")
    assert line["why"] == "the arbiter failed: RuntimeError: tried"


def registry_of_sinks(jvm: Any) -> Any:
    """Where Spark's sinks read; Py4J cannot look at SparkEnv, not all of whose types are there."""
    lookup = jvm.java.lang.invoke.MethodHandles.publicLookup()
    environment, system = (
        jvm.java.lang.Class.forName(f"org.apache.spark.{name}")
        for name in ("SparkEnv", "metrics.MetricsSystem")
    )
    kind = jvm.java.lang.invoke.MethodType.methodType
    get = lookup.findStatic(environment, "get", kind(environment))
    metrics = lookup.findVirtual(environment, "metricsSystem", kind(system))
    found = metrics.invokeWithArguments([get.invokeWithArguments([])])
    for field in system.getDeclaredFields():
        if str(field.getType().getSimpleName()) == "MetricRegistry":
            field.setAccessible(True)
            return field.get(found)
    raise AssertionError("Spark keeps its registry elsewhere")


def test_events_of_the_tuner_have_the_reason_that_its_log_has(tmp_path: Path) -> None:
    audit, events = tmp_path / "orders.tuner.jsonl", tmp_path / "events.jsonl"
    append_audit(audit, {"event": "learned", "why": "before the file"})
    with EventFile(events):
        append_audit(audit, {"event": "warning", "why": "foreachBatch runs again"})
        append_audit(audit, {"event": "proposed", "refused": "a quiet period", "now": 2})
        tell_event("shedding", "shed", "3 of 9 rows cannot be in time", shed=3, odd=float("nan"))
        EVENTS.info("of somebody else")
        with pytest.raises(InputError, match="another writer"):
            EventFile(events)
    append_audit(audit, {"event": "held", "why": "after it"})
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(line["source"], line["event"], line["why"]) for line in lines] == [
        ("tuner", "warning", "foreachBatch runs again"),
        ("tuner", "proposed", "proposed; not made: a quiet period"),
        ("shedding", "shed", "3 of 9 rows cannot be in time"),
    ]
    assert (lines[2]["shed"], lines[2]["odd"]) == (3, None)
    assert len(audit.read_text().splitlines()) == 4


def test_the_log_of_events_has_its_level_again_after_the_last_file(tmp_path: Path) -> None:
    before = EVENTS.level
    first, second = EventFile(tmp_path / "a.jsonl"), EventFile(tmp_path / "b.jsonl")
    first.close()
    first.close()
    tell_event("gate", "joined", "orders takes turns")
    assert EVENTS.level == logging.INFO
    second.close()
    assert EVENTS.level == before != logging.INFO
    assert (tmp_path / "a.jsonl").read_text() == ""
    assert "takes turns" in (tmp_path / "b.jsonl").read_text()


def test_a_handler_that_fails_is_shown_and_fails_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Failing(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            raise RuntimeError("no room for events")

    handler = Failing()
    EVENTS.addHandler(handler)
    try:
        with EventFile(tmp_path / "events.jsonl"):
            tell_event("gate", "joined", "orders takes turns")
            assert "RuntimeError: no room for events" in capsys.readouterr().err
            monkeypatch.setattr(logging, "raiseExceptions", False)
            tell_event("gate", "left", "it takes no more turns")
            assert capsys.readouterr().err == ""
    finally:
        EVENTS.removeHandler(handler)


def test_a_tuner_says_its_phase_and_what_it_would_have() -> None:
    then = a_configuration(executors=7)
    tuner: Any = SimpleNamespace(
        status=TunerStatus(
            phase=Phase.HOLD,
            why="learned",
            configuration=a_configuration(executors=3, max_offsets_per_trigger=500),
            num_changes=2,
            cautions=("foreachBatch runs again",),
            busy_s=1.5,
            query="orders",
        ),
        recommendation=SimpleNamespace(then=then),
    )
    samples = samples_of(open_metrics_text(tuner_metrics(tuner)))
    phases = {name: value for name, value in samples.items() if "phase" in name}
    assert len(phases) == len(Phase)
    assert [name for name, value in phases.items() if value] == [
        'headway_tuner_phase{query="orders",phase="hold"}'
    ]
    others = {
        name.partition("{")[0]: value for name, value in samples.items() if name not in phases
    }
    assert others == {
        "headway_tuner_changes_total": 2.0,
        "headway_tuner_executors": 3.0,
        "headway_tuner_executors_recommended": 7.0,
        "headway_tuner_trigger_seconds": 1.0,
        "headway_tuner_shuffle_partitions": 8.0,
        "headway_tuner_rate_limit_rows": 500.0,
        "headway_tuner_busy_seconds_total": 1.5,
        "headway_tuner_warnings": 1.0,
    }
    tuner.recommendation = None
    samples = samples_of(open_metrics_text(tuner_metrics(tuner)))
    assert samples['headway_tuner_executors_recommended{query="orders"}'] == 3.0


def test_what_cannot_be_read_hides_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_gone(_watcher: Watcher) -> None:
        raise ConnectionRefusedError("the JVM is gone")

    monkeypatch.setattr(Watcher, "look", is_gone)
    watcher, recorder = object.__new__(Watcher), object.__new__(Recorder)
    recorder.__dict__.update(num_events=9, num_lost=2, num_passed_over=1, ended_because=None)
    monkeypatch.setattr(Recorder, "path", Path("o.jsonl"))
    with headway.publish_metrics(watcher, recorder) as metrics:
        assert 'headway_recorder_events_total{file="o.jsonl"} 9' in metrics.text()
        assert metrics.last_error == "ConnectionRefusedError: the JVM is gone"


class FullRecorder:
    path, num_events, num_lost, num_passed_over = Path("/x/o.jsonl"), 9, 2, 1
    ended_because = "the disk is full"


def test_a_recorder_that_ended_is_an_alarm() -> None:
    recorder: Any = FullRecorder()
    samples = samples_of(open_metrics_text(recorder_metrics(recorder)))
    assert samples['headway_recorder_lost_events_total{file="o.jsonl"}'] == 2.0
    assert samples['headway_recorder_ended{file="o.jsonl"}'] == 1.0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"interval": "100ms"}, "a second or more"),
        ({"port": -1}, "expected a whole number from 0 to 65,535"),
        ({"port": "9464"}, "expected a whole number from 0 to 65,535"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        headway.publish_metrics(**arguments)
    with pytest.raises(InputError, match=r"expected what headway\.schedule"):
        headway.publish_metrics("gate")  # type: ignore[arg-type]


def names_that_exist() -> set[str]:
    """Of samples: those of what runs beside queries, and those of a watched query."""
    watched = (ROOT / "headway" / "report" / "watched.py").read_text()
    of_counters = {name: f"{name}_total" for name, (kind, _) in ABOUT.items() if kind == "counter"}
    return {of_counters.get(name, name) for name in ABOUT} | {
        *re.findall(r'"(headway_\w+)"', watched)
    }


def test_the_dashboard_queries_only_metrics_that_exist() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    queried = set()
    for panel in panels:
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${source}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            queried |= set(re.findall(r"headway_\w+", target["expr"]))
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables
            assert target["expr"].count("{") == target["expr"].count("}")
    assert len(queried) > 20
    assert queried <= names_that_exist()
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [
        (panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + row)
        for panel in panels
        for column in range(panel["gridPos"]["w"])
        for row in range(panel["gridPos"]["h"])
    ]
    assert len(set(places)) == len(places), "two panels overlap"
    assert max(column for column, _ in places) < 24


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    models, encoder, plugins = (
        pytest.importorskip(f"grafana_foundation_sdk.{name}")
        for name in ("models.dashboard", "cog.encoder", "cog.plugins")
    )
    plugins.register_default_plugins()

    def unknown(text: str) -> list[str]:
        # What its schema does not have is dropped; defaults are added.
        read = models.Dashboard.from_json(json.loads(text))
        return lost(json.loads(text), json.loads(encoder.JSONEncoder().encode(read)))

    text = DASHBOARD.read_text()
    assert unknown(text) == []
    misspelt = text.replace('"legendFormat"', '"legendFormats"', 1)
    assert unknown(misspelt) == [".panels[0].targets[0].legendFormats"]


def lost(before: Any, after: Any, place: str = "") -> list[str]:
    """Places of a JSON document that another one does not have, or has otherwise."""
    if isinstance(before, dict):
        places = [(f"{place}.{name}", name) for name in before]
        after = after if isinstance(after, dict) else {}
        return [
            where
            for path, name in places
            for where in (lost(before[name], after[name], path) if name in after else [path])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [where for at, pair in pairs for where in lost(*pair, f"{place}[{at}]")]
    return [] if before == after else [place]


def test_every_metric_is_documented_with_its_kind() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(headway_\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert dict(rows) == {
        (f"{name}_total" if kind == "counter" else name): kind for name, (kind, _) in ABOUT.items()
    }
    assert {phase.value for phase in Phase} <= set(re.findall(r"`(\w+)`", page))
