"""A file to which one writer at a time appends whole lines, at once visible to readers."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from headway.errors import InputError


class AppendedFile:
    """An open file at whose end lines are written; made if missing, locked until it is closed.

    The system releases the lock with its process, however that ends. File systems without locks do
    without. ``mode`` are the permissions of a new file, from which the umask takes. Raises
    InputError if another writer, of this process or another one, has it open; else OSError.
    """

    def __init__(self, path: Path, mode: int = 0o666) -> None:
        self.path = path
        # Unbuffered, so that written data survives the end of this process.
        self._file = open(  # noqa: SIM115  # closed by close()
            path, "a+b", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)
        )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise InputError(
                f"{path}: another writer appends to it; end that one, or give another file"
            ) from None
        except OSError:
            pass

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def head(self, num_bytes: int) -> bytes:
        self._file.seek(0)
        return self._file.read(num_bytes) or b""

    def append(self, lines: bytes) -> None:
        """Write lines; OSError if they are not written completely."""
        if self.size_bytes:
            self._file.seek(-1, os.SEEK_END)
            # A partial line of a killed process must not corrupt the next line.
            lines = lines if self._file.read(1) == b"\n" else b"\n" + lines
        while lines:
            lines = lines[self._file.write(lines) or 0 :]

    def require_in_place(self) -> None:
        """OSError if the file no longer has its name, so that nobody would find its lines."""
        open_stat, path_stat = os.fstat(self._file.fileno()), self.path.stat()
        if (open_stat.st_dev, open_stat.st_ino) != (path_stat.st_dev, path_stat.st_ino):
            raise FileNotFoundError(errno.ENOENT, "it was moved or replaced")

    def close(self) -> None:
        """Release and close it; may be repeated."""
        if not self._file.closed:
            # Processes forked from this one may still have it open.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()
