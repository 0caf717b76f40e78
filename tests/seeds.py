"""How many random cases a test looks at."""

from __future__ import annotations

import pytest


def seeds(few: int, many: int) -> list[object]:
    """The first few in every run, the others in `make test-statistical`."""
    statistical = pytest.mark.statistical
    return [*range(few), *(pytest.param(seed, marks=statistical) for seed in range(few, many))]
