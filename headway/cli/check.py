"""``headway check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headway.cli.options import (
    PERCENT,
    Command,
    format_option,
    given,
    json_option,
    one_format,
    question_option,
    rare_option,
    refuse,
)
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, suggest
from headway.domain.argument import read_question
from headway.domain.fleet_questions import Limits
from headway.errors import ExitCode, InputError
from headway.formats.lock_file import lock_beside

if TYPE_CHECKING:
    from headway.ci.nouns import Report

# Spelt out here: a help text must not wait for what it lists (a test holds both together).
_FORMATS = ("text", "json", "github", "junit", "markdown", "sarif")
_FOR_PEOPLE = ("text", "markdown")


@click.command("check", cls=Command)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@question_option(
    "--baseline",
    type=click.Path(),
    metavar="LOCK",
    help="Lock file to compare with.  [default: the headway.lock beside each SPEC, or that of the "
    "working folder]",
)
@format_option(_FORMATS, "Output format.")
@options_of(Limits)
@rare_option(
    "--quiet-below",
    type=PERCENT,
    help="Print nothing if all passed, and no cost, number of nodes or planned time changed by "
    "more than this; for text and markdown.",
)
@json_option
def command(
    specs: tuple[str, ...],
    baseline: str | None,
    output_format: str,
    quiet_below: float | None,
    as_json: bool,
    **_: Any,
) -> int:
    """Fail a CI build when a target is missed, or a plan costs more or is slower than locked.

    \b
    headway check orders.yaml
    headway check jobs/*.yaml --format github
    headway check jobs/*.yaml --format junit > headway.xml

    The locked setting is judged first, by the current rate, targets and profile; then the plan that
    would be made now. A plan that costs more names its cause: the rate, the target, the costs of
    the job, or the price of a node, at its line. Exits with 3 if a target cannot be met, 4 if the
    locked setting misses a target or a plan is worse than locked, 5 outside the calibrated range
    with --strict, and 2 if a file is invalid.
    \f

    \b
    headway check jobs/*.yaml --baseline ci/headway.lock --format markdown --quiet-below 2%
    """
    from headway.api.check import check, invalid_report
    from headway.ci.formats import FORMATS

    locks = {str(lock_path) for lock_path in map(lock_beside, specs) if lock_path is not None}
    locks = locks if baseline is None else {baseline}
    if not locks:
        refuse(
            given("max_cost", "max_latency", "max_drift", "require_locked", "quiet_below"),
            "there is nothing to compare with; write headway.lock with 'headway lock', or give "
            "--baseline LOCK",
        )
    output_format = one_format(as_json, output_format)
    if output_format not in _FOR_PEOPLE:
        refuse(given("quiet_below"), f"a report in the format {output_format} is always written")
    limits = read_question(Limits, given_options(Limits))

    def show_report(report: Report) -> None:
        if output_format in FORMATS:
            click.echo(FORMATS[output_format](report))
        else:
            answer(report, as_json=output_format == "json")

    try:
        with Progress("planning"):
            report = check(specs, baseline=baseline, limits=limits)
    except InputError as error:
        # People read the message; tools read standard output only.
        if output_format != "text":
            show_report(invalid_report(error, specs))
        raise
    if quiet_below is None or not report.is_quiet(quiet_below):
        show_report(report)
    if not locks:
        suggest(f"headway lock {' '.join(specs)}, and commit the lock file")
    elif report.exit_code == ExitCode.REGRESSION and len(locks) == 1:
        suggest(f"headway lock {' '.join(specs)} -o {locks.pop()} to accept the change")
    return report.exit_code
