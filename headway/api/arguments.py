"""Arguments of the calls, read and checked: jobs, rates, targets, node types, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from headway.domain import (
    PLATFORMS,
    Arrivals,
    Burst,
    Deadline,
    DuringBurst,
    JobProfile,
    NodeType,
    Promise,
    Target,
    parse_promise,
)
from headway.errors import InputError
from headway.formats.profile_file import load_profile
from headway.limits import LARGEST_NUMBER, LONGEST_S
from headway.units import counted, parse_duration_s, parse_rate_per_s

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile
    from headway.domain.ordered import KeyCounts

#: What node types of the catalogue are planned for where nothing is said.
DEFAULT_PLATFORM = "kubernetes"


def require_room_for_tasks(cores: int, task_cpus: int) -> None:
    """Refuse executors in which no task could run.

    Raises
    ------
    InputError
        If a task takes more cores than an executor has.
    """
    if task_cpus > cores:
        raise InputError(
            f"an executor of {counted(cores, 'core')} has no room for a task of {task_cpus} "
            "(spark.task.cpus); give more --cores or fewer --task-cpus"
        )


def job_from(
    profile: JobProfile | ApplicationProfile | str | Path, promise: Promise | None = None
) -> JobProfile:
    """The profile of a query, read if it is a file.

    Raises
    ------
    InputError
        If the file is no such profile, or the job cannot have such a target.
    """
    if isinstance(profile, str | Path):
        return load_profile(profile)
    if promise is not None:
        profile.require_can_promise(promise)
    return cast("JobProfile", profile)


def deadline_in(target: object) -> Deadline | None:
    """The deadline of a batch job, if the target is one."""
    given = target if isinstance(target, list | tuple) else [target]
    every = [parse_promise(one) if isinstance(one, str) else one for one in given]
    found = next((one for one in every if isinstance(one, Deadline)), None)
    if found is not None and len(every) > 1:
        raise InputError(f"'{found}' is for batch jobs and must be the only target")
    return found


def arrivals_from(job: JobProfile, rate: float | str | None) -> Arrivals:
    """The arrivals of a job at a rate; as profiled if none is given."""
    if rate is None:
        return job.arrivals
    rate_per_s = parse_rate_per_s(rate) if isinstance(rate, str) else rate
    if not is_number(rate_per_s) or not 0 < rate_per_s <= LARGEST_NUMBER:
        raise InputError(f"rate is {rate!r}; expected a positive number of records per second")
    return replace(job.arrivals, rate_per_s=float(rate_per_s))


def executors_by_cores(node_cores: int, cores: int) -> int:
    """Executors that fit on a node by its cores alone.

    Raises
    ------
    InputError
        If none fits.
    """
    if node_cores < cores:
        raise InputError(
            f"a node of {counted(node_cores, 'core')} has no room for an executor of {cores}; "
            "give a larger --node-cores or fewer --cores"
        )
    return node_cores // cores


def promises_from(
    target: Target | Deadline | str | Sequence[Promise | str],
) -> tuple[Target, list[Promise]]:
    """The first latency target, which a plan is made for, and the other targets."""
    given = [target] if isinstance(target, Target | Deadline | str) else target
    if not isinstance(given, Sequence) or not given:
        raise InputError(f"target is {target!r}; expected a text such as 'p99 <= 3s'")
    every = [_promise(one) for one in given]
    first = next((one for one in every if isinstance(one, Target)), None)
    if first is None:
        raise InputError(f"target '{every[0]}' needs a latency target beside it, e.g. 'p99 <= 3s'")
    place = every.index(first)
    return first, [*every[:place], *every[place + 1 :]]


def during_bursts(bursts: Sequence[Burst | str], asked: Sequence[Promise]) -> list[Promise]:
    """The latency targets that hold at all times, as targets for each burst."""
    if isinstance(bursts, str):
        raise InputError(f"bursts is {bursts!r}; expected a list of texts such as '150k/s:2m'")
    read = [one if isinstance(one, Burst) else Burst.parse_short(one) for one in bursts]
    targets = [one for one in asked if isinstance(one, Target)]
    return [DuringBurst(target=target, burst=burst) for burst in read for target in targets]


def _promise(given: Promise | Deadline | str) -> Promise:
    if isinstance(given, Promise):
        return given
    if not isinstance(given, str):
        raise InputError(f"target is {given!r}; expected a text such as 'p99 <= 3s'")
    promise = parse_promise(given)
    if isinstance(promise, Deadline):
        raise InputError(
            f"target '{promise}': a streaming job has no end; use a latency, e.g. 'p99 <= 3s'"
        )
    return promise


def node_types_from(
    given: Sequence[NodeType | str],
    catalog: str | Path | None = None,
    platform: str = DEFAULT_PLATFORM,
) -> list[NodeType]:
    """Node types, read if they are texts; none may be named twice.

    A text without figures is a name in the catalogue, by default the one that comes with Headway;
    what the platform reserves is subtracted from such a node. Figures are what Spark can use.
    """
    if platform not in PLATFORMS:
        raise InputError(f"platform is {platform!r}; expected one of {', '.join(PLATFORMS)}")
    if catalog is not None and not any(isinstance(one, str) and ":" not in one for one in given):
        raise InputError(
            f"--catalog {catalog}: it is not used without node types; give one, e.g. --node-type "
            "NAME"
        )
    types = [
        one
        if isinstance(one, NodeType)
        else NodeType.parse(one)
        if ":" in one
        else _catalogued(one.strip(), catalog, platform)
        for one in given
    ]
    names = [one.name for one in types]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"node type {name!r} is given twice")
    return types


def _catalogued(name: str, catalog: str | Path | None, platform: str) -> NodeType:
    from difflib import get_close_matches

    from headway.spec.kinds.catalog import NodeCatalog
    from headway.spec.parts import built_in_catalog, catalogued_type
    from headway.spec.spec_file import load_spec_of

    found = built_in_catalog() if catalog is None else load_spec_of(Path(catalog), NodeCatalog)
    nodes = {node.name: node for node in found.nodes}
    if name not in nodes:
        where = "Headway's catalogue" if catalog is None else str(catalog)
        close = get_close_matches(name, nodes, n=1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"describe it, e.g. {name}:cores=4,memory=14g,price=0.192"
        )
        raise InputError(f"node type {name!r} is not in {where}; {hint}")
    return catalogued_type(nodes[name], platform, found)


Choice = TypeVar("Choice", bound=StrEnum)


def one_of(kind: type[Choice], value: str, name: str) -> Choice:
    """A member of an enumeration by its text."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InputError(f"{name} is {value!r}; expected one of {known}") from None


