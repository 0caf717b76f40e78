"""However a spec file is damaged: no traceback, and every message has a place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.errors import InputError
from headway.spec.spec_file import parse_spec
from tests.spec.mutations import mutations

CONFIGS = Path(__file__).parents[2] / "configs"
PLACED = re.compile(r"^[^\n:]+(?::\d+:\d+: .+|: and \d+ more faults)$")


def num_refused(count: int, seed: int) -> int:
    refused = 0
    for text in mutations(count, seed):
        try:
            parse_spec(text, name="a.yaml", folder=CONFIGS)
        except InputError as error:
            refused += 1
            for line in str(error).splitlines():
                assert PLACED.match(line), (line, text)
                assert "Traceback" not in line
    return refused


def test_some_hundred_damaged_files() -> None:
    assert num_refused(400, seed=7) > 200


@pytest.mark.robustness
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_files(seed: int) -> None:
    assert num_refused(1000, seed=seed) > 500
