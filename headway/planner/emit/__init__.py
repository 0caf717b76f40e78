"""A plan in the words of the tools that run Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from headway.domain import Plan
from headway.planner.emit import pyspark_snippet, spark_defaults, spark_submit


class Render(Protocol):
    """What every format offers: a plan and the version of Headway in, the text of a file out."""

    def __call__(self, plan: Plan, *, version: str) -> str: ...


#: Every output format, by the name that ``headway emit --format`` takes.
FORMATS: Mapping[str, Render] = MappingProxyType(
    {
        "spark-defaults": spark_defaults.render,
        "spark-submit": spark_submit.render,
        "pyspark": pyspark_snippet.render,
    }
)

__all__ = ["FORMATS", "Render"]
