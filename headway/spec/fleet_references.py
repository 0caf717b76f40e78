"""Names in a capacity plan's file that mean something elsewhere in it, or in its catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from headway.errors import SpecError
from headway.formats.yaml_document import Fault, Route, faults_text, shown
from headway.spec.forms.kinds import did_you_mean
from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.spec_file import SpecFile

_NODES_SHOWN = 5
_WILDCARDS = frozenset("*?[")


def require_references(file: SpecFile, catalog: NodeCatalog) -> None:
    """Require that names of pools, zones and node types exist, and that names are different.

    Raises SpecError with a line per fault, each with its position: a limit on a mistyped zone or
    node would otherwise limit nothing.
    """
    plan = file.spec
    faults = [*_repeated(plan), *_unknown_pools_and_zones(plan), *_unknown_nodes(plan, catalog)]
    if faults:
        marked = (Fault(file.place(*route), ("spec", *route), fault) for route, fault in faults)
        raise SpecError(faults_text(list(marked)))


def _repeated(plan: CapacityPlan) -> Iterator[tuple[Route, str]]:
    """Jobs, pools and quotas of the same name, and zones that a list has twice."""
    lists: tuple[tuple[str, str, Sequence[Any]], ...] = (
        ("jobs", "job", plan.jobs),
        ("pools", "pool", plan.pools),
        ("quotas", "quota", plan.quotas),
    )
    for key, noun, members in lists:
        for index in _repeats([member.name for member in members]):
            fault = f"the {noun} {members[index].name!r} occurs twice; expected each name once"
            yield (key, index, "name"), fault
    for route, zones in _zones(plan):
        for index in _repeats(zones):
            fault = f"the zone {zones[index]!r} occurs twice; expected each zone once"
            yield (*route, index), fault


def _unknown_pools_and_zones(plan: CapacityPlan) -> Iterator[tuple[Route, str]]:
    """Pools that jobs name, and zones that jobs and quotas name, which do not exist."""
    pool_names = sorted({pool.name for pool in plan.pools})
    for index, job in enumerate(plan.jobs):
        for pool_index, name in enumerate(job.pools):
            if name not in pool_names:
                some = f"expected one of {', '.join(pool_names)}{did_you_mean(name, pool_names)}"
                fault = f"the job {job.name!r} names the pool {name!r}; {some}"
                yield _member(("jobs", index, "pool"), job.pools, pool_index), fault
    pool_zones = sorted({zone for pool in plan.pools for zone in pool.zones})
    for route, zones in _zones(plan):
        for zone_index, zone in enumerate(zones):
            if zone not in pool_zones:
                some = "expected none, as no pool has zones"
                if pool_zones:
                    some = f"expected a zone of a pool: {', '.join(pool_zones)}"
                hint = did_you_mean(zone, pool_zones)
                fault = f"got {shown(zone)}; {some}{hint}"
                yield _member(route, zones, zone_index), fault


def _unknown_nodes(plan: CapacityPlan, catalog: NodeCatalog) -> Iterator[tuple[Route, str]]:
    """Names and patterns that no node of the catalogue matches."""
    node_names = [node.name for node in catalog.nodes]
    examples = ", ".join(node_names[:_NODES_SHOWN])
    if len(node_names) > _NODES_SHOWN:
        examples += ", ..."
    all_patterns: list[tuple[Route, Sequence[str]]] = [(("node_types",), plan.node_types)]
    for index, pool in enumerate(plan.pools):
        all_patterns.append((("pools", index, "node_types"), pool.node_types))
    for index, quota in enumerate(plan.quotas):
        all_patterns.append((("quotas", index, "node_types"), quota.node_types))
    for route, patterns in all_patterns:
        for index, pattern in enumerate(patterns):
            if not any(fnmatchcase(name, pattern) for name in node_names):
                fault = f"no node {shown(pattern)} in the catalogue; it has {examples}"
                # A pattern resembles no name.
                is_name = _WILDCARDS.isdisjoint(pattern)
                hint = did_you_mean(pattern, node_names) if is_name else ""
                yield _member(route, patterns, index), fault + hint


def _zones(plan: CapacityPlan) -> Iterator[tuple[Route, Sequence[str]]]:
    """All lists of zones; those of the pools say which there are."""
    for index, job in enumerate(plan.jobs):
        yield ("jobs", index, "zone"), job.zones
    for index, pool in enumerate(plan.pools):
        yield ("pools", index, "zones"), pool.zones
    for index, quota in enumerate(plan.quotas):
        yield ("quotas", index, "zones"), quota.zones


def _repeats(names: Sequence[str]) -> list[int]:
    """Where a name stands for the second time."""
    counts: Counter[str] = Counter()
    repeats = []
    for index, name in enumerate(names):
        counts[name] += 1
        if counts[name] == 2:
            repeats.append(index)
    return repeats


def _member(route: Route, members: Sequence[str], index: int) -> Route:
    """The route of a member of a list; a single one may stand without a list."""
    return (*route, index) if len(members) > 1 else route
