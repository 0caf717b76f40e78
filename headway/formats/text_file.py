"""Files written in one step, or line by line: readers never see half of a text, or of a line."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from pathlib import Path

from headway.errors import HeadwayError, InputError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_STREAM = re.compile(r"/dev/(?:fd/(\d+)|(stdin|stdout|stderr))|/proc/self/fd/(\d+)")
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}


def write_text(path: str | Path, text: str, *, label: str, only_new: bool = False) -> None:
    """Write a file completely or not at all.

    An existing file is replaced by one of the same mode, owner and group, as far as the system
    allows; it must be writable. A link stays, and its target is replaced. A device, pipe or stream
    is written to directly. ``only_new`` refuses an existing path, including a dangling link. Raises
    HeadwayError if it cannot be written; InputError if the path exists and ``only_new`` was given.
    """
    data = text.encode()
    try:
        stream = _STREAM.fullmatch(os.path.normpath(path))
        if stream is not None:
            number = stream[1] or stream[3]
            _put(int(number) if number else _STANDARD[stream[2]], data)
        elif only_new and os.path.lexists(path):
            raise FileExistsError
        elif _is_special(path):
            # Replacing /dev/null by a file would be a surprise to the whole machine.
            with Path(path).open("wb", buffering=0) as device:
                _put(device.fileno(), data)
        else:
            _replace(Path(os.path.realpath(path)), data, only_new=only_new)
    except OSError as error:
        if only_new and isinstance(error, FileExistsError):
            raise InputError(f"{path}: is there already; expected a new file") from None
        raise HeadwayError(
            f"{path}: {label} cannot be written: {error.strerror}; "
            "expected a file name in a folder that exists and can be written to"
        ) from None


def _is_special(path: str | Path) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _replace(file: Path, data: bytes, *, only_new: bool) -> None:
    """Through a new file beside it, whose name is unpredictable, so nobody can put a link there."""
    old_stat = file.stat() if file.exists() else None
    if old_stat is not None and not os.access(file, os.W_OK):
        raise PermissionError(None, "the file is read-only")
    temporary = file.with_name(f".{file.name[:100]}.{secrets.token_hex(8)}.tmp")
    # A new file has the mode that the umask leaves; what replaces another is ours alone at first.
    handle = os.open(temporary, _NEW_FILE, 0o666 if old_stat is None else 0o600)
    try:
        try:
            _put(handle, data)
            if old_stat is not None:
                _take_after(handle, old_stat)
            os.fsync(handle)
        finally:
            os.close(handle)
        if only_new:
            _link_new(temporary, file)
        else:
            temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(file.parent)


def _put(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _take_after(handle: int, old_stat: os.stat_result) -> None:
    new_stat = os.fstat(handle)
    mode = stat.S_IMODE(old_stat.st_mode)
    if (new_stat.st_uid, new_stat.st_gid) != (old_stat.st_uid, old_stat.st_gid):
        try:
            os.fchown(handle, old_stat.st_uid, old_stat.st_gid)
        except PermissionError:
            # Only root gives files away. The group may still be one of ours; if not, what the
            # group was allowed is not for ours.
            try:
                os.fchown(handle, -1, old_stat.st_gid)
            except PermissionError:
                mode &= ~0o070
    os.fchmod(handle, mode)


def _link_new(temporary: Path, file: Path) -> None:
    """Give the file its name, unless another process was faster."""
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no hard links.
        if file.exists():
            raise FileExistsError from None
        temporary.replace(file)


def _flush_folder(folder: Path) -> None:
    """After a power failure the name refers to the new file; not all systems support this."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
