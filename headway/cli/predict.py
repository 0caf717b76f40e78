"""``headway predict``."""

from __future__ import annotations

from typing import Any

import click

from headway.api.predict import predict_job, predicted_job
from headway.api.result_kinds import sheet_of
from headway.cli.jobs import profile_option, profiled
from headway.cli.options import Command, exit_code, given, json_option, refuse, strict_option
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, suggest
from headway.domain.argument import JobKind
from headway.domain.question import PredictQuestion

_NEXT_STEP = {
    JobKind.QUERY: "headway plan {profile} --rate 50k/s --target 'p99 <= 3s'",
    JobKind.DSTREAMS: "headway plan {profile} --rate 50k/s --target 'p99 <= 5s'",
    JobKind.PIPELINE: "headway plan {profile} --target 'p99 <= 3s'",
}


@click.command("predict", cls=Command)
@click.argument("profile", metavar="LOG|PROFILE")
@options_of(PredictQuestion)
@profile_option
@click.option("-v", "--verbose", is_flag=True, help="Also print how long a restart takes.")
@strict_option
@json_option
def command(
    profile: str,
    queries: tuple[str, ...],
    profile_file: str | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
    **_: Any,
) -> int:
    """Predict the latency of a profiled job in a given configuration.

    \b
    headway predict eventlog_v2_app-1             as it ran
    headway predict job.profile.yaml --rate 50k/s --trigger 2s
    headway predict job.profile.yaml --executors 4 --partitions 32 --json
    headway predict job.profile.yaml --verbose    with the time that a restart takes
    headway predict job.profile.yaml --rate 4k/s --mode real-time
    headway predict pipeline.yaml                 a MicroBatchPipeline or OrderedPipeline

    Every option that is left out is as profiled.
    """
    options = given_options(PredictQuestion)
    source = profiled(profile, queries, profile_file)
    options.pop("queries", None)
    kind, job = predicted_job(source, options)
    is_pipeline = kind is JobKind.PIPELINE
    if is_pipeline:
        refuse(given("strict"), "not for pipelines")
    if kind is not JobKind.QUERY:
        refuse(given("verbose"), "a prediction of such a job has no further details")
    prediction = predict_job(kind, job, options)
    answer(prediction, as_json=as_json, sheet=sheet_of(prediction) if verbose else None)
    if kind in _NEXT_STEP and not as_json:
        suggest(_NEXT_STEP[kind].format(profile=profile))
    return exit_code(calibrated=is_pipeline or prediction.calibrated, strict=strict)
