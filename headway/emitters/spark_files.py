"""A plan as Spark's own files: its defaults, a ``spark-submit`` command, a pipeline."""

from __future__ import annotations

import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission, conf_arguments, sizeless_conf
from headway.emitters.wording import command_text, comment_lines, reasons
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree, yaml_document
from headway.sparkconf import render_properties

_PIPELINES_SINCE = (4, 1)


def render_defaults(plan: Answer, *, version: str, submission: Submission | None = None) -> str:  # noqa: ARG001
    """The text of a properties file for ``spark-submit --properties-file``.

    Trigger and rate limit are in a comment: Spark configuration cannot contain them. Raises
    ValueError if a value begins or ends with a blank, which this format cannot represent.
    """
    header = comment_lines(plan, version=version, fits_any_cluster=True)
    return render_properties(plan.spark_conf, header=header, comments=reasons(plan))


def render_submit(plan: Answer, *, version: str, submission: Submission | None = None) -> str:
    """A shell command with one ``--conf`` per line; without a submission it has a placeholder."""
    submission = submission or Submission()
    command = [
        "spark-submit",
        *(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in plan.spark_conf.items()),
        f"  {shlex.join([submission.main or 'app.py', *submission.arguments])}",
    ]
    comments = comment_lines(plan, version=version, fits_any_cluster=True)
    return command_text(plan, comments, command)


def render_pipeline(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of ``spark-pipeline.yml``, sizes as flags in a comment; InputError before 4.1."""
    if submission.release < _PIPELINES_SINCE:
        missing = f"Spark {submission.spark_version} does not have them"
        expected = f"expected 4.1 or later, give {argument('spark_version')}"
        raise InputError(f"declarative-pipelines: {missing}; {expected}")
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
