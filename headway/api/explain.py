"""A plan in words."""

from __future__ import annotations

from pathlib import Path

from headway.api.arguments import any_plan
from headway.domain import AnyAnswer
from headway.report.batch_explanation import batch_explanation_text
from headway.report.explanation import explanation_text


class Explanation(str):
    r"""A plan in words: text, which shows itself in an interpreter as it is printed.

    >>> Explanation("Answer\n  1 node")
    Answer
      1 node
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """As it is printed, for notebooks."""
        from headway.report.page import preformatted

        return preformatted(self)


def explain(plan: AnyAnswer | str | Path) -> Explanation:
    """The binding constraint, the effect of each change, and every number with its source.

    Parameters
    ----------
    plan : Plan, InfeasiblePlan, DeadlinePlan or path
        A plan of a streaming query or of a batch job, or the file that ``headway plan --json``
        printed.

    Raises
    ------
    InputError
        If it is no such plan, or the file cannot be read.
    """
    answer: AnyAnswer = any_plan(plan)
    return Explanation(batch_explanation_text(answer) if answer.ends else explanation_text(answer))
