"""Signals that end a program end it in order: what was begun is cleaned up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def signals_end_the_block() -> Iterator[None]:
    """SIGTERM raises SystemExit inside, where it would end Python without any cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    on_interrupt = signal.getsignal(signal.SIGINT)
    on_terminate = signal.getsignal(signal.SIGTERM)
    if on_terminate is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, on_terminate)
        signal.signal(signal.SIGINT, on_interrupt)
