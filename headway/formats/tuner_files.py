"""The files of a tuner: its state, its lock, its switch, and the log of its decisions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import headway.domain.tuner as tuner
from headway.assumptions.tuning import LOST_AFTER_S
from headway.domain import JobProfile
from headway.domain.live import Proposal
from headway.errors import HeadwayError, InputError, TunerLockedError
from headway.formats.codec import STATE, data_of, noun_of
from headway.formats.event_lines import tell_event
from headway.formats.own_files import parse_json, read_bytes, read_json, read_text, why_of
from headway.formats.profile_file import dump_profile
from headway.formats.text_file import write_text
from headway.redaction import one_line
from headway.units import format_duration

_MOST_STATE_BYTES = 64 * 2**20
_MOST_AUDIT_BYTES = 256 * 2**20
_MOST_LOCK_BYTES = 4096
_PROCESS_ID = re.compile("[1-9][0-9]{0,8}")


def switch_file(state: Path) -> Path:
    """The file that turns the tuner off as long as it exists."""
    return state.with_suffix(".off")


RESTORE_WORD = "restore"


def switch_word(state: Path) -> str | None:
    """Content of the switch: the tuner is off, or first restores a setting; None without one."""
    try:
        return read_bytes(switch_file(state), _MOST_LOCK_BYTES).decode("utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return "off"


def is_locked(state: Path) -> bool:
    """Whether a tuner holds a state file, according to its lock."""
    try:
        silent_s = time.time() - lock_file(state).stat().st_mtime
    except FileNotFoundError:
        return False
    return silent_s < LOST_AFTER_S.value


def audit_file(state: Path) -> Path:
    """The log beside a state file: a line of JSON for each decision."""
    return state.with_suffix(".jsonl")


def lock_file(state: Path) -> Path:
    """The lock that a tuner holds, so that there is no second one."""
    return state.with_suffix(".lock")


def profile_hash(profile: JobProfile) -> str:
    """Identification of the profile that a state was made with."""
    return hashlib.sha256(dump_profile(profile).encode()).hexdigest()[:16]


def save_tuner(state: tuner.TunerState, path: Path) -> None:
    """Write it atomically: the file always contains either the old or the new state."""
    # The standard library keeps infinite numbers.
    text = json.dumps(data_of(state, STATE), indent=1)
    write_text(path, text + "\n", label="the state of the tuner")


def load_tuner(path: Path) -> tuner.TunerState | None:
    """The state in a file; None if there is none.

    Raises InputError if the file is not the state of a tuner.
    """
    if not os.path.lexists(path):
        return None
    data = read_json(
        path, expected="a tuner's state", largest_bytes=_MOST_STATE_BYTES, has_infinity=True
    )
    try:
        state = noun_of(data, tuner.TunerState, STATE)
        if state.schema != tuner.TUNER_SCHEMA:
            raise InputError(f"schema is {state.schema!r}; expected {tuner.TUNER_SCHEMA}")
    except InputError as error:
        raise InputError(
            f"{one_line(path)}: not the state of a tuner ({why_of(error)}); give another file, or "
            "remove it to begin anew"
        ) from None
    return state


class TunerLock:
    """One tuner per state file: a lock beside it, with a heartbeat.

    Raises TunerLockedError if another tuner holds it, InputError if the state has the name of a
    file beside it.
    """

    def __init__(self, state: Path) -> None:
        if state in (audit_file(state), switch_file(state), lock_file(state)):
            raise InputError(
                f"{state}: is the name of a file that is kept beside the state; expected another "
                "one for the state, e.g. orders.tuner.json"
            )
        self._path = lock_file(state)
        self._mine = f"{socket.gethostname()} {os.getpid()} {time.time_ns()}"
        self._take()

    def beat(self) -> None:
        """Renew the heartbeat of this tuner; to be called every few seconds.

        Raises TunerLockedError if another tuner has taken over, because this one was silent for too
        long.
        """
        holder = self._holder()
        if holder != self._mine:
            silence = format_duration(LOST_AFTER_S.value)
            why = f"another tuner took over, since this one was silent for more than {silence}"
            why = "it is gone, or cannot be read" if holder is None else why
            raise TunerLockedError(f"{self._path}: {why}; this tuner changes nothing more")
        with contextlib.suppress(OSError):
            os.utime(self._path)

    def release(self) -> None:
        """Release it, if it is still held; may be repeated."""
        if self._holder() == self._mine:
            # On a disk that has become read-only it stays, and is left behind with this process.
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _take(self) -> None:
        for _ in range(2):
            try:
                self._create()
            except FileExistsError:
                self._require_left_behind()
                # Whoever renames it first has it; of two the other one begins again.
                abandoned_lock = self._path.with_name(f".{self._path.name}.{os.getpid()}.left")
                with contextlib.suppress(FileNotFoundError):
                    self._path.rename(abandoned_lock)
                    abandoned_lock.unlink(missing_ok=True)
                continue
            except OSError as error:
                raise HeadwayError(
                    f"{self._path}: cannot be written ({error.strerror}); expected a folder that "
                    "exists and has room"
                ) from None
            return
        raise TunerLockedError(f"{self._path}: another tuner was faster; this one does not start")

    def _create(self) -> None:
        handle = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self._mine)
        except OSError:
            # On a full disk it would stay there empty, and keep the next tuner from its start.
            self._path.unlink(missing_ok=True)
            raise

    def _require_left_behind(self) -> None:
        holder = self._holder()
        if holder is None:
            return
        try:
            silent_s = time.time() - self._path.stat().st_mtime
        except FileNotFoundError:
            return
        host, _, pid_and_time = holder.partition(" ")
        pid = pid_and_time.partition(" ")[0]
        is_gone = (
            host == socket.gethostname()
            and _PROCESS_ID.fullmatch(pid) is not None
            and not _is_there(int(pid))
        )
        if not is_gone and silent_s < LOST_AFTER_S.value:
            raise TunerLockedError(
                f"{self._path}: process {pid or '?'} on {host or '?'} tunes with this state, last "
                f"heard of {format_duration(max(silent_s, 0.0))} ago; stop it, or give another "
                "state file"
            )

    def _holder(self) -> str | None:
        try:
            return read_bytes(self._path, _MOST_LOCK_BYTES).decode("utf-8")
        except (OSError, ValueError):
            return None


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def append_audit(path: Path, entry: Mapping[str, object]) -> None:
    """Add a line to the log; it is handed to the system before anything is done about it.

    Raises HeadwayError if it cannot be written.
    """
    fields = data_of(entry, STATE)
    line = json.dumps({"at_s": round(time.time(), 3), **fields})
    try:
        with path.open("a+b") as file:
            # A line that a crash or a full disk has cut must not corrupt this one.
            is_cut = file.tell() > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
            file.write(b"\n" * is_cut + line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise HeadwayError(
            f"{path}: the log of the tuner cannot be written ({error.strerror}); expected a folder "
            "that exists and has room"
        ) from None
    _tell(fields)


def _tell(fields: Mapping[str, Any]) -> None:
    """Report an entry as an event, with the reason that it has."""
    proposal, change = fields.get("proposal") or {}, fields.get("change") or {}
    refused = fields.get("refused")
    why = fields.get("why") or proposal.get("reason") or change.get("reason") or fields["event"]
    tell_event(
        "tuner",
        str(fields["event"]),
        f"{why}; not made: {refused}" if refused else str(why),
        **{name: value for name, value in fields.items() if name not in ("event", "why")},
    )


def read_audit(path: Path) -> list[dict[str, object]]:
    """Decisions of a tuner, the oldest first; a line that a crash interrupted is left out.

    Raises InputError if it cannot be read, or is no text.
    """
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return []
    expected = "the log of a tuner"
    text = read_text(path, expected=expected, largest_bytes=_MOST_AUDIT_BYTES)
    entries = []
    for line in text.split("\n"):
        with contextlib.suppress(InputError):
            entries.append(parse_json(line, name=str(path), expected=expected, has_infinity=True))
    return entries


def explained_change(path: Path, number: int) -> tuner.ExplainedChange:
    """A change that a tuner made, by its number in the log: its reason and its outcome.

    Raises InputError if the file is not the log of a tuner, or has no such change; names those that
    it has.
    """
    lines = _decisions(path)
    numbers = [_number_of(line) for line in lines]
    line_indices = [index for index, line_number in enumerate(numbers) if line_number == number]
    if not line_indices:
        change_numbers = sorted({number for number in numbers if number is not None})
        numbers_text = ", ".join(map(str, change_numbers)) or "none yet"
        raise InputError(f"{path}: no change {number}; it has {numbers_text}")
    try:
        change = noun_of(lines[line_indices[-1]]["change"], tuner.TunerChange, STATE)
        proposal = _proposal_before(lines[: line_indices[0]], lines[line_indices[0]]["change"])
        outcomes = [noun_of(lines[index], tuner.ChangeOutcome, STATE) for index in line_indices]
        for line in lines[line_indices[-1] + 1 :]:
            if line.get("event") in ("proposed", "restored"):
                if line["event"] == "restored":
                    outcomes.append(noun_of(line, tuner.ChangeOutcome, STATE))
                break
    except (KeyError, InputError) as error:
        raise InputError(f"{one_line(path)}: not the log of a tuner ({why_of(error)})") from None
    return tuner.ExplainedChange(change=change, proposal=proposal, outcomes=tuple(outcomes))


def _decisions(path: Path) -> list[dict[str, object]]:
    log = audit_file(path) if path.suffix == ".json" else path
    if not log.is_file():
        raise InputError(f"{log}: no such file; expected the log of a tuner, e.g. NAME.tuner.jsonl")
    return [line for line in read_audit(log) if isinstance(line, dict)]


def _number_of(line: Mapping[str, object]) -> int | None:
    change = line.get("change")
    number = change.get("number") if isinstance(change, dict) else None
    return number if isinstance(number, int) else None


def _proposal_before(lines: list[dict[str, object]], change: object) -> Proposal | None:
    """The proposal behind a change: the last one, if it was for the same setting."""
    proposed_line = next((line for line in reversed(lines) if line.get("event") == "proposed"), {})
    proposal = proposed_line.get("proposal")
    if proposal is None or not isinstance(change, dict):
        return None
    is_same = proposed_line.get("then") == change["then"]
    return noun_of(proposal, Proposal, STATE) if is_same else None
