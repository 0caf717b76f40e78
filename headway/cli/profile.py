"""``headway profile``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headway import api
from headway.cli.progress import Progress
from headway.domain import JobProfile
from headway.errors import InputError
from headway.units import format_duration, format_rate


@click.command("profile")
@click.argument("sources", nargs=-1, required=True, metavar="EVENTLOG...")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="YAML file.",
)
@click.option("--query", "queries", multiple=True, metavar="NAME_OR_ID", help="Repeatable.")
@click.option(
    "--master", default="local[*]", show_default=True, help="Spark to read the logs with."
)
def command(
    sources: tuple[str, ...], output: Path | None, queries: tuple[str, ...], master: str
) -> None:
    """Read Spark event logs and write what a batch of the job costs.

    \b
    headway profile eventlog_v2_app-1 -o job.profile.yaml
    headway profile logs/ --query orders -o orders.profile.yaml
    headway profile run1.zstd run2.zstd -o job.profile.yaml    # one job, two settings

    An EVENTLOG is a file, a rolling folder, or a folder of such; plain, zstd or gzip. Several
    queries of the same job at different settings make one profile. Without -o the profile is
    printed.
    """
    from headway.spec.profile_file import dump_profile

    if output is not None:
        _require_folder(output)
    with Progress() as progress:
        profile = api.profile(sources, queries=queries, master=master, progress=progress.step)
    if output is None:
        click.echo(dump_profile(profile), nl=False)
        return
    api.save_profile(profile, output)
    click.echo(_summary(profile), err=True)
    click.echo(str(output))


def _require_folder(output: Path) -> None:
    """Told before the logs are read, which takes a while."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{output}: no folder {folder}; make it, or name another file with -o")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{output}: the folder {folder} is not yours to write to")


def _summary(profile: JobProfile) -> str:
    num_batches = sum(setting.num_batches for setting in profile.settings)
    lines = [
        (
            f"{len(profile.settings)} run(s), {num_batches} batches, "
            f"{len(profile.stages)} stage(s) per batch, "
            f"last at {format_rate(profile.arrivals.rate_per_s)}"
        ),
        *(
            f"  {phase.name}: {format_duration(phase.mean_s)} per batch"
            for phase in profile.driver_phases
            if phase.mean_s >= 0.001
        ),
        *(
            f"  {stage.name}: {format_duration(stage.task_fixed_s)} per task, "
            f"{stage.task_per_row_s * 1e6:.3g} us per row"
            for stage in profile.stages
        ),
        *(f"note: {note}" for note in profile.notes),
    ]
    return "\n".join(lines)
