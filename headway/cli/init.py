"""``headway init``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from headway.cli.options import Command, given, refuse
from headway.cli.outputs import file_complaint
from headway.errors import InputError

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_KINDS = ("StreamingJob", "BatchJob", "Cluster", "NodeCatalog", "CapacityPlan")


@click.command("init", cls=Command)
@click.argument("file", metavar="FILE")
@click.option(
    "--kind",
    type=click.Choice(_KINDS, case_sensitive=False),
    default=_KINDS[0],
    show_default=True,
    help="What the file describes.",
)
@click.option("--name", help="What it is called; after the file by default.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(file: str, kind: str, name: str | None, force: bool) -> int:
    """Write a spec file to begin with: valid as it stands, to be filled in.

    \b
    headway init orders.yaml
    headway init fleet.yaml --kind CapacityPlan
    headway init - --kind Cluster                    print it instead

    FILE is written with a line that lets editors complete and check it.
    """
    from headway.formats.text_file import write_text
    from headway.spec.scaffolds import scaffold
    from headway.spec.spec_file import parse_spec

    if file == "-":
        refuse(given("force"), "nothing is replaced on standard output")
    if file != "-" and (complaint := file_complaint(Path(file))) is not None:
        raise InputError(f"{file}: {complaint}")
    stem = "job" if file == "-" else _NOT_IN_NAMES.sub("-", Path(file).name.split(".")[0])
    name = name or stem.strip("-") or "job"
    text = scaffold(kind, name=name, file="FILE" if file == "-" else file)
    parse_spec(text, name=file, folder=Path())  # a name may be none
    if file == "-":
        click.echo(text, nl=False)
        return 0
    if not force and os.path.lexists(file):
        raise InputError(f"{file}: is there already; give another name, or --force")
    write_text(file, text, what="the scaffold", only_new=not force)
    click.echo(f"{file}: written; fill it in, then: headway validate {file}", err=True)
    return 0
