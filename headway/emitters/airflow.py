"""A plan as keyword arguments of Airflow's ``SparkSubmitOperator``."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import (
    container_lines,
    header_lines,
    python_literal,
    query_option_lines,
    reasons,
)


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """Python with one dictionary: ``SparkSubmitOperator(**SPARK_SUBMIT)``.

    All sizes are in ``conf``, so that one dictionary contains the plan.
    """
    why = reasons(plan)
    lines = [
        f"# {line}"
        for line in (
            *header_lines(plan, version=version),
            *query_option_lines(plan),
            *container_lines(plan),
        )
    ]
    lines += [
        "#",
        "# from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator",
        "# SparkSubmitOperator(**SPARK_SUBMIT)",
        "SPARK_SUBMIT = {",
        f'    "task_id": {python_literal(submission.identifier)},',
        f'    "name": {python_literal(submission.name)},',
        f'    "application": {python_literal(submission.main or "app.py")},',
    ]
    if submission.arguments:
        arguments = ", ".join(map(python_literal, submission.arguments))
        lines.append(f'    "application_args": [{arguments}],')
    lines.append('    "conf": {')
    for key, value in plan.spark_conf.items():
        if key in why:
            lines.append(f"        # {why[key]}")
        lines.append(f"        {python_literal(key)}: {python_literal(value)},")
    return "\n".join([*lines, "    },", "}"]) + "\n"
