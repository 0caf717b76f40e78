"""Pieces of logs -> their contents, log by log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from headway.profiler.contents import CollectedLogs, contents_of
from headway.profiler.gathered import Gathered
from headway.profiler.logs.event_logs import UnreadableLogError
from headway.profiler.logs.limits import DEFAULT_LIMITS, Allowance, UnpackLimits
from headway.profiler.pieces import Engine, Order, Piece

Finish: TypeAlias = Callable[[CollectedLogs], CollectedLogs]
"""What is done with the contents of a log on its own, e.g. measuring its runs."""


def _as_read(contents: CollectedLogs) -> CollectedLogs:
    return contents


def collect(
    pieces: Sequence[Piece],
    engine: Engine,
    limits: UnpackLimits = DEFAULT_LIMITS,
    finish_of: Callable[[int], Finish] = lambda _app: _as_read,
) -> CollectedLogs:
    """Read all pieces of some logs and combine them by log.

    Contents of a log are finished where it was read, if it was read as a whole.
    """
    sums: dict[int, Gathered] = {}
    finished: dict[int, CollectedLogs] = {}
    failures: dict[int, str] = {}
    allowances: dict[int, Allowance] = defaultdict(lambda: Allowance(limits, None, None))

    def read(orders: Sequence[Order]) -> None:
        for result in engine(orders) if orders else ():
            failure = result.failure
            try:
                # The parts of a log together must not exceed the limit for one log.
                if not failure:
                    allowances[result.app].take(result.unpacked_bytes)
            except UnreadableLogError as error:
                failure = str(error)
            if failure or result.app in failures:
                failures.setdefault(result.app, failure)
                sums.pop(result.app, None)
            elif result.contents is not None:
                finished[result.app] = result.contents
            elif result.gathered is not None:
                gathered = sums.setdefault(result.app, result.gathered)
                if gathered is not result.gathered:
                    gathered.add(result.gathered)

    num_pieces = Counter(piece.app for piece in pieces)
    read(
        [
            Order(
                piece,
                limits,
                contents_of=partial(_finished, piece.app, finish_of(piece.app))
                if num_pieces[piece.app] == 1
                else None,
            )
            for piece in pieces
        ]
    )
    # If the end of a task occurs more than once, it must be counted once.
    repeated_tasks = {
        app: gathered.repeated_tasks for app, gathered in sums.items() if gathered.must_count_again
    }
    for app in repeated_tasks:
        del sums[app]
    read(
        [
            Order(piece, limits, tasks_again=repeated_tasks[piece.app])
            for piece in pieces
            if piece.app in repeated_tasks and piece.app not in failures
        ]
    )
    for app, gathered in sums.items():
        finished[app] = _finished(app, finish_of(app), gathered)
    logs = [finished[app] for app in sorted(finished)]
    return CollectedLogs(
        applications={app: facts for log in logs for app, facts in log.applications.items()},
        batches=[row for log in logs for row in log.batches],
        stage_runs=[row for log in logs for row in log.stage_runs],
        failures=failures,
        runs={app: runs for log in logs for app, runs in log.runs.items()},
    )


def _finished(app: int, finish: Finish, gathered: Gathered) -> CollectedLogs:
    return finish(contents_of(app, gathered))
