"""What is found is a code with its numbers, worded in one room; no page decides by its words."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.check import check
from headway.api.plan import plan
from headway.ci.nouns import Rule
from headway.domain import AnyAnswer, Finding, FindingCode
from headway.errors import InputError
from headway.formats.as_json import json_text, other_plan_json, plan_json
from headway.formats.from_json import parse_any_plan
from headway.formats.profile_file import load_profile
from headway.words import all_words
from headway.words.plans import OF_PLANS
from headway.words.predictions import OF_PREDICTIONS
from tests.ci.conftest import SPEC
from tests.ci.conftest import folder as folder
from tests.factories import load_application_profile
from tests.planner.test_dstreams import FITTED, profiled
from tests.sources import modules

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
# Who shows findings, and the two that put one into a message of another kind.
SHOW = ("report/", "emitters/", "formats/as_json.py", "formats/codec.py")
PUT_IN_A_MESSAGE = ("planner/promised_latency.py", "api/check.py", "formats/from_json.py")


def test_every_code_has_its_words_once() -> None:
    assert not OF_PLANS.keys() & OF_PREDICTIONS.keys()
    assert OF_PLANS.keys() | OF_PREDICTIONS.keys() == set(FindingCode)


def test_words_are_asked_for_where_findings_are_shown() -> None:
    asking = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headway.words")
        if {alias.name for alias in node.names} & {"all_words", "words_of"}
    }
    others = {name for name in asking if not name.startswith(("words/", *SHOW))}
    assert others == set(PUT_IN_A_MESSAGE)


def test_no_noun_has_warnings_and_nothing_is_decided_by_words() -> None:
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.keyword):
                said = node.attr if isinstance(node, ast.Attribute) else node.arg
                assert said != "warnings", f"{name}:{node.value.lineno}"
            if isinstance(node, ast.Compare | ast.If | ast.IfExp | ast.Match):
                asked = node if isinstance(node, ast.Compare) else getattr(node, "test", node)
                names = {one.id for one in ast.walk(asked) if isinstance(one, ast.Name)}
                assert not names & {"words_of", "all_words"}, f"{name}:{node.lineno}"


def of_stream(**asked: Any) -> AnyAnswer:
    answer: AnyAnswer = plan(load_profile(EXAMPLES / "word-count.profile.yaml"), **asked)
    return answer


def of_batch(**asked: Any) -> AnyAnswer:
    profile = load_application_profile(EXAMPLES / "nightly-totals.profile.yaml")
    answer: AnyAnswer = headway.plan(profile, **asked)
    return answer


ANSWERS: dict[str, Callable[[], AnyAnswer]] = {
    "far off": partial(of_stream, rate="300k/s", target="p99 <= 30s", cores=8),
    "over capacity": partial(of_stream, rate="90M/s", target="p99 <= 3s", max_nodes=1),
    "of a catalogue": partial(
        of_stream, rate="20k/s", target="p99 <= 3s", node_types=["m6i.xlarge"], task_cpus=2
    ),
    "another core speed": partial(
        of_stream,
        rate="1234567/s",
        target="mean <= 30s",
        node_types=["fast:cores=5,memory=14g,price=0.2,speed=1.3"],
        task_cpus=2,
    ),
    "batch": partial(of_batch, target="deadline <= 1h", node_types=["m6i.xlarge"]),
    "batch far off": partial(of_batch, target="deadline <= 1s", max_nodes=300),
}


@cache
def answer_of(name: str) -> AnyAnswer:
    return ANSWERS[name]()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_file_holds_both_and_is_read_back_to_the_digit(name: str) -> None:
    answer = answer_of(name)
    text = json_text(plan_json(answer))
    written = json.loads(text)
    assert written["warnings"] == list(all_words(answer.findings))
    assert [one["code"] for one in written["findings"]] == [one.code for one in answer.findings]
    read = parse_any_plan(text, name="plan.json")
    assert [(one.code, one.names) for one in read.findings] == [
        (one.code, one.names) for one in answer.findings
    ]
    assert all_words(read.findings) == all_words(answer.findings)
    assert json_text(plan_json(read)) == text


def test_of_dstreams_too() -> None:
    answer = headway.plan(profiled(FITTED), rate="20k/s", target="p99 <= 5s", concurrent_jobs=2)
    written = other_plan_json(answer)
    assert written["warnings"] == list(all_words(answer.findings))
    assert FindingCode.CONCURRENT_JOBS_NOT_PROFILED in {one.code for one in answer.findings}
    assert FindingCode.BATCHES_MAY_OVERTAKE in {one.code for one in answer.findings}


@pytest.mark.parametrize("name", ["of a catalogue", "batch"])
def test_what_earlier_versions_said_in_words_alone_is_kept(name: str) -> None:
    data = json.loads(json_text(plan_json(answer_of(name))))
    had = data["warnings"]
    # Those of batch jobs stood behind the words of what had no code, and had no names yet.
    data["findings"] = data["findings"][-1:] if name == "batch" else []
    assert all(not one.pop("names") for one in data["findings"])
    if "prediction" in data:
        data["prediction"] |= {"findings": [], "warnings": ["said before"]}
    read = parse_any_plan(json.dumps(data), name="plan.json")
    assert list(all_words(read.findings)) == had
    assert FindingCode.EARLIER_WORDS in {one.code for one in read.findings}
    if read.prediction is not None:
        assert all_words(read.prediction.findings) == ("said before",)


def test_a_finding_without_its_numbers_is_refused_at_its_place() -> None:
    data = json.loads(json_text(plan_json(answer_of("batch"))))
    data["findings"] = [{"code": "over_capacity", "numbers": {}, "names": {}}]
    with pytest.raises(InputError, match=r"findings: a finding without its 'rate_per_s'"):
        parse_any_plan(json.dumps(data), name="plan.json")


@pytest.mark.parametrize(("rate", "why"), [("5M/s", None), ("150k/s", "extrapolated: ")])
def test_the_gate_says_why_a_plan_is_not_calibrated(
    folder: Path, rate: str, why: str | None
) -> None:
    """Not whatever was warned of first: here that the speed of a node is assumed.

    Nothing of the nearest plan of a target that cannot be met, which the gate does not show.
    """
    spec = SPEC.replace("5k/s", rate).replace("cores: 4, memory", "cores: 4, speed: 1.3, memory")
    (folder / "orders.yaml").write_text(spec.replace("cores_per_executor: 4", "max_nodes: 30"))
    report = check(["orders.yaml"])
    messages = [finding.message for finding in report.findings if finding.rule is Rule.CALIBRATION]
    assert report.jobs[0].feasible == (why is not None)
    assert len(messages) == (why is not None)
    assert all(message.removeprefix("orders: ").startswith(why or "") for message in messages)


def test_findings_that_differ_in_a_number_differ() -> None:
    one = Finding(code=FindingCode.JOBS_FAILED, numbers={"num_jobs": 1})
    assert all_words([one, replace(one, numbers={"num_jobs": 2})]) == (
        "1 job failed in the profiled run",
        "2 jobs failed in the profiled run",
    )
