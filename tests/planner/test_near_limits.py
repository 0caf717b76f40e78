"""Near saturation, with any noise and loose targets, no answer contradicts itself."""

from __future__ import annotations

import pytest

from tests.planner.near_limits import answer_to, contradictions, random_question
from tests.seeds import first_of, seeds


@pytest.mark.parametrize("seed", seeds(2, 1000))
def test_everything_that_is_printed_holds_when_it_is_asked_again(seed: int) -> None:
    """Rates, limits, the lowest possible, rejected neighbours, nearest targets, and stability."""
    question = random_question(seed)
    if question is not None:
        assert list(contradictions(question, answer_to(question))) == []


@pytest.mark.parametrize(
    ("num", "least"), [(2, 1), pytest.param(5, 4, marks=pytest.mark.statistical)]
)
def test_most_questions_have_a_rate(num: int, least: int) -> None:
    """The test above would say little if most had none."""
    assert sum(random_question(seed) is not None for seed in range(num)) >= least


@pytest.mark.parametrize("seed", first_of([405, 271, 28], 1))
def test_what_once_contradicted_itself_does_not(seed: int) -> None:
    """No mean; a latency that hardly depends on the rate; fewer nodes close to the lowest one."""
    question = random_question(seed)
    assert question is not None
    assert list(contradictions(question, answer_to(question))) == []
