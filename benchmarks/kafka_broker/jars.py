"""The jars of a Kafka broker and of Spark's connector: fetched once by Maven, always checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.errors import SparkUnavailableError

_HERE = Path(__file__).parent
_CHECKSUMS = _HERE / "jars" / "sha256.txt"
_GET_WITHIN_S = 540.0
_COMPILE_WITHIN_S = 120.0
_OLDEST_JAVA = 17

_BROKER, _CONNECTOR = "broker", "connector"


class KafkaUnavailableError(SparkUnavailableError):
    """No jars, or no tools to get or run them: the lane is skipped, with this as the reason."""


def cache_folder() -> Path:
    """Where jars are kept between runs, outside the tree."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "headway" / "kafka"


def broker_class_path() -> str:
    """The broker, and the processes of the lane.

    Raises
    ------
    KafkaUnavailableError
        If jars are neither in the cache nor downloadable, if one is not the pinned file, or if
        there is no Java compiler.
    """
    jars = _pinned_jars(_BROKER)
    return _class_path([_compiled("processes", jars), *jars])


def connector_jars() -> list[Path]:
    """What a Spark session needs in addition for Kafka; raises like `broker_class_path`.

    The connector's own part for login tokens is not among them: a broker on loopback requires no
    login, and a few lines replace what the connector calls of that part.
    """
    import pyspark

    jars = _pinned_jars(_CONNECTOR)
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    classes = _compiled("no_tokens", spark)
    stand_in = classes.with_suffix(".jar")
    if not stand_in.is_file():
        with zipfile.ZipFile(stand_in, "w") as archive:
            for compiled in sorted(classes.rglob("*.class")):
                archive.write(compiled, compiled.relative_to(classes))
    return [*jars, stand_in]


def _pinned_jars(name: str) -> list[Path]:
    """The jars of a folder of ``jars`` with a POM, each as pinned."""
    wanted = _pinned(name)
    folder = cache_folder() / name
    if any(not (folder / jar).is_file() for jar in wanted):
        _get(name, folder)
    for jar, checksum in wanted.items():
        _check(folder / jar, checksum)
    return [folder / jar for jar in sorted(wanted)]


def _pinned(name: str) -> Mapping[str, str]:
    lines = (line.split() for line in _CHECKSUMS.read_text().splitlines())
    return {Path(path).name: checksum for checksum, path in lines if Path(path).parts[0] == name}


def _get(name: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError(
            f"the {name} jars are not in {folder}, and there is no mvn on PATH to fetch them"
        )
    folder.mkdir(parents=True, exist_ok=True)
    pom = _HERE / "jars" / name / "pom.xml"
    _run(
        [maven, "--batch-mode", "--quiet", f"--file={pom}", f"-Djars={folder}", "package"],
        _GET_WITHIN_S,
        f"Maven could not fetch the {name} jars",
    )


def _check(jar: Path, checksum: str) -> None:
    if not jar.is_file():
        raise KafkaUnavailableError(f"{jar} is missing after Maven has run; {_CHECKSUMS} lists it")
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != checksum:
        raise KafkaUnavailableError(
            f"{jar} has SHA-256 {found}; expected {checksum}: delete it and run again"
        )


def _compiled(name: str, jars: Sequence[Path]) -> Path:
    """Folder with the classes of a folder of ``java``, compiled unless there."""
    sources = sorted((_HERE / "java" / name).glob("*.java"))
    inputs = [source.read_bytes() for source in sources] + [jar.name.encode() for jar in jars]
    classes = cache_folder() / f"{name}-{hashlib.sha256(b''.join(inputs)).hexdigest()[:12]}"
    if classes.is_dir():
        return classes
    compiler = shutil.which("javac")
    if compiler is None:
        raise KafkaUnavailableError(f"no javac on PATH; install a JDK {_OLDEST_JAVA} or later")
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=".building-") as building:
        unfinished = Path(building, "classes")
        _run(
            [
                compiler, "--release", str(_OLDEST_JAVA), "-nowarn", "-encoding", "UTF-8",
                "-classpath", _class_path(jars), "-d", str(unfinished), *map(str, sources),
            ],
            _COMPILE_WITHIN_S,
            f"{name} does not compile",
        )  # fmt: skip
        unfinished.replace(classes)
    return classes


def _class_path(jars: Sequence[Path]) -> str:
    return os.pathsep.join(map(str, jars))


def _run(command: list[str], within_s: float, what: str) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=within_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KafkaUnavailableError(f"{what}: {error}") from error
    if result.returncode != 0:
        # Maven's first error says what is wrong; the others only refer to help.
        said = (result.stdout + result.stderr).splitlines()
        complaint = next((line for line in said if "error" in line.lower()), "no output")
        raise KafkaUnavailableError(f"{what}: {complaint.strip()}")
