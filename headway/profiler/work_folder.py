"""Temporary folders that do not outlive their process, even one that is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PREFIX = "headway-"
_LOCK = ".lock"


@contextlib.contextmanager
def work_folder(purpose: str) -> Iterator[Path]:
    """A new temporary folder for this user only, removed at the end of the block.

    Folders left by killed processes are removed first: those whose lock is not held. The system
    releases a lock with its process, however that ends.
    """
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    try:
        with _locked(folder / _LOCK):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    # Written before it gets this name, so that a visible lock is always held and names its machine.
    unnamed = file.with_name("lock")
    with unnamed.open("w", encoding="utf-8") as lock_file:
        lock_file.write(platform.node())
        lock_file.flush()
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        unnamed.replace(file)
        yield


def _sweep(temporary: Path) -> None:
    """Remove folders of ours whose process is dead.

    Only of this user and this machine, since on a shared disk the lock of another machine may not
    be visible.
    """
    with contextlib.suppress(OSError), os.scandir(temporary) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    lock = folder / _LOCK
    if folder.stat().st_uid != os.geteuid() or lock.is_symlink():
        return
    with lock.open("r", encoding="utf-8") as lock_file:
        if lock_file.read() != platform.node():
            return
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The lock last, so that a sweep that is killed is finished by the next one.
        for entry in folder.iterdir():
            if entry.name == _LOCK:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def signals_end_the_block() -> Iterator[None]:
    """SIGTERM raises SystemExit inside; otherwise it would end Python without any cleanup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(signal_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal_number)

    on_interrupt = signal.getsignal(signal.SIGINT)
    on_terminate = signal.getsignal(signal.SIGTERM)
    if on_terminate is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, on_terminate)
        signal.signal(signal.SIGINT, on_interrupt)
