"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.errors import SparkUnavailableError
from headway.profiler.spark.session import require_java


def _fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {folder}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f"echo '    java.vm.version = {version}.0.1+2' >&2\n"
    )
    java.chmod(0o755)
    return java


def test_java_home_is_asked_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home, on_path = tmp_path / "home", tmp_path / "path"
    _fake_java(at_home, "21")
    _fake_java(on_path, "17")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", str(at_home))
    assert require_java() == at_home
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert require_java() == on_path


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, "1.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(SparkUnavailableError, match="Java 17 or later, found Java 8 in"):
        require_java()


def test_no_java_is_one_line_of_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as failure:
        require_java()
    message = str(failure.value)
    assert "\n" not in message
    for way in ("apt-get install", "brew install", "JAVA_HOME"):
        assert way in message
