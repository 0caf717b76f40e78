"""Arguments of the calls, read and checked: jobs, rates, targets, node types, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from headway.assumptions.resources import LEAST_HEAP_BYTES
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
from headway.errors import InputError, argument
from headway.formats.profile_file import load_profile
from headway.limits import LARGEST_NUMBER, LONGEST_S, MOST_LONG
from headway.units import (
    counted,
    format_duration,
    parse_duration_s,
    parse_rate_per_s,
    parse_rows,
    spark_memory_text,
)

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile
    from headway.domain.ordered import KeyCounts

#: What node types of the catalogue are planned for where nothing is said.
DEFAULT_PLATFORM = "kubernetes"


def require_room_for_tasks(cores: int, task_cpus: int) -> None:
    """Refuse executors in which no task could run: a task that takes more cores than one has."""
    if task_cpus > cores:
        raise InputError(
            f"an executor of {counted(cores, 'core')} has no room for a task of {task_cpus} "
            f"(spark.task.cpus); give more {argument('cores')} or fewer {argument('task_cpus')}"
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
    require_profile(profile)
    if promise is not None:
        profile.require_can_promise(promise)
    profile.require_streaming_query()
    return cast("JobProfile", profile)


def deadline_in(target: object) -> Deadline | None:
    """The deadline of a batch job, if the target is one."""
    targets = target if isinstance(target, list | tuple) else [target]
    promises = [parse_promise(target) if isinstance(target, str) else target for target in targets]
    deadline = next((promise for promise in promises if isinstance(promise, Deadline)), None)
    if deadline is not None and len(promises) > 1:
        raise InputError(f"'{deadline}' is for jobs that end and must be the only target")
    return deadline


def arrivals_from(job: JobProfile, rate: float | str | None) -> Arrivals:
    """The arrivals of a job at a rate; as profiled if none is given.

    Raises
    ------
    InputError
        If none is given and the profile has none, since its run drained a backlog.
    """
    if rate is None:
        if job.drain is not None:
            raise InputError(
                f"{argument('rate')} is missing: the profiled query read a backlog of "
                f"{job.drain.backlog_rows:,.0f} rows in {format_duration(job.drain.duration_s)} "
                "(Trigger.AvailableNow or Once), which is not the rate at which rows arrive; give "
                "that rate, e.g. 50k/s, or plan a deadline"
            )
        return job.arrivals
    return replace(job.arrivals, rate_per_s=positive_rate_per_s(rate))


def positive_rate_per_s(rate: float | str) -> float:
    """An input rate above 0, of a number or a text such as ``50k/s`` [records/s]."""
    rate_per_s = parse_rate_per_s(rate) if isinstance(rate, str) else rate
    if not is_number(rate_per_s) or not 0 < rate_per_s <= LARGEST_NUMBER:
        raise InputError(
            f"{argument('rate')} is {rate!r}; expected a positive number of records per second"
        )
    return float(rate_per_s)


def positive_rows(rows: float | str) -> float:
    """A number of rows above 0, of a number or a text such as ``40M``."""
    num_rows = parse_rows(rows) if isinstance(rows, str) else rows
    if not is_number(num_rows) or not 0 < num_rows <= LARGEST_NUMBER:
        raise InputError(f"{argument('rows')} is {rows!r}; expected a positive number of rows")
    return float(num_rows)


def confidence_level(confidence: float) -> float:
    """A confidence level, checked."""
    if not is_number(confidence) or not 0.5 <= confidence < 1:
        raise InputError(
            f"{argument('confidence')} is {confidence!r}; expected a number of 0.5 or more, and "
            "below 1"
        )
    return float(confidence)


def heap_bytes(executor_memory_bytes: int | None) -> int | None:
    """The heap of an executor that is fixed by the user, checked; None if it is not fixed."""
    if executor_memory_bytes is None:
        return None
    min_bytes = LEAST_HEAP_BYTES.value
    if not is_number(executor_memory_bytes) or not min_bytes <= executor_memory_bytes <= MOST_LONG:
        raise InputError(
            f"{argument('executor_memory_bytes')} is {executor_memory_bytes!r}; expected a number "
            f"of bytes, at least {min_bytes} ({spark_memory_text(min_bytes)})"
        )
    return int(executor_memory_bytes)


def flag(value: bool, name: str) -> bool:
    """A choice between two, checked; messages call it ``name``."""
    if not isinstance(value, bool):
        raise InputError(f"{argument(name)} is {value!r}; expected True or False")
    return value


def require_profile(profile: object) -> None:
    """Refuse what is neither a profile nor the path of one.

    Raises
    ------
    InputError
        Names the type of what was given instead.
    """
    if not hasattr(profile, "require_can_promise"):
        raise InputError(
            f"{argument('profile')} is of the type {type(profile).__name__}; expected a profile, "
            "or the path of one"
        )


def refuse_node_cores(node_cores: int | None, node_types: Sequence[NodeType]) -> None:
    """Refuse cores per node beside node types, which have their own number."""
    if node_types and node_cores is not None:
        raise InputError(
            f"{argument('node_cores')} contradicts {argument('node_types')}: a node type has its "
            "own number of cores"
        )


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
            f"give a larger {argument('node_cores')} or fewer {argument('cores')}"
        )
    return node_cores // cores


def promises_from(
    target: Target | Deadline | str | Sequence[Promise | str],
) -> tuple[Target, list[Promise]]:
    """The first latency target, which a plan is made for, and the other targets."""
    targets = [target] if isinstance(target, Target | Deadline | str) else target
    if not isinstance(targets, Sequence) or not targets:
        raise InputError(f"{argument('target')} is {target!r}; expected a text such as 'p99 <= 3s'")
    promises = [_promise(promise) for promise in targets]
    first = next((promise for promise in promises if isinstance(promise, Target)), None)
    if first is None:
        raise InputError(
            f"target '{promises[0]}' needs a latency target beside it, e.g. 'p99 <= 3s'"
        )
    index = promises.index(first)
    return first, [*promises[:index], *promises[index + 1 :]]


def during_bursts(bursts: Sequence[Burst | str], promises: Sequence[Promise]) -> list[Promise]:
    """The latency targets that hold at all times, as targets for each burst."""
    if not _is_list_of(bursts, Burst):
        raise InputError(
            f"{argument('bursts')} is {bursts!r}; expected a list of texts such as '150k/s:2m'"
        )
    parsed_bursts = [
        burst if isinstance(burst, Burst) else Burst.parse_short(burst) for burst in bursts
    ]
    targets = [promise for promise in promises if isinstance(promise, Target)]
    return [
        DuringBurst(target=target, burst=burst) for burst in parsed_bursts for target in targets
    ]


def _promise(target: Promise | Deadline | str) -> Promise:
    if isinstance(target, Promise):
        return target
    if not isinstance(target, str):
        raise InputError(f"{argument('target')} is {target!r}; expected a text such as 'p99 <= 3s'")
    promise = parse_promise(target)
    if isinstance(promise, Deadline):
        raise InputError(
            f"target '{promise}': a streaming job has no end; use a latency, e.g. 'p99 <= 3s'"
        )
    return promise


def node_types_from(
    node_types: Sequence[NodeType | str],
    catalog: str | Path | None = None,
    platform: str = DEFAULT_PLATFORM,
) -> list[NodeType]:
    """Node types, read if they are texts; none may be named twice.

    A text without figures is a name in the catalogue, by default the one that comes with Headway;
    what the platform reserves is subtracted from such a node. Figures are what Spark can use.
    """
    if not _is_list_of(node_types, NodeType):
        raise InputError(
            f"{argument('node_types')} is {node_types!r}; expected a list of names, or of texts "
            "such as 'm6i.xlarge:cores=4,memory=14g,price=0.192'"
        )
    if platform not in PLATFORMS:
        raise InputError(
            f"{argument('platform')} is {platform!r}; expected one of {', '.join(PLATFORMS)}"
        )
    if catalog is not None and not any(
        isinstance(node_type, str) and ":" not in node_type for node_type in node_types
    ):
        raise InputError(
            f"{argument('catalog')} {catalog}: it is not used without node types; name one with "
            f"{argument('node_types')}"
        )
    types = [
        node_type
        if isinstance(node_type, NodeType)
        else NodeType.parse(node_type)
        if ":" in node_type
        else _catalogued(node_type.strip(), catalog, platform)
        for node_type in node_types
    ]
    names = [node_type.name for node_type in types]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"node type {name!r} is given twice")
    return types


def _catalogued(name: str, catalog: str | Path | None, platform: str) -> NodeType:
    from difflib import get_close_matches

    from headway.spec.kinds.catalog import NodeCatalog
    from headway.spec.parts import built_in_catalog, catalogued_type
    from headway.spec.spec_file import load_spec_of

    node_catalog = (
        built_in_catalog() if catalog is None else load_spec_of(Path(catalog), NodeCatalog)
    )
    nodes = {node.name: node for node in node_catalog.nodes}
    if name not in nodes:
        where = "Headway's catalogue" if catalog is None else str(catalog)
        close_names = get_close_matches(name, nodes, n=1)
        hint = (
            f"did you mean {close_names[0]!r}?"
            if close_names
            else f"describe it, e.g. {name}:cores=4,memory=14g,price=0.192"
        )
        raise InputError(f"node type {name!r} is not in {where}; {hint}")
    return catalogued_type(nodes[name], platform, node_catalog)


Choice = TypeVar("Choice", bound=StrEnum)


def one_of(kind: type[Choice], value: str, name: str) -> Choice:
    """A member of an enumeration by its text."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(kind)
        raise InputError(f"{argument(name)} is {value!r}; expected one of {choices}") from None


