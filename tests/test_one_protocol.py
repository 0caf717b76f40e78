"""Rooms ask the protocols of ``headway.domain.job``; where a class is still asked for, it says why.

A switch over classes of jobs and of their answers is what a new kind of job must find and extend
by hand. This list only becomes shorter.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "headway"
KINDS = frozenset(
    (
        *("JobProfile", "ApplicationProfile", "DStreamsProfile", "StreamingJob", "BatchJob"),
        *("Plan", "InfeasiblePlan", "DeadlinePlan", "InfeasibleDeadlinePlan"),
        *("StreamAnswer", "BatchAnswer", "AnyAnswer", "Answer", "FleetPlan", "Infeasible"),
        *("PlannedJob", "PlannedBatch", "Locked", "LockedBatch"),
    )
)
#: Where a class is asked for, how often, and why.
ALLOWED = {
    "api/arguments.py": (1, "a profile or the path of one"),
    "api/deadlines.py": (1, "a profile or the path of one"),
    "api/schedule.py": (1, "a profile or the path of one"),
    "api/profile.py": (1, "the call that promises a streaming query refuses what is none"),
    "api/fleet_jobs.py": (1, "the place where a job of a fleet gets its needs"),
    "api/specs.py": (1, "the place where a spec gets its planner"),
    "cli/plan.py": (1, "the command of DStreams has options of its own"),
    "cli/predict.py": (1, "as the plan"),
    "formats/profile_file.py": (1, "the heading of a file says what it holds"),
    "report/profiles.py": (1, "the place where a profile gets its summary"),
    "spec/fleet_parts.py": (1, "a fleet takes files of these kinds alone"),
}


def switches(text: str) -> list[int]:
    """Lines that ask for the class of a job or of an answer."""
    found = []
    for node in ast.walk(ast.parse(text)):
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
    counts = Counter(
        {
            str(path.relative_to(ROOT)): len(switches(path.read_text(encoding="utf-8")))
            for path in ROOT.rglob("*.py")
        }
    )
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
    assert switches(text)


def test_other_questions_are_not() -> None:
    assert not switches("isinstance(path, str | Path)\nplan.feasible")
