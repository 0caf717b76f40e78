"""``headway validate``."""

from __future__ import annotations

import click

from headway.cli.options import Command, json_option
from headway.cli.terminal import suggest
from headway.errors import ExitCode, InputError
from headway.formats.as_json import json_text
from headway.redaction import one_line


@click.command("validate", cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@json_option
def command(files: tuple[str, ...], as_json: bool) -> int:
    """Check spec files and the files they refer to, without planning.

    \b
    headway validate orders.yaml
    headway validate configs/*.yaml --json

    Each error is one line: `file:line:column: path: what is wrong; what was expected`. Exits with 2
    if there is one.
    """
    from headway.api.specs import validate

    faults: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for file in files:
        try:
            kinds[file] = validate(file).kind
        except InputError as error:
            faults[file] = str(error).splitlines()
    if as_json:
        file_reports = [
            {"file": one_line(file), "kind": kinds.get(file), "faults": faults.get(file, [])}
            for file in files
        ]
        click.echo(json_text({"schema": "headway.validation/v1", "files": file_reports}))
    else:
        for file in files:
            for line in faults.get(file, [f"{one_line(file)}: ok, {kinds.get(file)}"]):
                click.echo(line)
        planned = [file for file, kind in kinds.items() if kind in ("StreamingJob", "BatchJob")]
        if planned and not faults:
            suggest(f"headway plan {planned[0]}")
    return ExitCode.INVALID if faults else ExitCode.OK
