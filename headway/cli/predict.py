"""``headway predict``."""

from __future__ import annotations

import click

from headway.api.pipelines import is_pipeline
from headway.api.predict import predict
from headway.cli.options import (
    DURATION,
    EXECUTORS,
    RATE,
    ROWS,
    Command,
    exit_code,
    given,
    json_option,
    mode_options,
    refuse,
    runs_in_real_time,
    setting_options,
    source_partitions_option,
    strict_option,
    task_cpus_option,
)
from headway.cli.terminal import answer, suggest
from headway.domain import JobProfile
from headway.formats.as_json import prediction_json
from headway.report.text import prediction_text


@click.command("predict", cls=Command)
@click.argument("profile", metavar="PROFILE")
@click.option("--rate", type=RATE, help="Input rate, e.g. 50k/s.")
@setting_options
@click.option("--executors", type=EXECUTORS, help="Executors.")
@click.option(
    "--max-offsets", type=ROWS, help="Rate limit: maximum records per batch (maxOffsetsPerTrigger)."
)
@source_partitions_option
@task_cpus_option
@click.option("--jvm-age", type=DURATION, help="Age of the executor JVMs, e.g. 2min.")
@mode_options
@strict_option
@json_option
def command(
    profile: str,
    rate: float | None,
    trigger: float | None,
    executors: int | None,
    cores: int | None,
    partitions: int | None,
    max_offsets: int | None,
    source_partitions: int | None,
    task_cpus: int | None,
    jvm_age: float | None,
    concurrent_jobs: int | None,
    mode: str,
    path: float | None,  # noqa: ARG001
    strict: bool,
    as_json: bool,
) -> int:
    """Predict the latency of a profiled job in a given configuration.

    \b
    headway predict job.profile.yaml --rate 50k/s --trigger 2s
    headway predict job.profile.yaml --executors 4 --partitions 32 --json
    headway predict job.profile.yaml --rate 4k/s --mode real-time
    headway predict pipeline.yaml                 a MicroBatchPipeline or OrderedPipeline

    Every option that is left out is as profiled.
    """
    if runs_in_real_time(mode):
        from headway.cli.real_time import predict_in_real_time

        return predict_in_real_time()
    if is_pipeline(profile):
        from headway.cli.pipelines import predict_of_pipeline

        return predict_of_pipeline(profile, rate=rate, as_json=as_json)
    from headway.formats.profile_file import load_stream_profile

    job = load_stream_profile(profile)
    if not isinstance(job, JobProfile):
        from headway.cli.dstreams import predict_dstreams

        return predict_dstreams(
            job,
            rate=rate,
            batch_interval=trigger,
            executors=executors,
            cores=cores,
            concurrent_jobs=concurrent_jobs,
            task_cpus=task_cpus,
            strict=strict,
            as_json=as_json,
        )
    refuse(given("concurrent_jobs"), "only DStreams run several jobs at a time")
    prediction = predict(
        job,
        rate=rate,
        trigger=trigger,
        executors=executors,
        cores=cores,
        partitions=partitions,
        max_offsets=max_offsets,
        source_partitions=source_partitions,
        task_cpus=task_cpus,
        jvm_age=jvm_age,
    )
    answer(prediction, prediction_text, prediction_json, as_json=as_json)
    if not as_json:
        suggest(f"headway plan {profile} --rate 50k/s --target 'p99 <= 3s'")
    return exit_code(calibrated=prediction.calibrated, strict=strict)
