"""A part of an existing file that can contain a plan, and what it contradicts of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.domain.plan_parts import PlannedResources
from headway.formats.yaml_lines import Tree
from headway.formats.yaml_patch import line_of, scalars_of
from headway.sparkconf.conflicts import conflicts, unseen_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something in a line of a file that contradicts the plan, and that no value sets right."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a file that can contain a plan.

    ``labels`` are the names under which it is asked for, the most exact one first. ``changes`` are
    made below ``node``. ``notes`` are sentences about what was left as it is. ``has_trigger`` says
    that the changes contain the trigger interval, which most files cannot contain.
    """

    labels: tuple[str, ...]
    node: Any
    changes: Mapping[str, Tree]
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    has_trigger: bool = False


@dataclass(slots=True)
class ConfChanges:
    """Values to set in a Spark configuration, in addition to the plan's own."""

    values: dict[str, str] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def conf_changes(
    node: Any, resources: PlannedResources, *, usual_overhead_ratio: float
) -> ConfChanges:
    """What must change in a configuration for it not to contradict a plan.

    Parameters
    ----------
    node : node or None
        The mapping of the configuration in the file; None if it has none.
    resources : PlannedResources
        What the plan assumes.
    usual_overhead_ratio : float
        Overhead as a share of the heap if nothing is set. [-]
    """
    current = scalars_of(node)
    changes = ConfChanges(
        notes=[f"line {line_of(node, key)}: {text}" for key, text in unseen_settings(current)]
    )
    for conflict in conflicts(resources, current, usual_overhead_ratio=usual_overhead_ratio):
        if conflict.planned is not None:
            changes.values[conflict.key] = conflict.planned
        else:
            text = f"{conflict.key} is {conflict.current}: {conflict.reason}"
            changes.refusals.append(Refusal(line=line_of(node, conflict.key), text=text))
    return changes


def refusal_message(refusals: Iterable[tuple[str, str]]) -> str:
    """One sentence for all refusals, each a location and a text.

    Examples
    --------
    >>> refusal_message([("a.conf:3", "spark.master is local[*]: it has no executors")])
    'a.conf:3: spark.master is local[*]: it has no executors; take it out, then try again'
    """
    texts = list(dict.fromkeys(f"{location}: {text}" for location, text in refusals))
    pronoun = "it" if len(texts) == 1 else "them"
    return f"{'; '.join(texts)}; take {pronoun} out, then try again"
