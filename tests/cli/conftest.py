"""What tests of commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that would start a Spark of their own take the one of the tests."""

    @contextlib.contextmanager
    def session(**_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("headway.profiler.spark.session.embedded_session", session)
