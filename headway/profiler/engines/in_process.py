"""Pieces of logs read in this process, and in further ones if there is much to read."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headway.errors import HeadwayError
from headway.processes import num_cores, python_command, python_environment
from headway.profiler.pieces import OnProgress, Order, Result, carried_out
from headway.units import parse_size_bytes

# Few logs are so large that further processes are worthwhile.
if TYPE_CHECKING:
    import subprocess

# Starting a process takes as long as reading this much.
_WORTH_A_PROCESS_BYTES = parse_size_bytes("24m")
_RESULTS_AHEAD = 8
_ENDS_WITHIN_S = 5.0


def _tell_nobody(_read_bytes: int, _num_events: int) -> None:
    pass


def read_in_process(
    orders: Sequence[Order],
    on_progress: OnProgress = _tell_nobody,
    num_processes: int | None = None,
) -> Iterator[Result]:
    """Results of the pieces, read by processes of this machine: one for each core it may use.

    ``on_progress`` is called with bytes and events that were read, from several threads.
    """
    total_bytes = sum(order.piece.events_bytes for order in orders)
    num_worthwhile = 1 + int(total_bytes / _WORTH_A_PROCESS_BYTES)
    num_others = min(num_processes or num_cores(), len(orders), num_worthwhile) - 1
    if num_others < 1:
        for order in orders:
            yield carried_out(order, on_progress)
        return
    shared = _Shared(orders)
    with contextlib.ExitStack() as ended:
        for _ in range(num_others):
            ended.enter_context(_process_at_work(shared, on_progress))
        for order_index in range(len(orders)):
            while not shared.is_done(order_index):
                taken_index = shared.take()
                if taken_index is None:
                    shared.wait_for(order_index)
                else:
                    shared.put(taken_index, carried_out(orders[taken_index], on_progress))
            yield shared.pop(order_index)


class _Shared:
    """Orders shared by several processes, and their results."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.orders = orders
        self._changed = threading.Condition()
        self._done: dict[int, Result] = {}
        self._num_taken = 0
        self._num_given = 0
        self._error: BaseException | None = None

    def take(self, *, patiently: bool = False) -> int | None:
        """Index of an order that has not been taken; None if there is none left."""
        with self._changed:
            while patiently and self._num_taken >= self._num_given + _RESULTS_AHEAD:
                self._changed.wait()
            if self._num_taken == len(self.orders) or self._error is not None:
                return None
            self._num_taken += 1
            return self._num_taken - 1

    def put(self, order_index: int, result: Result) -> None:
        with self._changed:
            self._done[order_index] = result
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = error
            self._num_given = len(self.orders)
            self._changed.notify_all()

    def is_done(self, order_index: int) -> bool:
        with self._changed:
            if self._error is not None:
                raise self._error
            return order_index in self._done

    def wait_for(self, order_index: int) -> None:
        with self._changed:
            while order_index not in self._done and self._error is None:
                self._changed.wait()

    def pop(self, order_index: int) -> Result:
        with self._changed:
            self._num_given += 1
            self._changed.notify_all()
            return self._done.pop(order_index)


@contextlib.contextmanager
def _process_at_work(shared: _Shared, on_progress: OnProgress) -> Iterator[None]:
    """A process that takes orders as long as there are any; it ends with the block."""
    import subprocess

    process = subprocess.Popen(
        python_command("-m", "headway.profiler.engines.in_process"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **python_environment()},
        # Ctrl-C in the terminal is handled by this process, which ends the others.
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None, "pipes were asked for"
    hand = threading.Thread(target=_hand_on, args=(shared, process, on_progress), daemon=True)
    hand.start()
    try:
        yield
    finally:
        shared.fail(HeadwayError("reading was ended"))
        process.kill()
        process.wait()
        hand.join()
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()


def _hand_on(shared: _Shared, process: subprocess.Popen[bytes], on_progress: OnProgress) -> None:
    to, back = process.stdin, process.stdout
    assert to is not None and back is not None, "pipes were asked for"
    try:
        while (order_index := shared.take(patiently=True)) is not None:
            pickle.dump(shared.orders[order_index], to)
            to.flush()
            while isinstance(answer := pickle.load(back), tuple) and not isinstance(answer, Result):
                on_progress(*answer)
            if isinstance(answer, Exception):
                raise answer
            shared.put(order_index, answer)
    except (EOFError, OSError, pickle.UnpicklingError):
        shared.fail(HeadwayError(f"one of the processes that read logs {_end_of(process)}"))
    except Exception as error:
        shared.fail(error)


def _end_of(process: subprocess.Popen[bytes]) -> str:
    """How a process ended, in words; what it did instead if it goes on."""
    import signal
    import subprocess

    try:
        code = process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        return "answers with something that is not a result"
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code) or 'unknown'})"
    return f"ended with exit code {code}"


def main() -> None:
    # Nothing here refers to itself.
    gc.disable()
    orders, results = sys.stdin.buffer, sys.stdout.buffer

    def on_progress(read_bytes: int, num_events: int) -> None:
        pickle.dump((read_bytes, num_events), results)
        results.flush()

    while True:
        try:
            order = pickle.load(orders)
        except EOFError:
            return
        answer: Result | Exception
        try:
            answer = carried_out(order, on_progress)
        except Exception as error:
            # It is raised where it would be if that process had read the piece.
            answer = error
        pickle.dump(answer, results, protocol=pickle.HIGHEST_PROTOCOL)
        results.flush()


if __name__ == "__main__":
    main()
