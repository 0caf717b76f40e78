"""Builds the jars of Headway's Java sources, each beside them in the package.

A jar depends on its sources, on the Java compiler and on the declarations of Spark that the sources
use, which are the same in every supported version. Entries are sorted, dates are fixed, nothing is
compressed. The manifest has a digest of the sources and the version of Java that compiled them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE_FOLDERS = tuple(
    ROOT / "headway" / "runtime" / name for name in ("clock_source", "gate", "metrics")
)
# Of the oldest Java on which Spark 4 runs.
RELEASE = 17
MANIFEST = "META-INF/MANIFEST.MF"
# The earliest date possible in a zip.
_MEMBER_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX, _FILE_MODE = 3, 0o100644


def jar_of(folder: Path) -> Path:
    """The jar of a folder of Java sources."""
    return folder / f"{folder.name}.jar"


def sources_digest(folder: Path) -> str:
    """SHA-256 of the names and texts of the Java sources in a folder."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.java")):
        text = source.read_bytes()
        digest.update(f"{source.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def java_compiler() -> Path | None:
    """The javac of JAVA_HOME, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    compiler = shutil.which("javac", path=str(Path(home, "bin"))) if home else None
    compiler = compiler or shutil.which("javac")
    return None if compiler is None else Path(compiler)


def java_version(compiler: Path) -> str:
    """The version of Java that a compiler belongs to, e.g. ``17``."""
    answer = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    return re.sub(r"^javac (\d+).*", r"\1", (answer.stdout or answer.stderr).strip())


def compiled(folder: Path, compiler: Path, spark_jars: Path) -> dict[str, bytes]:
    """The classes of the Java sources in a folder, by their names in a jar."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            compiler, "-J-XX:TieredStopAtLevel=1", "-proc:none", "--release", str(RELEASE),
            "-nowarn", "-encoding", "UTF-8", "-classpath", f"{spark_jars}/*", "-d", name,
            *sorted(folder.glob("*.java")),
        ]  # fmt: skip
        subprocess.run(command, check=True)
        return {
            path.relative_to(name).as_posix(): path.read_bytes()
            for path in sorted(Path(name).rglob("*.class"))
        }


def manifest(folder: Path, compiler: Path) -> bytes:
    """The manifest of a jar: which compiler made it, and of which sources."""
    digest = sources_digest(folder)
    lines = (
        "Manifest-Version: 1.0",
        f"Build-Jdk-Spec: {java_version(compiler)}",
        # A line has at most 72 bytes; a blank continues it.
        f"Sources-SHA-256: {digest[:32]}",
        f" {digest[32:]}",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def write_jar(jar: Path, classes: Mapping[str, bytes], manifest_text: bytes) -> None:
    """Write a jar whose bytes depend on its content alone."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {MANIFEST: manifest_text, **dict(sorted(classes.items()))}.items():
            member = zipfile.ZipInfo(name, _MEMBER_DATE)
            member.create_system, member.external_attr = _UNIX, _FILE_MODE << 16
            archive.writestr(member, data)


def main() -> None:
    import pyspark

    compiler = java_compiler()
    if compiler is None:
        sys.exit(f"jars are built with a JDK {RELEASE}; there is no javac on PATH or in JAVA_HOME")
    for folder in SOURCE_FOLDERS:
        classes = compiled(folder, compiler, Path(pyspark.__file__).parent / "jars")
        write_jar(jar_of(folder), classes, manifest(folder, compiler))
        sys.stdout.write(f"{jar_of(folder).relative_to(ROOT)}: {len(classes)} classes\n")


if __name__ == "__main__":
    main()
