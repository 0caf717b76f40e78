"""``headway predict`` and ``headway plan`` in Real-Time Mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headway.assumptions.real_time import PATH_S
from headway.cli.options import exit_code, refuse, refuse_each
from headway.cli.terminal import show
from headway.domain import Deadline
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.version import __version__

if TYPE_CHECKING:
    from headway.domain.real_time import RealTimePlan

_WHY_NOT = {
    "max_offsets": "Real-Time Mode reads all available rows; Spark has no rate limit for it",
    "jvm_age": "the warm-up of Real-Time Mode is not modelled",
    "concurrent_jobs": "only DStreams run several jobs at a time",
    "node_types": "in Real-Time Mode nodes are described by --node-cores",
    "catalog": "in Real-Time Mode nodes are described by --node-cores",
    "platform": "in Real-Time Mode nodes are described by --node-cores",
    "objective": "Real-Time Mode is planned for the fewest nodes",
    "budget": "Real-Time Mode is planned for the fewest nodes; use --max-nodes",
    "checkpoint": "in Real-Time Mode state is kept in format 2, which needs a new checkpoint",
    "bursts": "bursts of Real-Time Mode are not modelled; give the burst's rate as --rate",
    "relaxation": "there is no such bound for Real-Time Mode",
    "lower_memory": "in Real-Time Mode the heap is as profiled",
    "from_start": "the warm-up of Real-Time Mode is not modelled",
    "keys": "in Real-Time Mode the recorded share of the largest task is used",
    "key_type": "in Real-Time Mode the recorded share of the largest task is used",
    "total_rows": "in Real-Time Mode the recorded share of the largest task is used",
    "rows": "in Real-Time Mode a query has no end",
    "output": "there is no such page for Real-Time Mode",
    "verbose": "in Real-Time Mode a plan has no further details",
    "quiet": "in Real-Time Mode a plan has one length",
}


def predict_in_real_time() -> int:
    """Print the prediction for a setting, from the command line of ``predict``."""
    from headway.api.real_time import predict_real_time
    from headway.formats.real_time_json import real_time_prediction_json
    from headway.report.real_time import real_time_prediction_text

    params = _asked()
    prediction = predict_real_time(
        params["profile"],
        rate=params["rate"],
        trigger=params["trigger"],
        executors=params["executors"],
        cores=params["cores"],
        partitions=params["partitions"],
        source_partitions=params["source_partitions"],
        task_cpus=params["task_cpus"],
        path=PATH_S.value if params["path"] is None else params["path"],
    )
    if params["as_json"]:
        click.echo(json_text(real_time_prediction_json(prediction)))
    else:
        show(real_time_prediction_text(prediction))
    return exit_code(calibrated=prediction.calibrated, strict=params["strict"])


def plan_in_real_time(output_format: str) -> int:
    """Print the plan, from the command line of ``plan``."""
    from headway.api.real_time import plan_real_time
    from headway.api.specs import is_spec

    params = _asked()
    context = click.get_current_context()
    if is_spec(params["profile"]):
        refuse(["--mode"], "a spec file is planned in micro-batches; give the profile")
    for target in params["targets"]:
        if isinstance(target, Deadline):
            raise InputError(
                f"--mode real-time: target '{target}': a streaming job has no end; use a latency, "
                "e.g. 'p99 <= 300ms'"
            )
    for name in ("rate", "targets"):
        if not params[name]:
            raise click.UsageError(f"Missing option '--{name.removesuffix('s')}'.", context)
    plan = plan_real_time(
        params["profile"],
        rate=params["rate"],
        target=list(params["targets"]),
        max_nodes=params["max_nodes"],
        node_cores=params["node_cores"],
        cores=params["cores"],
        partitions=params["partitions"],
        trigger=params["trigger"],
        source_partitions=params["source_partitions"],
        task_cpus=params["task_cpus"],
        confidence=params["confidence"],
        path=PATH_S.value if params["path"] is None else params["path"],
    )
    text = _rendered(plan, output_format).rstrip("\n")
    if output_format == "text":
        show(text, is_met=plan.feasible)
    else:
        click.echo(text)
    return exit_code(calibrated=plan.calibrated, strict=params["strict"], feasible=plan.feasible)


def _asked() -> dict[str, Any]:
    """The parameters of the command, without those that have no effect."""
    refuse_each(_WHY_NOT)
    return click.get_current_context().params


def _rendered(plan: RealTimePlan, output_format: str) -> str:
    if output_format == "json":
        from headway.formats.real_time_json import real_time_plan_json

        return json_text(real_time_plan_json(plan))
    from headway.report.real_time import real_time_header, real_time_plan_text

    if output_format == "text":
        return real_time_plan_text(plan)
    header = real_time_header(plan, __version__)
    if output_format == "pyspark":
        from headway.emitters.real_time import real_time_snippet

        return real_time_snippet(plan, header)
    if output_format == "spark-defaults":
        from headway.sparkconf import render_properties

        return render_properties(plan.spark_conf, header=header)
    raise click.UsageError(
        f"--format {output_format}: expected text, json, spark-defaults or pyspark in "
        "Real-Time Mode",
        click.get_current_context(),
    )
