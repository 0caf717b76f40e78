"""``headway plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.api.pipelines import is_pipeline
from headway.api.plan import plan
from headway.assumptions.planning import CONFIDENCE, MOST_NODES_OF_PLAN
from headway.cli.options import (
    BURST,
    CORES,
    LEVEL,
    NODES,
    NUM_ROWS,
    RATE,
    TARGET,
    Command,
    exit_code,
    given,
    json_option,
    key_options,
    mode_options,
    one_format,
    refuse,
    runs_in_real_time,
    setting_options,
    source_partitions_option,
    strict_option,
    task_cpus_option,
)
from headway.cli.outputs import OutputFile
from headway.cli.plan_spec import OF_STREAMS, plan_of_spec
from headway.cli.progress import Progress
from headway.cli.terminal import show, suggest
from headway.domain import PLATFORMS, Burst, Deadline, JobProfile, Objective, Promise
from headway.report.text import plan_text
from headway.version import __version__

if TYPE_CHECKING:
    from headway.domain import AnyAnswer

_TEXT, _JSON = "text", "json"
_APPLY = "add --format spark-defaults to apply it, -o plan.html for a page to share"
_WAYS_OUT = "plan for one of the targets above; --verbose shows the nearest plan in full"


@click.command("plan", cls=Command)
@click.argument("profile", metavar="PROFILE")
@click.option("--rate", type=RATE, help="Input rate to plan for, e.g. 50k/s; not with a deadline.")
@click.option(
    "--target",
    "targets",
    type=TARGET,
    multiple=True,
    help="Target to meet, e.g. 'p99 <= 3s'; repeatable, and all must be met.",
)
@click.option(
    "--rows",
    type=NUM_ROWS,
    help="With a deadline: backlog that a streaming query reads, e.g. 40M; as profiled by default.",
)
@click.option(
    "--max-nodes",
    type=NODES,
    default=MOST_NODES_OF_PLAN.value,
    show_default=True,
    help="Maximum number of nodes.",
)
@click.option("--node-cores", type=CORES, help="Cores per node; those of an executor by default.")
@setting_options
@click.option(
    "--node-type",
    "node_types",
    multiple=True,
    help="Node type to choose from: a name in the catalogue, or figures as shown above; "
    "repeatable.",
)
@click.option(
    "--catalog", help="Node catalogue (a spec file of kind NodeCatalog); Headway's own by default."
)
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    default="kubernetes",
    show_default=True,
    help="Platform that runs Spark; it reserves part of each catalogue node.",
)
@click.option(
    "--objective",
    type=click.Choice([str(objective) for objective in Objective]),
    default=str(Objective.NODES),
    show_default=True,
    help="Quantity to minimise.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0.0, min_open=True),
    help="Maximum price of all nodes per hour.",
)
@click.option(
    "--checkpoint",
    type=click.Choice(["existing", "new"]),
    help="Start from the existing checkpoint, which fixes the shuffle partitions, or from a new "
    "one.",
)
@source_partitions_option
@task_cpus_option
@click.option(
    "--burst",
    "bursts",
    type=BURST,
    multiple=True,
    help="Burst during which the target must be met: RATE:DURATION[:EVERY]; repeatable.",
)
@click.option(
    "--relaxation",
    is_flag=True,
    help="Also compute the lower bound on nodes by convex relaxation; slower.",
)
@click.option(
    "--lower-memory",
    is_flag=True,
    help="Allow less heap than in the profiled run, down to the measured peak plus headroom.",
)
@click.option(
    "--from-start", is_flag=True, help="Plan for the batch durations of a freshly started JVM."
)
@click.option(
    "--keys",
    type=click.Path(path_type=Path),
    help="How often each key occurs, as for headway ordered; all rows of a key go to one task.",
)
@key_options
@mode_options
@click.option(
    "--confidence",
    type=LEVEL,
    default=CONFIDENCE.value,
    show_default=True,
    help="Confidence level at which the targets must be met, e.g. 0.95 or 95%.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice([_TEXT, _JSON, "spark-defaults", "spark-submit", "pyspark"]),
    default=_TEXT,
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o", "--output", type=OutputFile(), help="Also write an HTML page with charts and what-if."
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Print all details, and the explanation of the plan."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the answer only.")
@strict_option
@json_option
def command(
    profile: str,
    rate: float | None,
    targets: Sequence[Promise | Deadline],
    rows: float | None,
    max_nodes: int,
    node_cores: int | None,
    cores: int | None,
    partitions: int | None,
    trigger: float | None,
    node_types: Sequence[str],
    catalog: str | None,
    platform: str,
    objective: str,
    budget: float | None,
    checkpoint: str | None,
    source_partitions: int | None,
    task_cpus: int | None,
    bursts: Sequence[Burst],
    relaxation: bool,
    lower_memory: bool,
    from_start: bool,
    keys: Path | None,
    key_type: str | None,
    total_rows: float | None,
    concurrent_jobs: int | None,
    mode: str,
    path: float | None,  # noqa: ARG001
    confidence: float,
    output_format: str,
    output: str | None,
    strict: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find the fewest nodes that meet a latency target, and their Spark configuration.

    \b
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s'
    headway plan job.profile.yaml --rate 50k/s --target 'mean < 1s' --format spark-defaults
    headway plan orders.yaml                      a spec file; 'headway init' writes one
    headway plan pipeline.yaml --target 'p99 <= 3s'
    headway plan orders.yaml --rate 90k/s         what if: options count instead of the file
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --checkpoint existing
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --burst 150k/s:2m:1h
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --objective cost \\
        --node-type m6i.xlarge:cores=4,memory=14g,price=0.192 \\
        --node-type m7g.xlarge:cores=4,memory=14g,price=0.163,speed=1.1

    Targets for streaming jobs: 'p99 <= 3s', 'mean < 1s', 'window p95 <= 20s', 'batch p99 <= 2s';
    together with one of these also 'p99 <= 9s during 150k/s for 2m' and 'catch_up <= 1m after
    150k/s for 2m' (bursts) and 'catch_up <= 15m after 30m' (an outage). For batch jobs, and for
    streaming queries that read a backlog and end (Trigger.AvailableNow): 'deadline <= 10m'. Use
    --partitions and --trigger to fix a setting. If the targets cannot be met, prints the nearest
    feasible plan and exits with 3.
    """
    from headway.api.specs import is_spec
    from headway.cli.real_time import plan_in_real_time

    output_format = one_format(as_json, output_format)
    if keys is None:
        refuse(given("key_type", "total_rows"), "it is about the keys of a file: give --keys")
    if runs_in_real_time(mode):
        return plan_in_real_time(output_format)
    if quiet and verbose:
        refuse(["--quiet"], "contradicts --verbose; give one of them")
    if output_format != _TEXT:
        refuse(given("verbose", "quiet"), f"--format {output_format} has one length")
    display = _Show(
        output_format=output_format, output=output, strict=strict, verbose=verbose, quiet=quiet
    )
    if is_pipeline(profile):
        from headway.cli.pipelines import plan_of_pipeline

        return plan_of_pipeline(
            profile,
            targets=targets,
            rate=rate,
            max_nodes=max_nodes if given("max_nodes") else None,
            output_format=output_format,
        )
    if all(":" in node_type for node_type in node_types):
        refuse(
            given("platform", "catalog"),
            "it applies to node types of the catalogue: give --node-type NAME",
        )
    if not targets or is_spec(profile):
        planned = plan_of_spec(profile)
        return _shown(planned.plan, display, profile=planned.profile)
    deadlines = [target for target in targets if isinstance(target, Deadline)]
    if deadlines:
        if len(targets) > 1:
            why = f"'{deadlines[0]}' is for jobs that end and must be the only target"
            refuse(["--target"], why)
        from headway.formats.profile_file import load_any_profile

        # What the profile is of comes before what its options are for.
        loaded_profile = load_any_profile(profile)
        loaded_profile.for_deadline(deadlines[0], rows)
        refuse(given(*OF_STREAMS), "not with a deadline")
        with Progress("planning"):
            batch_plan = plan(
                loaded_profile,
                target=deadlines[0],
                rows=rows,
                max_nodes=max_nodes,
                node_cores=node_cores,
                cores=cores,
                node_types=node_types,
                catalog=catalog,
                platform=platform,
                objective=objective,
                confidence=confidence,
                lower_memory=lower_memory,
                task_cpus=task_cpus,
            )
        return _shown(batch_plan, display)
    refuse(given("rows"), "only with a deadline, e.g. --target 'deadline <= 10m'")
    from headway.formats.profile_file import load_stream_profile

    job = load_stream_profile(profile)
    if not isinstance(job, JobProfile):
        from headway.cli.dstreams import plan_dstreams

        refuse(
            given("output", "verbose", "quiet", "keys", "key_type", "total_rows"),
            "not for DStreams",
        )
        return plan_dstreams(
            job,
            rate=rate,
            targets=targets,
            max_nodes=max_nodes,
            node_cores=node_cores,
            cores=cores,
            batch_interval=trigger,
            concurrent_jobs=concurrent_jobs,
            confidence=confidence,
            node_types=node_types,
            catalog=catalog,
            task_cpus=task_cpus,
            lower_memory=lower_memory,
            platform=platform,
            output_format=output_format,
            strict=strict,
        )
    refuse(given("concurrent_jobs"), "only DStreams run several jobs at a time")
    if rate is None:
        raise click.UsageError("Missing option '--rate'.", click.get_current_context())
    with Progress("planning"):
        stream_plan = plan(
            job,
            rate=rate,
            target=[target for target in targets if not isinstance(target, Deadline)],
            max_nodes=max_nodes,
            node_cores=node_cores,
            cores=cores,
            partitions=partitions,
            trigger=trigger,
            confidence=confidence,
            objective=objective,
            node_types=node_types,
            catalog=catalog,
            platform=platform,
            budget=budget,
            checkpoint=checkpoint,
            source_partitions=source_partitions,
            task_cpus=task_cpus,
            bursts=bursts,
            relaxation=relaxation,
            lower_memory=lower_memory,
            from_start=from_start,
            keys=keys,
            key_type=key_type,
            total_rows=total_rows,
        )
    return _shown(stream_plan, display, profile=profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Show:
    """How the plan is shown."""

    output_format: str
    output: str | None
    strict: bool
    verbose: bool
    quiet: bool


def _in_words(plan: AnyAnswer, display: _Show) -> str:
    if display.verbose and plan.ends:
        refuse(["--verbose"], "a plan of a batch job has no further details")
    text = plan_text(plan, verbose=display.verbose)
    if display.quiet:
        text = text.partition("\n\n")[0]
    elif display.verbose and not plan.ends:
        from headway.report.explanation import explanation_text

        text = f"{text}\n\n{explanation_text(plan)}"
    return text


def _shown(plan: AnyAnswer, display: _Show, profile: str | JobProfile | None = None) -> int:
    output_format = display.output_format
    if output_format == _TEXT:
        # What is printed is computed when it is read.
        with Progress("planning"):
            text = _in_words(plan, display)
        show(text.rstrip("\n"), is_met=plan.feasible)
        if not display.quiet and (plan.feasible or not plan.ends):
            suggest(_APPLY if plan.feasible else _WAYS_OUT)
    elif output_format == _JSON:
        from headway.formats.as_json import json_text, plan_json

        click.echo(json_text(plan_json(plan)))
    else:
        from headway.emitters import FORMATS

        click.echo(FORMATS[output_format](plan, version=__version__).rstrip("\n"))
    if display.output is not None:
        from headway.cli.pages import write_page

        write_page(display.output, plan, profile=None if plan.ends else profile)
    return exit_code(calibrated=plan.calibrated, strict=display.strict, feasible=plan.feasible)
