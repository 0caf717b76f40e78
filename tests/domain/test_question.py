"""One declaration of each argument: call, command, types and refusals follow it, for every kind."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click
import pytest

import headway
from headway.api.plan import PlanOptions
from headway.api.predict import PredictOptions
from headway.cli import plan as plan_command
from headway.cli import predict as predict_command
from headway.domain.argument import Argument, JobKind, arguments_of, read_question, refuse_for
from headway.domain.question import PlanQuestion, PredictQuestion
from headway.errors import InputError, RefusedArgumentError

QUESTIONS: dict[str, tuple[Any, Any, click.Command, Any, set[str]]] = {
    "plan": (
        PlanQuestion,
        headway.plan,
        plan_command.command,
        PlanOptions,
        {"rate", "target", "mode"},
    ),
    "predict": (
        PredictQuestion,
        headway.predict,
        predict_command.command,
        PredictOptions,
        {"mode"},
    ),
}
OUTPUTS = {"profile", "output_format", "output", "strict", "verbose", "quiet", "as_json"}
#: A value of each argument that says something.
GIVEN = {"from_start": True, "relaxation": True, "lower_memory": True}


@pytest.mark.parametrize("name", QUESTIONS)
def test_call_command_and_types_have_the_declared_arguments(name: str) -> None:
    question, call, command, options, explicit = QUESTIONS[name]
    declared = {argument.name for argument in arguments_of(question)}
    assert set(inspect.signature(call).parameters) == {"profile", *declared}
    assert set(options.__annotations__) == declared - explicit
    with_option = {argument.name for argument in arguments_of(question) if argument.option}
    assert {param.name for param in command.params} - OUTPUTS == with_option


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_docstring_describes_every_argument(name: str) -> None:
    question, call, *_ = QUESTIONS[name]
    described = set(
        re.findall(r"\w+", " ".join(re.findall(r"^    ([\w, ]+?)(?: : |$)", call.__doc__, re.M)))
    )
    assert {argument.name for argument in arguments_of(question)} <= described


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_name_that_is_no_argument_is_refused_as_by_any_call(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'partition'"):
        QUESTIONS[name][1]("no/such/profile.yaml", partition=8)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("kind", JobKind)
def test_each_argument_is_refused_by_name_where_it_means_nothing(name: str, kind: JobKind) -> None:
    question = QUESTIONS[name][0]
    refused = [argument for argument in arguments_of(question) if kind in argument.not_for]
    for argument in refused:
        with pytest.raises(RefusedArgumentError) as refusal:
            refuse_for(kind, question, {argument.name: GIVEN.get(argument.name, 1)})
        assert str(refusal.value).startswith(f"{argument.name}: ")
    honoured = {argument.name: 1 for argument in arguments_of(question)}
    refuse_for(kind, question, {name: honoured[name] for name in honoured if _is_for(kind, name)})


def _is_for(kind: JobKind, name: str) -> bool:
    return all(
        kind not in argument.not_for
        for question in (PlanQuestion, PredictQuestion)
        for argument in arguments_of(question)
        if argument.name == name
    )


def test_of_several_refused_arguments_those_of_one_reason_are_named_together() -> None:
    with pytest.raises(RefusedArgumentError, match=r"^rate, partitions: not with a deadline$"):
        refuse_for(JobKind.ENDING, PlanQuestion, {"rate": 5, "partitions": 2, "cores": 1})


def test_what_is_none_or_empty_was_not_given_and_zero_was() -> None:
    question = read_question(PlanQuestion, {"trigger": 0, "rate": None, "bursts": []})
    assert question.named_arguments == {"trigger"}
    assert (question.trigger_s, question.rate_per_s, question.bursts) == (0.0, None, ())


@pytest.mark.parametrize("question", [PlanQuestion, PredictQuestion])
def test_every_value_refuses_nonsense_by_the_name_of_its_argument(question: Any) -> None:
    for argument in arguments_of(question):
        if _reads_later(argument):
            continue
        with pytest.raises(InputError, match=argument.name):
            argument.value.read(object(), argument.name)


def _reads_later(argument: Argument) -> bool:
    return argument.name in ("catalog", "keys")
