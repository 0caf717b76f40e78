"""Rooms ask any job and any answer in one way; where a class is still asked for, it says why.

A switch over classes of jobs and of their answers is what a new kind of job must find and extend
by hand. This list only becomes shorter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import pytest

import headway
from headway.domain import Answer, Deadline, Objective, Target
from headway.errors import InputError
from headway.planner.enumeration import best_of
from tests.factories import load_application_profile
from tests.planner.test_dstreams import FITTED, profiled
from tests.sources import ROOT, modules

KINDS = frozenset(
    (
        *("JobProfile", "ApplicationProfile", "DStreamsProfile", "StreamingJob", "BatchJob"),
        *("Plan", "InfeasiblePlan", "DeadlinePlan", "DStreamsPlan"),
        *("StreamAnswer", "BatchAnswer", "AnyAnswer", "Answer", "FleetPlan", "Infeasible"),
        *("StreamBacklog", "EndingJob"),
        *("PlannedJob", "PlannedBatch", "Locked", "LockedBatch"),
    )
)
#: Where a class is asked for, how often, and why.
ALLOWED = {
    "api/profile.py": (1, "the call that promises a streaming query refuses what is none"),
    "formats/profile_file.py": (1, "the head of a file: only a streaming query reads a backlog"),
}


def switches(tree: ast.AST) -> list[int]:
    """Lines that ask for the class of a job or of an answer."""
    found = []
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = list(ast.walk(node.args[1]))
        elif isinstance(node, ast.MatchClass):
            asked = list(ast.walk(node.cls))
        names = {each.id for each in asked if isinstance(each, ast.Name)}
        names |= {each.attr for each in asked if isinstance(each, ast.Attribute)}
        if names & KINDS:
            found.append(asked[0].lineno)  # type: ignore[attr-defined]
    return found


def test_no_room_asks_for_the_class_of_a_job_or_an_answer() -> None:
    counts = {name: len(switches(tree)) for name, tree in modules().items()}
    found = {name: count for name, count in counts.items() if count}
    assert found == {name: count for name, (count, _) in ALLOWED.items()}


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(plan, DeadlinePlan)",
        "isinstance(plan, domain.Plan | DeadlinePlan)",
        "isinstance(job, (str, JobProfile))",
        "match job:\n    case JobProfile():\n        pass",
    ],
)
def test_a_switch_is_found_however_it_is_written(text: str) -> None:
    assert switches(ast.parse(text))


def test_other_questions_are_not() -> None:
    assert not switches(ast.parse("isinstance(path, str | Path)\nplan.feasible"))


EXAMPLES = ROOT / "examples"


def answers() -> Iterator[Answer]:
    """A plan of each kind, feasible and not, through the one door where it has one."""
    for limit in ("10s", "1ms"):
        yield headway.plan(
            EXAMPLES / "word-count.profile.yaml", rate="5k/s", target=f"p99 <= {limit}", max_nodes=2
        )
        yield headway.plan(profiled(FITTED), rate=None, target=f"p99 <= {limit}", max_nodes=2)
    for limit in ("10m", "1s"):
        profile = EXAMPLES / "nightly-totals.profile.yaml"
        yield headway.plan(profile, target=f"deadline <= {limit}", max_nodes=2)


def test_every_kind_of_answer_is_read_in_one_way() -> None:
    seen = set()
    for answer in answers():
        seen.add((type(answer).__name__, answer.feasible))
        first = answer.promises[0]
        assert answer.most_s(first) == answer.planned_s
        assert isinstance(first, Target | Deadline)
        assert answer.feasible == (answer.planned_s <= first.limit_s)
        assert answer.ends == (answer.target is None)
    assert len(seen) == 6


def test_one_door_tells_by_the_promise_what_is_planned() -> None:
    batch, stream = (EXAMPLES / f"{one}.profile.yaml" for one in ("nightly-totals", "word-count"))
    deadline = Deadline.parse("deadline <= 10m")
    recorded, query = load_application_profile(batch), headway.load_profile(stream)
    by_text = headway.plan(batch, target="deadline <= 10m")
    assert by_text == headway.plan(recorded, target=deadline)
    assert headway.plan(query, rate="5k/s", target="p99 <= 9s") == headway.plan(
        stream, rate=5000.0, target=["p99 <= 9s"]
    )


@pytest.mark.parametrize(
    ("profile", "asked", "why"),
    [
        ("batch", {"target": "deadline <= 1h", "rate": "5k/s"}, "^rate: not with a deadline"),
        (
            "batch",
            {"target": "deadline <= 1h", "trigger": 2, "bursts": ["5k/s:1m"]},
            "^trigger, bursts: ",
        ),
        ("batch", {"target": ["deadline <= 1h", "p99 <= 3s"]}, "must be the only target"),
        ("batch", {"target": "p99 <= 3s", "rate": "5k/s"}, "p99 <= 3.00 s"),
        ("stream", {"target": "deadline <= 1h"}, "a streaming job has no end"),
        ("stream", {"target": "p99 <= 3s", "mode": "fast"}, "^mode is 'fast'"),
    ],
)
def test_the_door_refuses_what_is_not_of_the_kind(
    profile: str, asked: dict[str, Any], why: str
) -> None:
    job = (
        load_application_profile(EXAMPLES / "nightly-totals.profile.yaml")
        if profile == "batch"
        else headway.load_profile(EXAMPLES / "word-count.profile.yaml")
    )
    with pytest.raises(InputError, match=why):
        headway.plan(job, **asked)


def test_one_order_of_sizes_serves_every_kind() -> None:
    class Size(NamedTuple):
        nodes: int
        cost: float | None
        planned_s: float

    few, cheap, fast = Size(1, 9.0, 5.0), Size(2, 1.0, 5.0), Size(9, 9.0, 1.0)
    for objective, best in zip(get_args(Objective), (few, cheap, fast), strict=True):
        assert best_of([cheap, fast, few], objective) is best
    unpriced = Size(2, None, 5.0)
    assert best_of([unpriced, cheap], "nodes") is cheap
    assert best_of([few, fast._replace(planned_s=5.0)], "latency") is few
