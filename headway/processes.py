"""Python processes that Headway starts: they import what this process imports, and nothing else.

By itself Python puts the working folder first on the path of ``-m`` and ``-c``: a file there, in a
folder of downloaded logs perhaps, would be executed instead of a package of the same name.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# Few commands start any.
if TYPE_CHECKING:
    import subprocess

Computed = TypeVar("Computed")

_ROOT = str(Path(__file__).parents[1])
# To start a process takes as long as a few computations.
_COMPUTATIONS_PER_PROCESS = 8


def python_command(*arguments: str) -> list[str]:
    """The command of a Python process that does not import from its working folder.

    >>> python_command("-m", "headway")[1:]
    ['-P', '-m', 'headway']
    """
    return [sys.executable, "-P", *arguments]


def python_environment() -> Mapping[str, str]:
    """Variables with which a Python process, and those that it starts, import as this one does.

    >>> python_environment()["PYTHONSAFEPATH"]
    '1'
    """
    # An empty entry, as of an interactive session, is the working folder.
    folders = [folder for folder in sys.path if folder]
    if _ROOT not in folders:
        folders.append(_ROOT)
    return {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}


class AllCores(contextlib.AbstractContextManager["AllCores"]):
    """Computes many things at once: this process, and a further one for each other core.

    The further processes start when there is enough to compute, and end with the block. What they
    fail to compute, this process computes.

    >>> from functools import partial
    >>> with AllCores() as cores:
    ...     cores.compute([partial(pow, 2, 3), partial(pow, 3, 2)])
    [8, 9]
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What was on its way to a process that has ended cannot be flushed.
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]  # pipes were asked for

    def compute(
        self,
        computations: Sequence[Callable[[], Computed]],
        *,
        first: Callable[[], object] | None = None,
    ) -> list[Computed]:
        """Results of computations, each of which can be pickled and takes a tenth of a second.

        This process does something else ``first``, while others begin. Raises the error of the
        first computation that fails.
        """
        self._start(min(num_cores(), len(computations) // _COMPUTATIONS_PER_PROCESS) - 1)
        waiting = deque(enumerate(computations))
        outcomes: dict[int, Computed | Exception] = {}
        hands = [
            threading.Thread(target=_hand_on, args=(process, waiting, outcomes), daemon=True)
            for process in self._processes
        ]
        for hand in hands:
            hand.start()
        if first is not None:
            first()
        _work_off(waiting, outcomes, _outcome_of)
        for hand in hands:
            hand.join()
        # What a process has taken and not computed waits again.
        _work_off(waiting, outcomes, _outcome_of)
        results = []
        for _, outcome in sorted(outcomes.items()):
            if isinstance(outcome, Exception):
                raise outcome
            results.append(outcome)
        return results

    def _start(self, num_processes: int) -> None:
        import subprocess

        environment = {**os.environ, **python_environment()}
        with contextlib.suppress(OSError):
            while len(self._processes) < num_processes:
                process = subprocess.Popen(
                    python_command("-m", "headway.processes"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                    # Ctrl-C in the terminal is handled by this process, which ends the others.
                    start_new_session=True,
                )
                self._processes.append(process)


def _work_off(
    waiting: deque[tuple[int, Callable[[], Any]]],
    outcomes: dict[int, Any],
    outcome_of: Callable[[Callable[[], Any]], Any],
) -> None:
    """Compute what is waiting, until nothing is or an error says that nothing else is needed."""
    while True:
        try:
            index, computation = waiting.popleft()
        except IndexError:
            return
        try:
            outcomes[index] = outcome_of(computation)
        except BaseException:
            waiting.append((index, computation))
            raise
        if isinstance(outcomes[index], Exception):
            waiting.clear()


def _hand_on(
    process: subprocess.Popen[bytes],
    waiting: deque[tuple[int, Callable[[], Any]]],
    outcomes: dict[int, Any],
) -> None:
    """Let a process compute what is waiting, as long as it answers."""
    to, back = process.stdin, process.stdout
    assert to is not None and back is not None, "pipes were asked for"

    def outcome_of(computation: Callable[[], Any]) -> Any:
        pickle.dump(computation, to, protocol=pickle.HIGHEST_PROTOCOL)
        to.flush()
        return pickle.load(back)

    try:
        _work_off(waiting, outcomes, outcome_of)
    except Exception:
        # It has ended, or what one of the two writes cannot be read.
        process.kill()


def _outcome_of(computation: Callable[[], Any]) -> Any:
    try:
        return computation()
    except Exception as error:
        return error


def num_cores() -> int:
    """Cores that this process may use; 1 if no other process can be started."""
    if not sys.executable:
        return 1
    # Not every system provides this.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main() -> None:
    """Compute what arrives, until nothing more does."""
    while True:
        try:
            computation = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_outcome_of(computation), sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
