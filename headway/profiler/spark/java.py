"""Finding the Java that Spark runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.errors import SparkUnavailableError

_OLDEST_JAVA = 17
_ANSWERS_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """An installed Java."""

    home: Path
    feature_version: int


def require_java() -> Java:
    """The Java that Spark will run on, of version 17 or later: that of JAVA_HOME, else of PATH.

    SparkUnavailableError says how to get one.
    """
    found = []
    for candidate in _candidates():
        java = _describe(candidate)
        if java is None:
            continue
        if java.feature_version >= _OLDEST_JAVA:
            return java
        found.append(f"Java {java.feature_version} in {java.home}")
    raise SparkUnavailableError(
        f"Spark needs Java {_OLDEST_JAVA} or later, found {' and '.join(found) or 'none'}: "
        f"apt-get install openjdk-{_OLDEST_JAVA}-jdk-headless, "
        f"brew install openjdk@{_OLDEST_JAVA}, or set JAVA_HOME"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


def _describe(java: Path) -> Java | None:
    """Asked from Java itself; None if this is not a working Java."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWERS_WITHIN_S,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = dict(re.findall(r"(?m)^\s*(java\.[\w.]+) = (.*?)\s*$", answer))
    # Java 8 calls itself 1.8.
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if version is None or "java.home" not in properties:
        return None
    return Java(home=Path(properties["java.home"]), feature_version=int(version[1]))
