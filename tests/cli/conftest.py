"""What tests of commands share."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headway.cli.main import run
from headway.formats.profile_file import dump_profile
from tests.factories import a_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that would start a Spark of their own take the one of the tests."""

    @contextlib.contextmanager
    def session(**_: object) -> Iterator[SparkSession]:
        yield spark

    for caller in ("api.explore", "api.tune_spec", "demo.run", "profiler.spark.session"):
        monkeypatch.setattr(f"headway.{caller}.embedded_session", session)


@pytest.fixture
def profile_file(tmp_path: Path) -> str:
    """The path of a profile."""
    path = tmp_path / "job.profile.yaml"
    path.write_text(dump_profile(a_profile()), encoding="utf-8")
    return str(path)


@cache
def printed(*arguments: str) -> str:
    """What a command prints that must succeed: for tests that go on from there, run once."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(arguments) == 0
    return out.getvalue()


def printed_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The object that a command printed, and nothing else."""
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert isinstance(found, dict)
    return found
