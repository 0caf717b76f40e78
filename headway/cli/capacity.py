"""``headway capacity``."""

from __future__ import annotations

from typing import Any

import click

from headway.cli.options import Command, json_option
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, suggest
from headway.domain.fleet_questions import CapacityQuestion
from headway.errors import ExitCode


@click.command("capacity", cls=Command)
@click.argument("fleet", metavar="FLEET")
@options_of(CapacityQuestion)
@json_option
def command(fleet: str, as_json: bool, **_: Any) -> int:
    """Find the cheapest capacity for many jobs: nodes by pool and hour, and what targets cost.

    \b
    headway capacity configs/fleet.yaml
    headway capacity fleet.yaml --growth 1.5x --by 2027-06
    headway capacity fleet.yaml --json

    FLEET is a spec file of the kind CapacityPlan ('headway init fleet.yaml --kind CapacityPlan').
    If not every job can be served, names the jobs and limits in the way and exits with 3.
    """
    from headway.api.capacity import capacity

    with Progress() as progress:
        capacity_plan = capacity(fleet, tell=progress.step, **given_options(CapacityQuestion))
    answer(capacity_plan, as_json=as_json)
    if not as_json:
        suggest(f"headway capacity {fleet} --json > c.json, headway report c.json -o c.html")
    return 0 if capacity_plan.feasible else ExitCode.INFEASIBLE
