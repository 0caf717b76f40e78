"""``headway emit``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.options import Command, given, rare_option, refuse
from headway.cli.outputs import OUTPUT_FOLDER, file_complaint
from headway.cli.terminal import show_patched, suggest
from headway.emitters import ALL_FORMATS
from headway.errors import ExitCode, HeadwayError, InputError
from headway.formats.from_json import parse_any_plan
from headway.formats.own_files import read_whole_text
from headway.formats.text_file import write_text
from headway.redaction import one_line
from headway.version import __version__
from headway.words import missed_text

if TYPE_CHECKING:
    from headway.domain import Answer
    from headway.emitters.difference import CurrentSettings
    from headway.emitters.submission import Submission


@click.command("emit", cls=Command)
@click.argument("plan", metavar="PLAN")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(tuple(ALL_FORMATS)),
    metavar="FORMAT",
    help=f"Output format: {', '.join(ALL_FORMATS)}.",
)
@click.option(
    "--diff-from", metavar="CURRENT", help="Leave out settings that this file already has."
)
@click.option("--patch", metavar="FILE", help="Put the plan into this existing manifest or bundle.")
@click.option("--write", is_flag=True, help="With --patch: change the file instead of printing it.")
@click.option("--job", help="With --patch: which job, if the file has several.")
@click.option(
    "--files",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="With --diff-from: write must-set.conf, merged.conf and reasons.txt to this folder.",
)
@click.option("--spark-version", help="Spark version that will run the job; as planned by default.")
@click.option("--name", help="Name of the job.")
@click.option("--main", help="Application file, e.g. local:///opt/app/orders.py.")
@rare_option("--image", help="Container image.")
@rare_option("--namespace", help="Namespace.")
@click.option("--node-type", help="The platform's name of the node type.")
@rare_option("--runtime", help="Release of the platform's runtime, e.g. 17.3.x-scala2.13.")
def command(
    plan: str,
    output_format: str | None,
    diff_from: str | None,
    patch: str | None,
    write: bool,
    job: str | None,
    files: Path | None,
    **names: str | None,
) -> int:
    """Write a plan as configuration for your platform, each setting with its reason.

    \b
    headway emit plan.json --format kubeflow
    headway emit orders.yaml --format spark-defaults --diff-from spark-defaults.conf
    headway emit orders.yaml --patch deploy/orders.yaml --write
    headway plan orders.yaml --json | headway emit - --format emr

    PLAN is what 'headway plan --json' printed, or a job's spec file, which is planned first. JSON
    has no comments, so reasons go to stderr. If the plan misses its target, the output says so and
    the exit code is 3.
    """
    from headway.api.emit import current_settings, emitted, plan_and_submission

    of_file = "--files" if files is not None else "--patch" if patch is not None else None
    if output_format is not None and of_file is not None:
        raise InputError(
            f"--format and {of_file} contradict each other: {of_file} writes files of its own; "
            "leave one of them out"
        )
    if output_format is None and of_file is None:
        raise InputError("expected --format, or --patch, or --files; see 'headway emit --help'")
    if files is not None and diff_from is None:
        raise InputError(
            "--files needs the current settings to compare with; give --diff-from CURRENT"
        )
    submitted = {name: value for name, value in names.items() if value is not None}
    _require_use(output_format, patch, files, list(submitted))
    if patch is not None and write and (complaint := file_complaint(Path(patch))) is not None:
        raise InputError(f"--patch {patch}: {complaint}")
    answer, submission = plan_and_submission(
        parse_any_plan(sys.stdin.read(), name="stdin") if plan == "-" else plan, submitted
    )
    current = None if diff_from is None else current_settings(diff_from)
    if files is not None and current is not None:
        _write_files(answer, current, files)
    if patch is not None:
        _patch(answer, submission, patch, write=write, job=job)
    if output_format is not None:
        out = emitted(answer, output_format, submission, current)
        click.echo(out.text, nl=False)
        for line in out.beside:
            click.echo(line, err=True)
    if output_format is not None and diff_from is None:
        suggest("add --diff-from CURRENT to leave out what your file already has")
    if not answer.feasible:
        why = f"{missed_text(answer)}: {'; '.join(answer.binding)}"
        click.echo(f"headway: infeasible: {why}", err=True)
        return ExitCode.INFEASIBLE
    return 0


def _require_use(
    output_format: str | None, patch: str | None, files: Path | None, names: Sequence[str]
) -> None:
    """Refuse options that would have no effect on the output."""
    if patch is None:
        refuse(given("write", "job"), "it works with --patch FILE only")
    elif files is None:
        refuse(given("diff_from"), "a patch changes only what differs; leave it out")
    if output_format is not None:
        for name in names:
            formats = [text for text, emitter in ALL_FORMATS.items() if name in emitter.uses]
            if output_format not in formats:
                why = f"{output_format} has no place for it; these have: {', '.join(formats)}"
                refuse(given(name), why)
    elif patch is None:
        refuse(given(*names), "these files hold Spark configuration only")
    else:
        refuse(
            given(*(name for name in names if name != "node_type")), "a patch leaves it as it is"
        )


def _patch(
    plan: Answer, submission: Submission, file: str, *, write: bool, job: str | None
) -> None:
    from headway.api.emit import patched
    from headway.emitters.patch import names_node_types

    before = read_whole_text(Path(file), expected="a manifest or a bundle")
    if given("node_type") and not names_node_types(before, file):
        refuse(["--node-type"], f"{file} has no place for it; only Databricks bundles have")
    after = patched(plan, before, submission, name=file, job=job)
    show_patched(file, before, after.text, is_written=write, state="as planned")
    for line in after.beside:
        click.echo(line, err=True)


def _write_files(plan: Answer, current: CurrentSettings, folder: Path) -> None:
    from headway.emitters import difference

    plan = difference.with_assumptions(plan, current)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadwayError(f"{folder}: cannot be created: {error.strerror}") from None
    for name, render in (
        ("must-set.conf", difference.must_set_text),
        ("merged.conf", difference.merged_text),
        ("reasons.txt", difference.reasons_text),
    ):
        write_text(folder / name, render(plan, current.conf, version=__version__), label=name)
        click.echo(f"{one_line(folder / name)}: written", err=True)
    for note in current.notes:
        click.echo(note, err=True)
