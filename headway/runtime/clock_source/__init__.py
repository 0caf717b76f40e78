"""A streaming source on the wall clock, compiled from Java when it is first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from importlib import resources
from pathlib import Path

from headway.errors import SparkUnavailableError

CLOCK_SOURCE_FORMAT = "headway.clock.ClockSource"

_JAVA_FILES = ("ClockSource.java", "Clock.java", "Bulks.java", "Vocabulary.java")
_OLDEST_JAVA = 17
_COMPILE_WITHIN_S = 180.0
# Fixed, so that the same source gives the same jar; the earliest date that a zip can hold.
_MEMBER_DATE = (1980, 1, 1, 0, 0, 0)


def build_clock_source_jar(folder: Path) -> Path:
    """Jar of the clock source for the installed Spark, compiled unless the folder has it.

    Parameters
    ----------
    folder : Path
        Where the jar is kept; made if missing.

    Returns
    -------
    Path
        The jar, named after the Spark version and the source it was built from.

    Raises
    ------
    SparkUnavailableError
        If there is no Java compiler, or it refuses the source.
    """
    import pyspark

    package = resources.files(__name__)
    sources = {name: package.joinpath(name).read_bytes() for name in _JAVA_FILES}
    digest = hashlib.sha256(b"".join(sources.values())).hexdigest()[:12]
    jar = folder / f"headway-clock-source-spark{pyspark.__version__}-{digest}.jar"
    if jar.exists():
        return jar
    folder.mkdir(parents=True, exist_ok=True)
    spark_home = Path(pyspark.__file__).parent
    if not (spark_home / "jars").is_dir():
        spark_home = Path(os.environ.get("SPARK_HOME", spark_home))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as building:
        for name, source in sources.items():
            Path(building, name).write_bytes(source)
        classes = Path(building, "classes")
        _compile([Path(building, name) for name in sources], classes, spark_home / "jars")
        unfinished = Path(building, "unfinished.jar")
        _pack(classes, unfinished)
        # In one step: another process may be looking for the same jar.
        unfinished.replace(jar)
    return jar


def _compile(java_files: list[Path], classes: Path, jars: Path) -> None:
    command = [
        _java_compiler(),
        "--release",
        str(_OLDEST_JAVA),
        "-nowarn",
        "-encoding",
        "UTF-8",
        "-classpath",
        f"{jars}/*",
        "-d",
        str(classes),
        *map(str, java_files),
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_WITHIN_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(f"the Java compiler did not run: {error}") from error
    if result.returncode != 0:
        complaint = (result.stderr or result.stdout).strip().splitlines() or ["it said nothing"]
        raise SparkUnavailableError(
            f"{command[0]} does not compile the clock source against {jars}: {complaint[0]}"
        )


def _java_compiler() -> str:
    home = os.environ.get("JAVA_HOME")
    compiler = shutil.which("javac", path=str(Path(home, "bin"))) if home else None
    compiler = compiler or shutil.which("javac")
    if compiler is None:
        raise SparkUnavailableError(
            f"the clock source needs a Java compiler (javac {_OLDEST_JAVA} or later): "
            f"apt-get install openjdk-{_OLDEST_JAVA}-jdk-headless, "
            f"brew install openjdk@{_OLDEST_JAVA}, or set JAVA_HOME to a JDK"
        )
    return compiler


def _pack(classes: Path, jar: Path) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for class_file in sorted(classes.rglob("*.class")):
            name = class_file.relative_to(classes).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _MEMBER_DATE), class_file.read_bytes())
