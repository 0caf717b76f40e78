"""The executors of a tuner in a manifest of either Kubernetes operator, for its next restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.emitters.patch_place import manifests_in
from headway.errors import InputError
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import documents_of, patched, scalars_of, text_at, value_at

_BYTE_ORDER_MARK = "\ufeff"
_DYNAMIC = "spark.dynamicAllocation."


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
    mark, text = text[: text.startswith(_BYTE_ORDER_MARK)], text.removeprefix(_BYTE_ORDER_MARK)
    documents = documents_of(text, name)
    applications = [
        application for node in documents for application in _applications(node, executors)
    ]
    if job is not None:
        applications = [application for application in applications if application[0] == job]
    if len(applications) != 1:
        names = ", ".join(label for label, _, _ in applications) or "none"
        raise InputError(
            f"{name}: applications: {names}; expected one SparkApplication of the operator of "
            "kubeflow or of Apache Spark, or one ScheduledSparkApplication; name one of several"
        )
    ((_, node, changes),) = applications
    return mark + patched(text, documents, node, changes, name)


def _applications(
    node: Any, executors: Mapping[str, int]
) -> Iterator[tuple[str, Any, dict[str, Tree]]]:
    """Name, node and changes of each application in a document."""
    for manifest in manifests_in(node):
        spec = value_at(manifest[-1], ("spec",))
        match manifest:
            case ("sparkoperator.k8s.io", "SparkApplication", label, application):
                yield label, application, {"spec": _of_kubeflow(spec, executors)}
            case ("sparkoperator.k8s.io", "ScheduledSparkApplication", label, application):
                changes = _of_kubeflow(value_at(spec, ("template",)), executors)
                yield label, application, {"spec": {"template": changes}}
            case ("spark.apache.org", "SparkApplication", label, application):
                yield label, application, {"spec": _of_apache(spec, executors)}


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
