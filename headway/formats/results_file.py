"""Results read from the JSON that commands print, to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from headway.domain import AnyAnswer, Backtest, Playback, Prediction
from headway.domain.sheet import Sheet
from headway.errors import InputError
from headway.formats.as_json import DEADLINE_SCHEMA, PLAN_SCHEMA
from headway.formats.codec import noun_of
from headway.formats.from_json import in_todays_form, parse_any_plan, require_words
from headway.formats.own_files import parse_json, read_whole_text

AnyResult: TypeAlias = AnyAnswer | Backtest | Playback | Prediction
_EXPECTED = "a profile, or what a command such as 'headway plan' prints with --json"
_MOST_BYTES = 64 * 2**20
_NOUNS: Mapping[str, type[Backtest | Playback | Prediction]] = {
    f"headway.{noun.result_kind}/v1": noun for noun in (Backtest, Playback, Prediction)
}


def load_result(path: str | Path) -> AnyResult | Sheet:
    """A result from the JSON of its command, or the sheet in it if it is read for nothing else.

    Raises
    ------
    InputError
        If the file cannot be read or is none of these; names the file and the position in it.
    """
    text = read_whole_text(Path(path), expected=_EXPECTED, largest_bytes=_MOST_BYTES)
    return parse_result(text, name=str(path))


def parse_result(text: str, *, name: str) -> AnyResult | Sheet:
    """As `load_result`, from the text; messages call it ``name``."""
    data = parse_json(text, name=name, expected=_EXPECTED)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema in (PLAN_SCHEMA, DEADLINE_SCHEMA):
        return parse_any_plan(text, name=name)
    try:
        if isinstance(schema, str) and schema in _NOUNS:
            result = noun_of(in_todays_form(data), _NOUNS[schema])
            for prediction in _predictions(result):
                require_words(prediction.findings, "predicted.findings")
            return result
        if isinstance(schema, str) and "sheet" in data:
            return noun_of(data["sheet"], Sheet)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    schema_text = f"schema {schema}" if isinstance(schema, str) else "no schema of Headway's"
    raise InputError(f"{name}: {schema_text}; expected {_EXPECTED}")


def _predictions(result: Backtest | Playback | Prediction) -> list[Prediction]:
    if isinstance(result, Backtest):
        return [run.prediction for run in result.runs]
    return [result] if isinstance(result, Prediction) else []
