"""A plan as a job of a Databricks bundle."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission, sizeless_conf
from headway.emitters.wording import comment_lines, reasons
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree, yaml_document
from headway.units import counted

# Long-term releases that carry a Spark version.
_RUNTIMES = {(3, 5): "15.4.x-scala2.12", (4, 0): "17.3.x-scala2.13", (4, 1): "18.0.x-scala2.13"}


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of a bundle with one job, which is continuous if it is a query.

    Databricks runs one executor per worker and sizes it itself: the workers and their type replace
    the executors' settings. Without a type by the platform's name, that of the plan is taken.
    Raises InputError if no node type is given or planned, or no runtime is known for the Spark
    version.
    """
    node_type = submission.node_type or (plan.node_type.name if plan.node_type else None)
    if node_type is None:
        option = argument("node_type")
        raise InputError(
            f"databricks: no node type; give {option}, e.g. m6i.xlarge, or plan for one"
        )
    runtime = submission.runtime or _RUNTIMES.get(submission.release)
    if runtime is None:
        raise InputError(
            f"databricks: no runtime known for Spark {submission.spark_version}; "
            f"give {argument('runtime')}, e.g. 17.3.x-scala2.13"
        )
    conf = sizeless_conf(plan)
    cluster: dict[str, Tree] = {
        "spark_version": runtime,
        "node_type_id": node_type,
        "num_workers": plan.nodes,
        "spark_conf": conf,
    }
    python_task: dict[str, Tree] = {"python_file": submission.main or "./app.py"}
    if submission.arguments:
        python_task["parameters"] = list(submission.arguments)
    task: dict[str, Tree] = {
        "task_key": submission.identifier,
        "job_cluster_key": "main",
        "spark_python_task": python_task,
    }
    job: dict[str, Tree] = {
        "name": submission.name,
        **({} if plan.ends else {"continuous": {"pause_status": "UNPAUSED"}}),
        "job_clusters": [{"job_cluster_key": "main", "new_cluster": cluster}],
        "tasks": [task],
    }
    tree: dict[str, Tree] = {
        "bundle": {"name": submission.slug},
        "resources": {"jobs": {submission.identifier: job}},
    }
    comments = {key: reason for key, reason in reasons(plan).items() if key in conf}
    comments["num_workers"] = (
        f"one executor per worker; the plan has {counted(plan.executors, 'executor')} of "
        f"{counted(plan.cores_per_executor, 'core')} on {counted(plan.nodes, 'node')}"
    )
    return yaml_document(tree, header=comment_lines(plan, version=version), comments=comments)
