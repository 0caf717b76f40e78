"""``headway schedule``."""

from __future__ import annotations

import click

from headway.api.schedule import replay_decisions, schedule_verdict
from headway.cli.options import Command, given, json_option, refuse
from headway.cli.progress import Progress
from headway.cli.terminal import answer, suggest
from headway.errors import ExitCode, InputError


@click.command("schedule", cls=Command)
@click.argument("jobs", required=False, metavar="[JOBS]")
@click.option(
    "--policy",
    "policies",
    help="Policies to compare, separated by commas, or 'all'. Default: stagger, fcfs, promise and "
    "economy.",
)
@click.option(
    "--decisions",
    type=click.Path(),
    help="Replay the decision log of a gate instead: headway.schedule(..., decisions=FILE).",
)
@json_option
def command(jobs: str | None, policies: str | None, decisions: str | None, as_json: bool) -> int:
    """Decide before the run whether the queries of one application should take turns.

    \b
    headway schedule queries.yaml
    headway schedule queries.yaml --policy all --json
    headway schedule --decisions gate.jsonl

    JOBS is a spec file of the kind QuerySchedule ('headway init queries.yaml --kind
    QuerySchedule'). Each policy is simulated and compared with plain Spark; window latencies do not
    include the watermark delay. Exits with 3 if the targets cannot all be met, and with 4 if a log
    does not replay.
    """
    if (jobs is None) == (decisions is None):
        raise InputError("expected either JOBS or --decisions FILE")
    if decisions is not None:
        refuse(given("policies"), "a log contains its policy; leave it out")
        replay = replay_decisions(decisions)
        answer(replay, as_json=as_json)
        return ExitCode.REGRESSION if replay.num_differing else ExitCode.OK
    assert jobs is not None
    with Progress("simulating each policy"):
        verdict = schedule_verdict(jobs, policies=policies)
    answer(verdict, as_json=as_json)
    if not as_json:
        suggest(f"headway schedule {jobs} --policy all")
    all_met = any(
        policy.keeps_up and policy.num_met == len(policy.queries) for policy in verdict.figures
    )
    return ExitCode.OK if all_met else ExitCode.INFEASIBLE
