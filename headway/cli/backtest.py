"""``headway backtest``."""

from __future__ import annotations

import shlex
from typing import Any

import click

from headway.api.backtest import backtest
from headway.cli.options import PERCENT, Command, json_option, question_option
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, suggest
from headway.domain.log_questions import ProfileQuestion
from headway.errors import ExitCode


@click.command("backtest", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@question_option(
    "--max-error",
    type=PERCENT,
    help="Exit with 4 if the median error of the mean or the p99 is above this, e.g. 15%.",
)
@options_of(ProfileQuestion)
@json_option
def command(sources: tuple[str, ...], max_error: float | None, as_json: bool, **_: Any) -> int:
    """Validate predictions against your own logs: fit on some runs, predict the others.

    \b
    headway backtest logs/
    headway backtest run1.zstd run2.zstd --query orders --max-error 15%

    If the logs contain runs in several configurations, each configuration is predicted from the
    runs of the others; otherwise the second half of each run is predicted from the first half.
    """
    with Progress() as progress:
        evaluation = backtest(sources, progress=progress.tell, **given_options(ProfileQuestion))
    answer(evaluation, as_json=as_json)
    if not as_json:
        suggest(f"headway profile {shlex.join(sources)} --advise")
    errors = (evaluation.median_error_ratio("mean"), evaluation.median_error_ratio("p99"))
    if max_error is not None and any(error is None or error > max_error for error in errors):
        return ExitCode.REGRESSION
    return 0
