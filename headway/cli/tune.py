"""``headway tune``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from headway.cli.options import DURATION, Command, given, refuse
from headway.errors import ExitCode

if TYPE_CHECKING:
    from headway.api.tuner import Tuner
    from headway.domain.watched import WatchedChange


@click.command("tune", cls=Command)
@click.argument("spec", metavar="SPEC")
@click.argument("application", metavar="[-- COMMAND...]", nargs=-1)
@click.option("--act", is_flag=True, help="Make the changes; without, they are recommended only.")
@click.option(
    "--allow",
    type=click.Choice(["repartition"]),
    multiple=True,
    help="Changes that are made only if named: partitions of the state, offline.",
)
@click.option(
    "--supervise", is_flag=True, help="Start COMMAND as an application of its own, and tune that."
)
@click.option("--for", "run_s", type=DURATION, help="End after so long.")
@click.option("--off", is_flag=True, help="Switch the tuner of SPEC off, wherever it runs.")
@click.option("--on", is_flag=True, help="Switch it on again.")
@click.option("--restore", is_flag=True, help="With --off: go back to the first setting, too.")
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
) -> int:
    """Hold a streaming query to its target while it runs; by default only recommended to.

    \b
    headway tune orders.tuning.yaml
    headway tune orders.tuning.yaml --act
    headway tune orders.tuning.yaml --act --supervise -- spark-submit orders.py
    headway tune orders.tuning.yaml --off --restore

    SPEC is a spec file of the kind Tuning ('headway init FILE --kind Tuning'): a Python file with
    a function build(spark, setting) that starts the query, its profile, a target, and bounds. The
    query runs until Ctrl-C, which stops it between two batches. State and log of decisions lie
    beside SPEC; killed, the same command goes on. With --supervise the query is that of COMMAND,
    which takes its setting by headway.setting(spark) and ends by headway.stop_when_asked(query).
    Exits with 1 if the query ends by itself or a change can neither be made nor taken back, and
    with 3 if no setting within bounds meets the target.
    """
    from headway.api.supervise import supervise_spec
    from headway.api.tune_spec import switch_spec, tune_spec

    if application and not supervise:
        refuse([" ".join(application)], "a command goes with --supervise")
    if restore and not off:
        refuse(["--restore"], "it goes with --off")
    if off or on:
        if off and on:
            refuse(["--on"], "contradicts --off")
        refuse(given("act", "allow", "run_s", "supervise"), "does nothing beside --off and --on")
        click.echo(switch_spec(spec, off=off, restore=restore))
        return ExitCode.OK
    teller = _Teller()
    try:
        if supervise:
            refuse(given("allow"), "a supervisor changes no partitions of state")
            supervise_spec(spec, application, act=act, say=teller.say, run_s=run_s)
            return ExitCode.OK
        tune_spec(spec, act=act, allow=allow, say=teller.say, run_s=run_s)
    except KeyboardInterrupt:
        return ExitCode.OK
    return ExitCode.OK


class _Teller:
    """Says what has changed since it last said something, a line each."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._last: tuple[object, ...] = ()

    def say(self, tuner: Tuner, change: WatchedChange | None) -> None:
        """Say what is new."""
        from headway.report.watched import change_text
        from headway.report.wording import brief_setting_text

        status = tuner.status
        for warning in status.cautions:
            if warning not in self._said:
                self._said.add(warning)
                click.echo(f"warning: {warning}", err=True)
        # Planned latencies differ a little at every look; what is recommended does not.
        then = None if change is None else (change.then, change.why)
        now = (status.phase, status.why, status.configuration, then)
        if now != self._last:
            self._last = now
            line = f"{status.phase}: {status.why}; {brief_setting_text(status.configuration)}"
            click.echo(line if change is None else f"{line}; recommended: {change_text(change)}")
            sys.stdout.flush()
