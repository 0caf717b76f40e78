"""Data in ../shared, which not everybody has: each test of it names one that stands in for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from tests.sources import ROOT

SHARED = ROOT.parent / "shared"
EVENT_LOGS = SHARED / "data" / "eventlogs"
GROUND_TRUTH = SHARED / "data" / "groundtruth"
KAFKA_LOG = EVENT_LOGS.joinpath(
    "axiomsl+spark", "sql/core/src/test/resources/spark-events", "local-1596020211915"
)
RECORDED = ROOT / "tests" / "data" / "recorded"
"""Logs of runs of the project itself, which stand in for those of others."""


def needs(place: Path, *, stand_in: str) -> pytest.MarkDecorator:
    """Skips a test where a place of ``../shared`` is missing.

    ``stand_in`` is the test that holds the same on what is committed: ``tests/x.py::test_y``.
    """
    where = place.relative_to(SHARED.parent)
    return pytest.mark.skipif(
        not place.exists(), reason=f"needs ../{where}; {stand_in} stands in for it"
    )


def lines_of_recorded(path: Path) -> list[str]:
    """Lines of one of the logs of `RECORDED`."""
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        return list(lines)
