"""``headway capacity``."""

from __future__ import annotations

import click

from headway.cli.options import Command, json_option
from headway.cli.progress import Progress
from headway.cli.terminal import answer, suggest
from headway.errors import ExitCode, InputError


@click.command("capacity", cls=Command)
@click.argument("fleet", metavar="FLEET")
@click.option("--growth", help="Multiply all rates by this, e.g. 1.5x.")
@click.option("--by", help="Month by which the rates will have grown, e.g. 2027-06.")
@json_option
def command(fleet: str, growth: str | None, by: str | None, as_json: bool) -> int:
    """Find the cheapest capacity for many jobs: nodes by pool and hour, and what targets cost.

    \b
    headway capacity configs/fleet.yaml
    headway capacity fleet.yaml --growth 1.5x --by 2027-06
    headway capacity fleet.yaml --json

    FLEET is a spec file of the kind CapacityPlan ('headway init fleet.yaml --kind CapacityPlan').
    If not every job can be served, names the jobs and limits in the way and exits with 3.
    """
    from headway.api.capacity import capacity, month_number

    ratio = None if growth is None else _ratio(growth)
    if by is not None:
        month_number(by)
    if by is not None and ratio is None:
        raise InputError("--by needs --growth, e.g. --growth 1.5x")
    with Progress() as progress:
        capacity_plan = capacity(fleet, growth=ratio, by=by, tell=progress.step)
    answer(capacity_plan, as_json=as_json)
    if not as_json:
        suggest(f"headway capacity {fleet} --json > c.json, headway report c.json -o c.html")
    return 0 if capacity_plan.feasible else ExitCode.INFEASIBLE


def _ratio(text: str) -> float:
    try:
        ratio = float(text.strip().removesuffix("x"))
    except ValueError:
        ratio = -1.0
    if not 0 < ratio < 1e6:
        raise InputError(f"--growth {text}: expected a ratio, e.g. 1.5x")
    return ratio
