"""Calls about a setting: predict one, plan for the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from headway.api.profiles import load_profile
from headway.domain import (
    Arrivals,
    Burst,
    Configuration,
    Deadline,
    DuringBurst,
    JobProfile,
    NodeType,
    Objective,
    Plan,
    Prediction,
    Promise,
    Target,
    parse_promise,
)
from headway.errors import InputError
from headway.limits import (
    LARGEST_NUMBER,
    LONGEST_S,
    MOST_CORES,
    MOST_EXECUTORS,
    MOST_LONG,
    MOST_NODES,
    MOST_PARTITIONS,
)
from headway.units import counted, parse_duration_s, parse_rate_per_s

#: What node types of the catalogue are planned for where nothing is said: what keeps most.
DEFAULT_PLATFORM = "kubernetes"


def predict(
    profile: JobProfile | str | Path,
    *,
    rate: float | str | None = None,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
    task_cpus: int | None = None,
    jvm_age: float | str | None = None,
) -> Prediction:
    """Latency of a job at a setting; what is not given is as profiled.

    Parameters
    ----------
    profile : JobProfile or path
        The job.
    rate : float or str
        Arrivals, records per second or e.g. ``"50k/s"``.
    trigger : float or str
        Trigger interval, seconds or e.g. ``"2s"``; 0 is as fast as possible.
    executors, cores, partitions, max_offsets : int
        Executors, cores per executor, shuffle partitions, rate limit per batch.
    task_cpus : int
        Cores that a task takes (``spark.task.cpus``).
    jvm_age : float or str
        Time since the executors started, seconds or e.g. ``"5min"``; a young JVM is slower.

    Raises
    ------
    InputError
        If a value is not what it should be.
    """
    from headway.models.job.predict import predict as predict_setting

    job = _job(profile)
    return predict_setting(
        job,
        configuration_from(
            job.baseline,
            trigger=trigger,
            executors=executors,
            cores=cores,
            partitions=partitions,
            max_offsets=max_offsets,
            task_cpus=task_cpus,
        ),
        _arrivals(job, rate),
        jvm_age_s=None if jvm_age is None else positive_seconds(jvm_age, "jvm_age"),
    )


def plan(
    profile: JobProfile | str | Path,
    *,
    rate: float | str,
    target: Target | str | Sequence[Promise | str],
    max_nodes: int = 50,
    node_cores: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    trigger: float | str | None = None,
    confidence: float = 0.95,
    objective: Objective | str = Objective.NODES,
    node_types: Sequence[NodeType | str] = (),
    catalog: str | Path | None = None,
    budget: float | None = None,
    checkpoint: str | None = None,
    source_partitions: int | None = None,
    task_cpus: int | None = None,
    bursts: Sequence[Burst | str] = (),
    relaxation: bool = False,
    lower_memory: bool = False,
    executor_memory_bytes: int | None = None,
    platform: str = DEFAULT_PLATFORM,
    from_start: bool = False,
) -> Plan:
    """The fewest nodes that keep a target at a rate, and the Spark configuration that does.

    Parameters
    ----------
    profile : JobProfile or path
        The job.
    rate : float or str
        Arrivals to plan for, records per second or e.g. ``"50k/s"``.
    target : Target or str, or several
        The promise, e.g. ``"p99 <= 3s"``, ``"window p95 <= 20s"``. Of several all must hold, for
        instance ``"catch_up <= 15m after 30m"``; the first latency is the one that is planned by.
    max_nodes : int
        Most nodes that may be bought.
    node_cores, cores : int
        Cores of a node and of an executor; as profiled by default, one executor per node.
    partitions : int
        Shuffle partitions, if they are fixed (by an existing checkpoint).
    trigger : float or str
        Trigger interval, if it is fixed.
    confidence : float
        Plan for durations that are exceeded with at most the remaining probability.
    objective : str
        ``"nodes"``, ``"cost"`` or ``"latency"``: what to make small.
    node_types : sequence of NodeType or str
        What is on offer, e.g. ``"m6i.xlarge:cores=4,memory=14g,price=0.192"``, or the name of a
        node in the catalogue.
    catalog : path
        A spec file of the kind NodeCatalog; by default the one that comes with Headway.
    budget : float
        Most that all nodes may cost per hour.
    checkpoint : str
        ``"existing"`` keeps what the checkpoint pins; ``"new"`` starts without; by default today's
        partitions are preferred, and a change of them says that it needs a new checkpoint.
    source_partitions : int
        Partitions of the source, or input splits, to plan for; as profiled by default.
    task_cpus : int
        Cores that a task takes (``spark.task.cpus``); as profiled by default.
    bursts : sequence of Burst or str
        Bursts through which every latency promise must hold, e.g. ``"150k/s:2m"`` or, once an
        hour, ``"150k/s:2m:1h"``; ``rate`` is what arrives otherwise.
    relaxation : bool
        State the bound by the convex relaxation too, which loads cvxpy.
    lower_memory : bool
        Let executors have less heap than the profiled ones, down to what was measured with
        headroom; without, none gets less than it ran with. Peaks of local runs lower nothing.
    executor_memory_bytes : int
        Heap of an executor, if it is fixed; not looked for then. [bytes]
    platform : str
        What runs Spark on nodes of the catalogue: it keeps some of each for itself. By default
        Kubernetes, which keeps most.
    from_start : bool
        Plan for batches that stay as long as those of a fresh JVM, as they are after a restart.

    Raises
    ------
    InputError
        If a value is not what it should be. A target that cannot be met is no error: the plan
        then says ``feasible=False``, and why.
    """
    from headway.planner.pins import Checkpoint
    from headway.planner.profiled_memory import MemoryRule
    from headway.planner.search import plan as search
    from headway.planner.sources import with_source_partitions
    from headway.planner.space import SearchSpace

    if rate is None:
        raise InputError("rate is missing; expected the arrivals to plan for, e.g. '50k/s'")
    job = _job(profile)
    per_executor = count(
        job.baseline.cores_per_executor if cores is None else cores, "cores", MOST_CORES
    )
    per_node = count(per_executor if node_cores is None else node_cores, "node_cores", MOST_CORES)
    room = executors_by_cores(per_node, per_executor)
    per_task = count(
        job.baseline.task_cpus if task_cpus is None else task_cpus, "task_cpus", MOST_CORES
    )
    require_room_for_tasks(per_executor, per_task)
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InputError(f"confidence is {confidence}; expected 0.5 or more, and below 1")
    types = node_types_from(node_types, catalog, platform)
    if types and node_cores is not None:
        raise InputError("--node-cores contradicts --node-type, which has cores of its own")
    if budget is not None and not (_is_number(budget) and 0 < budget < math.inf):
        raise InputError(f"budget is {budget!r}; expected a positive price per hour")
    first, others = _promises(target)
    others += _during(bursts, [first, *others])
    if source_partitions is not None:
        job = with_source_partitions(
            job, count(source_partitions, "source_partitions", MOST_PARTITIONS)
        )
    return search(
        job,
        _arrivals(job, rate),
        first,
        SearchSpace(
            max_nodes=count(max_nodes, "max_nodes", MOST_NODES),
            executors_per_node=room,
            cores_per_executor=per_executor,
            task_cpus=per_task,
            shuffle_partitions=None
            if partitions is None
            else count(partitions, "partitions", MOST_PARTITIONS),
            trigger_s=None if trigger is None else _seconds(trigger, "trigger"),
            memory=MemoryRule(heap_bytes=executor_memory_bytes, may_lower=lower_memory),
        ),
        confidence=confidence,
        also=others,
        objective=one_of(Objective, objective, "objective"),
        node_types=types,
        cores_per_executor=None if cores is None else per_executor,
        budget_per_hour=budget,
        checkpoint=None if checkpoint is None else one_of(Checkpoint, checkpoint, "checkpoint"),
        relaxation=relaxation,
        from_start=from_start,
    )


def configuration_from(
    baseline: Configuration,
    *,
    trigger: float | str | None = None,
    executors: int | None = None,
    cores: int | None = None,
    partitions: int | None = None,
    max_offsets: int | None = None,
    task_cpus: int | None = None,
) -> Configuration:
    """The baseline with what is given replaced."""
    changes: dict[str, float] = {}
    for field, value, name, most in (
        ("executors", executors, "executors", MOST_EXECUTORS),
        ("cores_per_executor", cores, "cores", MOST_CORES),
        ("shuffle_partitions", partitions, "partitions", MOST_PARTITIONS),
        ("max_offsets_per_trigger", max_offsets, "max_offsets", MOST_LONG),
        ("task_cpus", task_cpus, "task_cpus", MOST_CORES),
    ):
        if value is not None:
            changes[field] = count(value, name, most)
    if trigger is not None:
        changes["trigger_s"] = _seconds(trigger, "trigger")
    require_room_for_tasks(
        int(changes.get("cores_per_executor", baseline.cores_per_executor)),
        int(changes.get("task_cpus", baseline.task_cpus)),
    )
    return replace(baseline, **changes)  # type: ignore[arg-type]  # values checked field by field


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


def _job(profile: JobProfile | str | Path) -> JobProfile:
    return profile if isinstance(profile, JobProfile) else load_profile(profile)


def _arrivals(job: JobProfile, rate: float | str | None) -> Arrivals:
    if rate is None:
        return job.arrivals
    rate_per_s = parse_rate_per_s(rate) if isinstance(rate, str) else rate
    if not _is_number(rate_per_s) or not 0 < rate_per_s <= LARGEST_NUMBER:
        raise InputError(f"rate is {rate!r}; expected a positive number of records per second")
    return replace(job.arrivals, rate_per_s=float(rate_per_s))


def executors_by_cores(node_cores: int, cores: int) -> int:
    """Executors that a node holds by its cores alone.

    Raises
    ------
    InputError
        If it holds none.
    """
    if node_cores < cores:
        raise InputError(
            f"a node of {node_cores} cores has no room for an executor of {cores}; "
            "give a larger --node-cores or fewer --cores"
        )
    return node_cores // cores


def _promises(
    target: Target | str | Sequence[Promise | str],
) -> tuple[Target, list[Promise]]:
    """The latency that is planned by, and the other promises."""
    given = [target] if isinstance(target, Target | str) else target
    if not isinstance(given, Sequence) or not given:
        raise InputError(f"target is {target!r}; expected a text such as 'p99 <= 3s'")
    every = [_promise(one) for one in given]
    first = next((one for one in every if isinstance(one, Target)), None)
    if first is None:
        raise InputError(
            f"target '{every[0]}' is no promise for all times; add a latency, e.g. 'p99 <= 3s'"
        )
    place = every.index(first)
    return first, [*every[:place], *every[place + 1 :]]


def _during(bursts: Sequence[Burst | str], asked: Sequence[Promise]) -> list[Promise]:
    """The latencies that are promised at all times, promised for each burst."""
    if isinstance(bursts, str):
        raise InputError(f"bursts is {bursts!r}; expected a list of such texts")
    read = [one if isinstance(one, Burst) else Burst.parse_short(one) for one in bursts]
    targets = [one for one in asked if isinstance(one, Target)]
    return [DuringBurst(target=target, burst=burst) for burst in read for target in targets]


def _promise(given: Promise | str) -> Promise:
    if isinstance(given, Promise):
        return given
    if not isinstance(given, str):
        raise InputError(f"target is {given!r}; expected a text such as 'p99 <= 3s'")
    promise = parse_promise(given)
    if isinstance(promise, Deadline):
        raise InputError(
            f"target '{promise}': a streaming job has no end to meet; use a latency, e.g. "
            "'p99 <= 3s', and headway.api.plan_deadline for batch jobs"
        )
    return promise


def node_types_from(
    given: Sequence[NodeType | str],
    catalog: str | Path | None = None,
    platform: str = DEFAULT_PLATFORM,
) -> list[NodeType]:
    """Node types, read where they are texts; none may be named twice.

    A text without figures is a name in the catalogue, or in the one that comes with Headway; of
    such a node what the platform keeps is taken off. Figures are what Spark may take.
    """
    from headway.spec.kinds.reserves import PLATFORMS

    if platform not in PLATFORMS:
        raise InputError(f"platform is {platform!r}; expected one of {', '.join(PLATFORMS)}")
    if catalog is not None and not any(isinstance(one, str) and ":" not in one for one in given):
        raise InputError(
            f"--catalog {catalog}: no node type is looked up in it; name one, e.g. --node-type NAME"
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
        where = "the catalogue that comes with Headway" if catalog is None else str(catalog)
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


def _seconds(value: float | str, name: str) -> float:
    if isinstance(value, str):
        try:
            # Zero needs no unit.
            seconds = 0.0 if value.strip() == "0" else parse_duration_s(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    else:
        seconds = value
    if not _is_number(seconds) or not 0 <= seconds <= LONGEST_S:
        raise InputError(f"{name} is {value!r}; expected 0 or more seconds, at most ten years")
    return float(seconds)


def positive_seconds(value: float | str, name: str) -> float:
    """Seconds of a value that must be above zero; messages call it ``name``."""
    seconds = _seconds(value, name)
    if seconds == 0:
        raise InputError(f"{name} is {value!r}; expected more than 0 seconds")
    return seconds


def count(value: int, name: str, most: int) -> int:
    """A whole number from 1 to ``most``; messages call it ``name``."""
    if not _is_number(value) or not 1 <= value <= most or value != value // 1:
        raise InputError(f"{name} is {value!r}; expected a whole number from 1 to {most:,}")
    return int(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
