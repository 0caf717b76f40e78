"""Resources besides cores that limit how many tasks run at once on an executor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

RESOURCES = ("gpu", "fpga")
"""Names of resources, of those that a job may choose itself: the ones in Spark's documentation."""


class TaskLimit(NamedTuple):
    """Most tasks at once on an executor, and the setting that says so."""

    num_tasks: int
    cause: str


def task_limit(properties: Mapping[str, str]) -> TaskLimit | None:
    """The limit that the resources of an application set; None if it has none.

    Parameters
    ----------
    properties : mapping of str to str
        ``spark.task.resource.*.amount`` and ``spark.executor.resource.*.amount``. An amount below
        one is a share: so many tasks use a resource together.

    Examples
    --------
    >>> task_limit({"spark.task.resource.gpu.amount": "0.5",
    ...             "spark.executor.resource.gpu.amount": "2"})
    TaskLimit(num_tasks=4, cause='spark.task.resource.gpu.amount=0.5 of 2')
    """
    return min(_limits(properties), default=None)


def resource_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The amounts of resources that an application had: a plan relies on them."""
    keys = [key for name in RESOURCES for key in resource_keys(name)]
    return {key: properties[key] for key in keys if key in properties}


def resource_keys(name: str) -> tuple[str, str]:
    """Settings of the amounts of a resource, of a task and of an executor."""
    return f"spark.task.resource.{name}.amount", f"spark.executor.resource.{name}.amount"


def _limits(properties: Mapping[str, str]) -> Iterator[TaskLimit]:
    for name in RESOURCES:
        of_task, of_executor = (properties.get(key, "") for key in resource_keys(name))
        try:
            task_amount, executor_amount = float(of_task), int(of_executor)
        except ValueError:
            continue
        if not (0.0 < task_amount <= executor_amount and math.isfinite(task_amount)):
            continue
        # A quotient of shares such as 1/3 falls short of a whole number by its last digits.
        tasks_per_unit = math.floor(1.0 / task_amount + 1e-6)
        num_tasks = (
            executor_amount * tasks_per_unit
            if task_amount < 1.0
            else executor_amount // math.ceil(task_amount)
        )
        yield TaskLimit(num_tasks, f"{resource_keys(name)[0]}={of_task} of {of_executor}")
