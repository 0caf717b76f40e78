"""Plans from batches of one size promise nothing of batches that are far larger."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.domain import FrontierPoint, JobProfile, Plan, Target
from headway.formats.profile_file import load_profile
from headway.models.job.row_cost import known_up_to_rows
from headway.planner.candidates import candidates_at
from headway.planner.question import Question
from headway.planner.reach import Reach
from headway.planner.space import SearchSpace
from tests.planner.near_limits import answer_to, contradictions

HALF_RANGES = (0.3, 1.0)


def of_one_size(half_range_ratio: float) -> JobProfile:
    return replace(
        load_profile("examples/word-count.profile.yaml"),
        row_cost_half_range_ratio=half_range_ratio,
    )


def question(half_range_ratio: float, rate_per_s: float, target: str = "p99 <= 60s") -> Question:
    profile = of_one_size(half_range_ratio)
    space = SearchSpace(max_nodes=3, cores_per_executor=2)
    return Question(
        profile=profile, target=Target.parse(target), space=space, confidence=0.95
    ).at_rate(rate_per_s)


def rows_of(point: FrontierPoint, asked: Question) -> float:
    """Rows of the batches of a row of the frontier, over those that are known."""
    configuration = point.configuration
    assert configuration is not None
    setting = (point.nodes, configuration.shuffle_partitions, configuration.trigger_s)
    reach = candidates_at(asked, [setting]).reach
    return float(reach.rows_ratio(point.sustainable_rate_per_s)[0])


@pytest.mark.parametrize("half_range_ratio", HALF_RANGES)
def test_no_rate_is_printed_at_which_batches_are_unknown(half_range_ratio: float) -> None:
    asked = question(half_range_ratio, 30_000.0)
    answer = answer_to(asked)
    assert isinstance(answer, Plan)
    assert all(rows_of(point, asked) <= 1.0 for point in answer.frontier)


@pytest.mark.parametrize("half_range_ratio", HALF_RANGES)
@pytest.mark.parametrize("rate_per_s", [30_000.0, 2e6])
def test_its_answers_do_not_contradict_each_other(
    half_range_ratio: float, rate_per_s: float
) -> None:
    asked = question(half_range_ratio, rate_per_s)
    assert list(contradictions(asked, answer_to(asked))) == []


def test_the_reason_says_what_is_not_known() -> None:
    answer = answer_to(question(1.0, 5e6))
    assert not answer.feasible
    assert "one size do not show what a row costs" in " ".join(answer.binding)


def test_rows_are_those_of_the_expected_batches() -> None:
    asked = question(1.0, 1e4)
    settings = candidates_at(asked, [(1, 8, 2.0), (1, 8, 200.0)])
    largest = known_up_to_rows(asked.profile)
    np.testing.assert_allclose(settings.reach.rows_ratio(1e4), [2e4 / largest, 2e6 / largest])
    assert settings.reach.ratio(np.full(2, 1e4), np.ones(2))[1] > 1.0


def test_a_profile_of_several_sizes_is_within_reach_at_any_size() -> None:
    profile = load_profile("examples/word-count.profile.yaml")
    asked = replace(question(1.0, 1e4), profile=profile)
    reach = candidates_at(asked, [(1, 8, 2.0)]).reach
    assert isinstance(reach, Reach)
    assert float(reach.rows_ratio(1e9)[0]) == 0.0
