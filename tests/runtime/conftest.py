"""Queries of few rows on Spark are interpreted: to compile one takes longer than to run it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = {name: str(spark.conf.get(name)) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)
