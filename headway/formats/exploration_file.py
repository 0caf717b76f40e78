"""The state of an exploration: its question, its runs, the next settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.domain import Configuration, QuerySetting
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.formats.text_file import write_text

EXPLORATION_SCHEMA = "headway.exploration/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredRun:
    """One run that was made: its setting, how long it took, its recording and query."""

    setting: QuerySetting
    duration_s: float
    recording: str
    query_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationState:
    """Everything that an exploration needs to continue after it was killed.

    ``queue`` are the settings of the block that is being run, in their random order.
    """

    rate_per_s: float
    target: str
    runs: tuple[ExploredRun, ...] = ()
    queue: tuple[QuerySetting, ...] = ()

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
        "runs": [
            {
                "setting": _as_data(run.setting),
                "duration_s": run.duration_s,
                "recording": run.recording,
                "query_id": run.query_id,
            }
            for run in state.runs
        ],
        "queue": [_as_data(setting) for setting in state.queue],
    }
    write_text(path, json_text(document) + "\n", what="the state")


def load_state(path: Path, asked: ExplorationState) -> ExplorationState:
    """The state in a file, or a new one for the question if there is none.

    Raises
    ------
    InputError
        If the file is not the state of an exploration, or that of another question.
    """
    if not path.exists():
        return asked
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != EXPLORATION_SCHEMA:
            raise ValueError(f"expected schema {EXPLORATION_SCHEMA}")
        found = ExplorationState(
            rate_per_s=float(data["rate_per_s"]),
            target=str(data["target"]),
            runs=tuple(
                ExploredRun(
                    setting=_from_data(run["setting"]),
                    duration_s=float(run["duration_s"]),
                    recording=str(run["recording"]),
                    query_id=str(run["query_id"]),
                )
                for run in data["runs"]
            ),
            queue=tuple(_from_data(one) for one in data["queue"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not the state of an exploration ({type(error).__name__}: {error}); "
            "give another folder, or remove the file"
        ) from None
    if (found.rate_per_s, found.target) != (asked.rate_per_s, asked.target):
        raise InputError(
            f"{path}: the state of another question ({found.target} at {found.rate_per_s:,.0f} "
            "rows/s); give another folder"
        )
    # A recording that is gone counts as never made.
    kept = tuple(run for run in found.runs if (path.parent / run.recording).exists())
    return replace(found, runs=kept)


def _as_data(setting: QuerySetting) -> dict[str, object]:
    configuration = setting.configuration
    return {
        "executors": configuration.executors,
        "cores_per_executor": configuration.cores_per_executor,
        "shuffle_partitions": configuration.shuffle_partitions,
        "trigger_s": configuration.trigger_s,
        "max_offsets_per_trigger": configuration.max_offsets_per_trigger,
        "rate_per_s": setting.rate_per_s,
    }


def _from_data(data: dict[str, Any]) -> QuerySetting:
    fields = {name: value for name, value in data.items() if name != "rate_per_s"}
    return QuerySetting(configuration=Configuration(**fields), rate_per_s=data["rate_per_s"])
