"""A streaming source on the wall clock, in Java."""

from __future__ import annotations

from pathlib import Path

from headway.runtime.jars import shipped_jar

CLOCK_SOURCE_FORMAT = "headway.clock.ClockSource"


def clock_source_jar() -> Path:
    """The jar of the clock source, for ``spark.jars`` of any supported Spark."""
    return shipped_jar(__name__)
