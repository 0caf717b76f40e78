"""``headway explore``."""

from __future__ import annotations

from pathlib import Path

import click

from headway.api.explore import explore_spec
from headway.cli.options import DURATION, Command, json_option
from headway.cli.outputs import OUTPUT_FOLDER
from headway.cli.progress import Progress
from headway.cli.terminal import answer, remark, suggest
from headway.errors import ExitCode


@click.command("explore", cls=Command)
@click.argument("spec", metavar="SPEC")
@click.option(
    "--folder",
    type=OUTPUT_FOLDER,
    default="exploration",
    show_default=True,
    metavar="FOLDER",
    help="Folder of recordings, state and profile; an exploration found in it continues.",
)
@click.option(
    "--budget", type=DURATION, help="How long all runs may take; as SPEC says by default."
)
@json_option
def command(spec: str, folder: Path, budget: float | None, as_json: bool) -> int:
    """Profile a query by the runs that narrow the answer to a question most.

    \b
    headway explore orders.explore.yaml
    headway explore orders.explore.yaml --budget 20m --folder orders/

    SPEC is a spec file of the kind Exploration ('headway init FILE --kind Exploration'): the
    question, and a Python file with a function build(spark, setting) that starts the query. After a
    warm-up each setting is run twice, in random order, until the 90% interval of the answer is
    narrow enough or the budget is spent; after each run a line says what it showed. After a stop or
    a kill, the same command continues. Exits with 3 if no setting meets the target.
    """
    with Progress("starting Spark", plain=True) as progress:
        exploration = explore_spec(
            spec, folder=folder, budget=budget, progress=progress.step, lesson=remark
        )
    answer(exploration, as_json=as_json)
    if not as_json:
        suggest(f"headway predict {folder / 'profile.yaml'} --rate 50k/s")
    return ExitCode.OK if exploration.plan.feasible else ExitCode.INFEASIBLE
