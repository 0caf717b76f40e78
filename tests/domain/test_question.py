"""One declaration of each argument: call, command, types and refusals follow it, for every kind."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import click
import pytest

import headway
from headway.api.plan import PlanOptions
from headway.api.predict import PredictOptions, RunOptions
from headway.api.profile import LogsOptions
from headway.api.simulate import SimulateOptions
from headway.cli import backtest as backtest_command
from headway.cli import capacity as capacity_command
from headway.cli import check as check_command
from headway.cli import ordered as ordered_command
from headway.cli import plan as plan_command
from headway.cli import predict as predict_command
from headway.cli import profile as profile_command
from headway.cli import simulate as simulate_command
from headway.cli import windows as windows_command
from headway.domain.argument import (
    JobKind,
    arguments_of,
    question_for,
    read_question,
    refuse_for,
)
from headway.domain.fleet_questions import CapacityQuestion, Limits
from headway.domain.log_questions import LogsQuestion, ProfileQuestion
from headway.domain.query_questions import (
    OrderedQuestion,
    Simulated,
    SimulateQuestion,
    WindowsQuestion,
)
from headway.domain.question import PlanQuestion, PredictQuestion
from headway.errors import InputError, RefusedArgumentError


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A question with the call that takes its arguments, their types, and the command."""

    question: Any
    call: Any
    types: Any
    command: click.Command | None
    own: set[str] = field(default_factory=lambda: {"profile"})
    """What else the call takes."""
    explicit: set[str] = field(default_factory=set)
    """Arguments that the call names itself, so that their types are not with the others."""
    described_by: Any = None
    """The call whose docstring describes the arguments, if it is another one."""
    outputs: set[str] = field(default_factory=lambda: {"profile", "output", "as_json"})


