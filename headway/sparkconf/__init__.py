"""Spark's side of a plan: the settings, their names, and the file format for them."""

from headway.sparkconf.knobs import (
    KNOBS,
    KNOBS_BY_KEY,
    Knob,
    applies_when,
    knob_named,
    knob_of,
    query_options,
    spark_conf,
    task_cpus_of,
)
from headway.sparkconf.properties import parse_properties, property_lines, render_properties
from headway.sparkconf.reader_limits import Counts, ReaderLimit, reader_limit
from headway.sparkconf.task_resources import (
    TaskLimit,
    is_resource_key,
    resource_settings,
    task_limit,
    tasks_by_amounts,
)

__all__ = [
    "KNOBS", "KNOBS_BY_KEY", "Counts", "Knob", "ReaderLimit", "TaskLimit", "applies_when",
    "is_resource_key", "knob_named", "knob_of", "parse_properties", "property_lines",
    "query_options", "reader_limit", "render_properties", "resource_settings", "spark_conf",
    "task_cpus_of", "task_limit", "tasks_by_amounts",
]  # fmt: skip
