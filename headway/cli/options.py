"""Options that several commands share, and their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, get_args

import click

from headway.cli.terminal import fitted_help
from headway.domain import parse_promise
from headway.domain.argument import Topic
from headway.domain.argument_values import parse_seconds, parse_share
from headway.errors import ExitCode, HeadwayError, InputError, RefusedArgumentError
from headway.units import parse_rate_per_s

Function = TypeVar("Function", bound=Callable[..., Any])
_HELP_ALL = "headway.help_all"


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


class Option(click.Option):
    """An option of which help knows what it is about, and whether only the full help has it."""

    def __init__(
        self, *names: Any, topic: Topic = "Output", is_rare: bool = False, **details: Any
    ) -> None:
        super().__init__(*names, **details)
        self.topic = topic
        self.is_rare = is_rare


def _show_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_HELP_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


_help_all_option = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options and examples.",
)


class Command(click.Command):
    """A command whose options may be given only once, since one of two values would be ignored.

    Its help fits one screen: rare options, and what its docstring has after a form feed, are shown
    by ``--help-all`` only.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, and before the short help the full one."""
        *params, short_help = super().get_params(ctx)
        return [*params, _help_all_option, short_help]

    def get_help(self, ctx: click.Context) -> str:
        """The help in the available width."""
        return fitted_help(super().get_help(ctx))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does; the full help has all of it."""
        text, _, for_experts = inspect.cleandoc(self.help or "").partition("\f")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text + for_experts if _HELP_ALL in ctx.meta else text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by topic; the rare ones in the full help only."""
        params = self.get_params(ctx)
        rare: set[click.Parameter] = {
            param for param in params if isinstance(param, Option) and param.is_rare
        }
        left_out: set[click.Parameter] = set() if _HELP_ALL in ctx.meta else rare
        if not rare and "\f" not in (self.help or ""):
            left_out = {_help_all_option}  # there is no more to show
        records: dict[str, list[tuple[str, str]]] = {topic: [] for topic in get_args(Topic)}
        for param in params:
            if isinstance(param, click.Option) and param not in left_out:
                record = param.get_help_record(ctx)
                topic = param.topic if isinstance(param, Option) else "Output"
                if record is not None:
                    records[topic].append(record)
        topics = {heading: lines for heading, lines in records.items() if lines}
        for heading, lines in topics.items():
            with formatter.section(heading if len(topics) > 1 else "Options"):
                formatter.write_dl(lines)

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
        spelt = {spelling(param): param.name for param in options}
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
                    raise click.UsageError(f"{spelling(option)} is given twice", ctx)
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
    spelt = {param.name: spelling(param) for param in context.command.params}
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


def spelling(parameter: click.Parameter) -> str:
    """A parameter as it is typed; of an option the longest of its names."""
    return max(parameter.opts, key=len)


def question_option(*names: str, **details: Any) -> Callable[[Function], Function]:
    """An option that is a part of the question, as help by topics shows it."""
    return click.option(*names, cls=Option, topic="What you ask", **details)


def output_option(about: str, **details: Any) -> Callable[[Function], Function]:
    """The option that names what is written."""
    return click.option("-o", "--output", help=about, **details)


def format_option(
    formats: Sequence[str], about: str, **details: Any
) -> Callable[[Function], Function]:
    """The option that chooses among formats, the first of which is usual."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=about,
        **details,
    )


def rare_option(*names: str, **details: Any) -> Callable[[Function], Function]:
    """An option that only the full help shows."""
    return click.option(*names, cls=Option, is_rare=True, **details)


PERCENT = Parsed("share", parse_share)
LEVEL = Parsed("confidence level", _confidence)
RATE = Parsed("rate", parse_rate_per_s)
DURATION = Parsed("duration", parse_seconds)
TARGET = Parsed("target", parse_promise)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
strict_option = rare_option(
    "--strict", is_flag=True, help="Exit with 5 if the answer is outside the calibrated range."
)