QUESTIONS = {
    "plan": Declared(
        question=PlanQuestion,
        call=headway.plan,
        types=PlanOptions,
        command=plan_command.command,
        explicit={"rate", "target", "mode"},
        outputs={
            *("profile", "profile_file", "output_format", "output"),
            *("strict", "verbose", "quiet", "as_json"),
        },
    ),
    "predict": Declared(
        question=PredictQuestion,
        call=headway.predict,
        types=PredictOptions,
        command=predict_command.command,
        explicit={"mode"},
        outputs={"profile", "profile_file", "strict", "verbose", "as_json"},
    ),
    "windows": Declared(
        question=WindowsQuestion,
        call=headway.windows,
        types=RunOptions,
        command=windows_command.command,
        explicit={"windows", "queries", "num_keys"},
        outputs={"profile", "plan", "as_json"},
    ),
    "ordered_plan": Declared(
        question=OrderedQuestion,
        call=headway.ordered_plan,
        types=RunOptions,
        command=ordered_command.command,
        explicit={"keys", "stage", "key_type", "total_rows"},
    ),
    "simulate": Declared(
        question=SimulateQuestion,
        call=headway.simulate,
        types=SimulateOptions,
        command=simulate_command.command,
        own={"plan"},
        explicit={"rate_trace", "policies"},
        outputs={"plan", "output", "as_json"},
    ),
    "simulate_policies": Declared(
        question=SimulateQuestion,
        call=headway.simulate_policies,
        types=SimulateOptions,
        command=None,
        own={"plan"},
        explicit={"rate_trace", "policies"},
        described_by=headway.simulate,
    ),
    "capacity": Declared(
        question=CapacityQuestion,
        call=headway.capacity,
        types=object,
        command=capacity_command.command,
        own={"path", "tell"},
        explicit={"growth", "by"},
        outputs={"fleet", "as_json"},
    ),
    "profile": Declared(
        question=ProfileQuestion,
        call=headway.profile,
        types=LogsOptions,
        command=profile_command.command,
        own={"sources"},
        explicit={"queries", "trigger"},
        outputs={
            *("sources", "output", "check", "advise", "rate", "targets", "tables", "as_json"),
        },
    ),
    "survey": Declared(
        question=LogsQuestion,
        call=headway.survey,
        types=LogsOptions,
        command=None,
        own={"sources", "tables"},
    ),
    "backtest": Declared(
        question=ProfileQuestion,
        call=headway.backtest,
        types=LogsOptions,
        command=backtest_command.command,
        own={"sources"},
        explicit={"queries", "trigger"},
        described_by=headway.profile,
        outputs={"sources", "max_error", "as_json"},
    ),
}
#: Questions, and the kinds of what each can be asked about.
KINDS: dict[Any, type[StrEnum]] = {
    PlanQuestion: JobKind,
    PredictQuestion: JobKind,
    SimulateQuestion: Simulated,
}
ALL_QUESTIONS = [*dict.fromkeys(declared.question for declared in QUESTIONS.values()), Limits]
#: A value of each argument that says something.
GIVEN = {"from_start": True, "relaxation": True, "lower_memory": True}
#: They are read where they are used: their values stand in files, or are objects of others.
READ_LATER = {"catalog", "keys", "profile", "session", "progress"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_call_command_and_types_have_the_declared_arguments(name: str) -> None:
    declared = QUESTIONS[name]
    arguments = arguments_of(declared.question)
    names = {argument.name for argument in arguments}
    assert set(inspect.signature(declared.call).parameters) == declared.own | names
    assert set(inspect.get_annotations(declared.types)) == names - declared.explicit
    if declared.command is not None:
        with_option = {argument.name for argument in arguments if argument.option}
        assert {param.name for param in declared.command.params} - declared.outputs == with_option


def test_the_limits_of_a_check_are_its_options() -> None:
    names = {argument.name for argument in arguments_of(Limits)}
    others = {"specs", "baseline", "output_format", "quiet_below", "as_json"}
    assert {param.name for param in check_command.command.params} == names | others
    shown = {param.name: param for param in check_command.command.params}
    shares = [name for name in names if name.startswith("max_")]
    limits = read_question(Limits, {name: shown[name].default for name in shares})
    assert replace(limits, named_arguments=frozenset()) == Limits()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_docstring_describes_every_argument(name: str) -> None:
    declared = QUESTIONS[name]
    # Python 3.13 takes the indentation away, earlier ones do not.
    docstring = inspect.getdoc(declared.described_by or declared.call)
    assert docstring is not None
    described = set(
        re.findall(r"\w+", " ".join(re.findall(r"^([\w, ]+?)(?: : |$)", docstring, re.M)))
    )
    assert {argument.name for argument in arguments_of(declared.question)} <= described


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_name_that_is_no_argument_is_refused_as_by_any_call(name: str) -> None:
    values = ["no/such/file.yaml"] * (1 if "rate_trace" not in QUESTIONS[name].explicit else 2)
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'partition'"):
        QUESTIONS[name].call(*values, partition=8)


@pytest.mark.parametrize(
    ("question", "kind"), [(question, kind) for question, kinds in KINDS.items() for kind in kinds]
)
def test_each_argument_is_refused_by_name_where_it_means_nothing(
    question: Any, kind: StrEnum
) -> None:
    refused = [argument for argument in arguments_of(question) if kind in argument.not_for]
    for argument in refused:
        with pytest.raises(RefusedArgumentError) as refusal:
            question_for(kind, question, {argument.name: GIVEN.get(argument.name, 1)})
        assert str(refusal.value).startswith(f"{argument.name}: ")
    honoured = [argument.name for argument in arguments_of(question) if argument not in refused]
    refuse_for(kind, question, dict.fromkeys(honoured, 1))


def test_every_kind_for_which_an_argument_is_refused_can_be_asked() -> None:
    for question, kinds in KINDS.items():
        for argument in arguments_of(question):
            assert set(argument.not_for) <= set(kinds), argument.name
            assert set(argument.not_for) < set(kinds), f"{argument.name} is for nothing"


def test_of_several_refused_arguments_those_of_one_reason_are_named_together() -> None:
    with pytest.raises(RefusedArgumentError, match=r"^rate, partitions: not with a deadline$"):
        refuse_for(JobKind.ENDING, PlanQuestion, {"rate": 5, "partitions": 2, "cores": 1})


def test_what_is_none_or_empty_was_not_given_and_zero_was() -> None:
    question = read_question(PlanQuestion, {"trigger": 0, "rate": None, "bursts": []})
    assert question.named_arguments == {"trigger"}
    assert (question.trigger_s, question.rate_per_s, question.bursts) == (0.0, None, ())


@pytest.mark.parametrize("question", ALL_QUESTIONS)
def test_every_value_refuses_nonsense_by_the_name_of_its_argument(question: Any) -> None:
    for argument in arguments_of(question):
        if argument.name in READ_LATER:
            continue
        for nonsense in (object(), float("nan"), b"x", {1}):
            with pytest.raises(InputError, match=argument.name):
                argument.value.read(nonsense, argument.name)


@pytest.mark.parametrize("question", ALL_QUESTIONS)
def test_every_default_is_a_value(question: Any) -> None:
    for argument in arguments_of(question):
        if argument.default not in (None, ()):
            assert argument.value.read(argument.default, argument.name) == argument.default


def test_texts_stand_for_values_in_the_library_as_on_the_command_line() -> None:
    asked = {
        "length": "30m", "outages": ["5m at 1h"], "policies": "headway, hpa:50%",
        "executors": "2..12", "triggers": ["1s", 2], "seed": 0,
    }  # fmt: skip
    question = read_question(SimulateQuestion, asked)
    assert (question.length_s, question.executors, question.seed) == (1800.0, (2, 12), 0)
    assert (question.policies, question.triggers_s) == (("headway", "hpa:50%"), (1.0, 2.0))
    assert question.outages[0].start_s == 3600.0
    capacity = read_question(CapacityQuestion, {"growth": "1.5x", "by": "0000-02"})
    assert (capacity.growth_ratio, capacity.by_month) == (1.5, 1)
    for value in ("9" * 5000, "1.." + "9" * 5000):
        with pytest.raises(InputError, match="executors"):
            read_question(SimulateQuestion, {"executors": value})
    with pytest.raises(InputError, match="by is"):
        read_question(CapacityQuestion, {"by": "2027-" + "9" * 5000})
    assert read_question(Limits, {"max_cost": "15%"}).cost_ratio == 0.15
