"""``headway windows``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headway.api.results import as_data, as_text
from headway.api.windows import fusions_of, windows
from headway.cli.jobs import profiled
from headway.cli.options import Command, json_option, question_option
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import show, suggest
from headway.domain.query_questions import WindowsQuestion
from headway.errors import ExitCode
from headway.formats.as_json import json_text
from headway.report.sharing import fusions_json, fusions_text


@click.command("windows", cls=Command)
@click.argument("profile", metavar="LOG|PROFILE")
@options_of(WindowsQuestion)
@question_option(
    "--explain",
    "plan",
    type=click.Path(path_type=Path),
    help="Output of df.explain(): shows which of its exchanges one exchange could replace.",
)
@json_option
def command(profile: str, plan: Path | None, as_json: bool, **_: Any) -> int:
    """Predict what counting overlapping windows from shared panes would save.

    \b
    headway windows job.profile.yaml
    headway windows job.profile.yaml --window '1h every 5m' --window 10m --json
    headway windows job.profile.yaml --queries clicks.windows.yaml

    The log or profile is that of the query as it is now, with Spark's own windows; for a query in
    update mode, only the ways that support it are compared. With --queries, sharing is compared
    with all of them running separately. Exits with 3 if no way of sharing pays.
    """
    gain = windows(profiled(profile), **given_options(WindowsQuestion))
    fusions = () if plan is None else fusions_of(plan)
    if as_json:
        of_plan = {} if plan is None else {"fusions": fusions_json(fusions)}
        click.echo(json_text(as_data(gain) | of_plan))
    else:
        appendix = "" if plan is None else f"\n\n{fusions_text(fusions)}"
        show(as_text(gain) + appendix, is_met=gain.paying)
        suggest(f"headway plan {profile} --rate 50k/s --target 'window p99 <= 20s'")
    return ExitCode.OK if gain.paying else ExitCode.INFEASIBLE
