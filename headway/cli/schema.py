"""``headway schema``."""

from __future__ import annotations

import click

from headway.cli.options import Command
from headway.cli.terminal import suggest
from headway.formats.as_json import json_text
from headway.spec.json_schema import json_schema


@click.command("schema", cls=Command)
def command() -> int:
    """Print the JSON Schema of spec files, for editors and other checkers.

    \b
    headway schema > headway.schema.json
    """
    click.echo(json_text(json_schema()))
    suggest("headway schema > headway.schema.json, for your editor")
    return 0
