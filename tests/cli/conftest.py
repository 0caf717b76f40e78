"""What tests of commands share."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from headway.cli.main import run

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


@cache
def printed(*arguments: str) -> str:
    """What a command prints that must succeed: for tests that go on from there, run once."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(arguments) == 0
    return out.getvalue()
