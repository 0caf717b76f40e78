"""Options that several commands share, and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from headway.cli.terminal import fitted_help
from headway.domain import parse_promise
from headway.domain.argument_values import parse_seconds, parse_share
from headway.errors import ExitCode, HeadwayError, InputError, RefusedArgumentError
from headway.units import parse_rate_per_s

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
    """Refuse the first of some given options, as one that has no effect here."""
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


PERCENT = Parsed("share", parse_share)
LEVEL = Parsed("confidence level", _confidence)
RATE = Parsed("rate", parse_rate_per_s)
DURATION = Parsed("duration", parse_seconds)
TARGET = Parsed("target", parse_promise)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = click.option(
    "--strict", is_flag=True, help="Exit with 5 if the answer is outside the calibrated range."
)
