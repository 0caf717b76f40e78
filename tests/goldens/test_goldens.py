"""Every output of the commands and calls on record, byte for byte.

A change of what is printed changes a file here, in the same commit: ``make goldens`` writes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens.calls import NUM_CALLS, lines
from tests.goldens.commands import COMMANDS, output_of, prepare

RECORD = Path(__file__).parent / "record"
CALLS = RECORD / "calls.txt"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("goldens")
    prepare(found)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_it_printed(name: str, folder: Path) -> None:
    assert output_of(name, folder) == (RECORD / f"{name}.txt").read_text(encoding="utf-8")


def test_calls_answer_what_they_answered() -> None:
    before = CALLS.read_text(encoding="utf-8").splitlines()
    after = list(lines())
    assert len(after) == NUM_CALLS
    assert after == before


def test_nothing_on_record_is_left_over() -> None:
    names = {path.stem for path in RECORD.glob("*.txt")}
    assert names == {*COMMANDS, CALLS.stem}
