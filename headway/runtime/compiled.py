"""Headway's Java sources, compiled against the installed Spark when first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from headway.errors import SparkUnavailableError

_OLDEST_JAVA = 17
_COMPILE_WITHIN_S = 180.0
# Fixed, so that equal sources give equal jars; the earliest date possible in a zip.
_MEMBER_DATE = (1980, 1, 1, 0, 0, 0)


def build_jar(folder: Path, *, package: str, java_files: Sequence[str], what: str) -> Path:
    """Jar of Java sources for the installed Spark, compiled unless the folder has it.

    Parameters
    ----------
    folder : Path
        Folder for the jar; created if missing.
    package : str
        The Python package that contains the sources.
    java_files : sequence of str
        Their names.
    what : str
        Description for messages and the name of the jar, e.g. ``clock source``.

    Returns
    -------
    Path
        The jar, named after the Spark version and the source it was built from.

    Raises
    ------
    SparkUnavailableError
        If there is no Java compiler, or it rejects the source.
    """
    import pyspark

    root = resources.files(package)
    sources = {name: root.joinpath(name).read_bytes() for name in java_files}
    digest = hashlib.sha256(b"".join(sources.values())).hexdigest()[:12]
    name = f"headway-{what.replace(' ', '-')}-spark{pyspark.__version__}-{digest}.jar"
    jar = folder / name
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
        _compile([Path(building, name) for name in sources], classes, spark_home / "jars", what)
        unfinished = Path(building, "unfinished.jar")
        _pack(classes, unfinished)
        # Atomically, since another process may be looking for the same jar.
        unfinished.replace(jar)
    return jar


def _compile(java_files: list[Path], classes: Path, jars: Path, what: str) -> None:
    command = [
        _java_compiler(what),
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
            f"{command[0]} does not compile the {what} against {jars}: {complaint[0]}"
        )


def _java_compiler(what: str) -> str:
    home = os.environ.get("JAVA_HOME")
    compiler = shutil.which("javac", path=str(Path(home, "bin"))) if home else None
    compiler = compiler or shutil.which("javac")
    if compiler is None:
        raise SparkUnavailableError(
            f"the {what} needs a Java compiler (javac {_OLDEST_JAVA} or later): "
            f"apt-get install openjdk-{_OLDEST_JAVA}-jdk-headless, "
            f"brew install openjdk@{_OLDEST_JAVA}, or set JAVA_HOME to a JDK"
        )
    return compiler


def _pack(classes: Path, jar: Path) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for class_file in sorted(classes.rglob("*.class")):
            name = class_file.relative_to(classes).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _MEMBER_DATE), class_file.read_bytes())
