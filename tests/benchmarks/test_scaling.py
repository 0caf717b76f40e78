"""The numbers of the calibration rule are those that the committed evidence gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import scaling
from scale.evidence import Error, read_errors
from scale.split import LEAST_COVERED_SHARE, SPLIT, is_fitted

from headway.assumptions.predictions import (
    CALIBRATED_DOUBLINGS,
    SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO,
    SPREAD_PER_DOUBLING_RATIO,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def errors() -> list[Error]:
    return read_errors(scaling.RESULTS / "scaling.jsonl")


def test_the_spread_per_doubling_is_the_one_that_was_fitted(errors: list[Error]) -> None:
    best = scaling.fitted_rules(errors)[0]
    assert best.distance is scaling.as_independent
    assert best.per_doubling == SPREAD_PER_DOUBLING_RATIO.value
    applied = scaling.applied_rule(errors)
    assert applied.per_doubling == SPREAD_PER_DOUBLING_RATIO.value
    assert applied.per_doubling_of_partitions == SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO.value


def test_calibrated_reaches_as_far_as_the_evidence_of_every_kind(errors: list[Error]) -> None:
    reach = scaling.calibrated_doublings(scaling.applied_rule(errors), errors)
    assert min(reach.values()) == CALIBRATED_DOUBLINGS.value


def test_the_intervals_hold_where_nothing_was_fitted(errors: list[Error]) -> None:
    rule = scaling.applied_rule(errors)
    judged = [error for error in errors if not is_fitted(error.kind) and scaling.as_sum(error) > 0]
    assert sum(map(rule.holds, judged)) >= 0.9 * len(judged)
    of_partitions = [error for error in judged if error.partitions > 0]
    assert sum(map(rule.holds, of_partitions)) >= LEAST_COVERED_SHARE * len(of_partitions)
    without = rule._replace(per_doubling=0.0, per_doubling_of_partitions=0.0)
    assert sum(map(without.holds, judged)) < 0.8 * len(judged)


def test_every_kind_of_evidence_is_divided_and_none_twice(errors: list[Error]) -> None:
    assert {error.kind for error in errors} == set(SPLIT)


def test_the_page_is_that_of_the_committed_results() -> None:
    assert scaling.page(scaling.RESULTS) == (DOCS / "scaling-accuracy.md").read_text()


def test_a_wider_law_of_errors_gives_a_wider_spread() -> None:
    def made_up(size: float) -> list[Error]:
        return [
            Error(
                source="tasks",
                part="even",
                name="made up",
                slots=float(doublings),
                partitions=0.0,
                rows=0.0,
                log_factor=size * doublings * share,
                own_spread=0.0,
            )
            for doublings in (1, 2, 3)
            for share in (-1.0, -0.5, 0.0, 0.5, 1.0)
        ]

    for size in (0.1, 0.4):
        found = scaling.fitted_rules(made_up(size))[0].per_doubling
        assert found == pytest.approx(size / 1.6449, abs=0.01)
