"""The log of a gate's decisions: one line each, sufficient to repeat and compare them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headway.domain import Decision, Policy
from headway.errors import InputError
from headway.formats.own_files import read_bytes
from headway.formats.text_file import AppendedFile

_LOG = logging.getLogger("headway.gate")
_MOST_BUFFERED_BYTES = 8192
_MOST_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnd:
    """The end of a granted batch; its rows are 0 if it found nothing to do."""

    at_s: float
    name: str
    batch_id: int
    rows: int
    predicted_s: float
    observed_s: float


class DecisionLog:
    """JSON lines in a file, written as the gate decides; nothing is written without a file.

    A file that cannot be written, or to which another gate writes, is refused. If it can no longer
    be written later, the log ends, which is logged, and the gate goes on.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._file: AppendedFile | None = None
        self._lines = bytearray()
        self.ended_because: str | None = None
        if path is not None:
            if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
                raise InputError(f"decisions: got {path!r}; expected a file, e.g. 'gate.jsonl'")
            try:
                self._file = AppendedFile(Path(path))
            except InputError as error:
                raise InputError(f"decisions: {error}") from None
            except OSError as error:
                raise InputError(
                    f"decisions: {path}: cannot be written: {error.strerror or error}; expected a "
                    "file in a folder that exists and can be written to"
                ) from None

    def write(self, entry: Decision | BatchEnd) -> None:
        if self._file is not None:
            kind = "decision" if isinstance(entry, Decision) else "batch"
            self._lines += msgspec.json.encode({kind: entry}) + b"\n"
            if len(self._lines) >= _MOST_BUFFERED_BYTES:
                self.flush()

    def flush(self) -> None:
        """Pass written lines to the operating system."""
        if self._file is None or not self._lines:
            return
        lines, self._lines = bytes(self._lines), bytearray()
        try:
            self._file.append(lines)
        except OSError as error:
            self.ended_because = f"{self._file.path}: cannot be written any more ({error.strerror})"
            _LOG.error("the log of decisions has ended, the gate goes on: %s", self.ended_because)
            self.close()

    def close(self) -> None:
        """No more lines."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    decision: Decision | None = None
    batch: BatchEnd | None = None


def read_decision_log(path: str | Path) -> Iterator[Decision | BatchEnd]:
    """The lines of a log, without an incomplete last line of a killed driver.

    Raises InputError if the file cannot be read or is not such a log, and names the line.
    """
    decoder = msgspec.json.Decoder(_Line)
    try:
        data = read_bytes(Path(path), _MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a decision log") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path}: larger than {_MOST_BYTES >> 20} MiB; expected a decision log")
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if number == len(lines):
                return
            raise InputError(
                f"{path}:{number}: not a line of a decision log ({error}); expected what "
                "headway.schedule(..., decisions=FILE) wrote"
            ) from None
        if entry.decision is not None and entry.decision.policy is Policy.AUTO:
            raise InputError(
                f"{path}:{number}: a decision by auto; expected the policy that auto had chosen"
            )
        record = entry.decision or entry.batch
        if record is not None:
            yield record
