"""A plan as a job of a Databricks bundle."""

from __future__ import annotations

from headway.domain import Answer
from headway.emitters.submission import Submission, is_executor_size
from headway.emitters.wording import header_lines, query_option_lines, reasons
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree, yaml_document
from headway.units import counted

# Long-term releases that carry a Spark version.
_RUNTIMES = {(3, 5): "15.4.x-scala2.12", (4, 0): "17.3.x-scala2.13", (4, 1): "18.0.x-scala2.13"}


def cluster_tree(plan: Answer, submission: Submission) -> dict[str, Tree]:
    """The fields of ``new_cluster`` that a plan determines.

    Databricks runs one executor per worker and sizes it itself: the workers and their type replace
    the executors' settings.
    """
    decided: dict[str, Tree] = {}
    if "spark.executor.instances" in plan.spark_conf:
        decided["num_workers"] = plan.nodes
    if submission.node_type is not None:
        decided["node_type_id"] = submission.node_type
    decided["spark_conf"] = {
        key: value
        for key, value in plan.spark_conf.items()
        if not is_executor_size(key) and not key.startswith("spark.dynamicAllocation.")
    }
    return decided


def _node_type_of(plan: Answer, submission: Submission) -> str | None:
    """The node type by the platform's name, else by that of the plan, which is made for it."""
    if submission.node_type is not None:
        return submission.node_type
    return None if plan.node_type is None else plan.node_type.name


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of a bundle with one job, which is continuous if it is a query.

    Raises
    ------
    InputError
        If no node type is given or planned, or no runtime is known for the Spark version.
    """
    node_type = _node_type_of(plan, submission)
    if node_type is None:
        raise InputError(
            f"databricks: no node type; give {argument('node_type')}, e.g. m6i.xlarge, or plan for "
            "one"
        )
    runtime = submission.runtime or _RUNTIMES.get(submission.release)
    if runtime is None:
        raise InputError(
            f"databricks: no runtime known for Spark {submission.spark_version}; "
            f"give {argument('runtime')}, e.g. 17.3.x-scala2.13"
        )
    decided = cluster_tree(plan, submission)
    cluster: dict[str, Tree] = {
        "spark_version": runtime,
        "node_type_id": node_type,
        "num_workers": plan.nodes,
        "spark_conf": decided["spark_conf"],
    }
    python_task: dict[str, Tree] = {"python_file": submission.main or "./app.py"}
    if submission.arguments:
        python_task["parameters"] = list(submission.arguments)
    job: dict[str, Tree] = {
        "name": submission.name,
        **({} if plan.ends else {"continuous": {"pause_status": "UNPAUSED"}}),
        "job_clusters": [{"job_cluster_key": "main", "new_cluster": cluster}],
        "tasks": [
            {
                "task_key": submission.identifier,
                "job_cluster_key": "main",
                "spark_python_task": python_task,
            }
        ],
    }
    tree: dict[str, Tree] = {
        "bundle": {"name": submission.slug},
        "resources": {"jobs": {submission.identifier: job}},
    }
    why = reasons(plan)
    comments = {key: why[key] for key in decided["spark_conf"] if key in why}  # type: ignore[union-attr]
    executors = plan.executors
    comments["num_workers"] = (
        f"one executor per worker; the plan has {counted(executors, 'executor')} of "
        f"{counted(plan.cores_per_executor, 'core')} on {counted(plan.nodes, 'node')}"
    )
    header = [*header_lines(plan, version=version), *query_option_lines(plan)]
    return yaml_document(tree, header=header, comments=comments)
