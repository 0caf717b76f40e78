"""``headway watch``."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from headway.cli.options import DURATION, TARGET, Command, given, json_option, refuse, strict_option
from headway.cli.terminal import answer, show, suggest
from headway.errors import ExitCode, InputError
from headway.report.columns import fitted

if TYPE_CHECKING:
    from headway.api.watch import Watcher
    from headway.domain import Target
    from headway.domain.live import Look

_OF_WATCHING = (
    *("profile_path", "target", "query", "executors", "trigger", "once", "every", "prometheus"),
    "strict",
)


@click.command("watch", cls=Command)
@click.argument("source", metavar="SOURCE")
@click.option(
    "--profile", "profile_path", metavar="PROFILE", help="Profile of the query, or an event log."
)
@click.option("--target", type=TARGET, help="Target, e.g. 'p99 <= 3s'.")
@click.option(
    "--query", help="Name of the query or beginning of its id, if SOURCE or PROFILE has several."
)
@click.option(
    "--executors", help="Minimum and maximum number of executors for a change, e.g. 2:12."
)
@click.option(
    "--trigger", type=DURATION, help="Trigger interval; measured from its batches by default."
)
@click.option("--once", is_flag=True, help="Take one look and exit; the exit code is the verdict.")
@click.option(
    "--every", type=DURATION, default="5s", show_default=True, help="Time between two looks."
)
@click.option("--prometheus", is_flag=True, help="Print metrics for Prometheus.")
@click.option(
    "--explain",
    type=click.IntRange(1),
    help="Explain a change by its number; SOURCE is a tuner's log.",
)
@json_option
@strict_option
def command(
    source: str,
    profile_path: str | None,
    target: Target | None,
    once: bool,
    every: float,
    prometheus: bool,
    explain: int | None,
    as_json: bool,
    strict: bool,
    **of_query: Any,
) -> int:
    """Compare a running query with its prediction. The query is never changed.

    \b
    headway watch orders.headway.jsonl --profile orders.profile.yaml --target 'p99 <= 3s'
    headway watch /spark-events/eventlog_v2_app-1 --profile p.yaml --target 'p99 <= 3s' --once
    headway watch orders.headway.jsonl --profile p.yaml --target 'p99 <= 3s' --once --prometheus
    headway watch orders.tuner.jsonl --explain 3

    SOURCE is a file that headway.record writes, or an event log, finished or still being written.
    With --once it exits with 3 if no setting within bounds meets the target, and with 4 if the
    query has failed, costs have drifted, a batch runs for too long, or more rows were late than the
    target allows. Without --once it continues until Ctrl-C, and exits with 0.
    """
    from headway.api.watch import watch

    if explain is not None:
        from headway.formats.tuner_files import explained_change

        refuse(given(*_OF_WATCHING), "does nothing beside --explain")
        answer(explained_change(Path(source), explain), as_json=as_json)
        return ExitCode.OK
    if profile_path is None or target is None:
        missing = "--profile" if profile_path is None else "--target"
        raise click.UsageError(f"Missing option '{missing}'.", click.get_current_context())
    if prometheus and as_json:
        raise InputError("--json contradicts --prometheus; give one of them")
    watcher = watch(source, profile=profile_path, target=target, **of_query)
    if once:
        look = watcher.look()
        text = _text(look, as_json, prometheus)
        if as_json or prometheus:
            click.echo(text, nl=not prometheus)
        else:
            show(text)
            suggest("headway tune, which makes such changes; headway init FILE --kind Tuning")
        return _exit_code(look, strict)
    from headway.profiler.work_folder import signals_end_the_block

    # Ctrl-C is how it ends; SIGTERM, too, leaves the terminal as it was.
    with suppress(KeyboardInterrupt), signals_end_the_block():
        if sys.stdout.isatty() and not (as_json or prometheus):
            _show(watcher, every)
        while True:
            click.echo(_text(watcher.look(), as_json, prometheus, one_line=True))
            sys.stdout.flush()
            time.sleep(every)
    return ExitCode.OK


def _show(watcher: Watcher, every_s: float) -> NoReturn:
    """One text that is rewritten in place."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False, screen=False) as view:
        while True:
            view.update(Text(fitted(_text(watcher.look(), False, False))), refresh=True)
            time.sleep(every_s)


def _text(look: Look, as_json: bool, prometheus: bool, *, one_line: bool = False) -> str:
    from headway.api.results import as_data, as_text, figures_of
    from headway.formats.as_json import json_text
    from headway.formats.open_metrics import prometheus_text
    from headway.report.watched import look_metrics

    if prometheus:
        return prometheus_text(look_metrics(look))
    if not as_json:
        return as_text(look)
    # Programs that follow a query need no words at every look.
    return json.dumps(figures_of(look), allow_nan=False) if one_line else json_text(as_data(look))


def _exit_code(look: Look, strict: bool) -> int:
    if look.standing == "out_of_bounds":
        return ExitCode.INFEASIBLE
    if look.standing in ("failed", "drifted", "silent", "late"):
        return ExitCode.REGRESSION
    if strict and look.prediction is not None and not look.prediction.calibrated:
        return ExitCode.OUTSIDE
    return ExitCode.OK
