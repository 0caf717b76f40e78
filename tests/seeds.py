"""How many random cases a test looks at, and how many settings the pages that it makes."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from hypothesis import settings

_ALL_EXAMPLES = "HEADWAY_ALL_EXAMPLES"


def seeds(few: int, many: int) -> list[object]:
    """The first few in every run, the others in `make test-statistical`."""
    return first_of(range(many), few)


def first_of(cases: Iterable[object], few: int) -> list[object]:
    """The first few cases in every run, the others in `make test-statistical`.

    The others are not even collected in every run: they are thousands, in each process.
    """
    every_case = list(cases)
    rare = every_case[few:] if _is_every_example() else []
    marked = (pytest.param(case, marks=pytest.mark.statistical) for case in rare)
    return [*every_case[:few], *marked]


def examples(few: int, many: int) -> settings:
    """Of cases that Hypothesis makes few in every run, many in `make test-statistical`."""
    return settings(max_examples=many if _is_every_example() else few, deadline=None)


def _is_every_example() -> bool:
    return bool(os.environ.get(_ALL_EXAMPLES))


def few_settings(patch: pytest.MonkeyPatch) -> None:
    """Pages get a what-if of few settings; tests/report has what stands on whole ones."""
    patch.setattr("headway.report.what_if._RATES", 4)
    patch.setattr("headway.report.what_if._TRIGGERS_S", (1.0,))
