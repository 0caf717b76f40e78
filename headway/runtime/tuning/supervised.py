"""An application that the tuner starts, requests to stop, and restarts at another setting."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.assumptions.tuning import ALIVE_WITHIN_S, ANSWERED_WITHIN_S, ENDS_WITHIN_S
from headway.domain import Configuration
from headway.domain.live import ChangeKind
from headway.errors import ActuatorError, HeadwayError, QueryEndedError
from headway.formats import setting_file
from headway.runtime.tuning.clean_stop import NoGapError
from headway.units import format_duration

_ANSWER_EVERY_S = 0.2
# Time for an application to end its session, or to answer a withdrawn request.
_SESSION_ENDS_S = 5.0


@dataclass(slots=True, kw_only=True)
class SupervisedQuery:
    """The query of a separate application, with the interface of actuators.

    ``command`` starts the application, which calls ``headway.setting`` and
    ``headway.stop_when_asked``; ``path`` is the file with its setting, ``recording`` the one to
    which it records itself, and ``may_cut`` whether it may stop within a batch. ``meanwhile`` is
    called several times a second while it waits for its gap, and returns whether it should keep
    running after all. ``left_gap`` is whether its last batch left a gap, from its recording, and
    ``say`` is called with an event and its reason, for the log.
    """

    command: Sequence[str]
    path: Path
    recording: Path
    may_cut: bool = False
    query: None = None
    query_id: str | None = None
    root: str | None = None
    executors_are_given: bool = True
    configuration: Configuration | None = None
    number: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    meanwhile: Callable[[], bool] = lambda: False
    left_gap: Callable[[], bool] = lambda: True
    stopped_s: float = 0.0
    say: Callable[[str, str], None] = lambda _event, _why: None

    def start(self, configuration: Configuration) -> None:
        """Start the application at a setting; only if none runs."""
        number_before = setting_file.load_setting(self.path).number if self.path.exists() else 0
        self.number = max(self.number, number_before) + 1
        self._end_left_behind(configuration)
        self._write(configuration)
        setting_file.answer_file(self.path).unlink(missing_ok=True)
        variables = {setting_file.SETTING_VARIABLE: str(self.path.resolve())}
        variables[setting_file.NUMBER_VARIABLE] = str(self.number)
        try:
            self.process = subprocess.Popen(
                [*self.command], env=os.environ | variables, start_new_session=True
            )
        except OSError as error:
            raise HeadwayError(
                f"{self.command[0]}: cannot be run ({error.strerror}); expected a command that "
                "starts the application"
            ) from None
        self.configuration = configuration

    def stop(self, trigger_s: float) -> bool:
        """Request a stop between two batches, and wait; returns whether a batch was interrupted.

        As long as it shows signs of life, it is not ended. ``meanwhile`` is called repeatedly; if
        it returns a reason against the stop, the request is withdrawn. After a NoGapError (no gap
        in time, or a withdrawn request) or another ActuatorError it keeps running; after a
        QueryEndedError it does not.
        """
        if self.process is None or self.configuration is None or not self.is_active:
            return False
        self.number += 1
        self._write(self.configuration)
        answer = self._await_answer(2.0 * trigger_s + ANSWERED_WITHIN_S.value)
        why, no_gap = answer or (None, False)
        if why is not None:
            raise (NoGapError if no_gap else ActuatorError)(why)
        if answer is None and self.process.poll():
            raise QueryEndedError(f"{self.ended_with()} when it was asked to stop")
        # It ran until now, so the wait for its gap is not part of the pause.
        self.stopped_s = time.monotonic()
        is_cut = answer is None and self.is_active
        if is_cut:
            self.say("cut", "the application did not answer and was terminated, maybe in a batch")
            self.process.terminate()
        self._await_end()
        return is_cut

    def _await_answer(self, silent_s: float) -> tuple[str | None, bool] | None:
        """Its answer; None if it ended without one, or has shown no sign of life for too long."""
        assert self.process is not None and self.configuration is not None
        asked_s = time.time()
        withdrawn_s = math.inf
        while True:
            # It ends right after it answers; an ended process sends no further answer.
            has_ended = self.process.poll() is not None
            answer = setting_file.load_answer(self.path, self.number)
            if answer is not None or has_ended:
                return answer
            now_s = time.time()
            if now_s - withdrawn_s > _SESSION_ENDS_S:
                raise NoGapError("the request to stop was withdrawn, and not answered")
            if now_s - max(asked_s, self._last_sign_s()) > silent_s:
                return None
            if withdrawn_s == math.inf and self.meanwhile():
                self._write(self.configuration, is_withdrawn=True)
                withdrawn_s = now_s
            time.sleep(_ANSWER_EVERY_S)

    def stop_at_once(self) -> None:
        """End the application, within a batch if necessary."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self._await_end()

    def apply(self, kind: ChangeKind, now: Configuration, then: Configuration) -> float:
        """Stop the application, and start it at another setting; from stop to start [s]."""
        if kind not in (ChangeKind.RESTART, ChangeKind.APPLICATION):
            raise ActuatorError(f"{kind}: a supervisor can only restart the application")
        self.stopped_s = time.monotonic()
        self.stop(now.trigger_s)
        self.start(then)
        return time.monotonic() - self.stopped_s

    @property
    def is_active(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_in_batch(self) -> bool:
        """Whether a batch runs now, which is not visible from outside."""
        return False

    def is_in_gap(self, _trigger_s: float) -> bool:
        """Whether a stop may be requested: its last batch left a gap, and so may the next one."""
        return self.left_gap()

    def num_executors(self) -> int:
        """Executors that it was started with."""
        return 1 if self.configuration is None else self.configuration.executors

    def why_no_live_executors(self) -> str:
        return "a supervisor does not change executors; give them to the command"

    def ask_for_executors(self, _total: int) -> None:
        """Does nothing, since executors are set by the command."""

    def with_partitions_of_checkpoint(self, configuration: Configuration) -> Configuration:
        """The setting itself, since the checkpoint belongs to the application."""
        return configuration

    def ended_with(self) -> str | None:
        """How the application ended on its own; None if it runs."""
        code = None if self.process is None else self.process.poll()
        return None if code is None else f"the application ended with exit code {code}"

    @property
    def has_failed(self) -> bool:
        return self.process is not None and bool(self.process.poll())

    def _end_left_behind(self, configuration: Configuration) -> None:
        """End an application whose supervisor was killed, to avoid two drivers on a checkpoint."""
        if self.process is not None or not self._is_left_behind():
            return
        self._write(configuration)
        ends_s = time.monotonic() + 2.0 * configuration.trigger_s + ANSWERED_WITHIN_S.value
        while time.monotonic() < ends_s:
            has_answered = setting_file.load_answer(self.path, self.number) == (None, False)
            if has_answered or not self._is_left_behind():
                # Only the end of its session remains.
                time.sleep(_SESSION_ENDS_S)
                self.number += 1
                return
            time.sleep(_ANSWER_EVERY_S)
        raise HeadwayError(
            f"{self.path}: an application of an earlier supervisor runs and does not stop; end it, "
            "then start again"
        )

    def _is_left_behind(self) -> bool:
        return time.time() - self._last_sign_s() < ALIVE_WITHIN_S.value

    def _last_sign_s(self) -> float:
        """When the application last showed that it waits for requests, since 1970 [s]."""
        try:
            return setting_file.alive_file(self.path).stat().st_mtime
        except FileNotFoundError:
            return -math.inf

    def _write(self, configuration: Configuration, *, is_withdrawn: bool = False) -> None:
        setting = setting_file.GivenSetting(
            number=self.number,
            configuration=configuration,
            recording=str(self.recording.resolve()),
            may_cut=self.may_cut,
            is_withdrawn=is_withdrawn,
        )
        setting_file.save_setting(setting, self.path)

    def _await_end(self) -> None:
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDS_WITHIN_S.value)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise HeadwayError(
                f"the application did not end within {format_duration(ENDS_WITHIN_S.value)} "
                "and was killed"
            )
