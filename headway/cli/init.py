"""``headway init``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from headway.api.init import init
from headway.cli.options import Command, given, refuse
from headway.cli.outputs import file_complaint
from headway.cli.terminal import remark, suggest
from headway.errors import InputError
from headway.formats.as_json import json_text
from headway.formats.text_file import write_text
from headway.spec.json_schema import json_schema
from headway.spec.spec_file import SCHEMA_FILE

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_KINDS = (
    "StreamingJob", "BatchJob", "Cluster", "NodeCatalog", "CapacityPlan", "QuerySchedule",
    "Exploration", "Tuning", "MicroBatchPipeline", "OrderedPipeline", "SharedWindows",
)  # fmt: skip


@click.command("init", cls=Command)
@click.argument("file", metavar="FILE")
@click.option(
    "--kind",
    type=click.Choice(_KINDS, case_sensitive=False),
    default=_KINDS[0],
    show_default=True,
    metavar="KIND",
    help=f"Kind of spec file: {', '.join(_KINDS)}.",
)
@click.option("--name", help="Name in the metadata; taken from the file name by default.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(file: str, kind: str, name: str | None, force: bool) -> int:
    """Create a spec file to start from: valid as it stands, with values to replace.

    \b
    headway init orders.yaml
    headway init fleet.yaml --kind CapacityPlan
    headway init - --kind Cluster                    print it

    The first line of FILE lets editors complete and check it, by the schema that is written beside
    it as headway.schema.json.
    """
    if file == "-":
        refuse(given("force"), "there is nothing to overwrite on standard output")
    if file != "-" and (complaint := file_complaint(Path(file))) is not None:
        raise InputError(f"{file}: {complaint}")
    stem = "job" if file == "-" else _NOT_IN_NAMES.sub("-", Path(file).name.split(".")[0])
    name = name or stem.strip("-") or "job"
    text = init(kind, name=name, file="FILE" if file == "-" else file)
    if file == "-":
        click.echo(text, nl=False)
        return 0
    if not force and os.path.lexists(file):
        raise InputError(f"{file}: already exists; give another name, or --force to overwrite it")
    write_text(file, text, label="the scaffold", only_new=not force)
    remark(f"{file}: written; fill in your values, then run: headway validate {file}")
    schema = Path(file).parent / SCHEMA_FILE
    if Path(file).is_file() and not os.path.lexists(schema):
        write_text(schema, json_text(json_schema()) + "\n", label="the schema")
        remark(f"{schema}: written, for editors")
    suggest(f"headway validate {file}")
    return 0
