"""Spark's side of a plan: the settings, their names, and the file format for them."""

from headway.sparkconf.knobs import (
    KNOBS,
    KNOBS_BY_KEY,
    Carrier,
    Knob,
    applies_when,
    knob_named,
    query_options,
    spark_conf,
    task_cpus_of,
)
from headway.sparkconf.properties import parse_properties, property_lines, render_properties
from headway.sparkconf.reader_limits import (
    STREAMING,
    Counts,
    ReaderLimit,
    reader_limit,
    streaming_number,
)

__all__ = [
    "KNOBS",
    "KNOBS_BY_KEY",
    "STREAMING",
    "Carrier",
    "Counts",
    "Knob",
    "ReaderLimit",
    "applies_when",
    "knob_named",
    "parse_properties",
    "property_lines",
    "query_options",
    "reader_limit",
    "render_properties",
    "spark_conf",
    "streaming_number",
    "task_cpus_of",
]
