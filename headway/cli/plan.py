"""``headway plan``."""

from __future__ import annotations

import click

from headway import api
from headway.cli.options import (
    COUNT,
    RATE,
    TARGET,
    json_option,
    setting_options,
    strict_option,
)
from headway.domain import Plan, Target
from headway.report.as_json import json_text, plan_json
from headway.report.text import plan_text
from headway.version import __version__

_INFEASIBLE, _OUTSIDE = 3, 5
_TEXT, _JSON = "text", "json"


@click.command("plan")
@click.argument("profile", metavar="PROFILE")
@click.option("--rate", type=RATE, required=True, help="Arrivals to plan for, e.g. 50k/s.")
@click.option("--target", type=TARGET, required=True, help="The promise, e.g. 'p99 <= 3s'.")
@click.option("--max-nodes", type=COUNT, default=50, show_default=True, help="Most nodes to buy.")
@click.option("--node-cores", type=COUNT, help="Cores of a node; as an executor by default.")
@setting_options
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1.0, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure the plan must be of its durations.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice([_TEXT, _JSON, "spark-defaults", "spark-submit", "pyspark"]),
    default=_TEXT,
    show_default=True,
    help="What to print.",
)
@strict_option
@json_option
def command(
    profile: str,
    rate: float,
    target: Target,
    max_nodes: int,
    node_cores: int | None,
    cores: int | None,
    partitions: int | None,
    trigger: float | None,
    confidence: float,
    output_format: str,
    strict: bool,
    as_json: bool,
) -> int:
    """Fewest nodes that keep a latency target, and the Spark configuration that does it.

    \b
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s'
    headway plan job.profile.yaml --rate 50k/s --target 'mean < 1s' --format spark-defaults
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --partitions 32

    --partitions and --trigger fix what an existing checkpoint or a consumer pins. Exits with 3,
    and prints the nearest feasible plan, when the target cannot be met.
    """
    plan = api.plan(
        profile,
        rate=rate,
        target=target,
        max_nodes=max_nodes,
        node_cores=node_cores,
        cores=cores,
        partitions=partitions,
        trigger=trigger,
        confidence=confidence,
    )
    click.echo(_rendered(plan, _JSON if as_json else output_format).rstrip("\n"))
    if not plan.feasible:
        return _INFEASIBLE
    return _OUTSIDE if strict and not plan.prediction.calibrated else 0


def _rendered(plan: Plan, output_format: str) -> str:
    if output_format == _TEXT:
        return plan_text(plan)
    if output_format == _JSON:
        return json_text(plan_json(plan))
    from headway.planner.emit import FORMATS

    return FORMATS[output_format](plan, version=__version__)
