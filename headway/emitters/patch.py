"""A plan put into an existing file: a SparkApplication of either operator, or a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.domain import Answer
from headway.emitters.databricks import cluster_tree
from headway.emitters.kubernetes import apache_tree, kubeflow_tree
from headway.emitters.submission import Submission, is_executor_size
from headway.errors import InputError
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import Step, documents_of, pairs_of, patched, text_at, value_at

_BYTE_ORDER_MARK = "\ufeff"
_EXPECTED = "expected a SparkApplication of either operator, or a Databricks bundle"


def patch(text: str, plan: Answer, *, name: str, submission: Submission, job: str | None) -> str:
    """The text of a file with the plan in it, and everything else unchanged.

    Parameters
    ----------
    text : str
        The file: manifests (it may contain several documents) or a bundle.
    plan : Plan
        The plan.
    name : str
        Name of the file in messages.
    submission : Submission
        For the node type of a bundle, if it is to change.
    job : str or None
        The job's name, if the file has several.

    Raises
    ------
    InputError
        If the file is not YAML, or has no place for a plan, or several; if a key occurs twice, a
        value comes from a template or is shared, or the patched text, read back, would not contain
        the plan.
    """
    mark, text = text[: text.startswith(_BYTE_ORDER_MARK)], text.removeprefix(_BYTE_ORDER_MARK)
    documents = documents_of(text, name)
    places = [place for node in documents for place in _places(node, plan, submission)]
    if job is not None:
        named = [place for place in places if place[0] == job]
        if not named:
            known = ", ".join(dict.fromkeys(label for label, _, _ in places)) or "none"
            raise InputError(f"{name}: no job {job!r} (--job); expected one of: {known}")
        places = named
    if not places:
        raise InputError(f"{name}: nothing to put a plan into; {_EXPECTED}")
    if len(places) > 1:
        labels = ", ".join(label for label, _, _ in places)
        raise InputError(f"{name}: several jobs, {labels}; name one with --job")
    _, node, changes = places[0]
    _require_fixed_size(node, changes, name)
    return mark + patched(text, documents, node, changes, name)


def names_node_types(text: str, name: str) -> bool:
    """Whether a file has a place for a node type: bundles have, manifests have none."""
    documents = documents_of(text.removeprefix(_BYTE_ORDER_MARK), name)
    return any(_bundle_clusters(node) for node in documents)


def _require_fixed_size(cluster: Any, changes: Mapping[str, Tree], name: str) -> None:
    """A cluster of a bundle has a fixed number of workers or autoscaling, not both."""
    scales = value_at(cluster, ("autoscale",))
    if scales is not None and "num_workers" in changes:
        raise InputError(
            f"{name}:{scales.start_mark.line + 1}:1: autoscale contradicts the plan's fixed number "
            "of workers (num_workers); take it out, then patch"
        )


def _places(
    node: Any, plan: Answer, submission: Submission
) -> list[tuple[str, Any, dict[str, Tree]]]:
    """The parts of a document that can contain a plan: name, node, and the changes below it."""
    api = text_at(node, ("apiVersion",)) or ""
    if text_at(node, ("kind",)) == "SparkApplication":
        label = text_at(node, ("metadata", "name")) or "unnamed"
        if api.startswith("sparkoperator.k8s.io/"):
            return [(label, node, _kubeflow_changes(node, plan, submission))]
        if api.startswith("spark.apache.org/"):
            return [(label, node, apache_tree(plan, submission))]
    return [
        (label, cluster, cluster_tree(plan, submission))
        for label, cluster in _bundle_clusters(node)
    ]


def _kubeflow_changes(node: Any, plan: Answer, submission: Submission) -> dict[str, Tree]:
    """Sizes are put where the file has them: the operator's own fields override ``sparkConf``."""
    changes = kubeflow_tree(plan, submission)
    conf = value_at(node, ("spec", "sparkConf"))
    doubled = {
        key: value
        for key, value in plan.spark_conf.items()
        if is_executor_size(key) and conf is not None and value_at(conf, (key,)) is not None
    }
    spec = changes["spec"]
    assert isinstance(spec, dict)
    spec["sparkConf"] = {**spec["sparkConf"], **doubled}
    has_dynamic = text_at(node, ("spec", "dynamicAllocation", "enabled"))
    if has_dynamic is not None and plan.spark_conf.get("spark.dynamicAllocation.enabled"):
        spec["dynamicAllocation"] = {"enabled": False}
    return changes


def _bundle_clusters(node: Any) -> list[tuple[str, Any]]:
    """The job clusters that a bundle defines itself."""
    found = []
    for job, body in pairs_of(value_at(node, ("resources", "jobs"))):
        for key in ("job_clusters", "tasks"):
            listed = value_at(body, (key,))
            for at in range(len(listed.value) if listed is not None else 0):
                route: tuple[Step, ...] = (key, at, "new_cluster")
                cluster = value_at(body, route)
                if cluster is not None:
                    found.append((job, cluster))
    return found
