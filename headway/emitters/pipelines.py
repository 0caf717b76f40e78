"""A plan as the specification of a Spark Declarative Pipeline."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission, conf_arguments, executor_conf
from headway.emitters.wording import container_lines, header_lines, query_option_lines, reasons
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree, yaml_document

_SINCE = (4, 1)


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of ``spark-pipeline.yml``; sizes of executors are in a comment, as flags.

    Raises
    ------
    InputError
        If the Spark version has no pipelines.
    """
    if submission.release < _SINCE:
        raise InputError(
            f"declarative-pipelines: Spark {submission.spark_version} does not have them; "
            f"expected 4.1 or later, give {argument('spark_version')}"
        )
    sizes = executor_conf(plan)
    others: dict[str, Tree] = {
        key: value
        for key, value in plan.spark_conf.items()
        if key not in sizes and not key.startswith("spark.dynamicAllocation.")
    }
    fixed = {
        key: value
        for key, value in plan.spark_conf.items()
        if key in sizes or key.startswith("spark.dynamicAllocation.")
    }
    tree: dict[str, Tree] = {
        "name": submission.name,
        "storage": "file:///path/to/pipeline-storage",
        "configuration": others,
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    header = [
        *header_lines(plan, version=version),
        *query_option_lines(plan),
        *container_lines(plan),
        "Sizes belong to the session:",
        f"  spark-pipelines run {shlex.join(conf_arguments(fixed))}",
    ]
    return yaml_document(tree, header=header, comments=reasons(plan))
