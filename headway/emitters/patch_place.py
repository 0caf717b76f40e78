"""A part of an existing file that can contain a plan, and what it contradicts of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headway.domain.plan_parts import PlannedResources
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import items_of, line_of, scalars_of, text_at, value_at
from headway.sparkconf.conflicts import conflicts, unseen_settings

#: A line of a file, and what in it contradicts the plan and is set right by no value.
Refusal: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a file that can contain a plan: its names, the most exact one first, and changes.

    ``changes`` are made below ``node``; ``notes`` say what was left as it is; ``has_trigger`` is
    whether they contain the trigger interval, which most files cannot contain.
    """

    labels: tuple[str, ...]
    node: Any
    changes: Mapping[str, Tree]
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    has_trigger: bool = False


Below: TypeAlias = tuple[str, ...] | None
"""Where kubeflow's fields of an application are below ``spec``; None for Apache's operator."""

# By API group and kind of a manifest.
_APPLICATIONS: Mapping[tuple[str, str | None], Below] = {
    ("sparkoperator.k8s.io", "SparkApplication"): (),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): ("template",),
    ("spark.apache.org", "SparkApplication"): None,
}


def applications_in(node: Any) -> Iterator[tuple[str, Any, Below]]:
    """Name and node of the applications of Kubernetes operators in a document, or in its list."""
    kind = text_at(node, ("kind",))
    if kind == "List":
        for item in items_of(value_at(node, ("items",))):
            yield from applications_in(item)
    group = (text_at(node, ("apiVersion",)) or "").partition("/")[0]
    if (group, kind) in _APPLICATIONS:
        name = text_at(node, ("metadata", "name")) or "unnamed"
        yield name, node, _APPLICATIONS[group, kind]


def conf_changes(
    node: Any, resources: PlannedResources, usual_overhead_ratio: float
) -> tuple[dict[str, str], list[Refusal], list[str]]:
    """Values to set in a configuration for it not to contradict a plan, refusals, and notes.

    ``node`` is its mapping in the file, None if there is none; ``usual_overhead_ratio`` is the
    overhead as a share of the heap if nothing is set.
    """
    current = scalars_of(node)
    values: dict[str, str] = {}
    refusals: list[Refusal] = []
    for conflict in conflicts(resources, current, usual_overhead_ratio=usual_overhead_ratio):
        if conflict.planned is not None:
            values[conflict.key] = conflict.planned
        else:
            text = f"{conflict.key} is {conflict.current}: {conflict.reason}"
            refusals.append((line_of(node, conflict.key), text))
    notes = [f"line {line_of(node, key)}: {text}" for key, text in unseen_settings(current)]
    return values, refusals, notes


def refusal_message(refusals: Iterable[tuple[str, str]]) -> str:
    """One sentence for all refusals, each a location and a text.

    >>> refusal_message([("a.conf:3", "spark.master is local[*]: it has no executors")])
    'a.conf:3: spark.master is local[*]: it has no executors; take it out, then try again'
    """
    texts = list(dict.fromkeys(f"{location}: {text}" for location, text in refusals))
    pronoun = "it" if len(texts) == 1 else "them"
    return f"{'; '.join(texts)}; take {pronoun} out, then try again"
