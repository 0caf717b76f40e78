"""How long the recorder may be at work, so that what it costs stays a small share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

# So many looks at a batch are made up for later: a short burst of batches is recorded whole.
_MOST_SAVED_S = 0.1


class Allowance:
    """Time to be at work: a share of the time that passes, of which a little is saved up.

    0.01 ``cores`` is one core's time one part in a hundred. Time at work is never less than the
    processor time of one who works alone, here or in the JVM that is waited for; on a busy machine
    it is more, and less is done.

    >>> now_s = 0.0
    >>> allowance = Allowance(0.01, clock=lambda: now_s)
    >>> with allowance.used():
    ...     now_s += 0.15
    >>> allowance.is_left()
    False
    >>> now_s += 6.0
    >>> allowance.is_left()
    True
    """

    def __init__(self, cores: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cores = cores
        self._clock = clock
        self._known_at_s = clock()
        self._left_s = _MOST_SAVED_S

    def is_left(self) -> bool:
        """Whether more may be done now; what is begun then may be finished."""
        now_s = self._clock()
        gained_s = self._cores * (now_s - self._known_at_s)
        self._known_at_s = now_s
        self._left_s = min(self._left_s + gained_s, _MOST_SAVED_S)
        return self._left_s > 0.0

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """What is done inside the block is work."""
        begun_s = self._clock()
        try:
            yield
        finally:
            self._left_s -= self._clock() - begun_s
