"""``headway mcp``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.options import Command
from headway.cli.terminal import remark
from headway.errors import require_packages


@click.command("mcp", cls=Command)
@click.argument(
    "folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
def command(folder: Path) -> None:
    """Offer the read-only commands as tools to an assistant, over standard input and output.

    \b
    headway mcp jobs/

    docs/how-to/assistants.md shows how an assistant that speaks the Model Context Protocol starts
    this command. The tools are profile, predict, plan, explain, check,
    diff, simulate and schedule, with the arguments of these commands, and answer with their JSON.
    They read files inside FOLDER only, and write none.
    """
    require_packages("mcp", "headway mcp", "mcp")
    if sys.stdin.isatty():
        remark("headway mcp waits for messages of an assistant, which starts it; Ctrl-C ends it")
    from headway.cli.assistants.server import serve

    serve(folder.resolve())
