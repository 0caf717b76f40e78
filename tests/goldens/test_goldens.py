"""Every output of the commands and calls on record, byte for byte.

A change of what is printed changes a file here, in the same commit: ``make goldens`` writes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens.calls import NUM_CALLS, lines
from tests.goldens.commands import COMMANDS, output_of, prepare
from tests.seeds import first_of

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


@pytest.mark.parametrize("part", first_of(range(2), 1))
def test_calls_answer_what_they_answered(part: int) -> None:
    """Every other call in every run."""
    before = CALLS.read_text(encoding="utf-8").splitlines()
    assert len(before) == NUM_CALLS
    after = list(lines(range(part, NUM_CALLS, 2)))
    assert after == before[part::2]


def test_nothing_on_record_is_left_over() -> None:
    names = {path.stem for path in RECORD.glob("*.txt")}
    assert names == {*COMMANDS, CALLS.stem}
