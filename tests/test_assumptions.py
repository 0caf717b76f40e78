"""Constants of judgement stand in one room, once each, and explanations name those in use."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway import plan as planned
from headway.assumptions import fits, named, planning, predictions, resources, subjects
from headway.cli.main import run
from headway.domain import (
    StreamAnswer,
)
from headway.models.job import calibration
from headway.report.assumptions import assumptions_of
from headway.report.explanation import explanation_text
from tests.factories import a_profile
from tests.sources import modules

ALL = {name: one for subject in subjects() for name, one in named(subject)}
ROOT = Path(__file__).parents[1]
FILLERS = {"LEAST", "MOST", "RATIO", "S", "PER", "OF", "BYTES"}

# Numbers of one name and one value in two rooms that neither is judgement nor has a common home.
SAME_TWICE = {
    "LEAST", "LEAST_TAIL", "MOST_LISTED", "MS_PER_S",
    "NARROWEST_LOG_SD", "NEGLIGIBLE", "NUM_NODES", "OLDEST_JAVA",
    "RATE_TOLERANCE_RATIO", "SHORTEST_RATIO", "TICKS_PER_S",
}  # fmt: skip
NUM_SAME_TWICE = 11


def test_each_says_what_it_is_where_it_is_from_and_what_it_influences() -> None:
    for name, one in ALL.items():
        assert one.name[0].isupper() and not one.name.endswith("."), name
        assert one.unit == "-" or re.fullmatch(r"[a-z%/ A-Z]+", one.unit), name
        assert len(one.source) > len("judgement: ") and one.influences, name
        for suffix, unit in {
            "_S": {"s", "s/row"},
            "_MS": {"ms"},
            "_BYTES": {"bytes"},
            "_RATIO": {"-"},
        }.items():
            if name.endswith(suffix) and not name.endswith("_PER_S"):
                assert one.unit in unit, name


def test_no_two_have_one_name() -> None:
    names = [one.name for one in ALL.values()]
    assert len(set(names)) == len(names) == len(ALL)


def test_each_is_read_somewhere() -> None:
    read = {
        owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        for name, tree in modules().items()
        if not name.startswith("assumptions/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "value"
        for owner in [node.value]
    }
    assert not ALL.keys() - read


def constants() -> Iterator[tuple[str, str, object]]:
    """Module, name and value of each constant that is a number, outside of the room."""
    for module, tree in modules().items():
        for node in [] if module.startswith("assumptions/") else tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id.strip("_").isupper():
                        try:
                            value = ast.literal_eval(node.value)
                        except ValueError:
                            continue
                        if type(value) in (int, float):
                            yield module, target.id.strip("_"), value


def is_like(one: str, other: str) -> bool:
    """Whether the words that tell one name are among those of the other."""
    first, second = (set(name.split("_")) - FILLERS for name in (one, other))
    few = min(first, second, key=len)
    return first == second or (len(few) > 1 and first & second == few)


def test_no_constant_of_judgement_is_written_again() -> None:
    again = [
        (module, name, assumed)
        for module, name, value in constants()
        for assumed, one in ALL.items()
        if value == one.value and is_like(name, assumed)
    ]
    assert not again


# Ratios that are of an algorithm, a test or a drawing, and of no answer.
NO_JUDGEMENT = {
    "demo/run.py: BUSY_RATIO", "domain/kept_promise.py: THREE_DIGITS_RATIO",
    "fleet/relaxation.py: CLOSE_SHARE", "limits.py: MOST_SPREAD_RATIO",
    "models/pipeline/latency.py: NARROWEST_RATIO",
    "models/stages/skew.py: TAIL_RATIO", "planner/relaxation.py: ACCURACY_RATIO",
    "planner/state_growth.py: TOLERANCE_RATIO",
    "profiler/pieces.py: PACKED_RATIO",
    "redaction.py: LEAST_CHANGES_RATIO", "profiler/streaming/trigger.py: NEAR_RATIO",
    "report/axes.py: HEADROOM_RATIO",
}  # fmt: skip
NUM_NO_JUDGEMENT = 12


def test_ratios_stand_with_the_assumptions() -> None:
    judged = {"RATIO", "SHARE", "SPREAD", "MARGIN", "SAFETY", "USUAL", "PRIOR", "CONFIDENCE"}
    found = {
        f"{module}: {name}"
        for module, name, value in constants()
        if judged & set(name.split("_"))
        and isinstance(value, int | float)
        and 0.0005 < value < 100.0
    }
    assert found == NO_JUDGEMENT, sorted(found ^ NO_JUDGEMENT)
    assert len(NO_JUDGEMENT) == NUM_NO_JUDGEMENT, "the list only becomes shorter"


# Times of an algorithm, of a start of a process or of a drawing, on which no answer rests.
NO_JUDGEMENT_S = {
    "api/page.py: TARGET_WITHOUT_LATENCY_S", "planner/after_start.py: MINUTE_S",
    "tuner/rule/optimum.py: STEP_S", "planner/kinds/pipelines.py: SHORTEST_S",
    "planner/question.py: NO_LIMIT_S", "planner/kinds/real_time_search.py: WHOLE_S",
    "planner/state_growth.py: SHORTEST_S",
    "runtime/gate/clock.py: STARTS_WITHIN_S", "runtime/gate/windows.py: READY_WITHIN_S",
    "runtime/gate/works.py: LEAST_OBSERVED_S", "runtime/measure.py: LOOK_AGAIN_S",
    "runtime/tuning/supervised.py: SESSION_ENDS_S",
}  # fmt: skip
NUM_NO_JUDGEMENT_S = 12


def test_times_that_decide_stand_with_the_assumptions() -> None:
    found = {
        f"{module}: {name}"
        for module, name, value in constants()
        if module.startswith(("api/", "planner/", "runtime/", "tuner/", "turns/"))
        and name.endswith("_S")
        and not name.endswith(("_PER_S", "_EVERY_S"))
        and isinstance(value, int | float)
        and value >= 1.0
    }
    assert found == NO_JUDGEMENT_S, sorted(found ^ NO_JUDGEMENT_S)
    assert len(NO_JUDGEMENT_S) == NUM_NO_JUDGEMENT_S, "the list only becomes shorter"


def test_no_number_of_one_name_is_written_twice() -> None:
    homes: dict[tuple[str, object], set[str]] = defaultdict(set)
    for module, name, value in constants():
        homes[name, value].add(module)
    found = {name for (name, _), modules_of in homes.items() if len(modules_of) > 1}
    assert found == SAME_TWICE, sorted(found ^ SAME_TWICE)
    assert len(SAME_TWICE) == NUM_SAME_TWICE, "the list only becomes shorter"


def a_plan(target: str = "p99 <= 3s", rate: float = 2000.0) -> StreamAnswer:
    return planned(a_profile(), rate=rate, target=target)


def test_an_explanation_names_what_the_plan_rests_on_and_no_more() -> None:
    plan = a_plan()
    text = " ".join(explanation_text(plan).split())
    assert "Assumptions" in text
    for one in assumptions_of(plan):
        assert f"{one.name}: {one.text} (" in text
    assert predictions.SPREAD_PER_DOUBLING_RATIO in assumptions_of(plan)
    assert predictions.DECLARED_RANGE_RATIO not in assumptions_of(plan)
    assert planning.CLOSE_TO_FLOOR_RATIO not in assumptions_of(plan)
    assert (resources.HEAP_ROOM_RATIO in assumptions_of(plan)) == (plan.memory is not None)
    assert plan.feasible
    assert (fits.FRESH_JVM_S in assumptions_of(plan)) == (
        plan.after_start is not None and plan.after_start.evidence == "measured"
    )
    hopeless = a_plan("p99 <= 1ms")
    assert planning.CLOSE_TO_FLOOR_RATIO in assumptions_of(hopeless)
    assert planning.ROOM_RATIO not in assumptions_of(hopeless)


def test_a_declared_plan_rests_on_what_nobody_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", str(ROOT / "configs" / "clicks-declared.yaml"), "--json"]) == 0
    plan = tmp_path / "plan.json"
    plan.write_text(capsys.readouterr().out, encoding="utf-8")
    assert run(["explain", str(plan)]) == 0
    combined_text = " ".join(capsys.readouterr().out.split())
    assert predictions.DECLARED_BATCH_NOISE_RATIO.name in combined_text
    assert predictions.SPREAD_PER_DOUBLING_RATIO.name not in combined_text


def test_another_assumption_makes_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    assumed = predictions.SPREAD_PER_DOUBLING_RATIO
    before = a_plan(rate=10_000.0)
    assert assumed in assumptions_of(before)
    doubled = replace(assumed, value=2.0 * assumed.value)
    monkeypatch.setattr(calibration, "SPREAD_PER_DOUBLING_RATIO", doubled)
    assert a_plan(rate=10_000.0).planned_latency_s > before.planned_latency_s
