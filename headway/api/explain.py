"""A plan in words."""

from __future__ import annotations

from pathlib import Path

from headway.domain import StreamAnswer
from headway.formats.from_json import load_plan
from headway.report.explanation import explanation_text


def explain(plan: StreamAnswer | str | Path) -> str:
    """The binding constraint, what each thing would change, every number with its source.

    Parameters
    ----------
    plan : Plan, InfeasiblePlan or path
        A plan, or the file that ``headway plan --json`` printed.

    Raises
    ------
    InputError
        If the file cannot be read or is no such plan.
    """
    return explanation_text(load_plan(plan) if isinstance(plan, str | Path) else plan)
