"""``headway plan``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from headway.api.pipelines import is_pipeline
from headway.api.plan import plan_job, planned_job
from headway.cli.kinds_of_jobs import NEXT_STEP, configuration_formats, refuse_outputs
from headway.cli.options import (
    Command,
    exit_code,
    given,
    json_option,
    one_format,
    refuse,
    strict_option,
)
from headway.cli.outputs import OutputFile
from headway.cli.plan_spec import planned_spec
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import show, suggest
from headway.domain.argument import JobKind
from headway.domain.question import PlanQuestion

if TYPE_CHECKING:
    from headway.domain import JobProfile

_TEXT, _JSON = "text", "json"
_APPLY = "add --format spark-defaults to apply it, -o plan.html for a page to share"
_WAYS_OUT = "plan for one of the targets above; --verbose shows the nearest plan in full"


@click.command("plan", cls=Command)
@click.argument("profile", metavar="PROFILE")
@options_of(PlanQuestion)
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
    output_format: str,
    output: str | None,
    strict: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **_: Any,
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
    from headway.api.specs import is_spec, plan_file

    output_format = one_format(as_json, output_format)
    if quiet and verbose:
        refuse(["--quiet"], "contradicts --verbose; give one of them")
    if output_format != _TEXT:
        refuse(given("verbose", "quiet"), f"--format {output_format} has one length")
    how = _Show(
        output_format=output_format, output=output, strict=strict, verbose=verbose, quiet=quiet
    )
    options = given_options(PlanQuestion)
    if not is_pipeline(profile) and ("target" not in options or is_spec(profile)):
        kind, spec_file = planned_spec(profile, options)
        refuse_outputs(kind, output_format)
        with Progress("planning"):
            planned = plan_file(spec_file, **options)
        return _shown(kind, planned.plan, how, profile=planned.profile)
    kind, job = planned_job(profile, options)
    refuse_outputs(kind, output_format)
    with Progress("planning"):
        plan = plan_job(kind, job, options)
    return _shown(kind, plan, how, profile=profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Show:
    """How the plan is shown."""

    output_format: str
    output: str | None
    strict: bool
    verbose: bool
    quiet: bool


def _shown(kind: JobKind, plan: Any, how: _Show, *, profile: str | JobProfile) -> int:
    if how.output_format == _TEXT:
        # What is printed is computed when it is read.
        with Progress("planning"):
            text = _in_words(kind, plan, how)
        show(text.rstrip("\n"), is_met=plan.feasible)
        if not how.quiet:
            _suggest_next(kind, plan, profile)
    elif how.output_format == _JSON:
        from headway.api.results import as_data
        from headway.formats.as_json import json_text

        click.echo(json_text(as_data(plan)))
    else:
        click.echo(configuration_formats(kind)[how.output_format](plan).rstrip("\n"))
    if how.output is not None:
        from headway.cli.pages import write_page

        write_page(how.output, plan, profile=profile if kind is JobKind.QUERY else None)
    # No pipeline was measured, so none is calibrated; --strict is refused.
    calibrated = kind is JobKind.PIPELINE or plan.calibrated
    return exit_code(calibrated=calibrated, strict=how.strict, feasible=plan.feasible)


def _in_words(kind: JobKind, plan: Any, how: _Show) -> str:
    # Help is shown without what shows plans.
    from headway.api.results import as_text

    if how.verbose:
        from headway.api.explain import explain

        whole = _whole_text(plan) if kind is JobKind.QUERY else as_text(plan)
        return f"{whole}\n\n{explain(plan)}"
    text = as_text(plan)
    return text.partition("\n\n")[0] if how.quiet else text


def _whole_text(plan: Any) -> str:
    """A query's plan in full, even if it is infeasible."""
    from headway.report.sheet_text import sheet_text
    from headway.report.stream import stream_sheet

    return sheet_text(stream_sheet(plan))


def _suggest_next(kind: JobKind, plan: Any, profile: str | JobProfile) -> None:
    if kind in NEXT_STEP:
        suggest(NEXT_STEP[kind].format(profile=profile))
    elif kind is JobKind.QUERY or (kind is JobKind.ENDING and plan.feasible):
        suggest(_APPLY if plan.feasible else _WAYS_OUT)
