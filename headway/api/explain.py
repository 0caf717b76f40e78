"""A plan in words."""

from __future__ import annotations

from pathlib import Path

from headway.domain import AnyAnswer
from headway.formats.from_json import load_any_plan
from headway.report.batch_explanation import batch_explanation_text
from headway.report.explanation import explanation_text


def explain(plan: AnyAnswer | str | Path) -> str:
    """The binding constraint, the effect of each change, and every number with its source.

    Parameters
    ----------
    plan : Plan, InfeasiblePlan, DeadlinePlan or path
        A plan of a streaming query or of a batch job, or the file that ``headway plan --json``
        printed.

    Raises
    ------
    InputError
        If the file cannot be read or is no such plan.
    """
    answer = load_any_plan(plan) if isinstance(plan, str | Path) else plan
    return batch_explanation_text(answer) if answer.ends else explanation_text(answer)