def seconds(value: float | str, name: str) -> float:
    """Seconds of a number or a text such as ``5s``; messages call it ``name``."""
    if isinstance(value, str):
        try:
            # Zero needs no unit.
            value_s = 0.0 if value.strip() == "0" else parse_duration_s(value)
        except InputError as error:
            raise InputError(f"{argument(name)}: {error}") from None
    else:
        value_s = value
    if not is_number(value_s) or not 0 <= value_s <= LONGEST_S:
        raise InputError(
            f"{argument(name)} is {value!r}; expected 0 or more seconds, at most ten years"
        )
    return float(value_s)


def positive_seconds(value: float | str, name: str) -> float:
    """Seconds of a value that must be above zero; messages call it ``name``."""
    value_s = seconds(value, name)
    if value_s == 0:
        raise InputError(f"{argument(name)} is {value!r}; expected more than 0 seconds")
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
    if total_rows is not None and not (is_number(total_rows) and 0 < total_rows <= MOST_LONG):
        raise InputError(f"{argument('total_rows')} is {total_rows!r}; expected a number above 0")
    if keys is None:
        if key_type is not None or total_rows is not None:
            raise InputError(
                f"{argument('key_type')} and {argument('total_rows')} are about the keys of "
                f"a file; give {argument('keys')}"
            )
        return None
    if isinstance(keys, str | Path):
        from headway.formats.key_counts import read_key_counts

        return read_key_counts(keys, kind=key_type, total_rows=total_rows)
    from headway.domain.ordered import KeyCounts

    if not isinstance(keys, KeyCounts):
        raise InputError(f"{argument('keys')} is {keys!r}; expected the path of a file of keys")
    return keys


def count(value: int, name: str, max_value: int) -> int:
    """A whole number from 1 to ``max_value``; messages call it ``name``."""
    if not is_number(value) or not 1 <= value <= max_value or value != value // 1:
        raise InputError(
            f"{argument(name)} is {value!r}; expected a whole number from 1 to {max_value:,}"
        )
    return int(value)


def _is_list_of(values: object, kind: type) -> bool:
    """Whether it is a list, or the like, of objects of a kind or of their texts."""
    return (
        isinstance(values, Sequence)
        and not isinstance(values, str)
        and all(isinstance(value, str | kind) for value in values)
    )


def given_arguments(values: Mapping[str, object]) -> str:
    """Names of the arguments that were given, in a list; empty if none was.

    Not given are None, False and empty sequences. Zero is a value like any other.
    """
    return ", ".join(
        argument(name)
        for name, value in values.items()
        if not (value is None or value is False or (isinstance(value, list | tuple) and not value))
    )


def is_number(value: object) -> bool:
    """Whether it is a number, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
