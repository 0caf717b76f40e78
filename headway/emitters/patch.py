"""A plan put into an existing file: a manifest of either operator, or a Databricks bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headway.domain import Answer
from headway.emitters.patch_databricks import bundle_places, unsized_resources
from headway.emitters.patch_kubernetes import manifest_places
from headway.emitters.patch_place import Place, refusal_message
from headway.emitters.submission import Submission
from headway.errors import InputError, argument
from headway.formats.yaml_patch import documents_of, items_of, line_of, patched, text_at, value_at

_BYTE_ORDER_MARK = "\ufeff"
_EXPECTED = (
    "expected a SparkApplication of either operator, a ScheduledSparkApplication, or a Databricks "
    "bundle"
)


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
    mark, text = text[: text.startswith(_BYTE_ORDER_MARK)], text.removeprefix(_BYTE_ORDER_MARK)
    documents = documents_of(text, name)
    destination = _place(documents, plan, submission, name, job)
    if destination.refusals:
        by_line = sorted(destination.refusals, key=lambda refusal: refusal[0])
        raise InputError(refusal_message((f"{name}:{line}", why) for line, why in by_line))
    changed = patched(text, documents, destination.node, destination.changes, name)
    return mark + changed, destination


def names_node_types(text: str, name: str) -> bool:
    """Whether a file has a place for a node type: bundles have, manifests have none."""
    documents = documents_of(text.removeprefix(_BYTE_ORDER_MARK), name)
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
            raise InputError(
                f"{name}: {argument('job')} {job!r}: no such job; expected one of: "
                f"{', '.join(labels) or 'none'}"
            )
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
