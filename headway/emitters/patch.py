"""A plan put into an existing file: a manifest of either operator, or a Databricks bundle.

Also the executors of a tuner, in a manifest, for its next restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.domain import Answer
from headway.emitters.patch_databricks import bundle_places, unsized_resources
from headway.emitters.patch_kubernetes import manifest_places
from headway.emitters.patch_place import Place, applications_in, refusal_message
from headway.emitters.submission import Submission
from headway.errors import InputError, argument
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import (
    documents_of,
    items_of,
    line_of,
    patched,
    scalars_of,
    text_at,
    value_at,
)

_BYTE_ORDER_MARK = "\ufeff"
_EXPECTED = (
    "expected a SparkApplication of either operator, a ScheduledSparkApplication, or a Databricks "
    "bundle"
)
_DYNAMIC = "spark.dynamicAllocation."


def patch(
    text: str, plan: Answer, *, name: str, submission: Submission, job: str | None
) -> tuple[str, Place]:
    """The text of a file with the plan in it and everything else unchanged, and where that is.

    What contradicts the plan's assumptions is set too, or refused with its line. ``text`` is one or
    several manifests, or a bundle, and ``name`` is what messages call it. ``submission`` has the
    node type of a bundle, if it is to change; ``job`` is the job's name, if the file has several.
    Raises InputError if the file is not YAML, or has no place for a plan, or several; if a key
    occurs twice, a value comes from a template or is shared, a setting contradicts the plan and no
    value sets it right, or the patched text, read back, would not contain the plan.
    """
    mark, text, documents = _read(text, name)
    destination = _place(documents, plan, submission, name, job)
    if destination.refusals:
        by_line = sorted(destination.refusals, key=lambda refusal: refusal[0])
        raise InputError(refusal_message((f"{name}:{line}", why) for line, why in by_line))
    changed = patched(text, documents, destination.node, destination.changes, name)
    return mark + changed, destination


def names_node_types(text: str, name: str) -> bool:
    """Whether a file has a place for a node type: bundles have, manifests have none."""
    _, _, documents = _read(text, name)
    return any(value_at(node, ("resources",)) is not None for node in documents)


def _place(
    documents: Sequence[Any], plan: Answer, submission: Submission, name: str, job: str | None
) -> Place:
    """The only place for a plan in a file, or the one that is asked for."""
    candidates = [
        candidate
        for node in documents
        for candidate in (*manifest_places(node, plan), *bundle_places(node, plan, submission))
    ]
    if job is not None:
        labels = dict.fromkeys(_short_label(candidate, candidates) for candidate in candidates)
        candidates = [candidate for candidate in candidates if job in candidate.labels]
        if not candidates:
            expected = f"expected one of: {', '.join(labels) or 'none'}"
            raise InputError(f"{name}: {argument('job')} {job!r}: no such job; {expected}")
    if not candidates:
        contents = ", ".join(text for node in documents for text in _contents(node))
        contains = f" ({contents})" if contents else ""
        raise InputError(f"{name}: nothing to put a plan into{contains}; {_EXPECTED}")
    if len(candidates) > 1:
        jobs = ", ".join(_short_label(candidate, candidates) for candidate in candidates)
        raise InputError(f"{name}: several jobs, {jobs}; name one with {argument('job')}")
    return candidates[0]


def _short_label(candidate: Place, candidates: Sequence[Place]) -> str:
    """The shortest name by which no other place is asked for."""
    for label in sorted(candidate.labels, key=len):
        if sum(label in other.labels for other in candidates) == 1:
            return label
    return candidate.labels[0]


def _contents(node: Any) -> Iterator[str]:
    """What a document contains instead of a place for a plan, in words."""
    kind = text_at(node, ("kind",))
    if kind is not None:
        api = text_at(node, ("apiVersion",))
        yield f"{kind}{'' if api is None else f' of {api}'} in line {line_of(node, 'kind')}"
    if any(text_at(item, ("Classification",)) is not None for item in items_of(node)):
        yield "configurations of EMR, for which the format emr writes new ones"
    yield from unsized_resources(node)


def _read(text: str, name: str) -> tuple[str, str, Sequence[Any]]:
    """The byte order mark of a file, the text behind it, and its documents."""
    mark, text = text[: text.startswith(_BYTE_ORDER_MARK)], text.removeprefix(_BYTE_ORDER_MARK)
    return mark, text, documents_of(text, name)


def patch_executors(
    text: str, executors: Mapping[str, int], *, name: str, job: str | None = None
) -> str:
    """The text of a file with the executors in its application, and everything else unchanged.

    ``executors`` has the bounds within which a tuner changes them, ``minExecutors`` and
    ``maxExecutors``, and those of the setting that runs, ``initialExecutors``: all are set where
    the application allocates executors dynamically, else the last as their number. One of the
    manifests in ``text`` is a SparkApplication of either operator, or a ScheduledSparkApplication;
    ``job`` is its name, if there are several, and ``name`` what messages call the file. Raises
    InputError if the file is not YAML, or has no such application, or several.
    """
    mark, text, documents = _read(text, name)
    applications = [application for node in documents for application in applications_in(node)]
    if job is not None:
        applications = [application for application in applications if application[0] == job]
    if len(applications) != 1:
        names = ", ".join(label for label, _, _ in applications) or "none"
        raise InputError(
            f"{name}: applications: {names}; expected one SparkApplication of the operator of "
            "kubeflow or of Apache Spark, or one ScheduledSparkApplication; name one of several"
        )
    ((_, node, below),) = applications
    spec = value_at(node, ("spec", *(below or ())))
    of_operator = _of_apache if below is None else _of_kubeflow
    changes = of_operator(spec, executors)
    in_spec: dict[str, Tree] = {"spec": {below[0]: changes} if below else changes}
    return mark + patched(text, documents, node, in_spec, name)


def _of_kubeflow(spec: Any, executors: Mapping[str, int]) -> dict[str, Tree]:
    """Its own fields, which override ``sparkConf``."""
    if (text_at(spec, ("dynamicAllocation", "enabled")) or "").lower() == "true":
        return {"dynamicAllocation": dict(executors)}
    if _is_dynamic(spec):
        return _of_apache(spec, executors)
    return {"executor": {"instances": executors["initialExecutors"]}}


def _of_apache(spec: Any, executors: Mapping[str, int]) -> dict[str, Tree]:
    """All is configuration, whose values are texts."""
    if _is_dynamic(spec):
        bounds = executors.items()
        return {"sparkConf": {f"{_DYNAMIC}{field}": str(number) for field, number in bounds}}
    return {"sparkConf": {"spark.executor.instances": str(executors["initialExecutors"])}}


def _is_dynamic(spec: Any) -> bool:
    conf = scalars_of(value_at(spec, ("sparkConf",)))
    return conf.get(f"{_DYNAMIC}enabled", "").lower() == "true"
