"""``headway plan``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from headway.api.file_kinds import is_pipeline, is_spec
from headway.api.plan import plan_job, planned_job
from headway.api.results import as_data, as_text
from headway.cli.jobs import profile_option, profiled
from headway.cli.options import (
    Command,
    exit_code,
    format_option,
    given,
    json_option,
    one_format,
    output_option,
    rare_option,
    refuse,
    strict_option,
)
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import show, suggest
from headway.domain import Deadline
from headway.domain.argument import JobKind, refuse_for
from headway.domain.question import PlanQuestion
from headway.emitters import FORMATS
from headway.formats.as_json import json_text
from headway.report.sheet_text import sheet_text
from headway.sparkconf import render_properties
from headway.version import __version__

_TEXT, _JSON = "text", "json"
_APPLY = "add --format spark-defaults to apply it, -o plan.html for a page to share"
_WAYS_OUT = "plan for one of the targets above; --verbose shows the nearest plan in full"

#: The likely next command after a plan; that of queries depends on the answer.
_NEXT_STEP: Mapping[JobKind, str] = {
    JobKind.DSTREAMS: "add --format spark-defaults to apply it",
    JobKind.PIPELINE: "headway simulate {profile}",
}


@click.command("plan", cls=Command)
@click.argument("profile", metavar="LOG|PROFILE|SPEC")
@options_of(PlanQuestion)
@profile_option
@format_option(
    (_TEXT, _JSON, "spark-defaults", "spark-submit", "pyspark"),
    "Output format: text, json, spark-defaults, spark-submit or pyspark.",
    metavar="FORMAT",
)
@output_option("Also write an HTML page with charts and what-if.", type=OUTPUT_FILE)
@click.option(
    "-v", "--verbose", is_flag=True, help="Print all details, and the explanation of the plan."
)
@rare_option("-q", "--quiet", is_flag=True, help="Print the answer only.")
@strict_option
@json_option
def command(
    profile: str,
    queries: tuple[str, ...],
    profile_file: str | None,
    output_format: str,
    output: str | None,
    strict: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **_: Any,
) -> int:
    """Find the fewest nodes that meet a latency target, and their configuration.

    \b
    headway plan eventlog_v2_app-1 --rate 50k/s --target 'p99 <= 3s'
    headway plan eventlog_v2_app-1    what it meets today, and at other rates
    headway plan orders.yaml          a spec file; 'headway init' writes one

    Targets: 'p99 <= 3s', 'mean < 1s', 'window p95 <= 20s', 'batch p99 <= 2s'; for jobs that end
    'deadline <= 10m'. Exits with 3 if no setting meets them.
    \f

    \b
    headway plan job.profile.yaml --rate 50k/s --target 'mean < 1s' --format spark-defaults
    headway plan pipeline.yaml --target 'p99 <= 3s'
    headway plan orders.yaml --rate 90k/s         what if: options count instead of the file
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --checkpoint existing
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --burst 150k/s:2m:1h
    headway plan job.profile.yaml --rate 50k/s --target 'p99 <= 3s' --objective cost \\
        --node-type m6i.xlarge:cores=4,memory=14g,price=0.192 \\
        --node-type m7g.xlarge:cores=4,memory=14g,price=0.163,speed=1.1

    Together with a latency also 'p99 <= 9s during 150k/s for 2m' and 'catch_up <= 1m after 150k/s
    for 2m' (bursts) and 'catch_up <= 15m after 30m' (an outage); all targets must be met. Jobs that
    end are batch jobs, and streaming queries that read a backlog (Trigger.AvailableNow). If the
    targets cannot be met, the nearest feasible plan is printed.
    """
    output_format = one_format(as_json, output_format)
    if quiet and verbose:
        refuse(["--quiet"], "contradicts --verbose; give one of them")
    if output_format != _TEXT:
        refuse(given("verbose", "quiet"), f"--format {output_format} has one length")
    options = given_options(PlanQuestion)
    options.pop("queries", None)
    job: Any = profiled(profile, queries, profile_file)
    # Commands on the page are for the profile, or for the log that was profiled.
    on_page: str | None = profile_file or profile
    name = ""
    if job is profile and is_spec(profile) and not is_pipeline(profile):
        kind, planned_spec = _planned_spec(profile, options, output_format)
        plan, planned, name = planned_spec.plan, planned_spec.profile, planned_spec.name
        of_spec = planned_spec.file.spec.profile
        on_page = None if of_spec is None else str(of_spec)
    else:
        kind, planned = planned_job(job, options)
        _refuse_outputs(kind, output_format)
        with Progress("planning"):
            plan = plan_job(kind, planned, options)
    _print(kind, plan, profile, output_format, verbose=verbose, quiet=quiet)
    if output is not None:
        from headway.cli.pages import write_page

        write_page(
            output,
            plan,
            profile=planned if kind is JobKind.QUERY else None,
            profile_file=on_page,
            name=name or _name_of(planned),
            files=[profile],
        )
    # No pipeline was measured, so none is calibrated; --strict is refused.
    calibrated = kind is JobKind.PIPELINE or plan.calibrated
    return exit_code(calibrated=calibrated, strict=strict, feasible=plan.feasible)


def _planned_spec(file: str, options: Mapping[str, Any], output_format: str) -> tuple[JobKind, Any]:
    """Kind and plan of the job of a spec file; options count instead of the file."""
    # Plans of profiles come without what reads spec files.
    from headway.api.specs import plan_file
    from headway.spec.spec_file import load_spec

    if "mode" in options:
        refuse(["--mode"], "a spec file is planned in micro-batches; give the profile")
    spec_file = load_spec(file)
    is_batch = spec_file.kind == "BatchJob"
    kind = JobKind.ENDING if is_batch else JobKind.QUERY
    refuse_for(kind, PlanQuestion, options)
    targets = options.get("target", ())
    if any(isinstance(target, Deadline) is not is_batch for target in targets) or (
        is_batch and len(targets) > 1
    ):
        job = "batch" if is_batch else "streaming"
        example = "one 'deadline <= 10m'" if is_batch else "latencies, e.g. 'p99 <= 3s'"
        refuse(["--target"], f"{file} is a {job} job; expected {example}")
    _refuse_outputs(kind, output_format)
    with Progress("planning"):
        return kind, plan_file(spec_file, **options)


def _name_of(job: Any) -> str:
    """The application of a profile, or the name in the file of a pipeline; empty if unknown."""
    if is_pipeline(job):
        from headway.spec.spec_file import load_spec

        return load_spec(job).metadata.name
    return str(job.application.name_in_log)


def _refuse_outputs(kind: JobKind, output_format: str) -> None:
    """Refuse options of output that a plan of this kind of job does not have."""
    formats = (_TEXT, _JSON, *configuration_formats(kind))
    why = f"expected {', '.join(formats[:-1])} or {formats[-1]} for a {kind}"
    if kind is JobKind.PIPELINE:
        refuse(given("verbose"), "a plan of a pipeline has no further details")
        refuse(given("strict"), "not for pipelines")
        why = "a pipeline does not run on Spark"
    if output_format not in formats:
        refuse([f"--format {output_format}"], why)


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


def _print(
    kind: JobKind, plan: Any, source: str, output_format: str, *, verbose: bool, quiet: bool
) -> None:
    if output_format == _TEXT:
        # What is printed is computed when it is read.
        with Progress("planning"):
            text = _in_words(kind, plan, verbose=verbose, quiet=quiet)
        show(text.rstrip("\n"), is_met=plan.feasible)
        if not quiet and kind in _NEXT_STEP:
            suggest(_NEXT_STEP[kind].format(profile=source))
        elif not quiet and (kind is JobKind.QUERY or (kind is JobKind.ENDING and plan.feasible)):
            suggest(_APPLY if plan.feasible else _WAYS_OUT)
    elif output_format == _JSON:
        click.echo(json_text(as_data(plan)))
    else:
        click.echo(configuration_formats(kind)[output_format](plan).rstrip("\n"))


def _in_words(kind: JobKind, plan: Any, *, verbose: bool, quiet: bool) -> str:
    # Help is shown without what shows plans.
    from headway.api.result_kinds import sheet_of
    from headway.report.stream import answer_sheet, stream_sheet

    is_of_query = kind is JobKind.QUERY
    if verbose:
        whole = sheet_text(stream_sheet(plan) if is_of_query else sheet_of(plan))
        if kind not in (JobKind.QUERY, JobKind.ENDING):
            return whole
        from headway.api.explain import explain

        return f"{whole}\n\n{explain(plan)}"
    if quiet:
        answer = answer_sheet(plan) if is_of_query else sheet_of(plan)
        return sheet_text(answer).partition("\n\n")[0]
    return as_text(plan)
