"""Commands as tools: the JSON Schema of their arguments, and the command line of a call.

The arguments of a tool are those of its command, which has them from its question: no option is
declared here. What chooses the output, writes a file or needs a running Spark is left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any

import click

from headway.cli.main import cli
from headway.cli.options import spelling
from headway.cli.outputs import OUTPUT_FILE, OUTPUT_FILE_OR_FOLDER, OUTPUT_FOLDER
from headway.errors import InputError

JsonSchema = dict[str, Any]

#: The commands that are tools, with what is always added to their command lines.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "profile": ("--engine=in-process",),
    **dict.fromkeys(("predict", "plan", "explain", "check", "diff", "simulate", "schedule"), ()),
}
_OUTPUTS = (OUTPUT_FILE, OUTPUT_FILE_OR_FOLDER, OUTPUT_FOLDER)
_LEFT_OUT = frozenset(
    (
        *("--json", "--format", "--verbose", "--quiet", "--quiet-below"),
        *("--engine", "--master", "--conf"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command that can be called with the values of a JSON object."""

    name: str
    about: str
    params: Mapping[str, click.Parameter]

    @property
    def schema(self) -> JsonSchema:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: _property(param) for name, param in self.params.items()},
            "required": [name for name, param in self.params.items() if param.required],
            "additionalProperties": False,
        }

    def words(self, arguments: Mapping[str, Any]) -> list[str]:
        """The command line of a call.

        A value is a part of its option's word, or stands behind ``--``: none is taken for another
        option. Raises InputError if there is no such argument, or its value is neither a text, a
        number nor a list of these.
        """
        for name in arguments:
            if name not in self.params:
                expected = ", ".join(self.params)
                raise InputError(f"{self.name} has no argument {name!r}; expected {expected}")
        texts = dict(self._texts(arguments))
        options = [
            word
            for name, values in texts.items()
            if not _is_operand(self.params[name])
            for word in _option_words(self.params[name], values)
        ]
        operands = [name for name, param in self.params.items() if _is_operand(param)]
        given_operands = takewhile(lambda name: name in texts, operands)
        return [
            *(self.name, *_COMMANDS[self.name], *options, "--json", "--"),
            *(text for name in given_operands for text in texts[name]),
        ]

    def paths(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """The paths among the values of a call."""
        for name, values in self._texts(arguments):
            if _is_path(self.params[name]):
                yield from values

    def _texts(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
        """The values that were given as they are typed, in the order of the command."""
        for name, param in self.params.items():
            value = arguments.get(name)
            if value is not None:
                values = value if _is_list(param) and isinstance(value, list) else [value]
                types: tuple[type, ...] = (bool,) if _is_flag(param) else (str, int, float)
                if not all(isinstance(text, types) for text in values):
                    expected = "true or false" if _is_flag(param) else "a text or a number"
                    expected += ", or a list" if _is_list(param) else ""
                    raise InputError(f"{name} is {value!r}; expected {expected}")
                yield name, list(map(str, values))


@cache
def all_tools() -> Mapping[str, Tool]:
    """The tools by their names, which are those of their commands."""
    return {name: _tool_of(name) for name in _COMMANDS}


def _tool_of(name: str) -> Tool:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return Tool(
        name=name,
        about="\n\n".join(_paragraphs(command.help or "")),
        params={
            _name_of(param): param
            for param in command.params
            if param.type not in _OUTPUTS and spelling(param) not in _LEFT_OUT
        },
    )


def _paragraphs(help_text: str) -> Iterator[str]:
    """The paragraphs of a help text without its command lines."""
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if not paragraph.startswith("\b"):
            yield " ".join(paragraph.split())


def _name_of(param: click.Parameter) -> str:
    return spelling(param).lstrip("-").replace("-", "_")


def _is_operand(param: click.Parameter) -> bool:
    return isinstance(param, click.Argument)


def _is_list(param: click.Parameter) -> bool:
    return param.multiple or param.nargs == -1


def _is_flag(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.is_flag


def _is_path(param: click.Parameter) -> bool:
    """Whether its value names a file or a folder; so do all words that have no option."""
    return _is_operand(param) or isinstance(param.type, click.Path)


def _option_words(param: click.Parameter, values: list[str]) -> list[str]:
    if _is_flag(param):
        return [spelling(param)] if values == ["True"] else []
    return [f"{spelling(param)}={value}" for value in values]


def _property(param: click.Parameter) -> JsonSchema:
    """The schema of one argument, with the help of its option."""
    about = f"{param.metavar}." if _is_operand(param) else str(getattr(param, "help", ""))
    if _is_path(param):
        about += " A path in the folder."
    value = _value(param)
    if _is_list(param):
        value = {"type": "array", "items": value} | ({"minItems": 1} if param.required else {})
    default = param.to_info_dict()["default"]
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        value["default"] = default
    return {"description": about, **value}


def _value(param: click.Parameter) -> JsonSchema:
    """What JSON knows of a value; all else is said by the refusal of the command."""
    if _is_flag(param):
        return {"type": "boolean"}
    match param.type:
        case click.Choice(choices=choices):
            return {"type": "string", "enum": list(choices)}
        case click.IntRange(min=minimum, max=maximum):
            return {"type": "integer", **_bounds(minimum, maximum)}
        case click.FloatRange(min=minimum, min_open=True):
            return {"type": "number", "exclusiveMinimum": minimum}
        case click.FloatRange(min=minimum, max=maximum):
            return {"type": "number", **_bounds(minimum, maximum)}
    return {"type": "string"}


def _bounds(minimum: float | None, maximum: float | None) -> JsonSchema:
    bounds = {"minimum": minimum, "maximum": maximum}
    return {name: bound for name, bound in bounds.items() if bound is not None}
