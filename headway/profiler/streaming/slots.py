"""Executors that a query ran on, and their task slots as the settings and tasks of a log show them.

Executors differ by the resource profile of the stages that they are for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from headway import sparkconf
from headway.assumptions.logs import FEWEST_WAITING_STAGES, LIMITED_STAGES_RATIO
from headway.domain import Configuration, StageResources
from headway.domain.configuration import TaskCores, recorded_task_cores, task_slots
from headway.errors import EventLogError
from headway.few_numbers import median_of
from headway.profiler.executors import Executor, ResourceProfile
from headway.profiler.rows import Record
from headway.units import counted

_CPUS = "cpus"
USUAL_PROFILE = 0  # the resource profile of the application's settings

_Needs: TypeAlias = tuple[TaskCores, sparkconf.TaskLimit | None, list[str]]
"""What a task needs: cores, a limit by other resources, and the settings of both, cores first."""


def first_executor_s(executors: Sequence[Executor], where: str) -> float | None:
    """When the first executor was added [s]; None if not recorded. EventLogError without any."""
    if not executors:
        raise EventLogError(
            f"{where}: no executor is on record (no ExecutorAdded event), so its "
            "cores are unknown; profile a log that starts with the application"
        )
    added_s = [executor.added_s for executor in executors if executor.added_s is not None]
    return min(added_s, default=None)


def executor_pools(
    executors: Sequence[Executor], at_s: float, where: str
) -> dict[int, tuple[int, int]]:
    """Executors alive at a given time and cores of each, by resource profile.

    In local mode there is one, the driver.
    """
    cores: dict[int, list[int]] = defaultdict(list)
    for executor in executors:
        is_added = (executor.added_s or 0.0) <= at_s
        if is_added and (executor.removed_s is None or executor.removed_s > at_s):
            cores[executor.resource_profile_id].append(executor.num_cores)
    if not cores:
        raise EventLogError(
            f"{where}: none of the {len(executors)} executors on record was alive at "
            "its last batch; profile a log that starts with the application"
        )
    return {
        profile_id: (len(alive), max(int(median_of(alive)), 1))
        for profile_id, alive in sorted(cores.items())
    }


def pool_for(pools: Mapping[int, tuple[int, int]], profile_id: int) -> tuple[int, int]:
    """The executors of stages with a resource profile, and the cores of each.

    A profile that only says what tasks need has none of its own: its stages run on the usual ones.

    >>> pools = {0: (2, 4), 3: (1, 8)}
    >>> pool_for(pools, 3), pool_for(pools, 2)
    ((1, 8), (2, 4))
    """
    return pools.get(profile_id) or pools.get(USUAL_PROFILE) or next(iter(pools.values()))


def setting_seen(
    properties: Mapping[str, str],
    pools: Mapping[int, tuple[int, int]],
    stages: Iterable[Record],
    profiles: Mapping[int, ResourceProfile],
    *,
    shuffle_partitions: int,
    trigger_s: float,
) -> tuple[Configuration, dict[int, StageResources], list[str]]:
    """The setting of a run, by the executors on which most of its stages ran, and notes.

    Tasks at once on an executor are limited by the amounts of other resources, unless more ran at
    once. Else, if in most stages whose tasks waited the same number ran at once, and fewer than
    there is room for, it is that number. What stages with a resource profile of their own have of
    these slots comes second, by profile.
    """
    of_profile: dict[int, list[Record]] = defaultdict(list)
    for stage in stages:
        of_profile[stage["resource_profile_id"]].append(stage)
    usual_id = min(of_profile, key=lambda key: (key != USUAL_PROFILE, -len(of_profile[key]), key))
    executors, cores = pool_for(pools, usual_id)
    needs = _needs(usual_id, properties, profiles)
    of_profiles, notes = {}, list[str]()
    if usual_id != USUAL_PROFILE:
        notes.append(
            f"its stages ran with resource profile {usual_id} of the job's code ("
            f"{', '.join(needs[2])}), not with the settings of the application"
        )
    usual_limit, usual_slots = _tasks_at_once(needs, cores, of_profile.pop(usual_id), notes)
    for profile_id, of_stages in sorted(of_profile.items()):
        own_executors, own_cores = pool_for(pools, profile_id)
        own_needs = _needs(profile_id, properties, profiles)
        _, num_slots = _tasks_at_once(own_needs, own_cores, of_stages, [])
        resources = StageResources(
            needs=", ".join(own_needs[2]),
            slots_ratio=(num_slots * own_executors) / (usual_slots * executors),
            has_own_executors=profile_id in pools,
        )
        of_profiles[profile_id] = resources
        where = "on executors of their own, " if resources.has_own_executors else ""
        notes.append(
            f"stages with resource profile {profile_id} of the job's code ran {where}"
            f"{counted(num_slots, 'task')} at a time on an executor, the others {usual_slots} "
            f"({resources.needs}); predictions and plans count {resources.slots_ratio:.3g} times "
            "the slots for them"
        )
    setting = Configuration(
        executors=executors,
        cores_per_executor=cores,
        shuffle_partitions=shuffle_partitions,
        trigger_s=trigger_s,
        # Not more than executors have, since those with fewer cores ran no task.
        task_cpus=min(needs[0], cores),
        tasks_per_executor=usual_limit,
    )
    return setting, of_profiles, notes


def _needs(
    profile_id: int, properties: Mapping[str, str], profiles: Mapping[int, ResourceProfile]
) -> _Needs:
    """What tasks of a resource profile need; profile 0 is that of the settings."""
    profile = profiles.get(profile_id)
    if profile is None or profile_id == USUAL_PROFILE:
        stated = properties.get(sparkconf.KNOBS["task_cpus"].key, "1")
        words = [f"{sparkconf.KNOBS['task_cpus'].key}={stated}"]
        words += [
            f"{key}={amount}"
            for key, amount in sparkconf.resource_settings(properties).items()
            if key.startswith("spark.task.")
        ]
        return sparkconf.task_cpus_of(properties), sparkconf.task_limit(properties), words
    of_task = dict(profile[0])
    task_cpus = recorded_task_cores(of_task.pop(_CPUS, sparkconf.task_cpus_of(properties)))
    # A profile that only says what tasks need has the executors of the settings.
    _, usual_of_executor = profiles.get(USUAL_PROFILE, ((), ()))
    of_executor = dict(usual_of_executor) | dict(profile[1])
    limits, words = list[sparkconf.TaskLimit](), [f"{_CPUS}={task_cpus}"]
    for resource, amount in of_task.items():
        words.append(f"{resource}={amount:g}")
        available = of_executor.get(resource, 0.0)
        num_tasks = sparkconf.tasks_by_amounts(amount, available)
        if num_tasks is not None:
            cause = f"resource profile {profile_id}, {resource}={amount:g} of {available:g}"
            limits.append((num_tasks, cause))
    return task_cpus, min(limits, default=None), words


def _tasks_at_once(
    needs: _Needs, cores: int, stages: Sequence[Record], notes: list[str]
) -> tuple[int | None, int]:
    """Tasks at once on an executor with some cores, as stages with the same needs show them.

    The limit, None if cores are the only one, and the number; notes are added.
    """
    task_cpus, limit, (cpus_words, *amounts) = needs
    room = task_slots(1, cores, min(task_cpus, cores))
    at_once = [num_tasks for stage in stages if (num_tasks := stage["most_at_once"]) is not None]
    most_tasks = max(at_once, default=0)
    stated = cpus_words.rpartition("=")[2]
    # Of whole cores a task may seem to begin before another ends: the driver notes ends late.
    if most_tasks > room and not stated.strip().isdigit():
        notes.append(
            f"up to {counted(most_tasks, 'task')} ran at once on an executor of "
            f"{counted(cores, 'core')}, more than the {room} that {cpus_words} has room for; "
            f"predictions count {room}"
        )
    if limit is not None and limit[0] < room:
        num_tasks, cause = limit
        if most_tasks <= num_tasks:
            notes.append(limit_in_words(limit, cores))
            return num_tasks, num_tasks
        notes.append(
            f"{cause} allows {counted(num_tasks, 'task')} at once on an executor, but "
            f"{most_tasks} ran at once; its cores are taken as its slots"
        )
    is_limited = (
        len(at_once) >= FEWEST_WAITING_STAGES.value
        and most_tasks < room
        and at_once.count(most_tasks) >= LIMITED_STAGES_RATIO.value * len(at_once)
    )
    if not is_limited:
        return None, room
    cause = (
        "and no setting in the log says why: a resource besides cores, a straggling executor or a "
        "quota on CPU may"
    )
    if amounts:
        cause = f"likely because of {' and '.join(amounts)}"
    notes.append(
        f"never more than {counted(most_tasks, 'task')} ran at once on an executor of "
        f"{counted(cores, 'core')} while others of the stage waited "
        f"({counted(len(at_once), 'stage')} looked at), {cause}; plans count "
        f"{counted(most_tasks, 'slot')} for each executor, whatever its cores"
    )
    return most_tasks, most_tasks


def limit_in_words(limit: sparkconf.TaskLimit, cores: int) -> str:
    """What limits the tasks of an executor, and what plans make of it."""
    num_tasks, cause = limit
    return (
        f"{cause}: {counted(num_tasks, 'task')} at a time on an executor, although it "
        f"has {counted(cores, 'core')}; plans count {counted(num_tasks, 'slot')} for each "
        "executor, whatever its cores"
    )
