"""A plan for Dataproc: a job on a cluster, or a serverless batch."""

from __future__ import annotations

import json
import shlex

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import command_text, comment_lines
from headway.errors import InputError
from headway.units import counted

_SERVERLESS_CORES = (4, 8, 16)
_DELIMITERS = "#|;@~!+"


def render_job(plan: Answer, *, version: str, submission: Submission) -> str:
    """A ``gcloud`` command that submits the job to a cluster."""
    command = [
        f"gcloud dataproc jobs submit pyspark {shlex.quote(submission.main or 'gs://BUCKET/app.py')}",
        "  --cluster=CLUSTER",
        "  --region=REGION",
        f"  --properties={shlex.quote(properties_flag(dict(plan.spark_conf)))}",
    ]
    if submission.arguments:
        command.append(f"  -- {shlex.join(submission.arguments)}")
    return command_text(plan, comment_lines(plan, version=version), command)


def render_serverless(plan: Answer, *, version: str, submission: Submission) -> str:  # noqa: ARG001
    """The body of a serverless batch; JSON has no comments.

    Raises InputError if executors have a number of cores that is not available.
    """
    cores = plan.cores_per_executor
    if cores not in _SERVERLESS_CORES:
        raise InputError(
            f"dataproc-serverless: no executors of {counted(cores, 'core')}; expected 4, 8 or 16: "
            "plan with another number of cores per executor"
        )
    body = {
        "pysparkBatch": {
            "mainPythonFileUri": submission.main or "gs://BUCKET/app.py",
            **({"args": list(submission.arguments)} if submission.arguments else {}),
        },
        "runtimeConfig": {
            **({"version": submission.runtime} if submission.runtime else {}),
            "properties": dict(plan.spark_conf),
        },
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def properties_flag(conf: dict[str, str]) -> str:
    """The value of ``--properties``, with another delimiter if a value contains a comma.

    Raises InputError if no delimiter is left.

    >>> properties_flag({"a": "1", "b": "2"}), properties_flag({"a": "1,2", "b": "3"})
    ('a=1,b=2', '^#^a=1,2#b=3')
    """
    pairs = [f"{key}={value}" for key, value in conf.items()]
    if not any("," in pair for pair in pairs) and not "".join(pairs).startswith("^"):
        return ",".join(pairs)
    for delimiter in _DELIMITERS:
        if not any(delimiter in pair for pair in pairs):
            return f"^{delimiter}^{delimiter.join(pairs)}"
    raise InputError(
        f"dataproc: the values hold commas and all of {_DELIMITERS}; use a properties file"
    )
