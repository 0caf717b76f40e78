"""``headway lock``."""

from __future__ import annotations

import click

from headway.cli.options import Command
from headway.cli.outputs import OutputFile


@click.command("lock", cls=Command)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default="headway.lock",
    show_default=True,
    help="The lock to write.",
)
def command(specs: tuple[str, ...], output: str) -> int:
    """Write down what is planned now, for 'headway check' to hold later plans against.

    \b
    headway lock orders.yaml clicks.yaml
    headway lock jobs/*.yaml -o ci/headway.lock

    The lock is replaced in one step, or not at all when a target cannot be met. Commit it.
    """
    from headway.gate import lock, save_lock
    from headway.units import counted

    found = lock(specs)
    save_lock(found, output)
    for job in found.all_jobs:
        click.echo(f"{job.name}: {counted(job.nodes, 'node')}, {' and '.join(job.targets)}")
    return 0