def seconds(value: float | str, name: str) -> float:
    """Seconds of a number or a text such as ``5s``; messages call it ``name``."""
    if isinstance(value, str):
        try:
            # Zero needs no unit.
            value_s = 0.0 if value.strip() == "0" else parse_duration_s(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    else:
        value_s = value
    if not is_number(value_s) or not 0 <= value_s <= LONGEST_S:
        raise InputError(f"{name} is {value!r}; expected 0 or more seconds, at most ten years")
    return float(value_s)


def positive_seconds(value: float | str, name: str) -> float:
    """Seconds of a value that must be above zero; messages call it ``name``."""
    value_s = seconds(value, name)
    if value_s == 0:
        raise InputError(f"{name} is {value!r}; expected more than 0 seconds")
    return value_s


def key_counts(
    keys: KeyCounts | str | Path | None, *, key_type: str | None, total_rows: float | None
) -> KeyCounts | None:
    """How often each key occurs, read if it is a file; None if nothing is given.

    Raises
    ------
    InputError
        If the file or a value is invalid.
    """
    if total_rows is not None and not total_rows > 0:
        raise InputError(f"total_rows is {total_rows!r}; expected a number above 0")
    if keys is None:
        if key_type is not None or total_rows is not None:
            raise InputError("key_type and total_rows are about the keys of a file; give keys")
        return None
    if isinstance(keys, str | Path):
        from headway.formats.key_counts import read_key_counts

        return read_key_counts(keys, kind=key_type, total_rows=total_rows)
    return keys


def count(value: int, name: str, most: int) -> int:
    """A whole number from 1 to ``most``; messages call it ``name``."""
    if not is_number(value) or not 1 <= value <= most or value != value // 1:
        raise InputError(f"{name} is {value!r}; expected a whole number from 1 to {most:,}")
    return int(value)


def is_number(value: object) -> bool:
    """Whether it is a number, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
