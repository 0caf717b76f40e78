"""YAML text to plain data with the position of each value in the file.

The supported subset is narrow on purpose: one document, text keys, no tags, no anchors. Unquoted
scalars follow YAML 1.2, so ``on`` is text, ``1e3`` is a number and ``1:30`` is not one. The text is
read as events with a separate stack: composing nodes recurses in C, so a file of opening brackets
would crash the interpreter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from headway.domain.later import later, made_when_asked
from headway.errors import InputError
from headway.formats.written_yaml import written_data
from headway.lazy_classes import dataclass
from headway.redaction import one_line

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Route: TypeAlias = tuple[str | int, ...]

_DEEPEST_NESTING = 50
_TOO_DEEP = f"nested more than {_DEEPEST_NESTING} deep"
_MOST_FAULTS_SHOWN = 30
_CONSTANTS: dict[str, bool | None] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
)
# A leading zero is octal to some readers and decimal to others; such a scalar stays text.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,299})")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
# Decided by what is refused, in two sets: one of all that is allowed takes Python 5 ms to compile.
_NOT_TEXT = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|[\ud800-\udfff\ufffe\uffff]"


class Mark(NamedTuple):
    """A position in a file; both numbers start at 1, as in editors."""

    name: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a file.

    >>> print(Fault(Mark("a.yaml", 3, 7), ("stages", 0, "level"), "got 'two'; expected a number"))
    a.yaml:3:7: stages[0].level: got 'two'; expected a number
    """

    mark: Mark
    route: Route = field(compare=False)
    message: str

    def __str__(self) -> str:
        where = f"{route_text(self.route)}: " if self.route else ""
        return f"{self.mark}: {where}{self.message}"


@made_when_asked("values", "keys")
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The data of a file, the position of each part, and the faults of its form.

    >>> document = parse_document("stages:\\n- {level: 1}\\n", name="job.yaml")
    >>> document.root
    {'stages': [{'level': 1}]}
    >>> document.value_mark(("stages", 0, "level"))
    Mark(name='job.yaml', line=2, column=11)
    """

    name: str
    root: Plain
    faults: tuple[Fault, ...]
    values: dict[Route, Mark]
    keys: dict[Route, Mark]

    def value_mark(self, route: Route) -> Mark:
        """Position of the value; for a missing one, that of the nearest thing around it."""
        while route and route not in self.values:
            route = route[:-1]
        return self.values[route]

    def key_mark(self, route: Route) -> Mark:
        """Position of the key of the value; of the value itself if it has none."""
        return self.keys.get(route) or self.value_mark(route)


def route_text(route: Iterable[str | int]) -> str:
    """A path into a document in the usual notation.

    >>> route_text(("stages", 0, "rows", "exponent"))
    'stages[0].rows.exponent'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_legible(step)}" for step in route)
    return text.removeprefix(".")


def shown(value: Plain) -> str:
    """A value in a message: short, and on one line, as it reads but for invisible characters.

    >>> shown("a" * 100), shown({"a": 1}), shown(None), shown("Aufträge")
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'", 'a mapping', 'nothing', "'Aufträge'")
    """
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= 40 else f"{value[:38]}...")
        case bool():
            return str(value).lower()
    text = str(value)
    return text if len(text) <= 40 else f"{text[:38]}..."


def faults_text(faults: Sequence[Fault]) -> str:
    """Faults in the order of the files, one per line, each once; if very many, the first ones.

    >>> second, first = (Fault(Mark("a.yaml", line, 1), (), "a tag") for line in (2, 1))
    >>> faults_text([second, first, second])
    'a.yaml:1:1: a tag\\na.yaml:2:1: a tag'
    """
    in_order = sorted(faults, key=lambda fault: fault.mark)
    lines = list(dict.fromkeys(map(str, in_order)))
    num_hidden = len(lines) - _MOST_FAULTS_SHOWN
    if num_hidden > 1:
        name = in_order[0].mark.name
        lines = [*lines[:_MOST_FAULTS_SHOWN], f"{name}: and {num_hidden} more faults"]
    return "\n".join(lines)


def parse_document(text: str, *, name: str) -> Document:
    """Read one YAML document.

    Raises InputError if the text is not YAML, or uses an unsupported feature that cannot be
    skipped. Repeated keys and tags do not raise: they are in ``Document.faults``.

    >>> parse_document("rate: 1e3\\non: 1:30", name="job.yaml").root
    {'rate': 1000.0, 'on': '1:30'}
    >>> print(parse_document("a: 1\\na: 2", name="job.yaml").faults[0])
    job.yaml:2:1: a: this key is already in line 1; expected each key once
    """
    # Imported here: what only writes nothing and reads nothing should not pay for it.
    import yaml

    name = one_line(name)
    strange = re.search(_NOT_TEXT, text)
    if strange is not None:
        before = text[: strange.start()]
        column = strange.start() - (before.rfind("\n") + 1) + 1
        mark = Mark(name, before.count("\n") + 1, column)
        message = f"the character {strange[0]!a}; expected text without control characters"
        raise InputError(str(Fault(mark, (), message)))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(name)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        yaml_mark = error.problem_mark or error.context_mark
        mark = Mark(name, 1, 1) if yaml_mark is None else _mark(name, yaml_mark)
        message = f"not YAML: {error.problem or error.context}"
        if "\t" in "".join(text.splitlines()[mark.line - 1 : mark.line])[: mark.column]:
            message = "not YAML: a tab; expected blanks, which alone indent YAML"
        if "nesting depth" in message:  # PyYAML 6.0.4 has a limit of its own and looks ahead.
            message = _TOO_DEEP
        raise InputError(str(Fault(mark, (), message))) from None
    return builder.document()


