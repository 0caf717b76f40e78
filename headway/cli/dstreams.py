"""``headway predict`` and ``headway plan`` of DStreams applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headway.cli.options import exit_code, refuse_each
from headway.cli.progress import Progress
from headway.cli.terminal import answer, show, suggest
from headway.domain import Deadline, Promise
from headway.formats.as_json import json_text
from headway.version import __version__

if TYPE_CHECKING:
    from headway.domain import ApplicationProfile
    from headway.domain.dstreams import DStreamsAnswer

_WHY_NOT = {
    "partitions": "in DStreams the application's own code sets the number of shuffle tasks",
    "max_offsets": "DStreams limit rows per second, in the Spark configuration that plan prints",
    "jvm_age": "the warm-up of DStreams batches is not modelled",
    "objective": "DStreams are planned for the fewest nodes",
    "budget": "DStreams are planned for the fewest nodes; use --max-nodes",
    "checkpoint": "what checkpoints of DStreams fix is not modelled",
    "source_partitions": "the tasks that read DStreams are as profiled",
    "bursts": "bursts of DStreams are not modelled; give the burst's rate as --rate",
    "relaxation": "there is no such bound for DStreams",
    "from_start": "the warm-up of DStreams batches is not modelled",
}


def predict_dstreams(
    profile: ApplicationProfile, *, strict: bool, as_json: bool, **options: Any
) -> int:
    """Print the prediction for a setting."""
    from headway.api.dstreams import predict_dstreams as predict
    from headway.formats.dstreams_json import dstreams_prediction_json
    from headway.report.dstreams import dstreams_prediction_text

    refuse_each(_WHY_NOT)
    prediction = predict(profile, **options)
    answer(prediction, dstreams_prediction_text, dstreams_prediction_json, as_json=as_json)
    if not as_json:
        suggest("headway plan PROFILE --rate 50k/s --target 'p99 <= 5s'")
    return exit_code(calibrated=prediction.calibrated, strict=strict)


def plan_dstreams(
    profile: ApplicationProfile,
    *,
    targets: Sequence[Promise | Deadline],
    output_format: str,
    strict: bool,
    **options: Any,
) -> int:
    """Print the plan of an application."""
    from headway.api.dstreams import plan_dstreams as plan_for

    refuse_each(_WHY_NOT)
    if len(targets) != 1:
        raise click.UsageError(
            "DStreams are planned for one target, e.g. --target 'p99 <= 5s'",
            click.get_current_context(),
        )
    with Progress("planning"):
        plan = plan_for(profile, target=targets[0], **options)
    if output_format == "text":
        from headway.report.dstreams import dstreams_plan_text

        show(dstreams_plan_text(plan), is_met=plan.feasible)
        suggest("add --format spark-defaults to apply it")
    else:
        click.echo(_rendered(plan, output_format).rstrip("\n"))
    return exit_code(calibrated=plan.calibrated, strict=strict, feasible=plan.feasible)


def _rendered(plan: DStreamsAnswer, output_format: str) -> str:
    if output_format == "json":
        from headway.formats.dstreams_json import dstreams_plan_json

        return json_text(dstreams_plan_json(plan))
    if output_format == "spark-defaults":
        from headway.report.dstreams import dstreams_header
        from headway.sparkconf import render_properties

        return render_properties(plan.spark_conf, header=dstreams_header(plan, __version__))
    raise click.UsageError(
        f"--format {output_format}: expected text, json or spark-defaults for DStreams",
        click.get_current_context(),
    )
