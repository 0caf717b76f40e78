"""Every test here that needs Spark runs plans without generated code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.interpreted import INTERPRETED, with_settings


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    with with_settings(request.getfixturevalue("spark"), INTERPRETED):
        yield
