"""Timers of keys, and the end of keys that have no more rows.

Something happens to a key as soon as the time has passed it: in event time before a row of the key
with a later time, in any case in the batch whose watermark, or whose start, is later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headway.errors import InputError
from headway.runtime.ordered.kept_state import (
    NEVER_US,
    KeptStates,
    Key,
    KeyTimes,
    StateForm,
    maker_of,
)


class PassingTime:
    """Time that passes for the keys of a bucket in a batch, up to ``now_us``.

    What ``on_timer`` returns is added to ``output_rows``.
    """

    def __init__(
        self,
        times: KeyTimes,
        key_columns: Sequence[str],
        key_states: KeptStates,
        form: StateForm,
        now_us: int | None,
        output_rows: list[tuple[Any, ...]],
    ) -> None:
        self._times = times
        self._key_of = maker_of("Key", key_columns)
        self._key_states = key_states
        self._form = form
        self._now_us = now_us
        self.last_rows_us: dict[Key, int | None] = {}
        self._output_rows = output_rows

    def begin(self, keys: Iterable[Key]) -> None:
        """Read when the keys of this batch had their last rows before."""
        self.last_rows_us = self._key_states.last_rows_us(keys)

    def before_row(self, key: Key, state: Any, row_us: int | None) -> Any:
        """State of a key just before one of its rows."""
        until_us = row_us if self._times.by_row else self._now_us
        if state is not None and until_us is not None:
            state = self._passed(key, state, until_us)
        if self._times.idle_us is not None:
            # A row without a time counts as one of now.
            last_us = self._now_us if row_us is None else row_us
            before_us = None if state is None else self.last_rows_us.get(key)
            rows_us = [at for at in (before_us, last_us) if at is not None]
            self.last_rows_us[key] = max(rows_us, default=None)
        return state

    def at_end(self, changes: dict[Key, Any]) -> int | None:
        """Let the time pass for all keys once the rows are processed, and add what it changes.

        Returns the time at which something will happen next.
        """
        if self._now_us is None:
            return None
        due_keys = self._key_states.due(self._now_us, changes)
        self.last_rows_us |= self._key_states.last_rows_us(due_keys)
        for key, state in {**changes, **self._key_states.of(due_keys)}.items():
            if state is not None:
                changes[key] = self._passed(key, state, self._now_us)
        ahead_us = [
            self._when_us(key, state) for key, state in changes.items() if state is not None
        ]
        first_us = min(ahead_us, default=NEVER_US)
        first_us = min(first_us, self._key_states.first_us(changes))
        return None if first_us == NEVER_US else first_us

    def _when_us(self, key: Key, state: Any) -> int:
        end_us = self._times.end_us(self.last_rows_us.get(key))
        return min(self._times.timer_us(state), end_us)

    def _passed(self, key: Key, state: Any, until_us: int) -> Any:
        """State of a key at a time; what is due at that very time has not happened yet."""
        on_timer = self._times.on_timer
        while state is not None and self._when_us(key, state) < until_us:
            timer_us = self._times.timer_us(state)
            if on_timer is None or self._times.end_us(self.last_rows_us.get(key)) < timer_us:
                return None
            after, rows = returned(on_timer(self._key_of(key), state), "on_timer")
            self._output_rows.extend(rows)
            state = None if after is None else self._form.kept(after, "on_timer")
            if state is not None and self._times.timer_us(state) <= timer_us:
                raise InputError(
                    f"on_timer returned the state {state!r}, whose {self._times.timer} has passed; "
                    "expected a later time, null for no timer, or None to forget the key"
                )
        return state


def returned(pair: Any, function: str) -> tuple[Any, Iterable[tuple[Any, ...]]]:
    """What a user's function returned, if it is a state and rows."""
    if type(pair) is not tuple or len(pair) != 2 or pair[1] is None:
        raise InputError(f"{function} returned {pair!r}; expected the state and a list of rows")
    return pair
