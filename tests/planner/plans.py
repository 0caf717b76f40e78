"""Plans of the search from the parts of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from headway.assumptions.planning import CONFIDENCE
from headway.domain import Arrivals, JobProfile, Promise, StreamAnswer, Target
from headway.planner import search
from headway.planner.question import Question, SearchSpace


def plan(
    profile: JobProfile,
    arrivals: Arrivals,
    target: Target,
    space: SearchSpace,
    *,
    confidence: float = CONFIDENCE.value,
    further_targets: Sequence[Promise] = (),
    **details: Any,
) -> StreamAnswer:
    """The plan of a job at its arrivals; details are of the question, or of what can be bought."""
    of_question = {field.name for field in fields(Question)} & details.keys()
    question = Question(
        profile=replace(profile, arrivals=arrivals),
        target=target,
        space=space,
        confidence=confidence,
        also=tuple(further_targets),
        **{name: details.pop(name) for name in of_question},
    )
    return search.plan(question, **details)
