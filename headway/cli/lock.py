"""``headway lock``."""

from __future__ import annotations

from pathlib import Path

import click

from headway.api.lock import lock
from headway.cli.options import Command, output_option
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.progress import Progress
from headway.cli.terminal import show, suggest
from headway.formats.lock_file import lock_beside, save_lock
from headway.units import counted


@click.command("lock", cls=Command)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@output_option("Lock file to write.", type=OUTPUT_FILE, default="headway.lock", show_default=True)
def command(specs: tuple[str, ...], output: str) -> int:
    """Record the plans of today as the baseline for 'headway check'.

    \b
    headway lock orders.yaml clicks.yaml
    headway lock jobs/*.yaml -o ci/headway.lock

    The lock file is replaced in one step, and not at all if a target cannot be met. Commit it.
    """
    with Progress("planning"):
        locked = lock(specs)
    save_lock(locked, output)
    for job in locked.all_jobs:
        show(f"{job.name}: {counted(job.nodes, 'node')}, {' and '.join(job.targets)}")
    is_found = {lock_beside(spec) for spec in specs} == {Path(output)}
    baseline = "" if is_found else f" --baseline {output}"
    suggest(f"headway check {' '.join(specs)}{baseline}")
    return 0
