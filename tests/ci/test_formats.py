"""Reports in the words of other tools, whatever the texts in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from headway.api.results import as_data, as_text
from headway.ci.formats import FORMATS
from headway.ci.formats.markdown import MARKER
from headway.ci.nouns import ABOUT, Finding, Held, Level, Report, Rule
from headway.formats.as_json import json_text
from headway.formats.lock_file import Locked


def json_of(report: Report) -> str:
    return json_text(as_data(report))


ALL_FORMATS: dict[str, Callable[[Report], str]] = {**FORMATS, "text": as_text, "json": json_of}
AWKWARD = "p99 3.1 s > 2 s, 50 % over: <b>|`x`\r\n::error::&\x00\"'"


def a_locked(**changes: Any) -> Locked:
    return Locked(
        **{
            "name": "orders",
            "file": "jobs/orders.yaml",
            "targets": ("p99 <= 2.00 s",),
            "rate_per_s": 5000.0,
            "nodes": 3,
            "cost_per_hour": 0.6,
            "planned_latency_s": 1.5,
            "executors": 3,
            "cores_per_executor": 4,
            "shuffle_partitions": 8,
            "trigger_s": 1.0,
            **changes,
        }
    )


def a_report(message: str = "p99 3.1 s > 2 s", level: Level = Level.ERROR) -> Report:
    finding = Finding(
        rule=Rule.TARGET, level=level, job="orders", message=message, file="jobs/a,b:c.yaml", line=7
    )
    note = Finding(rule=Rule.GONE, level=Level.NOTE, job="old", message="gone", file="headway.lock")
    held = Held(
        name="orders",
        file="jobs/a,b:c.yaml",
        line=7,
        now=a_locked(),
        then=a_locked(nodes=2, cost_per_hour=0.4, planned_latency_s=1.0),
        feasible=True,
        calibrated=True,
        findings=(finding,),
    )
    return Report(baseline="headway.lock", jobs=(held,), others=(note,))


def test_text_tells_then_and_now() -> None:
    text = as_text(a_report())
    assert text.splitlines()[0] == "+144 per month; 1 of 1 job failed"
    assert "nodes 2 -> 3, cost per hour 0.4 -> 0.6, planned latency 1.00 s -> 1.50 s" in text
    assert "jobs/a,b:c.yaml:7:1: error: p99 3.1 s > 2 s (latency-target)" in text


def test_json_keeps_its_keys() -> None:
    data = as_data(a_report(AWKWARD))
    assert data["schema"] == "headway.check/v1"
    assert (data["ok"], data["exit_code"]) == (False, 3)
    assert data["findings"][0]["message"] == AWKWARD
    assert data["jobs"][0]["now"]["nodes"] == 3
    assert data["jobs"][0]["locked"]["nodes"] == 2


def test_annotations_are_escaped() -> None:
    first, second, last = FORMATS["github"](a_report(AWKWARD)).split("\n")
    assert first.startswith(
        "::error file=jobs/a%2Cb%3Ac.yaml,line=7,col=1,title=orders%3A latency-target::p99 3.1 s"
    )
    assert "50 %25 over" in first
    assert "%0D%0A::error::" in first
    assert second.startswith("::notice file=headway.lock,line=1,")
    assert last == "+144 per month; 1 of 1 job failed"


def test_junit_is_xml_whatever_the_text() -> None:
    root = ElementTree.fromstring(FORMATS["junit"](a_report(AWKWARD)))
    assert root.attrib == {"tests": "1", "failures": "1"}
    (case,) = root.iter("testcase")
    assert case.attrib == {"classname": "jobs/a,b:c.yaml", "name": "orders"}
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "latency-target"
    assert "<b>" in failure.attrib["message"]
    passed = ElementTree.fromstring(FORMATS["junit"](a_report(level=Level.NOTE)))
    assert passed.attrib["failures"] == "0"


def test_markdown_starts_with_its_marker_and_stays_one_table() -> None:
    text = FORMATS["markdown"](a_report(AWKWARD))
    assert text.startswith(f"{MARKER}\n**Headway: 432 per month (+144); 1 of 1 job failed**")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "<details><summary>1 locked job not checked</summary>" in text
    report = a_report(level=Level.NOTE)
    assert "<summary>1 change without regression, 1 locked job" in FORMATS["markdown"](report)


def test_the_cost_in_all_is_that_of_the_jobs_in_each_currency() -> None:
    held = a_report().jobs[0]
    euros = replace(
        held,
        now=a_locked(cost_per_hour=1.0, requests_cost_per_hour=0.5, currency="EUR"),
        then=a_locked(cost_per_hour=1.0, requests_cost_per_hour=0.3, currency="EUR"),
    )
    text = FORMATS["markdown"](Report(baseline=None, jobs=(held, euros)))
    assert "**Headway: 432 per month (+144); 1,080 EUR per month (+144); 2 of 2 jobs" in text
    assert "876 EUR -> 1,080 EUR" not in text
    other_currency = replace(euros, then=a_locked(cost_per_hour=1.0, currency="USD"))
    assert "+" not in Report(baseline=None, jobs=(other_currency,)).headline
    of_earlier_version = replace(euros, then=a_locked(cost_per_hour=1.0, currency=None))
    assert "+360 EUR per month" in Report(baseline=None, jobs=(of_earlier_version,)).headline


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_no_format_has_figures_of_what_no_setting_achieves(name: str) -> None:
    held = replace(a_report().jobs[0], feasible=False, now=a_locked(nodes=777, cost_per_hour=9.0))
    report = Report(baseline="headway.lock", jobs=(held, replace(a_report().jobs[0], name="b")))
    text = ALL_FORMATS[name](report)
    assert name == "json" or ("777" not in text and "6,480" not in text)
    assert report.costs_per_month[""] == pytest.approx((432.0, 144.0))
    assert "2 -> -" in as_text(report)
    alone = FORMATS["markdown"](Report(baseline="headway.lock", jobs=(held,)))
    assert "**Headway: 1 of 1 job failed**" in alone
    assert "288 -\\> - per month" in alone


def test_a_new_job_costs_all_of_its_cost_more() -> None:
    held = replace(a_report().jobs[0], then=None)
    assert "per month;" not in Report(baseline=None, jobs=(held,)).headline
    new = Report(baseline="headway.lock", jobs=(replace(held, is_new=True),))
    assert new.headline.startswith("+432 per month; ")
    assert "**Headway: 432 per month (+432); " in FORMATS["markdown"](new)


def test_a_notebook_shows_what_was_found() -> None:
    html = a_report(AWKWARD)._repr_html_()
    assert "orders: FAILED" in html
    assert "p99 3.1 s &gt; 2 s, 50 % over: &lt;b&gt;" in html
    assert "note: gone (only-in-lock)" in html


def test_what_rules_say_is_true_of_notes_too() -> None:
    for rule in (Rule.COST, Rule.LATENCY, Rule.DRIFT):
        assert "differs from" in ABOUT[rule] or "another duration" in ABOUT[rule]
        assert "an error if" in ABOUT[rule]


def test_sarif_has_rules_and_places() -> None:
    data = json.loads(FORMATS["sarif"](a_report()))
    (sarif_run,) = data["runs"]
    assert data["version"] == "2.1.0"
    listed = [rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]]
    assert listed == [str(rule) for rule in Rule]
    for result in sarif_run["results"]:
        assert listed[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
    place = sarif_run["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 7, "startColumn": 1}


EVIL = "jobs/a\n::error::pwned\r\u202egnp.yaml\x1b[2J\u200b"


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_a_file_name_writes_no_line_of_its_own_and_turns_no_text_round(name: str) -> None:
    finding = Finding(
        rule=Rule.TARGET, level=Level.ERROR, job=EVIL, message="p99 3.1 s > 2 s", file=EVIL, line=7
    )
    note = replace(finding, rule=Rule.GONE, level=Level.NOTE)
    held = replace(a_report().jobs[0], name=EVIL, file=EVIL, findings=(finding,))
    text = ALL_FORMATS[name](Report(baseline=EVIL, jobs=(held,), others=(note,)))
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::error::")]
    assert not set("\r\u202e\x1b\u200b") & set(text)
    assert "pwned" in text


@pytest.mark.parametrize("name", ["text", "junit", "markdown"])
def test_a_message_stays_on_its_line(name: str) -> None:
    text = ALL_FORMATS[name](a_report(f"before {EVIL}"))
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::error::")]
    assert not set("\u202e\x1b") & set(text)


@pytest.mark.parametrize("name", ALL_FORMATS)
def test_an_empty_report_is_a_report(name: str) -> None:
    assert ALL_FORMATS[name](Report(baseline=None, jobs=()))


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([], 0),
        ([(Rule.TARGET, Level.ERROR), (Rule.COST, Level.ERROR)], 3),
        ([(Rule.COST, Level.ERROR), (Rule.CALIBRATION, Level.ERROR)], 4),
        ([(Rule.CALIBRATION, Level.ERROR)], 5),
        ([(Rule.COST, Level.NOTE), (Rule.CALIBRATION, Level.WARNING)], 0),
    ],
)
def test_the_worst_error_decides_the_exit_code(found: list[tuple[Rule, Level]], code: int) -> None:
    findings = tuple(
        Finding(rule=rule, level=level, job="a", message="m", file="f") for rule, level in found
    )
    assert Report(baseline=None, jobs=(), others=findings).exit_code == code
