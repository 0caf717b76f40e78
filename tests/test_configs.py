"""Every sample is loaded, and planned as its kind is."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.api.specs import checked_spec, plan_file
from headway.spec.kinds import StreamingJob

ROOT = Path(__file__).parents[1]
SAMPLES = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_right_and_names_its_schema(path: Path) -> None:
    checked_spec(path)
    assert path.read_text().startswith("# yaml-language-server: $schema=schema/v1.json\n")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_can_be_planned(path: Path) -> None:
    file = checked_spec(path)
    if not isinstance(file.spec, StreamingJob):
        pytest.skip("planned as part of a fleet")
    assert plan_file(file).plan.feasible
