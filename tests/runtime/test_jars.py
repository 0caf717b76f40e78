"""The jars that ship with Headway: made of their sources, and loaded from nowhere else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest
from pyspark.sql import SparkSession

from headway.errors import SparkUnavailableError
from headway.runtime import jars
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.gate.clock import new_hub
from headway.runtime.jars import shipped_jar
from tests.sources import PACKAGE, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import build_jars  # type: ignore[import-not-found]

FOLDERS = pytest.mark.parametrize("folder", build_jars.SOURCE_FOLDERS, ids=lambda path: path.name)
GATE = "headway.runtime.gate"


def manifest_of(jar: Path) -> dict[str, str]:
    with ZipFile(jar) as archive:
        text = archive.read(build_jars.MANIFEST).decode().replace("\r\n ", "")
    return dict(line.split(": ") for line in text.splitlines() if line)


def test_every_folder_with_java_sources_has_a_jar() -> None:
    assert {path.parent for path in PACKAGE.rglob("*.java")} == {*build_jars.SOURCE_FOLDERS}
    assert {*PACKAGE.rglob("*.jar")} == {
        build_jars.jar_of(one) for one in build_jars.SOURCE_FOLDERS
    }


@FOLDERS
def test_a_jar_names_the_sources_that_lie_beside_it(folder: Path) -> None:
    manifest = manifest_of(build_jars.jar_of(folder))
    assert manifest["Sources-SHA-256"] == build_jars.sources_digest(folder), "run `make jars`"
    assert manifest["Build-Jdk-Spec"] == str(build_jars.RELEASE)


@FOLDERS
def test_a_jar_is_what_the_compiler_makes_of_its_sources_on_each_spark(
    folder: Path, tmp_path: Path
) -> None:
    compiler = build_jars.java_compiler()
    if compiler is None:
        pytest.skip("no JDK to compile the sources with")
    jar = build_jars.jar_of(folder)
    spark_jars = Path(pyspark.__file__).parent / "jars"
    classes = build_jars.compiled(folder, compiler, spark_jars)
    with ZipFile(jar) as archive:
        assert {*archive.namelist()} == {build_jars.MANIFEST, *classes}
        # Compilers of other versions may write the same program in other bytes.
        if build_jars.java_version(compiler) != manifest_of(jar)["Build-Jdk-Spec"]:
            pytest.skip(f"the jar was built by another javac than {compiler}")
        assert {name: archive.read(name) for name in classes} == classes
    build_jars.write_jar(tmp_path / "again.jar", classes, build_jars.manifest(folder, compiler))
    assert (tmp_path / "again.jar").read_bytes() == jar.read_bytes()


def test_a_jar_does_not_depend_on_when_and_in_which_order_it_is_written(tmp_path: Path) -> None:
    classes = {"b/B.class": b"\xca\xfe", "a/A.class": b"\xba\xbe"}
    build_jars.write_jar(tmp_path / "1.jar", classes, b"M\r\n")
    build_jars.write_jar(tmp_path / "2.jar", dict(reversed(classes.items())), b"M\r\n")
    assert (tmp_path / "1.jar").read_bytes() == (tmp_path / "2.jar").read_bytes()
    with ZipFile(tmp_path / "1.jar") as archive:
        assert archive.namelist() == [build_jars.MANIFEST, "a/A.class", "b/B.class"]
        assert {member.date_time[0] for member in archive.infolist()} == {1980}


def test_the_gate_loads_its_own_classes_whatever_lies_in_the_temporary_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever may write there, and however the jar is called; nor is a compiler needed.
    planted = tmp_path / "headway-jars"
    planted.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jars, "_LOADERS", type(jars._LOADERS)())
    assert new_hub(spark, 60.0).isOpen() is False
    (url,) = jars.class_loader(spark.sparkContext._gateway, shipped_jar(GATE)).getURLs()
    assert Path(url.getPath()) == PACKAGE / "runtime" / "gate" / "gate.jar"
    assert not [*planted.iterdir()]


def test_jars_are_those_of_the_package() -> None:
    assert shipped_jar(GATE) == PACKAGE / "runtime" / "gate" / "gate.jar"
    assert clock_source_jar() == PACKAGE / "runtime" / "clock_source" / "clock_source.jar"


_FROM_AN_ARCHIVE = f"""
import os, stat
from headway.runtime import jars
assert ".zip" in jars.__file__, jars.__file__
jar = jars.shipped_jar({GATE!r})
assert jar == jars.shipped_jar({GATE!r})
status = jar.stat()
print(jar, oct(stat.S_IMODE(status.st_mode)), status.st_uid == os.geteuid(), jar.read_bytes().hex())
"""


def test_imported_from_an_archive_the_jar_is_unpacked_for_this_user_only(tmp_path: Path) -> None:
    archive = tmp_path / "headway.zip"
    with ZipFile(archive, "w") as packed:
        for path in PACKAGE.rglob("*"):
            if path.suffix in {".py", ".jar"}:
                packed.write(path, path.relative_to(ROOT))
    done = subprocess.run(
        [sys.executable, "-P", "-c", _FROM_AN_ARCHIVE],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, mode, is_own, content = done.stdout.split()
    assert (mode, is_own) == (oct(stat.S_IRUSR | stat.S_IWUSR), "True")
    assert bytes.fromhex(content) == shipped_jar(GATE).read_bytes()
    assert not Path(name).exists()


@pytest.mark.parametrize("version", ["17", "21", "26.1"])
def test_a_jvm_that_can_load_the_classes(version: str) -> None:
    jars._require_java(version)


@pytest.mark.parametrize(("version", "number"), [("1.8", "8"), ("11", "11"), ("16", "16")])
def test_a_jvm_that_is_too_old_is_named(version: str, number: str) -> None:
    with pytest.raises(
        SparkUnavailableError, match=f"the driver runs on Java {number}; .* Java 17"
    ):
        jars._require_java(version)
