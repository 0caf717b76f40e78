"""A plan as the specification of a Spark Declarative Pipeline."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission, conf_arguments, sizeless_conf
from headway.emitters.wording import comment_lines, reasons
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree, yaml_document

_SINCE = (4, 1)


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of ``spark-pipeline.yml``; sizes of executors are in a comment, as flags.

    Raises InputError if the Spark version has no pipelines.
    """
    if submission.release < _SINCE:
        raise InputError(
            f"declarative-pipelines: Spark {submission.spark_version} does not have them; "
            f"expected 4.1 or later, give {argument('spark_version')}"
        )
    configuration = sizeless_conf(plan)
    sizes = {key: value for key, value in plan.spark_conf.items() if key not in configuration}
    tree: dict[str, Tree] = {
        "name": submission.name,
        "storage": "file:///path/to/pipeline-storage",
        "configuration": configuration,
        "libraries": [{"glob": {"include": "transformations/**"}}],
    }
    header = [
        *comment_lines(plan, version=version, fits_any_cluster=True),
        "Sizes belong to the session:",
        f"  spark-pipelines run {shlex.join(conf_arguments(sizes))}",
    ]
    return yaml_document(tree, header=header, comments=reasons(plan))
