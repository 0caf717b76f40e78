"""Task slots of an executor as the settings and the tasks of a log show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headway.assumptions.logs import FEWEST_WAITING_STAGES, LIMITED_STAGES_RATIO
from headway.profiler.rows import Record
from headway.sparkconf import KNOBS, TaskLimit, resource_settings, task_cpus_of, task_limit
from headway.units import counted


class SlotsSeen(NamedTuple):
    """Cores per task, the most tasks at once on an executor if cores do not limit them, and notes.

    None where nothing is known but the cores.
    """

    task_cpus: int
    tasks_per_executor: int | None
    notes: tuple[str, ...]


def slots_seen(properties: Mapping[str, str], cores: int, stages: Iterable[Record]) -> SlotsSeen:
    """Slots of an executor with some cores, on which the stages of a run ran.

    By the amounts of other resources, unless more tasks ran at once. Else, if in most stages whose
    tasks waited the same number ran at once, and fewer than there is room for, it is that number.
    """
    # Not more than executors have, since those with fewer cores ran no task.
    task_cpus = min(task_cpus_of(properties), cores)
    room = cores // task_cpus
    at_once = [num_tasks for stage in stages if (num_tasks := stage["most_at_once"]) is not None]
    most_tasks = max(at_once, default=0)
    notes = []
    stated = properties.get(KNOBS["task_cpus"].key, "1")
    # Of whole cores a task may seem to begin before another ends: the driver notes ends late.
    if most_tasks > room and not stated.strip().isdigit():
        notes.append(
            f"up to {counted(most_tasks, 'task')} ran at once on an executor of "
            f"{counted(cores, 'core')}, more than the {room} that spark.task.cpus={stated} has "
            "room for in whole cores: predictions count whole cores"
        )
    limit = task_limit(properties)
    if limit is not None and limit.num_tasks < room:
        if most_tasks <= limit.num_tasks:
            return SlotsSeen(task_cpus, limit.num_tasks, (*notes, _named(limit, cores)))
        notes.append(
            f"{limit.cause} allows {counted(limit.num_tasks, 'task')} at once on an executor, but "
            f"{most_tasks} ran at once; its cores are taken as its slots"
        )
    is_limited = (
        len(at_once) >= FEWEST_WAITING_STAGES.value
        and most_tasks < room
        and at_once.count(most_tasks) >= LIMITED_STAGES_RATIO.value * len(at_once)
    )
    if not is_limited:
        return SlotsSeen(task_cpus, None, tuple(notes))
    notes.append(
        f"never more than {counted(most_tasks, 'task')} ran at once on an executor of "
        f"{counted(cores, 'core')} while others of the stage waited "
        f"({counted(len(at_once), 'stage')} looked at), {_likely_cause(properties)}; plans count "
        f"{counted(most_tasks, 'slot')} for each executor, whatever its cores"
    )
    return SlotsSeen(task_cpus, most_tasks, tuple(notes))


def _named(limit: TaskLimit, cores: int) -> str:
    return (
        f"{limit.cause}: {counted(limit.num_tasks, 'task')} at a time on an executor, although it "
        f"has {counted(cores, 'core')}; plans count {counted(limit.num_tasks, 'slot')} for each "
        "executor, whatever its cores"
    )


def _likely_cause(properties: Mapping[str, str]) -> str:
    """Amounts of a task whose executors' amounts are not among the settings, if there are any."""
    stated = [
        f"{key}={amount}"
        for key, amount in resource_settings(properties).items()
        if key.startswith("spark.task.")
    ]
    if stated:
        return f"likely because of {' and '.join(stated)}"
    return (
        "and no setting in the log says why: a resource profile, a resource besides cores or a "
        "quota on CPU may"
    )
