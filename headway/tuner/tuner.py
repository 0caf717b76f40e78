"""The tuner of a running query: a thread that watches it, and the calls to control it."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headway.domain import Configuration
from headway.domain.live import WatchedChange
from headway.domain.tuner import Phase
from headway.errors import HeadwayError, TunerLockedError, first_line
from headway.formats.tuner_files import TunerLock
from headway.tuner.machine import TunerMachine

_STEP_EVERY_S = 0.25
_BEAT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TunerStatus:
    """Status of a tuner: its query, what it is doing and why, what runs, and warnings.

    ``busy_s`` is the processor time that its thread has used. [s]
    """

    phase: Phase
    why: str
    configuration: Configuration
    num_changes: int
    cautions: tuple[str, ...]
    busy_s: float
    query: str = "query"


class Tuner(contextlib.AbstractContextManager["Tuner"]):
    """A query that is kept within its target while it runs; made by :func:`headway.tune`.

    A separate thread watches it until :meth:`stop`.
    """

    def __init__(self, machine: TunerMachine, path: Path, lock: TunerLock) -> None:
        self._machine, self._path, self._lock = machine, path, lock
        self._error: HeadwayError | None = None
        self._busy_s = 0.0
        self._stopping = threading.Event()
        self._loop = threading.Thread(target=self._run, name="headway-tuner", daemon=True)
        self._heart = threading.Thread(target=self._beat, name="headway-heart", daemon=True)

    @property
    def status(self) -> TunerStatus:
        """Its status."""
        machine = self._machine
        return TunerStatus(
            phase=machine.state.phase,
            why=machine.state.why,
            configuration=machine.running,
            num_changes=machine.state.num_changes,
            cautions=machine.cautions,
            busy_s=self._busy_s,
            query=machine.rule.live.label,
        )

    @property
    def recommendation(self) -> WatchedChange | None:
        """The change that would be made now, in either mode; None if the setting stays."""
        rule, running = self._machine.rule, self._machine.running
        proposal = rule.proposal
        if proposal is None or proposal.before_executors != running.executors:
            return None
        return rule.as_change(running, proposal)

    @property
    def query(self) -> object:
        """The running query; a restart makes another one."""
        return self._machine.actuators.query

    def end_query(self, ending: Callable[[], object] = lambda: None) -> None:
        """Stop the query between two batches, after the tuner was stopped.

        ``ending`` is called before, if the query runs: the stop may take a minute. Without a gap
        between batches the query is stopped within one, and a NoGapError says so.
        """
        if self._machine.actuators.is_active:
            ending()
        self._machine.end_query()

    def begin(self) -> Self:
        """Start the query at the setting of the state, and watch it from now on.

        Raises InputError if the function starts no query, or one with another checkpoint than
        before; HeadwayError if it does not start.
        """
        self._heart.start()
        try:
            self._machine.begin()
        except BaseException:
            self._stopping.set()
            self._lock.release()
            raise
        self._loop.start()
        return self

    def stop(self, restore: bool = False) -> None:
        """Stop tuning; the query continues at its setting, or with ``restore`` at the first one."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        # A change that waits for its gap is left.
        self._machine.is_ending = True
        self._loop.join()
        self._machine.is_ending = False
        try:
            if not isinstance(self._error, TunerLockedError):
                self._machine.end(restore=restore and self._error is None)
        finally:
            self._lock.release()

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the tuner ends, at most for this time; returns whether it has ended.

        Raises HeadwayError if it ended because the query ended, because the query ignores its
        setting, or because a change could be neither made nor undone.
        """
        end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._loop.is_alive() and time.monotonic() < end_s:
            self._loop.join(min(0.5, max(end_s - time.monotonic(), 0.0)))
        if self._error is not None:
            raise self._error
        return not self._loop.is_alive()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and self._error is None:
                self._machine.step()
                self._busy_s = time.thread_time()
                self._stopping.wait(_STEP_EVERY_S)
        except HeadwayError as error:
            self._error = error
        except Exception as error:
            self._error = HeadwayError(
                f"the tuner ended ({type(error).__name__}: {first_line(error)})"
            )
        if self._error is not None:
            with contextlib.suppress(HeadwayError):
                self._machine.audit("ended", why=str(self._error))

    def _beat(self) -> None:
        while not self._stopping.wait(_BEAT_EVERY_S):
            try:
                self._lock.beat()
            except TunerLockedError as error:
                self._error = error
                return
