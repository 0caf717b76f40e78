"""A tuner of a separate application, which it starts, stops and restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headway.api.arguments import job_from, promises_from
from headway.api.tune import bounds_for, quiet_times, rule_and_state
from headway.api.tune_spec import TELL_EVERY_S, state_of
from headway.domain.live import WatchedChange
from headway.errors import InputError, argument
from headway.formats.tuner_files import TunerLock
from headway.profiler.recording.live import LogFeed
from headway.profiler.work_folder import signals_end_the_block
from headway.runtime.tuning.supervised import SupervisedQuery
from headway.spec.kinds.tuning import Tuning
from headway.spec.spec_file import load_spec_of
from headway.tuner.live_query import LiveQuery
from headway.tuner.machine import TunerMachine
from headway.tuner.tuner import Tuner


def supervise_spec(
    path: str | Path,
    command: Sequence[str],
    *,
    act: bool = False,
    say: Callable[[Tuner, WatchedChange | None], None] = lambda _tuner, _change: None,
    run_s: float | None = None,
) -> None:
    """Start an application and keep its query within the target of a spec file of the kind Tuning.

    The application gets its setting from :func:`headway.setting`, records itself, and ends through
    :func:`headway.stop_when_asked`. Trigger interval, rate limit and, for a stateless query,
    partitions are changed by a restart; the ``command``, such as ``["spark-submit", "orders.py"]``,
    determines the executors. The options are those of :func:`headway.api.tune_spec.tune_spec`.

    Raises InputError if the file is invalid, has bounds of executors, or another tuner holds its
    state; HeadwayError if the application ends by itself.
    """
    if not command:
        raise InputError(
            f"{argument('command')} is empty; expected what starts the application, e.g. "
            "spark-submit app.py"
        )
    tuning = load_spec_of(Path(path), Tuning)
    state_path = state_of(path, tuning)
    if tuning.executors is not None:
        raise InputError(
            f"{path}: executors: cannot be changed, since the command that starts the application "
            "determines how many there are; remove executors from the file, or give code instead "
            "of a command"
        )
    target, _ = promises_from(str(tuning.target))
    job = job_from(tuning.profile, target)
    baseline = replace(job.baseline, max_offsets_per_trigger=None)
    recording = state_path.with_suffix(".headway.jsonl")
    live = LiveQuery(
        feed=LogFeed(recording, is_supervised=True),
        profile=job,
        target=target,
        trigger_s=baseline.trigger_s,
    )
    bounds = bounds_for((baseline.executors, baseline.executors), tuning.catch_up_s, tuning.budget)
    lock = TunerLock(state_path)
    try:
        rule, state = rule_and_state(
            live,
            baseline,
            state_path,
            bounds=bounds,
            triggers=tuning.triggers_s,
            rate_limit=tuning.rate_limit,
        )
        query = SupervisedQuery(
            command=command,
            path=state_path.with_suffix(".setting"),
            recording=recording,
            may_cut=tuning.half_done == "allow",
        )
        machine = TunerMachine(
            query,
            rule,
            state,
            state_path,
            acts=act,
            is_quiet=quiet_times(tuning.quiet),
        )
        query.meanwhile, query.left_gap = machine.watch_meanwhile, machine.has_left_gap
        query.say = lambda event, why: machine.audit(event, why=why)
    except BaseException:
        lock.release()
        raise
    # A supervisor that is terminated leaves no application behind.
    with signals_end_the_block():
        tuner = Tuner(machine, state_path, lock).begin()
        end_s = float("inf") if run_s is None else time.monotonic() + run_s
        try:
            while not tuner.await_termination(TELL_EVERY_S) and time.monotonic() < end_s:
                say(tuner, tuner.recommendation)
        finally:
            tuner.stop()
            tuner.end_query()
