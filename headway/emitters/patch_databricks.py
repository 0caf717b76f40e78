"""Places for a plan in a Databricks bundle: clusters of jobs and pipelines, and shared ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from headway.domain import Answer
from headway.domain.plan_parts import PlannedResources
from headway.emitters.patch_place import Place, Refusal, conf_changes
from headway.emitters.submission import Submission, sizeless_conf
from headway.errors import argument
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import items_of, line_of, pairs_of, scalars_of, text_at, value_at
from headway.sparkconf.conflicts import overhead_ratio_of
from headway.sparkconf.container import planned_resources
from headway.units import counted, spark_trigger_text

_SINGLE_NODE = "singlenode"
_PIPELINE_TRIGGER = "pipelines.trigger.interval"
_AS_FAST_AS_POSSIBLE = spark_trigger_text(0.0)
_SIZES = ("num_workers", "autoscale", "node_type_id", "spark_conf")
_RATIO = overhead_ratio_of(is_on_kubernetes=False, is_jvm_job=True)


def bundle_places(node: Any, plan: Answer, submission: Submission) -> Iterator[Place]:
    """The clusters that a bundle defines itself; those of a target only if no other has them."""
    candidates = list(_resource_places(value_at(node, ("resources",)), plan, submission, ()))
    for key in ("targets", "environments"):
        for target, body in pairs_of(value_at(node, (key,))):
            resources = value_at(body, ("resources",))
            named = {label for candidate in candidates for label in candidate.labels}
            for candidate in _resource_places(resources, plan, submission, (target,)):
                if not named & set(candidate.labels[1:]):
                    candidates.append(candidate)
                else:
                    candidates = [
                        _with_override(listed, candidate, target) for listed in candidates
                    ]
    yield from candidates


def _with_override(candidate: Place, override: Place, target: str) -> Place:
    """A place with a note about a target that overrides it."""
    if candidate.labels[0] not in override.labels:
        return candidate
    stated = [(key, line_of(override.node, key)) for key, _ in pairs_of(override.node)]
    keys = ", ".join(f"{key} in line {line}" for key, line in stated if key in _SIZES)
    if not keys:
        return candidate
    note = f"target {target} overrides {keys}: the plan does not hold for that target"
    return replace(candidate, notes=(*candidate.notes, note))


def _resource_places(
    resources: Any, plan: Answer, submission: Submission, prefix: Sequence[str]
) -> Iterator[Place]:
    for name, body in pairs_of(value_at(resources, ("jobs",))):
        for cluster_name, cluster in _clusters_of_job(body):
            labels = (f"{name}.{cluster_name}", name)
            yield _cluster_place(_labels(prefix, labels), cluster, plan, submission)
    for name, body in pairs_of(value_at(resources, ("clusters",))):
        yield _cluster_place(_labels(prefix, (name,)), body, plan, submission)
    for name, body in pairs_of(value_at(resources, ("pipelines",))):
        if items_of(value_at(body, ("clusters",))):
            yield _pipeline_place(_labels(prefix, (name,)), body, plan, submission)


def _labels(prefix: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(".".join((*prefix, label)) for label in labels) + (tuple(labels) if prefix else ())


def _clusters_of_job(body: Any) -> Iterator[tuple[str, Any]]:
    for key, name_key in (("job_clusters", "job_cluster_key"), ("tasks", "task_key")):
        for index, item in enumerate(items_of(value_at(body, (key,)))):
            cluster = value_at(item, ("new_cluster",))
            if cluster is not None:
                yield text_at(item, (name_key,)) or f"{key}[{index}]", cluster


def _cluster_place(
    labels: tuple[str, ...], cluster: Any, plan: Answer, submission: Submission
) -> Place:
    """A cluster: what must change in it, what contradicts the plan, and what stays unchecked."""
    resources = planned_resources(plan)
    conf_node = value_at(cluster, ("spark_conf",))
    current = scalars_of(conf_node)
    values, refusals, notes = conf_changes(conf_node, resources, _RATIO)
    changes: dict[str, Tree] = {}
    if "spark.executor.instances" in plan.spark_conf:
        changes["num_workers"] = plan.nodes
    if submission.node_type is not None:
        changes["node_type_id"] = submission.node_type
    # Databricks sizes executors itself, unless the file does.
    changes["spark_conf"] = {
        **sizeless_conf(plan),
        **{key: value for key, value in {**plan.spark_conf, **values}.items() if key in current},
    }
    return Place(
        labels=labels,
        node=cluster,
        changes=changes,
        refusals=(*refusals, *_refusals(cluster, resources, submission)),
        notes=(*notes, *_node_type_notes(cluster, plan, submission)),
    )


def _refusals(
    cluster: Any, resources: PlannedResources, submission: Submission
) -> Iterator[Refusal]:
    workers = counted(resources.nodes, "worker")
    stated = scalars_of(cluster)
    if value_at(cluster, ("autoscale",)) is not None:
        text = f"autoscale contradicts the plan's fixed number of workers ({workers})"
        yield line_of(cluster, "autoscale"), text
    if stated.get("is_single_node", "").lower() == "true":
        text = f"is_single_node contradicts the plan's {workers}"
        yield line_of(cluster, "is_single_node"), text
    tags = value_at(cluster, ("custom_tags",))
    if scalars_of(tags).get("ResourceClass", "").lower() == _SINGLE_NODE:
        text = f"ResourceClass is SingleNode, which contradicts the plan's {workers}"
        yield line_of(tags, "ResourceClass"), text
    if submission.node_type is not None and "instance_pool_id" in stated:
        option = f"{argument('node_type')} {submission.node_type}"
        text = f"instance_pool_id decides the node type, not {option}"
        yield line_of(cluster, "instance_pool_id"), text


def _node_type_notes(cluster: Any, plan: Answer, submission: Submission) -> Iterator[str]:
    """The node type is left as it is unless one is asked for: its cores are those of a worker."""
    if submission.node_type is not None:
        return
    for key in ("node_type_id", "instance_pool_id"):
        stated = text_at(cluster, (key,))
        if stated is None or (plan.node_type is not None and stated == plan.node_type.name):
            continue
        cores = plan.executors * plan.cores_per_executor // plan.nodes
        planned = "" if plan.node_type is None else f" of node type {plan.node_type.name}"
        yield (
            f"{key} stays {stated} (line {line_of(cluster, key)}), and was not checked: the plan "
            f"assumes workers{planned} with {counted(cores, 'core')} for executors"
        )


def _pipeline_place(
    labels: tuple[str, ...], pipeline: Any, plan: Answer, submission: Submission
) -> Place:
    """A pipeline: its cluster, its configuration, and the trigger interval, which it can carry."""
    clusters = items_of(value_at(pipeline, ("clusters",)))
    label_of = [text_at(cluster, ("label",)) or "default" for cluster in clusters]
    refusals: list[Refusal] = []
    sized = [index for index, label in enumerate(label_of) if label in ("default", "updates")]
    if len(sized) != 1:
        text = f"clusters has {len(sized)} of label default or updates, the plan is for one"
        refusals.append((line_of(pipeline, "clusters"), text))
    if (text_at(pipeline, ("serverless",)) or "").lower() == "true":
        text = "serverless contradicts the plan's fixed number of workers"
        refusals.append((line_of(pipeline, "serverless"), text))
    conf_node = value_at(pipeline, ("configuration",))
    current = scalars_of(conf_node)
    values, conf_refusals, notes = conf_changes(conf_node, planned_resources(plan), _RATIO)
    changes: dict[str, Tree] = {}
    for index in sized[:1]:
        cluster = _cluster_place((), clusters[index], plan, submission)
        refusals += cluster.refusals
        notes += cluster.notes
        changes["clusters"] = {str(index): cluster.changes}
    planned = {**plan.spark_conf, **values}
    configuration = {key: value for key, value in planned.items() if key in current}
    trigger = plan.query_options.get("trigger")
    if trigger == _AS_FAST_AS_POSSIBLE:
        notes.append(
            f"{_PIPELINE_TRIGGER} was left as it is: the plan starts batches as fast as possible"
        )
    elif trigger is not None:
        configuration[_PIPELINE_TRIGGER] = trigger
    if configuration:
        changes["configuration"] = configuration
    if not plan.ends and (text_at(pipeline, ("continuous",)) or "false").lower() == "false":
        notes.append(
            "the pipeline is not continuous: the plan holds while a query runs all the time"
        )
    return Place(
        labels=labels,
        node=pipeline,
        changes=changes,
        refusals=(*refusals, *conf_refusals),
        notes=tuple(notes),
        has_trigger=_PIPELINE_TRIGGER in configuration,
    )


def unsized_resources(node: Any) -> Iterator[str]:
    """Jobs and pipelines of a bundle that have no cluster of their own, in words."""
    resources = value_at(node, ("resources",))
    jobs, pipelines = (value_at(resources, (kind,)) for kind in ("jobs", "pipelines"))
    for name, body in pairs_of(jobs):
        if not list(_clusters_of_job(body)):
            yield f"job {name} in line {line_of(jobs, name)} has no cluster of its own"
    for name, body in pairs_of(pipelines):
        if not items_of(value_at(body, ("clusters",))):
            yield f"pipeline {name} in line {line_of(pipelines, name)} has no cluster of its own"
