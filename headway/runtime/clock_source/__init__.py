"""A streaming source on the wall clock, compiled from Java when first needed."""

from __future__ import annotations

from pathlib import Path

from headway.runtime.compiled import build_jar

CLOCK_SOURCE_FORMAT = "headway.clock.ClockSource"

_JAVA_FILES = ("ClockSource.java", "Clock.java", "Bulks.java", "RateSteps.java", "Vocabulary.java")


def build_clock_source_jar(folder: Path) -> Path:
    """Jar of the clock source for the installed Spark, compiled unless the folder has it.

    Raises
    ------
    SparkUnavailableError
        If there is no Java compiler, or it rejects the source.
    """
    return build_jar(folder, package=__name__, java_files=_JAVA_FILES, what="clock source")
