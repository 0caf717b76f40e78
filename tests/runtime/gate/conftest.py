"""Small queries on the session of the tests, stopped at the end of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.gate.small_queries import Queries


@pytest.fixture
def queries(spark: SparkSession, tmp_path: Path) -> Iterator[Queries]:
    made = Queries(spark, tmp_path)
    yield made
    for query in made.started:
        query.stop()
