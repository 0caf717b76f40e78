"""Lines of event logs -> events: each line is decoded once, only required fields, or skipped."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, get_args, get_origin

import msgspec

from headway.profiler import schema

_NAME = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([^"\\]+)"').match
_Decode: TypeAlias = Callable[[bytes | memoryview], Any]
_DECODERS: dict[bytes, tuple[str, _Decode]] = {
    **{
        name.encode(): (name, msgspec.json.Decoder(kind).decode)
        for name, kind in schema.KINDS.items()
    },
    schema.STAGE_SUBMITTED.encode(): (schema.STAGE_SUBMITTED, bytes),
}
_MOST_NAME_BYTES = 1000
_LINE_ENDS = re.compile(rb"\n+").match
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_FIRST_OBJECT = json.JSONDecoder().raw_decode


class _Named(msgspec.Struct):
    name: str | None = msgspec.field(default=None, name="Event")


_NAMED = msgspec.json.Decoder(_Named).decode


Line: TypeAlias = tuple[str | None, Any, bool]
"""The name of an event, None if it is unknown; the event, None if it is of a kind that is not read,
and the line itself if few of its kind are; whether the line is damaged: it could not be read, or
lacks required parts.
"""

_NOTHING: Line = None, None, True


def read_block(block: bytes) -> Iterator[Line]:
    """What :func:`read_line` reads of each line of a block of whole lines.

    Lines are not copied: of most bytes of a log, only the names of their events are looked at.

    >>> [name for name, _, _ in read_block(b'{"Event":"A"}\\n\\n{"Event":"B"}')]
    ['A', 'B']
    """
    in_place, begin = memoryview(block), 0
    while begin < len(block):
        end = block.find(b"\n", begin)
        if end < 0:
            end = len(block)
        if (line := read_line(in_place[begin:end])) is not None:
            yield line
        # Of nothing but line ends a small archive can hold many millions.
        line_ends = _LINE_ENDS(block, end)
        begin = line_ends.end() if line_ends else end


def read_line(line: bytes | memoryview) -> Line | None:
    """The name and the event of a line, and whether it is damaged.

    None for blank lines and for Spark events that are not read here.

    Values with a type other than Spark's are dropped; a line that is not JSON yields nothing.

    >>> read_line(b'{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}')[1].spark_version
    '4.0.1'
    >>> read_line(b'{"Event":"SparkListenerJobEnd","Job ID":"7","Completion Time":5}')
    ('SparkListenerJobEnd', JobEvent(job_id=None, ...completed_ms=5...), True)
    >>> read_line(b'{"Event":"SparkListenerBlockUpdated","Block Updated Info":{}}') is None
    True
    """
    name_match = _NAME(line, 0, _MOST_NAME_BYTES)
    if name_match is None:
        return _with_name_elsewhere(bytes(line)) if bytes(line).strip() else None
    of_kind = _DECODERS.get(name_match[1])
    if of_kind is None:
        # Most bytes of a log are events that are not read; they are recognised by their first
        # characters.
        if name_match[1].startswith(schema.PASSED_OVER):
            return None
        # A line that was not decoded must at least end like an object.
        ends_well = bytes(line).rstrip().endswith(b"}")
        return (name_match[1].decode("utf-8", "replace"), None, False) if ends_well else _NOTHING
    return _decoded(line, *of_kind)


def submitted_stage(line: bytes) -> schema.StageInfo | None:
    """The stage of a line about its start; None if it cannot be read."""
    # It says of the stage what the line about its end says, too.
    _, decode = _DECODERS[schema.STAGE_COMPLETED.encode()]
    try:
        info: schema.StageInfo | None = decode(line).info
    except _UNREADABLE:
        return None
    return info


def _with_name_elsewhere(line: bytes) -> Line | None:
    """The event of a line in which the event's name is not the first field."""
    try:
        name = _NAMED(line).name
    except _UNREADABLE:
        return _salvaged(line)
    if name is None:
        return _NOTHING
    of_kind = _DECODERS.get(name.encode())
    if of_kind is not None:
        return _decoded(line, *of_kind)
    return None if name.encode().startswith(schema.PASSED_OVER) else (name, None, False)


def _decoded(line: bytes | memoryview, name: str, decode: _Decode) -> Line | None:
    try:
        return name, decode(line), False
    except _UNREADABLE:
        return _salvaged(bytes(line))


def _salvaged(line: bytes) -> Line | None:
    """Usable rest of a damaged line."""
    text = line.decode("utf-8", "replace").strip()
    try:
        # Text after an object is the rest of a line whose beginning is lost.
        values, end = _FIRST_OBJECT(text)
        if b"\\u" in line:
            # Lone surrogates are replaced, since they could not be written to a file.
            encoded = json.dumps(values, ensure_ascii=False).encode("utf-16", "surrogatepass")
            values = json.loads(encoded.decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return _NOTHING
    name = values.get("Event") if isinstance(values, dict) else None
    if not isinstance(name, str):
        return _NOTHING
    is_more = end < len(text)
    kind = schema.KINDS.get(name)
    if kind is None:
        is_known = name.encode().startswith(schema.PASSED_OVER)
        return None if is_known else (name, None, is_more)
    try:
        try:
            return name, msgspec.convert(values, kind), is_more
        except msgspec.ValidationError:
            return name, _converted(values, kind), True
    except RecursionError:
        return _NOTHING


def _converted(value: Any, kind: Any) -> Any:
    """The value as a given type; None in place of parts with another type."""
    with contextlib.suppress(msgspec.ValidationError):
        return msgspec.convert(value, kind)
    for target in get_args(kind) or (kind,):
        match value:
            case dict() if isinstance(target, type) and issubclass(target, msgspec.Struct):
                return target(
                    **{
                        field.name: _converted(value[field.encode_name], field.type)
                        for field in msgspec.structs.fields(target)
                        if field.encode_name in value
                    }
                )
            case dict() if get_origin(target) is dict:
                part_type = get_args(target)[1]
                return {name: _converted(part, part_type) for name, part in value.items()}
            case list() if get_origin(target) is list:
                return [_converted(entry, get_args(target)[0]) for entry in value]
    return None
