"""The JSON Schema of spec files, for editors; made from the declarations that read them."""

from __future__ import annotations

from typing import Any

from headway.spec.forms import entries_of
from headway.spec.forms.entries import JsonSchema, ValueKind
from headway.spec.forms.kinds import ListOf, MapOf, NameOr, Nested
from headway.spec.kinds import KINDS, noun_of_kind
from headway.spec.kinds.rates import DailyCurve, RateForm, RateTrace
from headway.spec.spec_file import API_VERSION, Metadata

# A name and no address: the schema is a file, beside the specs that name it.
SCHEMA_ID = "urn:headway:schema:v1"


def json_schema() -> JsonSchema:
    """One schema for every kind of spec file.

    >>> sorted(json_schema()["$defs"])[:3]
    ['ApplicationEntry', 'BatchJob', 'BudgetEntry']
    """
    nouns = sorted(file_nouns(), key=lambda noun: noun.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Headway spec files",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"enum": list(KINDS)},
            "metadata": {"$ref": "#/$defs/Metadata"},
            "include": {
                "description": "Files that provide the keys that this file does not have.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            },
            "spec": {"type": "object"},
        },
        "additionalProperties": False,
        # A kind is called as its noun is.
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": {"properties": {"spec": {"$ref": f"#/$defs/{kind}"}}},
            }
            for kind in KINDS
        ],
        "$defs": {noun.__name__: _object_schema(noun) for noun in nouns},
    }


def file_nouns() -> list[type[Any]]:
    """The nouns of all spec files, each once: those of kinds first, then what is in them."""
    nouns: list[type[Any]] = []
    waiting: list[type[Any]] = [Metadata, *map(noun_of_kind, KINDS)]
    while waiting:
        noun = waiting.pop(0)
        if noun not in nouns:
            nouns.append(noun)
            waiting += [inner for entry in entries_of(noun) for inner in _nouns_in(entry.kind)]
    return nouns


def _object_schema(noun: type[Any]) -> JsonSchema:
    entries = entries_of(noun)
    return {
        "type": "object",
        "description": (noun.__doc__ or "").strip().splitlines()[0],
        "properties": {
            entry.key: {
                "description": entry.about,
                **_without_description(entry.kind.json_schema()),
            }
            for entry in entries
        },
        "required": [entry.key for entry in entries if entry.required],
        "additionalProperties": False,
    }


def _without_description(schema: JsonSchema) -> JsonSchema:
    # Draft 2020-12 lets keywords stand beside a reference.
    return {key: value for key, value in schema.items() if key != "description"}


def _nouns_in(kind: ValueKind) -> list[type[Any]]:
    """The nouns to which a kind's schema refers."""
    match kind:
        case Nested(noun=noun) | NameOr(noun=noun):
            return [noun]
        case ListOf(item=item):
            return _nouns_in(item)
        case MapOf(value=value):
            return _nouns_in(value)
        case RateForm():
            return [DailyCurve, RateTrace]
    return []
