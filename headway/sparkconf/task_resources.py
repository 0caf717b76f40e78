"""Resources besides cores that limit how many tasks run at once on an executor."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

# A cluster chooses the names: gpu and fpga are those in Spark's documentation.
_KEY = re.compile(
    r"spark\.(?P<owner>task|executor)\.resource\.(?P<name>[A-Za-z][\w-]{0,40})\.amount", re.ASCII
)
_LEAST_SHARE = 1e-6


TaskLimit: TypeAlias = tuple[int, str]
"""Most tasks at once on an executor, and the setting that says so."""


def is_resource_key(key: str) -> bool:
    """Whether a setting is the amount of a resource, of a task or of an executor."""
    return _KEY.fullmatch(key) is not None


def task_limit(properties: Mapping[str, str]) -> TaskLimit | None:
    """The limit that the resources of an application set; None if it has none.

    ``properties`` contain ``spark.task.resource.*.amount`` and
    ``spark.executor.resource.*.amount``. An amount below one is a share: so many tasks use a
    resource together.

    >>> task_limit({"spark.task.resource.gpu.amount": "0.5",
    ...             "spark.executor.resource.gpu.amount": "2"})
    (4, 'spark.task.resource.gpu.amount=0.5 of 2')
    """
    return min(_limits(properties), default=None)


def resource_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The amounts of resources that an application had: a plan relies on them."""
    return {key: properties[key] for key in sorted(properties) if is_resource_key(key)}


def resource_words(key: str) -> str:
    """The amount of a resource in words.

    >>> resource_words("spark.executor.resource.gpu.amount")
    'gpu of an executor'
    """
    parts = _KEY.fullmatch(key)
    assert parts is not None
    return f"{parts['name']} of {'a task' if parts['owner'] == 'task' else 'an executor'}"


def tasks_by_amounts(of_task: float, of_executor: float) -> int | None:
    """Tasks that share the units of a resource of an executor; None for amounts that make no sense.

    A task that needs less than a unit shares one with others, one that needs more has its own.

    >>> tasks_by_amounts(0.5, 2), tasks_by_amounts(2, 5), tasks_by_amounts(3, 2)
    (4, 2, None)
    """
    if not (_LEAST_SHARE <= of_task <= of_executor and math.isfinite(of_executor)):
        return None
    if of_task < 1.0:
        # A quotient of shares such as 1/3 falls short of a whole number by its last digits.
        return int(of_executor) * math.floor(1.0 / of_task + 1e-6)
    return int(of_executor) // math.ceil(of_task)


def _limits(properties: Mapping[str, str]) -> Iterator[TaskLimit]:
    for key, of_task in properties.items():
        parts = _KEY.fullmatch(key)
        if parts is None or parts["owner"] != "task":
            continue
        of_executor = properties.get(f"spark.executor.resource.{parts['name']}.amount", "")
        try:
            num_tasks = tasks_by_amounts(float(of_task), int(of_executor))
        except ValueError:
            continue
        if num_tasks is not None:
            yield num_tasks, f"{key}={of_task} of {of_executor}"
