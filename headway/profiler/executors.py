"""Executors of an application, and the resource profiles by which its stages ask for them.

A job may give stages a resource profile of their own in its code (stage-level scheduling): amounts
that each of their tasks needs, and executors that have them. Profile 0 is that of the settings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import NamedTuple, TypeAlias

from headway.profiler.redaction import name_of
from headway.profiler.schema import ResourceRequest
from headway.profiler.stage_totals import least, most, seconds

# Chosen by clusters and jobs; other text is no name of a resource.
_RESOURCE_NAME = re.compile(r"[A-Za-z][\w.-]{0,40}", re.ASCII)

Amounts: TypeAlias = tuple[tuple[str, float], ...]  # by resource, in order of their names

ResourceProfile: TypeAlias = tuple[Amounts, Amounts]
"""Resources that a profile asks for, of a task (``cpus`` and others) and of an executor."""


class ExecutorEvent(NamedTuple):
    """Event of an executor; ``num_cores`` is None if it was removed."""

    executor_id: str | None
    num_cores: int | None
    at_ms: int | None
    resource_profile_id: int | None = None


class Executor(NamedTuple):
    """One executor: its cores, and when it was added and removed (None: not recorded)."""

    executor_id: str
    num_cores: int
    added_s: float | None
    removed_s: float | None = None
    resource_profile_id: int = 0


def amounts_of(requests: Mapping[str, ResourceRequest | None] | None) -> Amounts:
    """The amounts of resources with usable names."""
    return tuple(
        sorted(
            (name_of(name) or "", request.amount)
            for name, request in (requests or {}).items()
            if request is not None and request.amount is not None and _RESOURCE_NAME.fullmatch(name)
        )
    )


def executors_of(events: Iterable[ExecutorEvent]) -> tuple[Executor, ...]:
    """The executors that were added, in order of their ids."""
    by_executor: dict[str, list[ExecutorEvent]] = defaultdict(list)
    for event in events:
        if event.executor_id is not None:
            by_executor[event.executor_id].append(event)
    executors = []
    for executor_id, of_executor in sorted(by_executor.items()):
        added = [event for event in of_executor if event.num_cores is not None]
        removed_ms = [event.at_ms for event in of_executor if event.num_cores is None]
        if added:
            executors.append(
                Executor(
                    executor_id=executor_id,
                    num_cores=max(event.num_cores or 0 for event in added),
                    added_s=seconds(reduce(least, (event.at_ms for event in added), None)),
                    removed_s=seconds(reduce(most, removed_ms, None)),
                    resource_profile_id=max(event.resource_profile_id or 0 for event in added),
                )
            )
    return tuple(executors)
