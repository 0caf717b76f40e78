"""Options that several commands share, and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from headway.cli.terminal import fitted_help
from headway.domain import parse_promise
from headway.errors import ExitCode, HeadwayError, InputError, RefusedArgumentError
from headway.limits import MOST_CORES, MOST_EXECUTORS, MOST_LONG, MOST_PARTITIONS
from headway.units import parse_duration_s, parse_rate_per_s

Function = TypeVar("Function", bound=Callable[..., Any])


# Generic since click 8.4, and not to be subscripted before.
class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A parameter read by one of Headway's parsers, whose message becomes the usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value; values that are not text have been parsed before."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def duration_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration_s(text)


def _ratio(text: str) -> float:
    try:
        ratio = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        ratio = -1.0
    if 1.0 < ratio < float("inf") and not text.endswith("%"):
        raise InputError(f"{text!r} would be {ratio:.0%}; write {text}% or {ratio / 100:g}")
    if not 0.0 < ratio < float("inf"):
        raise InputError(f"{text!r} is not a share; expected e.g. 15% or 0.15")
    return ratio


def _confidence(text: str) -> float:
    try:
        level = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise InputError(f"{text!r} is not a confidence level; expected e.g. 0.95 or 95%") from None
    if not 0.5 <= level < 1.0:
        raise InputError(
            f"{text!r} is not in the range of confidence levels; expected 0.5 to below 1, "
            "e.g. 0.95 or 95%"
        )
    return level


class Command(click.Command):
    """A command whose options may be given only once, since one of two values would be ignored."""

    def get_help(self, ctx: click.Context) -> str:
        """The help in the available width."""
        return fitted_help(super().get_help(ctx))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of the library then name its options instead of arguments."""
        try:
            return super().invoke(ctx)
        except RefusedArgumentError as error:
            raise click.UsageError(error.message_with(self._option_of_argument()), ctx) from None
        except HeadwayError as error:
            error.args = (error.message_with(self._option_of_argument()),)
            raise

    def _option_of_argument(self) -> dict[str, str]:
        """The option of each argument: by the parameter's name, and by the option's own name."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        spelt = {_spelling(param): param.name for param in options}
        return {
            **{option.lstrip("-").replace("-", "_"): option for option in spelt},
            **{name: option for option, name in spelt.items() if name is not None},
        }

    def make_parser(self, ctx: click.Context) -> Any:
        """The parser of click, which by default silently uses the last of several values."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            parsed = parse(args=args)
            given_options = [param for param in parsed[2] if isinstance(param, click.Option)]
            for option in given_options:
                if given_options.count(option) > 1 and not (option.multiple or option.is_flag):
                    raise click.UsageError(f"{_spelling(option)} is given twice", ctx)
            return parsed

        parser.parse_args = parse_once  # type: ignore[method-assign]  # of this one parser
        return parser


def was_given(name: str) -> bool:
    """Whether a parameter was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not click.core.ParameterSource.DEFAULT


def given(*names: str) -> list[str]:
    """Those of some parameters that were given on the command line, as options are spelt there."""
    context = click.get_current_context()
    spelt = {param.name: _spelling(param) for param in context.command.params}
    return [spelt[name] for name in names if was_given(name)]


def refuse(options: Iterable[str], why: str) -> None:
    """Refuse the first of some given options, as one that has no effect here.

    Raises
    ------
    click.UsageError
        If there is one.
    """
    for option in options:
        raise click.UsageError(f"{option}: {why}", click.get_current_context())


def exit_code(*, calibrated: bool, strict: bool, feasible: bool = True) -> ExitCode:
    """The exit code of a prediction or a plan."""
    if not feasible:
        return ExitCode.INFEASIBLE
    return ExitCode.OUTSIDE if strict and not calibrated else ExitCode.OK


def one_format(as_json: bool, output_format: str) -> str:
    """The output format: that of ``--format``, or JSON by ``--json`` alone."""
    if not as_json:
        return output_format
    if given("output_format") and output_format != "json":
        refuse(["--json"], f"contradicts --format {output_format}; give one of them")
    return "json"


def _spelling(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len)


PERCENT = Parsed("share", _ratio)
LEVEL = Parsed("confidence level", _confidence)
RATE = Parsed("rate", parse_rate_per_s)
DURATION = Parsed("duration", duration_s)
TARGET = Parsed("target", parse_promise)
EXECUTORS = click.IntRange(1, MOST_EXECUTORS)
CORES = click.IntRange(1, MOST_CORES)
PARTITIONS = click.IntRange(1, MOST_PARTITIONS)
ROWS = click.IntRange(1, MOST_LONG)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Exit with 5 if the answer is outside the calibrated range."
)


def key_options(command: Function) -> Function:
    """Options for what a file of key counts does not contain."""
    for option in (
        click.option(
            "--total-rows",
            type=click.FloatRange(0, min_open=True),
            help="Rows of all keys, if the file has only the most frequent ones.",
        ),
        click.option(
            "--key-type",
            type=click.Choice(["string", "int", "long"]),
            help="Spark's type of the key column; by default long for numbers in JSON, else "
            "string.",
        ),
    ):
        command = option(command)
    return command


def setting_options(command: Function) -> Function:
    """The options of a setting; by default as profiled."""
    for option in (
        click.option("--partitions", type=PARTITIONS, help="Shuffle partitions."),
        click.option(
            "--cores", type=CORES, help="Cores per executor; local[n] is one executor with n cores."
        ),
        click.option(
            "--trigger", type=DURATION, help="Trigger interval; 0s means as fast as possible."
        ),
    ):
        command = option(command)
    return command
