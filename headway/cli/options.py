"""Options that several commands share, and their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headway.domain import Burst, parse_promise
from headway.errors import InputError
from headway.units import parse_duration_s, parse_rate_per_s

Function = TypeVar("Function", bound=Callable[..., Any])


# Generic since click 8.4, and not to be subscripted before.
class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A parameter read by one of our own parsers, whose message becomes the usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value; values that are no text have been parsed before."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def _duration_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration_s(text)


def _ratio(text: str) -> float:
    try:
        ratio = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        ratio = -1.0
    if not 0.0 < ratio < float("inf"):
        raise InputError(f"{text!r} is not a share; expected e.g. 15% or 0.15")
    return ratio


PERCENT = Parsed("share", _ratio)
RATE = Parsed("rate", parse_rate_per_s)
DURATION = Parsed("duration", _duration_s)
TARGET = Parsed("target", parse_promise)
BURST = Parsed("burst", Burst.parse_short)
# Spark counts in 32 bits, and offsets in 64.
COUNT = click.IntRange(1, 2**31 - 1)
ROWS = click.IntRange(1, 2**63 - 1)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
strict_option = click.option(
    "--strict", is_flag=True, help="Exit with 5 when the answer is outside the calibrated range."
)


def setting_options(command: Function) -> Function:
    """The knobs of a setting; what is not given is as profiled."""
    for option in (
        click.option("--partitions", type=COUNT, help="Shuffle partitions."),
        click.option("--cores", type=COUNT, help="Cores per executor; local[n] is one of n."),
        click.option("--trigger", type=DURATION, help="Trigger interval; 0s: as fast as possible."),
    ):
        command = option(command)
    return command
