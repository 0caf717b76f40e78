"""Tuning from a spec file of the kind Tuning: on an embedded Spark, or of another application."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from headway.api.arguments import job_from, promises_from
from headway.api.explore import function_of
from headway.api.tune import bounds_for, quiet_times, rule_and_state, tune
from headway.domain.live import WatchedChange
from headway.domain.tuner import Phase
from headway.emitters.patch import patch_executors
from headway.errors import InputError
from headway.formats.text_file import write_text
from headway.formats.tuner_files import (
    RESTORE_WORD,
    TunerLock,
    is_locked,
    load_tuner,
    save_tuner,
    switch_file,
)
from headway.profiler.recording.live import LogFeed
from headway.profiler.spark.session import embedded_session
from headway.profiler.work_folder import signals_end_the_block
from headway.runtime.tuning.supervised import SupervisedQuery
from headway.spec.kinds.tuning import Tuning
from headway.spec.spec_file import load_spec_of
from headway.tuner.live_query import LiveQuery
from headway.tuner.machine import TunerMachine
from headway.tuner.tuner import Tuner

Say: TypeAlias = Callable[[Tuner, WatchedChange | None], None]
_TELL_EVERY_S = 1.0


def tune_spec(
    path: str | Path,
    *,
    act: bool = False,
    allow: Collection[str] = (),
    say: Say = lambda _tuner, _change: None,
    ending: Callable[[], object] = lambda: None,
    run_s: float | None = None,
) -> None:
    """Run the query of a spec file on an embedded Spark and keep it within its target.

    The file is of the kind Tuning. The query runs until it is interrupted, or for ``run_s``; it is
    then stopped between two batches. Changes are made if ``act``, else only recommended; those to
    ``allow`` are as for :func:`headway.tune`. ``say`` is called each second with the tuner and what
    it recommends, ``ending`` when the query is to be stopped, which may take a minute.

    Raises InputError as :func:`headway.tune`, or if the file, or the code that it names, is
    invalid; HeadwayError if the query or the tuner ends before its time.
    """
    tuning = load_spec_of(Path(path), Tuning)
    if tuning.code is None:
        raise InputError(
            f"{path}: has no code, the Python file with the function that starts the query; give "
            "it, or a command: headway tune SPEC --supervise -- COMMAND"
        )
    build = function_of(tuning.code, tuning.function)
    bounds = tuning.executors
    with embedded_session(app_name="headway tune", master=tuning.master) as spark:
        tuner = tune(
            spark,
            build,
            profile=tuning.profile,
            target=str(tuning.target),
            state=state_of(path, tuning),
            mode="act" if act else "recommend",
            executors=None if bounds is None else (bounds.min_executors, bounds.max_executors),
            triggers=tuning.triggers_s,
            rate_limit=tuning.rate_limit,
            allow=allow,
            half_done=tuning.half_done,
            catch_up=tuning.catch_up_s,
            budget=tuning.budget,
            quiet=tuning.quiet,
        )
        _until_it_ends(tuner, say, ending, run_s)


def supervise_spec(
    path: str | Path,
    command: Sequence[str],
    *,
    act: bool = False,
    say: Say = lambda _tuner, _change: None,
    ending: Callable[[], object] = lambda: None,
    run_s: float | None = None,
) -> None:
    """Start an application and keep its query within the target of a spec file of the kind Tuning.

    The application gets its setting from :func:`headway.setting`, records itself, and ends through
    :func:`headway.stop_when_asked`. Trigger interval, rate limit and, for a stateless query,
    partitions are changed by a restart; the ``command``, such as ``["spark-submit", "orders.py"]``,
    determines the executors. The options are those of :func:`tune_spec`.

    Raises InputError if the file is invalid, has bounds of executors, or another tuner holds its
    state; HeadwayError if the application ends by itself.
    """
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
            query, rule, state, state_path, acts=act, is_quiet=quiet_times(tuning.quiet)
        )
        query.meanwhile, query.left_gap = machine.watch_meanwhile, machine.has_left_gap
        query.say = lambda event, why: machine.audit(event, why=why)
    except BaseException:
        lock.release()
        raise
    # A supervisor that is terminated leaves no application behind.
    with signals_end_the_block():
        _until_it_ends(Tuner(machine, state_path, lock).begin(), say, ending, run_s)


def _until_it_ends(
    tuner: Tuner, say: Say, ending: Callable[[], object], run_s: float | None
) -> None:
    """Tell each second what a tuner does, until it ends or its time is over; then stop both."""
    end_s = math.inf if run_s is None else time.monotonic() + run_s
    try:
        while not tuner.await_termination(_TELL_EVERY_S) and time.monotonic() < end_s:
            say(tuner, tuner.recommendation)
    finally:
        try:
            tuner.stop()
        finally:
            # Also if the state can no longer be written: a query that is left is cut in a batch.
            tuner.end_query(ending)


def switch_spec(path: str | Path, *, off: bool, restore: bool = False) -> str:
    """Switch the tuner of a spec file off or on, wherever it runs; returns the effect in words.

    With ``restore`` it returns to the setting before its first change.
    """
    state = state_of(path, load_spec_of(Path(path), Tuning))
    switch = switch_file(state)
    if not off:
        switch.unlink(missing_ok=True)
        return f"{switch}: removed; a running tuner learns anew and continues"
    write_text(switch, f"{RESTORE_WORD}\n" if restore else "off\n", label="the switch")
    if is_locked(state):
        restore_text = ", after it has gone back to the first setting" if restore else ""
        return f"{switch}: written; the tuner makes no more changes{restore_text}"
    saved_state = load_tuner(state)
    if restore and saved_state is not None:
        save_tuner(
            replace(saved_state, last_good=saved_state.original, change=None, phase=Phase.OFF),
            state,
        )
        return f"{switch}: written; no tuner runs, and the next start is at the first setting"
    return f"{switch}: written; no tuner runs, and the next one changes nothing"


def state_of(path: str | Path, tuning: Tuning) -> Path:
    """The state file, beside the spec."""
    state = Path(path).parent / tuning.state
    if not state.parent.is_dir():
        raise InputError(f"{state}: no such folder; expected a file beside the spec")
    return state


def patched_manifest(path: str | Path, manifest: str, *, name: str, job: str | None = None) -> str:
    """A manifest with the executors of the tuner of a spec file, for the next restart.

    A Kubernetes operator restarts an application whose manifest changes, with the executors that
    stand there: they are those at which the tuner was last, or its bounds where the application
    allocates executors dynamically. ``manifest`` is its text, which messages call ``name``, and
    ``job`` the name of the application, if it has several. Raises InputError if a file is invalid,
    or the tuner has not run.
    """
    tuning = load_spec_of(Path(path), Tuning)
    saved_state = load_tuner(state_of(path, tuning))
    if saved_state is None:
        raise InputError(
            f"{state_of(path, tuning)}: no such file; expected the state of a tuner that has run"
        )
    num_executors, bounds = saved_state.last_good.executors, tuning.executors
    executors = {
        "minExecutors": num_executors if bounds is None else bounds.min_executors,
        "initialExecutors": num_executors,
        "maxExecutors": num_executors if bounds is None else bounds.max_executors,
    }
    return patch_executors(manifest, executors, name=name, job=job)
