"""``headway profile``."""

from __future__ import annotations

import re
import shlex
from itertools import chain, count
from pathlib import Path
from typing import Any

import click

from headway.api.profile import Survey, profile, profile_and_tables, survey
from headway.api.results import as_data
from headway.cli.options import (
    RATE,
    TARGET,
    Command,
    given,
    json_option,
    output_option,
    question_option,
    rare_option,
    refuse,
)
from headway.cli.outputs import OUTPUT_FILE_OR_FOLDER, OUTPUT_FOLDER, is_folder
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import remark, show, suggest
from headway.domain import ApplicationProfile, JobProfile, Promise
from headway.domain.argument import JobKind
from headway.domain.log_questions import LogsQuestion, ProfileQuestion
from headway.errors import EventLogError
from headway.formats.as_json import json_text
from headway.formats.profile_file import dump_profile, save_profile
from headway.redaction import one_line


@click.command("profile", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@output_option(
    "YAML file to write; a folder (ending in /) gets one profile per application.",
    type=OUTPUT_FILE_OR_FOLDER,
)
@question_option(
    "--check", is_flag=True, help="Only report what the logs contain and what is missing."
)
@question_option(
    "--advise", is_flag=True, help="Recommend the runs to record next, with the reason for each."
)
@question_option("--rate", type=RATE, help="With --advise: input rate of the question, e.g. 50k/s.")
@question_option(
    "--target",
    "targets",
    type=TARGET,
    multiple=True,
    help="With --advise: target of the question, e.g. 'p99 <= 3s'; repeatable.",
)
@rare_option(
    "--tables",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Write applications, queries, batches, jobs, stages, tasks and plans as Parquet.",
)
@options_of(ProfileQuestion)
@json_option
def command(
    sources: tuple[str, ...],
    output: str | None,
    check: bool,
    advise: bool,
    rate: float | None,
    targets: tuple[Promise, ...],
    tables: Path | None,
    as_json: bool,
    **_: Any,
) -> None:
    """Turn Spark event logs into a job profile: the cost of a batch, stage by stage.

    \b
    headway profile eventlog_v2_app-1 -o job.profile.yaml
    headway profile logs/ --query orders -o orders.profile.yaml
    headway profile run1.zstd --advise                      # which runs to record next

    A SOURCE is an event log (a file, a rolling log folder, a folder of logs, a zip, a glob
    pattern, an application's URL on a History Server, or any path that Hadoop reads) or a file
    written by headway.record; plain or compressed (zstd, gzip, lz4, snappy, lzf). Runs of the same
    job in several configurations make one better profile. Without -o the profile is printed,
    as YAML or with --json as JSON.
    \f

    \b
    headway profile run1.zstd run2.zstd -o job.profile.yaml    # one job in two configurations
    headway profile logs/ -o profiles/                         # one profile per application
    headway profile http://history:18080/history/app-1 --check
    headway profile 's3a://logs/app-1*' --conf spark.jars.packages=...:hadoop-aws:3.5.0
    headway profile run1.zstd --advise --rate 50k/s --target 'p99 <= 3s'    # for one question
    headway profile run1.zstd -o job.profile.yaml --tables t/  # also write tables
    """
    each_into = Path(output) if output is not None and is_folder(output) else None
    if as_json and not (check or advise):
        refuse(given("output", "tables"), "writes files, and --json prints; leave one of them out")
    if advise:
        refuse(
            given("check", "tables", "output"),
            "--advise can be combined with --rate, --target, --query and --trigger only",
        )
    else:
        refuse(given("rate", "targets"), "the question belongs to --advise; add it")
    into_one = output is not None and each_into is None
    if check or each_into is not None or (tables is not None and not into_one):
        refuse(
            [*given("queries", "trigger"), *(given("output") if check else [])],
            "it makes one profile of all logs, but --check, -o FOLDER/, and --tables without "
            "-o FILE treat each log separately; leave it out",
        )
        _survey(sources, each_into, tables, check=check, as_json=as_json)
        return
    if advise:
        _advise(sources, rate, targets, as_json=as_json)
        return
    from headway.report.profiles import profile_summary

    with Progress() as progress:
        job_profile, written = profile_and_tables(
            sources, tables, progress=progress.tell, **given_options(ProfileQuestion)
        )
    if output is None:
        text = json_text(as_data(job_profile)) + "\n" if as_json else dump_profile(job_profile)
        click.echo(text, nl=False)
        return
    save_profile(job_profile, output)
    remark(profile_summary(job_profile))
    for path in (output, *written):
        click.echo(one_line(path))
    suggest(f"headway plan {output} {_usual_question(job_profile)}")


def _usual_question(job: JobProfile | ApplicationProfile) -> str:
    """Options of a plan that a job can have: a job that ends has a deadline, and no rate."""
    ends = job.job_kind is JobKind.ENDING or getattr(job, "drain", None) is not None
    return "--target 'deadline <= 10m'" if ends else "--rate 50k/s --target 'p99 <= 3s'"


def _advise(
    sources: tuple[str, ...], rate: float | None, targets: tuple[Promise, ...], *, as_json: bool
) -> None:
    from headway.api.advise import advise
    from headway.report.advice import advice_as_json, advice_as_text

    with Progress() as progress:
        job_profile = profile(sources, progress=progress.tell, **given_options(ProfileQuestion))
    advised = advise(job_profile, rate=rate, target=targets or None)
    if as_json:
        click.echo(advice_as_json(advised, job_profile))
    else:
        show(advice_as_text(advised, job_profile))
        suggest("headway explore, which makes such runs; headway init FILE --kind Exploration")


def _survey(
    sources: tuple[str, ...],
    each_into: Path | None,
    tables: Path | None,
    *,
    check: bool,
    as_json: bool,
) -> None:
    from headway.report.profiles import survey_as_json, survey_as_text

    with Progress() as progress:
        log_survey = survey(
            sources, tables=tables, progress=progress.tell, **given_options(LogsQuestion)
        )
    if as_json:
        click.echo(survey_as_json(log_survey.logs, log_survey.failures))
    elif check:
        show(survey_as_text(log_survey.logs))
        suggest(f"headway profile {shlex.join(sources)} -o job.profile.yaml")
    for path in log_survey.tables:
        click.echo(one_line(path), err=as_json)
    if each_into is not None:
        _save_each(log_survey, each_into)
    if not as_json:
        for failure in log_survey.failures:
            remark(f"not read: {failure.name}: {failure.why}")


def _save_each(log_survey: Survey, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[Path] = set()
    for log in log_survey.logs:
        if log.profile is None:
            remark(f"no profile: {log.name}: {log.why_not}")
            continue
        path = _free_name(folder, log.profile, taken)
        save_profile(log.profile, path)
        click.echo(one_line(path))
    if not taken:
        raise EventLogError("none of the logs gives a profile; --check shows what is missing")


def _free_name(folder: Path, profile: JobProfile | ApplicationProfile, taken: set[Path]) -> Path:
    """A file named after the application; further ones of the same name get a number."""
    stem = re.sub(r"[^\w.-]", "_", profile.application.id).lstrip(".")[:100] or "unknown"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    paths = (folder / f"{name}.profile.yaml" for name in names)
    path = next(path for path in paths if path not in taken)
    taken.add(path)
    return path