def written_document(text: str, *, name: str) -> Document:
    """The same, sooner if the text is of the form in which Headway writes files.

    >>> document = written_document("rate: 1e3\\n", name="job.yaml")
    >>> document.root, document.value_mark(("rate",))
    ({'rate': 1000.0}, Mark(name='job.yaml', line=1, column=7))
    """
    root = written_data(text, plain_scalar)
    if root is None:
        return parse_document(text, name=name)
    # Few files have faults, whose positions only PyYAML knows.
    parsed = cache(lambda: parse_document(text, name=name))
    return Document(
        name=one_line(name),
        root=root,
        faults=(),
        values=later(lambda: parsed().values),
        keys=later(lambda: parsed().keys),
    )


def plain_scalar(text: str) -> bool | int | float | str | None:
    """What an unquoted scalar means.

    >>> [plain_scalar(text) for text in ("8", "1e-05", "on", "true", "~", "010", ".inf", "1e999")]
    [8, 1e-05, 'on', True, None, '010', '.inf', '1e999']
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and not (_LEADING_ZERO.match(text) and text.lstrip("+-").isdecimal()):
        number = float(text)
        if math.isfinite(number):
            return number
    return text


class _Builder:
    """Puts a stream of YAML events together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._root: Plain = None
        self._num_documents = 0
        #: The open mappings and lists, and the key of the innermost mapping whose value is next.
        self._stack: list[tuple[Route, dict[str, Plain] | list[Plain]]] = []
        self._key: str | None = None
        self._values: dict[Route, Mark] = {}
        self._keys: dict[Route, Mark] = {}
        self._faults: list[Fault] = []

    def document(self) -> Document:
        if not self._values:
            self._values[()] = Mark(self._name, 1, 1)
        return Document(
            name=self._name,
            root=self._root,
            faults=tuple(self._faults),
            values=self._values,
            keys=self._keys,
        )

    def take(self, event: Any) -> None:
        import yaml

        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.CollectionEndEvent():
                self._stack.pop()
            case yaml.AliasEvent():
                raise self._stop(event, "an alias (*); expected the value written out")
            case yaml.DocumentStartEvent():
                self._num_documents += 1
                if self._num_documents > 1:
                    raise self._stop(event, "a second document starts here; expected one")

    @property
    def _expects_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1][1], dict) and self._key is None

    def _scalar(self, event: Any) -> None:
        mark = _mark(self._name, event.start_mark)
        if self._expects_key:
            parent_route, holds = self._stack[-1]
            route = (*parent_route, event.value)
            if event.value in holds:
                first = self._keys[route].line
                message = f"this key is already in line {first}; expected each key once"
                self._faults.append(Fault(mark, route, message))
            else:
                self._keys[route] = mark
            self._key = event.value
            return
        unquoted = not event.style
        route = self._add(plain_scalar(event.value) if unquoted else event.value, mark)
        self._check_tag(event, mark, route)

    def _open(self, holds: dict[str, Plain] | list[Plain], event: Any) -> None:
        if self._expects_key:
            raise self._stop(event, "a list or mapping as a key; expected text")
        if len(self._stack) == _DEEPEST_NESTING:
            raise self._stop(event, _TOO_DEEP)
        mark = _mark(self._name, event.start_mark)
        route = self._add(holds, mark)
        self._check_tag(event, mark, route)
        self._stack.append((route, holds))

    def _add(self, value: Plain, mark: Mark) -> Route:
        route: Route = ()
        if not self._stack:
            self._root = value
        else:
            parent_route, holds = self._stack[-1]
            if isinstance(holds, list):
                route = (*parent_route, len(holds))
                holds.append(value)
            else:
                assert self._key is not None
                route = (*parent_route, self._key)
                holds[self._key] = value
                self._key = None
        self._values[route] = mark
        return route

    def _check_tag(self, event: Any, mark: Mark, route: Route) -> None:
        if event.anchor is not None:
            self._faults.append(Fault(mark, route, "an anchor (&); expected a plain value"))
        if event.tag is not None:
            message = f"the tag {shown(event.tag)}; expected a plain value"
            self._faults.append(Fault(mark, route, message))

    def _stop(self, event: Any, message: str) -> InputError:
        route = self._stack[-1][0] if self._stack else ()
        fault = Fault(_mark(self._name, event.start_mark), route, message)
        return InputError(faults_text([*self._faults, fault]))


def _mark(name: str, yaml_mark: Any) -> Mark:
    return Mark(name, yaml_mark.line + 1, yaml_mark.column + 1)


def _legible(key: str) -> str:
    return key if key.isprintable() and 0 < len(key) <= 60 and key.strip() == key else shown(key)
