"""What commands show of answers about each kind of job: formats, details, the likely next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from headway.cli.options import given, refuse
from headway.domain.argument import JobKind
from headway.emitters import FORMATS
from headway.sparkconf import render_properties
from headway.version import __version__

#: Options of output that mean nothing for plans of pipelines, and why.
_NOT_FOR_PIPELINES = {
    "verbose": "a plan of a pipeline has no further details",
    "strict": "not for pipelines",
}
#: The likely next command after a plan; that of queries depends on the answer.
NEXT_STEP: Mapping[JobKind, str] = {
    JobKind.DSTREAMS: "add --format spark-defaults to apply it",
    JobKind.PIPELINE: "headway simulate {profile}",
}


def refuse_outputs(kind: JobKind, output_format: str) -> None:
    """Refuse options of output that a plan of this kind of job does not have."""
    for name, why in _NOT_FOR_PIPELINES.items() if kind is JobKind.PIPELINE else ():
        refuse(given(name), why)
    formats = ("text", "json", *configuration_formats(kind))
    if output_format not in formats and kind is JobKind.PIPELINE:
        refuse([f"--format {output_format}"], "a pipeline does not run on Spark")
    if output_format not in formats:
        expected = f"{', '.join(formats[:-1])} or {formats[-1]}"
        refuse([f"--format {output_format}"], f"expected {expected} for a {kind}")


def configuration_formats(kind: JobKind) -> Mapping[str, Callable[[Any], str]]:
    """The formats in which a plan is applied; none for what does not run on Spark."""
    match kind:
        case JobKind.PIPELINE:
            return {}
        case JobKind.DSTREAMS:
            from headway.report.dstreams import dstreams_header

            return {"spark-defaults": lambda plan: _properties(plan, dstreams_header)}
        case JobKind.REAL_TIME:
            from headway.emitters.pyspark_snippet import real_time_snippet
            from headway.report.real_time import real_time_header

            return {
                "spark-defaults": lambda plan: _properties(plan, real_time_header),
                "pyspark": lambda plan: real_time_snippet(
                    plan, real_time_header(plan, __version__)
                ),
            }
        case _:
            return {name: partial(render, version=__version__) for name, render in FORMATS.items()}


def _properties(plan: Any, header_of: Callable[[Any, str], Sequence[str]]) -> str:
    return render_properties(plan.spark_conf, header=header_of(plan, __version__))
