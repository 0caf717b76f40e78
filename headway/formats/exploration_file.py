"""The state of an exploration: its question, its runs, the next settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from headway.domain import QuerySetting
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.formats.codec import STATE, data_of, noun_of
from headway.formats.own_files import read_json
from headway.formats.text_file import write_text
from headway.limits import LONGEST_S
from headway.redaction import one_line

EXPLORATION_SCHEMA = "headway.exploration/v1"
_EXPECTED = "the state of an exploration"
_NOT_EXPLORED = ("task_cpus", "tasks_per_executor")
# Beside the state: what a name from elsewhere would lead out of is another's.
_RECORDING = re.compile(r"(?!\.)[\w.-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredRun:
    """One run that was made: its setting, how long it took, its recording and query."""

    setting: QuerySetting
    duration_s: float
    recording: str
    query_id: str

    def __post_init__(self) -> None:
        if not _RECORDING.fullmatch(self.recording):
            raise ValueError(
                f"recording is {self.recording[:40]!r}; expected a file in the folder of the state"
            )
        if not 0.0 <= self.duration_s <= LONGEST_S:
            raise ValueError(f"duration_s is {self.duration_s:g}; expected 0 to ten years")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationState:
    """Everything that an exploration needs to continue after it was killed.

    ``queue`` are the settings of the block that is being run, in their random order.
    """

    rate_per_s: float
    target: str
    runs: tuple[ExploredRun, ...] = ()
    queue: tuple[QuerySetting, ...] = ()

    def __post_init__(self) -> None:
        settings = (*(run.setting for run in self.runs), *self.queue)
        if any(setting.rate_per_s is None for setting in settings):
            raise ValueError("a setting without rate_per_s; expected one that was explored")

    @property
    def spent_s(self) -> float:
        """Time that the runs took [s]."""
        return sum(run.duration_s for run in self.runs)


def save_state(state: ExplorationState, path: Path) -> None:
    """Write it atomically: the file always contains either the old or the new state."""
    document = {
        "schema": EXPLORATION_SCHEMA,
        "rate_per_s": state.rate_per_s,
        "target": state.target,
        "runs": [{**data_of(run, STATE), "setting": _as_data(run.setting)} for run in state.runs],
        "queue": [_as_data(setting) for setting in state.queue],
    }
    write_text(path, json_text(document) + "\n", label="the state")


def load_state(path: Path, question: ExplorationState) -> ExplorationState:
    """The state in a file, or a new one for the question if there is none.

    Raises InputError if the file is not the state of an exploration, or that of another question.
    """
    if not path.exists():
        return question
    data = read_json(path, expected=_EXPECTED)
    try:
        if not isinstance(data, dict) or data.get("schema") != EXPLORATION_SCHEMA:
            raise InputError(f"expected schema {EXPLORATION_SCHEMA}")
        state = noun_of(data, ExplorationState, STATE)
    except InputError as error:
        raise InputError(
            f"{one_line(path)}: {error}; expected {_EXPECTED}; give another folder, or remove the "
            "file"
        ) from None
    if (state.rate_per_s, state.target) != (question.rate_per_s, question.target):
        raise InputError(
            f"{one_line(path)}: the state of another question ({state.target} at "
            f"{state.rate_per_s:,.0f} rows/s); give another folder"
        )
    # A recording that is gone counts as never made.
    runs = tuple(run for run in state.runs if (path.parent / run.recording).exists())
    return replace(state, runs=runs)


def _as_data(setting: QuerySetting) -> dict[str, object]:
    """A setting without what an exploration leaves as it is."""
    data: dict[str, object] = data_of(setting, STATE)
    return {key: value for key, value in data.items() if key not in _NOT_EXPLORED}
