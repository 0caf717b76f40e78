"""A plan put into an existing file: a manifest of either operator, or a Databricks bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The text of a file with a plan in it, and what the file does not contain.

    ``notes`` are sentences about what was not checked; ``has_trigger`` says that the text contains
    the trigger interval.
    """

    text: str
    notes: tuple[str, ...] = ()
    has_trigger: bool = False


def patch(text: str, plan: Answer, *, name: str, submission: Submission, job: str | None) -> Patch:
    """The text of a file with the plan in it, and everything else unchanged.

    What contradicts the plan's assumptions is set too, or refused with its line.

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
        value comes from a template or is shared, a setting contradicts the plan and no value sets
        it right, or the patched text, read back, would not contain the plan.
    """
    mark, text = text[: text.startswith(_BYTE_ORDER_MARK)], text.removeprefix(_BYTE_ORDER_MARK)
    documents = documents_of(text, name)
    place = _place(documents, plan, submission, name, job)
    if place.refusals:
        raise InputError(
            refusal_message(
                (f"{name}:{refusal.line}", refusal.text)
                for refusal in sorted(place.refusals, key=lambda refusal: refusal.line)
            )
        )
    changed = patched(text, documents, place.node, place.changes, name)
    return Patch(text=mark + changed, notes=place.notes, has_trigger=place.has_trigger)


def names_node_types(text: str, name: str) -> bool:
    """Whether a file has a place for a node type: bundles have, manifests have none."""
    documents = documents_of(text.removeprefix(_BYTE_ORDER_MARK), name)
    return any(value_at(node, ("resources",)) is not None for node in documents)


def _place(
    documents: Sequence[Any], plan: Answer, submission: Submission, name: str, job: str | None
) -> Place:
    """The only place for a plan in a file, or the one that is asked for."""
    places = [
        place
        for node in documents
        for find in (manifest_places, bundle_places)
        for place in find(node, plan, submission)
    ]
    if job is not None:
        known = ", ".join(dict.fromkeys(_short_label(place, places) for place in places)) or "none"
        places = [place for place in places if job in place.labels]
        if not places:
            raise InputError(
                f"{name}: {argument('job')} {job!r}: no such job; expected one of: {known}"
            )
    if not places:
        contents = ", ".join(text for node in documents for text in _contents(node))
        contains = f" ({contents})" if contents else ""
        raise InputError(f"{name}: nothing to put a plan into{contains}; {_EXPECTED}")
    if len(places) > 1:
        labels = ", ".join(_short_label(place, places) for place in places)
        raise InputError(f"{name}: several jobs, {labels}; name one with {argument('job')}")
    return places[0]


def _short_label(place: Place, places: Sequence[Place]) -> str:
    """The shortest name by which no other place is asked for."""
    for label in sorted(place.labels, key=len):
        if sum(label in other.labels for other in places) == 1:
            return label
    return place.labels[0]


def _contents(node: Any) -> Iterator[str]:
    """What a document contains instead of a place for a plan, in words."""
    kind = text_at(node, ("kind",))
    if kind is not None:
        api = text_at(node, ("apiVersion",))
        yield f"{kind}{'' if api is None else f' of {api}'} in line {line_of(node, 'kind')}"
    if any(text_at(item, ("Classification",)) is not None for item in items_of(node)):
        yield "configurations of EMR, for which the format emr writes new ones"
    yield from unsized_resources(node)
