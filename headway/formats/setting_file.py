"""The setting that a supervisor gives to the application that it has started."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from headway.domain import Configuration
from headway.errors import InputError
from headway.formats.codec import STATE, data_of, noun_of
from headway.formats.own_files import read_json, why_of
from headway.formats.text_file import write_text
from headway.redaction import one_line

_EXPECTED = "the setting that a supervisor gives"
SETTING_SCHEMA = "headway.setting/v1"
# Environment of an application that is supervised: the file, and the number it was started with.
SETTING_VARIABLE = "HEADWAY_SETTING"
NUMBER_VARIABLE = "HEADWAY_SETTING_NUMBER"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSetting:
    """Setting at which the application is to run; another ``number`` asks it to stop.

    ``recording`` is the file for its recording; ``may_cut`` says whether it may stop within a
    batch. ``is_withdrawn`` withdraws the request with this number.
    """

    schema: str = SETTING_SCHEMA
    number: int
    configuration: Configuration
    recording: str
    may_cut: bool = False
    is_withdrawn: bool = False


def answer_file(path: Path) -> Path:
    """File in which the application says that it stopped, or why it does not."""
    return path.with_suffix(".answer")


def alive_file(path: Path) -> Path:
    """File that the application touches while it waits for a request."""
    return path.with_suffix(".alive")


def save_setting(setting: GivenSetting, path: Path) -> None:
    """Write it whole or not at all."""
    text = json.dumps(data_of(setting, STATE), indent=1)
    write_text(path, text + "\n", label="the setting")


def load_setting(path: Path) -> GivenSetting:
    """The setting in a file.

    Raises InputError if there is none.
    """
    try:
        return noun_of(read_json(path, expected=_EXPECTED), GivenSetting, STATE)
    except InputError as error:
        raise InputError(
            f"{one_line(path)}: no setting ({why_of(error)}); expected the file of a supervisor, "
            "headway tune SPEC --supervise -- COMMAND"
        ) from None


def save_answer(path: Path, *, number: int, why: str | None, no_gap: bool = False) -> None:
    """Answer that the query has stopped for setting ``number``, or why not."""
    answer = {"number": number, "why": why, "no_gap": no_gap}
    write_text(answer_file(path), json.dumps(answer), label="the answer")


def load_answer(path: Path, number: int) -> tuple[str | None, bool] | None:
    """Why the request of a number was refused, None if it was not, and whether for want of a gap.

    None as long as there is no answer.
    """
    try:
        answer = read_json(answer_file(path), expected="an answer")
    except InputError:
        return None
    if not isinstance(answer, dict) or answer.get("number") != number:
        return None
    why = answer.get("why")
    return None if why is None else str(why), bool(answer.get("no_gap"))
