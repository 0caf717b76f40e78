"""The executors of a tuner in a manifest of either Kubernetes operator, for its next restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.emitters.patch_place import manifests_in
from headway.errors import InputError
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import (
    documents_of,
    patched,
    scalars_of,
    text_at,
    value_at,
)

_BYTE_ORDER_MARK = "\ufeff"
_DYNAMIC = "spark.dynamicAllocation."
_FIELDS = ("minExecutors", "initialExecutors", "maxExecutors")


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedExecutors:
    """The executors of the setting that runs, and the bounds within which a tuner changes them."""

    executors: int
    min_executors: int
    max_executors: int

    @property
    def bounds(self) -> dict[str, int]:
        """Spark's names of the bounds of dynamic allocation, which it reads when it starts.

        >>> TunedExecutors(executors=4, min_executors=2, max_executors=12).bounds
        {'minExecutors': 2, 'initialExecutors': 4, 'maxExecutors': 12}
        """
        return dict(
            zip(_FIELDS, (self.min_executors, self.executors, self.max_executors), strict=True)
        )


def patch_executors(
    text: str, executors: TunedExecutors, *, name: str, job: str | None = None
) -> str:
    """The text of a file with the executors in its application, and everything else unchanged.

    Where the application allocates executors dynamically, the bounds are set, else the number. One
    of the manifests in ``text`` is a SparkApplication of either operator, or a
    ScheduledSparkApplication; ``job`` is its name, if there are several, and ``name`` what messages
    call the file. Raises InputError if the file is not YAML, or has no such application, or
    several.
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
    node: Any, executors: TunedExecutors
) -> Iterator[tuple[str, Any, dict[str, Tree]]]:
    """Name, node and changes of each application in a document."""
    for manifest in manifests_in(node):
        spec = value_at(manifest.node, ("spec",))
        match manifest:
            case ("sparkoperator.k8s.io", "SparkApplication", label, application):
                yield label, application, {"spec": _of_kubeflow(spec, executors)}
            case ("sparkoperator.k8s.io", "ScheduledSparkApplication", label, application):
                changes = _of_kubeflow(value_at(spec, ("template",)), executors)
                yield label, application, {"spec": {"template": changes}}
            case ("spark.apache.org", "SparkApplication", label, application):
                yield label, application, {"spec": _of_apache(spec, executors)}


def _of_kubeflow(spec: Any, executors: TunedExecutors) -> dict[str, Tree]:
    """Its own fields, which override ``sparkConf``."""
    if (text_at(spec, ("dynamicAllocation", "enabled")) or "").lower() == "true":
        return {"dynamicAllocation": dict(executors.bounds)}
    if _is_dynamic(spec):
        return _of_apache(spec, executors)
    return {"executor": {"instances": executors.executors}}


def _of_apache(spec: Any, executors: TunedExecutors) -> dict[str, Tree]:
    """All is configuration, whose values are texts."""
    if _is_dynamic(spec):
        bounds = executors.bounds.items()
        return {"sparkConf": {f"{_DYNAMIC}{field}": str(number) for field, number in bounds}}
    return {"sparkConf": {"spark.executor.instances": str(executors.executors)}}


def _is_dynamic(spec: Any) -> bool:
    conf = scalars_of(value_at(spec, ("sparkConf",)))
    return conf.get(f"{_DYNAMIC}enabled", "").lower() == "true"
