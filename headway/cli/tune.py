"""``headway tune``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from headway.api.tune_spec import patched_manifest, supervise_spec, switch_spec, tune_spec
from headway.cli.options import DURATION, Command, given, refuse
from headway.cli.terminal import event, remark, show, show_patched, suggest
from headway.domain.live import WatchedChange
from headway.errors import ExitCode
from headway.formats.own_files import read_whole_text
from headway.redaction import one_line
from headway.report.watched import change_text
from headway.report.wording import brief_setting_text
from headway.runtime.tuning.clean_stop import NoGapError
from headway.tuner.tuner import Tuner


@click.command("tune", cls=Command)
@click.argument("spec", metavar="SPEC")
@click.argument("application", metavar="[-- COMMAND...]", nargs=-1)
@click.option("--act", is_flag=True, help="Make changes instead of recommending them.")
@click.option(
    "--allow",
    type=click.Choice(["repartition"]),
    multiple=True,
    help="Also allow this change: partitions of the state, with the query stopped.",
)
@click.option(
    "--supervise", is_flag=True, help="Start COMMAND as a separate application, and tune its query."
)
@click.option("--for", "run_s", type=DURATION, help="Stop after this time.")
@click.option("--off", is_flag=True, help="Switch the tuner of SPEC off, wherever it runs.")
@click.option("--on", is_flag=True, help="Switch it on again.")
@click.option("--restore", is_flag=True, help="With --off: also return to the first setting.")
@click.option(
    "--patch",
    metavar="FILE",
    help="Put the executors of the tuner into this SparkApplication, scheduled or not.",
)
@click.option("--write", is_flag=True, help="With --patch: change the file instead of printing it.")
@click.option("--job", help="With --patch: which application, if the file has several.")
def command(
    spec: str,
    application: tuple[str, ...],
    act: bool,
    allow: tuple[str, ...],
    supervise: bool,
    run_s: float | None,
    off: bool,
    on: bool,
    restore: bool,
    patch: str | None,
    write: bool,
    job: str | None,
) -> int:
    """Keep a running query within its target; by default changes are only recommended.

    \b
    headway tune orders.tuning.yaml
    headway tune orders.tuning.yaml --act
    headway tune orders.tuning.yaml --act --supervise -- spark-submit orders.py
    headway tune orders.tuning.yaml --off --restore
    headway tune orders.tuning.yaml --patch orders-application.yaml --write

    SPEC is a spec file of the kind Tuning ('headway init FILE --kind Tuning'): a Python file with a
    function build(spark, setting) that starts the query, its profile, a target, and bounds. The
    query runs until Ctrl-C, which stops it between two batches. State and a log of decisions are
    kept beside SPEC; after a kill, the same command continues. With --supervise, COMMAND runs the
    query: it gets its setting from headway.setting(spark), and ends when asked by
    headway.stop_when_asked(query); Ctrl-C and SIGTERM ask it to stop. --patch puts the executors at
    which the tuner was last, or its bounds under dynamic allocation, into the manifest of a
    Kubernetes operator, for the next restart. Exits with 1 if the query ends by itself, or if a
    change can be neither made nor undone, and with 3 if no setting within bounds meets the target.
    """
    if application and not supervise:
        refuse([" ".join(application)], "a command goes with --supervise")
    if restore and not off:
        refuse(["--restore"], "it goes with --off")
    if patch is None:
        refuse(given("write", "job"), "it works with --patch FILE only")
    else:
        refuse(
            given("act", "allow", "run_s", "supervise", "off", "on"), "does nothing beside --patch"
        )
        before = read_whole_text(Path(patch), expected="a manifest")
        after = patched_manifest(spec, before, name=one_line(patch), job=job)
        show_patched(patch, before, after, is_written=write, state="as tuned")
        return ExitCode.OK
    if off or on:
        if off and on:
            refuse(["--on"], "contradicts --off")
        refuse(given("act", "allow", "run_s", "supervise"), "does nothing beside --off and --on")
        show(switch_spec(spec, off=off, restore=restore))
        return ExitCode.OK
    if supervise:
        if not application:
            refuse(["--supervise"], "expected a command behind --, e.g. -- spark-submit app.py")
        refuse(given("allow"), "a supervisor cannot change the partitions of the state")
    with suppress(KeyboardInterrupt):
        if supervise:
            supervise_spec(
                spec, application, act=act, say=_teller(), ending=_say_ending, run_s=run_s
            )
        else:
            try:
                tune_spec(
                    spec, act=act, allow=allow, say=_teller(), ending=_say_ending, run_s=run_s
                )
            except NoGapError as error:
                remark(f"warning: {error}")
            if not act:
                suggest(f"headway tune {spec} --act")
    return ExitCode.OK


def _say_ending() -> None:
    remark(
        "stopping the query between two batches, which may take a minute; "
        "Ctrl-C again does not wait for that"
    )


def _teller() -> Callable[[Tuner, WatchedChange | None], None]:
    """Prints what has changed since it last printed something, a line each."""
    shown_warnings: set[str] = set()
    last: tuple[object, ...] = ()

    def say(tuner: Tuner, change: WatchedChange | None) -> None:
        nonlocal last
        status = tuner.status
        for warning in status.cautions:
            if warning not in shown_warnings:
                shown_warnings.add(warning)
                remark(f"warning: {warning}")
        # Planned latencies differ a little at every look; what is recommended does not.
        then = None if change is None else (change.then, change.why)
        now = (status.phase, status.why, status.configuration, then)
        if now != last:
            last = now
            line = f"{status.phase}: {status.why}; {brief_setting_text(status.configuration)}"
            if change is not None:
                line += f"; recommended: {change_text(change)}"
            event(line)
            sys.stdout.flush()

    return say
