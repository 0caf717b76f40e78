"""The class archive: made once by a real JVM, mapped by the next, never half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headway
from headway.errors import SparkUnavailableError
from headway.profiler.spark.class_archive import class_loading, find_class_archive
from headway.profiler.spark.java import Java

_JAVA = Java(home=Path("/java"), feature_version=17, build="17.0.1+2")

_SESSION = """
import os
import signal
import sys
import threading
from pathlib import Path
from headway.profiler.spark.session import embedded_session


def announce():
    print("saving", flush=True)
    if "terminated" in sys.argv:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()


with embedded_session(
    app_name="archive", master="local[1]", driver_memory="512m", announce_class_saving=announce
) as spark:
    from pyspark import SparkContext

    assert spark.range(3).count() == 3
    pid = SparkContext._gateway.proc.pid
    mapped = "spark.jsa" in Path(f"/proc/{pid}/maps").read_text()
    print(pid, "mapped" if mapped else "not mapped", flush=True)
    if "failed" in sys.argv:
        raise SystemExit(3)
"""


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "core.jar").write_bytes(b"core")
    (home / "jars" / "sql.jar").write_bytes(b"sql")
    return home


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    monkeypatch.setenv("HEADWAY_CACHE_DIR", str(cache))
    return cache


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def _save(spark_home: Path) -> Path:
    with class_loading(_JAVA, spark_home, lambda: None) as classes:
        assert classes.saving is not None
        classes.saving.file.write_bytes(b"classes")
    return find_class_archive(_JAVA, spark_home).file


def _run_session(cache: Path, scratch: Path, *arguments: str) -> tuple[list[str], int]:
    """What the session printed, and its exit code; it must be silent otherwise, and tidy."""
    scratch.mkdir(exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-c", _SESSION, *arguments],
        env=os.environ
        | {
            "HEADWAY_CACHE_DIR": str(cache),
            "PYTHONPATH": str(Path(headway.__file__).parents[1]),
            "TMPDIR": str(scratch),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    if not arguments:
        assert result.stderr == ""
    assert list(scratch.iterdir()) == []
    lines = result.stdout.splitlines()
    pid = int(lines[0].split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    return [lines[0].removeprefix(f"{pid} "), *lines[1:]], result.returncode


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc to look into")
def test_the_first_session_saves_what_the_second_maps(tmp_path: Path) -> None:
    # A name that has to survive Spark's launcher.
    cache, scratch = tmp_path / 'a "cache" of mine', tmp_path / "scratch"
    assert _run_session(cache, scratch, "failed") == (["not mapped"], 3)
    assert _files(cache) == []
    terminated = _run_session(cache, scratch, "terminated")
    assert terminated == (["not mapped", "saving"], 128 + signal.SIGTERM)
    assert _files(cache) == []
    assert _run_session(cache, scratch) == (["not mapped", "saving"], 0)
    assert _files(cache) == ["spark.jsa"]
    assert _run_session(cache, scratch) == (["mapped"], 0)
    assert _files(cache) == ["spark.jsa"]


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("HEADWAY_CACHE_DIR", str(in_the_way))
    with class_loading(_JAVA, spark_home, lambda: None) as classes:
        assert classes.java_options == ()
        assert classes.conf_folder is None
        assert classes.saving is None


def test_only_who_asks_makes_one_but_everyone_uses_it(cache: Path, spark_home: Path) -> None:
    with class_loading(_JAVA, spark_home, None) as classes:
        assert classes.java_options == ()
    assert not cache.exists()
    archive = _save(spark_home)
    for announce in (None, lambda: None):
        with class_loading(_JAVA, spark_home, announce) as classes:
            assert classes.java_options == (f"-XX:SharedArchiveFile={archive}",)
            assert classes.saving is None
            assert classes.conf_folder is not None
            assert list(classes.conf_folder.iterdir()) == []


def test_other_jars_or_another_java_have_an_archive_of_their_own(
    cache: Path, spark_home: Path
) -> None:
    core = spark_home / "jars" / "core.jar"
    seen = {find_class_archive(_JAVA, spark_home)}
    os.utime(core, (1, 1))
    seen.add(find_class_archive(_JAVA, spark_home))
    core.write_bytes(b"other core")
    seen.add(find_class_archive(_JAVA, spark_home))
    core.rename(core.with_name("renamed.jar"))
    seen.add(find_class_archive(_JAVA, spark_home))
    update = Java(home=_JAVA.home, feature_version=17, build="17.0.1+3")
    seen.add(find_class_archive(update, spark_home))
    assert len(seen) == 5
    assert find_class_archive(update, spark_home) in seen


def test_an_archive_that_was_not_written_is_not_there(cache: Path, spark_home: Path) -> None:
    with class_loading(_JAVA, spark_home, lambda: None):
        pass
    assert _files(cache) == []
    with (
        pytest.raises(KeyboardInterrupt),
        class_loading(_JAVA, spark_home, lambda: None) as classes,
    ):
        assert classes.saving is not None
        classes.saving.file.write_bytes(b"half of the classes")
        raise KeyboardInterrupt
    assert _files(cache) == []


def test_an_archive_with_which_spark_does_not_start_is_dropped(
    cache: Path, spark_home: Path
) -> None:
    _save(spark_home)
    with pytest.raises(SparkUnavailableError), class_loading(_JAVA, spark_home, None):
        raise SparkUnavailableError("Spark did not start")
    with class_loading(_JAVA, spark_home, None) as classes:
        assert classes.java_options == ()


def test_the_two_last_used_stay_and_nothing_that_is_not_ours_goes(
    cache: Path, spark_home: Path
) -> None:
    def install(version: int) -> None:
        jar = spark_home / "jars" / "core.jar"
        jar.write_bytes(b"x" * version)
        os.utime(jar, (1, 1))

    archives = []
    for version in (1, 2, 3):
        install(version)
        archives.append(_save(spark_home))
        foreign = cache / "spark-classes" / "not ours"
        foreign.mkdir(exist_ok=True)
        left = archives[-1].with_name("1.part")
        left.touch()
        os.utime(left, (1, 1))
        os.utime(archives[-1], (1_700_000_000 + version, 1_700_000_000 + version))
    assert [archive.exists() for archive in archives] == [False, True, True]
    assert foreign.is_dir()
    # The older one is used again, so it is the other that makes room.
    install(2)
    with class_loading(_JAVA, spark_home, None) as classes:
        assert classes.java_options
    install(4)
    archives.append(_save(spark_home))
    assert [archive.exists() for archive in archives] == [False, True, False, True]
    assert _files(cache) == ["spark.jsa", "spark.jsa"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HEADWAY_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own/spark-classes"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/headway/spark-classes"),
        # The standard has relative ones ignored.
        ({"XDG_CACHE_HOME": "xdg"}, "/home/me/.cache/headway/spark-classes"),
        ({}, "/home/me/.cache/headway/spark-classes"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    spark_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    expected: str,
) -> None:
    for name in ("HEADWAY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_class_archive(_JAVA, spark_home).folder.parent == Path(expected)
