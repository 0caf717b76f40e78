"""The rate of a running query by the time of day: what earlier days say about the next minutes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from headway.assumptions.forecasts import (
    DAILY_COMPARED_RATIO,
    DAILY_ERROR_RATIO,
    DAILY_SLOT_S,
    DAILY_SLOT_SEEN_RATIO,
    DAYS_KEPT,
)
from headway.units import S_PER_DAY

_SLOTS_PER_DAY = round(S_PER_DAY / DAILY_SLOT_S.value)
_MOST_SLOTS = DAYS_KEPT.value * _SLOTS_PER_DAY


@dataclass(frozen=True, slots=True)
class DailyRates:
    """Mean rates of the last days in slots of five minutes, and whether they repeat.

    ``rates_per_s`` are those of closed slots by their number since 1970, ``counted_s`` and
    ``counted_rows`` belong to the open slot. ``repeats`` is whether earlier days forecast the last
    one better than the rate just before did.
    """

    rates_per_s: Mapping[int, float] = field(default_factory=dict)
    repeats: bool = False
    open_slot: int = -1
    counted_s: float = 0.0
    counted_rows: float = 0.0

    @classmethod
    def of(cls, rates_per_s: Mapping[int, float]) -> DailyRates:
        """Rates that were recorded before."""
        return cls(rates_per_s=dict(rates_per_s), repeats=_repeats(rates_per_s))

    def factor(self, at_s: float, lead_s: float) -> float:
        r"""Expected rate after a time over the rate now, according to earlier days.

        ``at_s`` is now, an instant since 1970. The factor is 1 if the days do not repeat, or if one
        of the two slots is missing in all of them.

        **(A17)** Daily pattern, seasonal by ratios (Winters 1960, doi:10.1287/mnsc.6.3.324): the
        mean rates `x` of slots of 5 minutes of the last 4 days. With `x(t)` the rate of the slot
        that contains `t`, the rate after the lead is expected to be
        `λ · Σ_j x(τ+t-j d)/Σ_j x(τ-j d)`, `d` a day, over the days `j = 1, 2, ...` that contain
        both slots. It counts only if it exceeds (A1), and only while the pattern repeats: over at
        least nine tenths of the slots of the last day, the root mean square error of this forecast,
        one slot ahead, is at most 0.9 times that of the rate of the slot before. So it takes two
        days to be used.

        >>> slots = {number: 300.0 if number % 288 >= 96 else 100.0 for number in range(3 * 288)}
        >>> daily, day_s = DailyRates.of(slots), 86400.0
        >>> eight_s = 3 * day_s + 8 * 3600.0
        >>> [round(daily.factor(eight_s + at_s, 90.0), 2) for at_s in (-120.0, -60.0, 60.0)]
        [1.0, 3.0, 1.0]
        """
        if not self.repeats:
            return 1.0
        return _ratio(self.rates_per_s, _slot(at_s), _slot(at_s + lead_s)) or 1.0


def with_rows(daily: DailyRates, from_s: float, to_s: float, rows: float) -> DailyRates:
    r"""The rates after rows that arrived evenly between two looks at the source (A17).

    Slots are closed that have ended since and were seen for at least half of their time. A time
    between two looks that is longer than a slot is left out.

    Parameters
    ----------
    from_s, to_s : float, the two looks, instants since 1970; not a number before the first one [s]
    rows : float, rows that arrived between them; negative if the count is of another source [rows]

    >>> daily = DailyRates()
    >>> for minute in range(11):
    ...     daily = with_rows(daily, 60.0 * minute, 60.0 * (minute + 1), 600.0)
    >>> daily.rates_per_s
    {0: 10.0, 1: 10.0}
    """
    if not 0.0 < to_s - from_s <= DAILY_SLOT_S.value or rows < 0.0:
        return daily
    per_s = rows / (to_s - from_s)
    while from_s < to_s:
        slot = _slot(from_s)
        end_s = min((slot + 1) * DAILY_SLOT_S.value, to_s)
        if slot != daily.open_slot:
            daily = replace(_closed(daily), open_slot=slot, counted_s=0.0, counted_rows=0.0)
        seen_s = end_s - from_s
        counted_s, counted_rows = daily.counted_s + seen_s, daily.counted_rows + per_s * seen_s
        daily = replace(daily, counted_s=counted_s, counted_rows=counted_rows)
        from_s = end_s
    return daily


def _closed(daily: DailyRates) -> DailyRates:
    """With the rate of the open slot, without slots that are older than the kept days."""
    if daily.counted_s < DAILY_SLOT_SEEN_RATIO.value * DAILY_SLOT_S.value:
        return daily
    before_slot = daily.open_slot - _MOST_SLOTS
    rates = {slot: rate for slot, rate in daily.rates_per_s.items() if slot > before_slot}
    rates[daily.open_slot] = daily.counted_rows / daily.counted_s
    return replace(daily, rates_per_s=rates, repeats=_repeats(rates))


def _repeats(rates_per_s: Mapping[int, float]) -> bool:
    """Whether earlier days forecast the last one clearly better than the slot before: (A17)."""
    errors = list(_errors(rates_per_s))
    if len(errors) < DAILY_COMPARED_RATIO.value * _SLOTS_PER_DAY:
        return False
    plain, daily = (math.hypot(*forecast_errors) for forecast_errors in zip(*errors, strict=True))
    return daily <= DAILY_ERROR_RATIO.value * plain and plain > 0.0


def _errors(rates_per_s: Mapping[int, float]) -> Iterator[tuple[float, float]]:
    """Errors, over the slots of the last day, of the rate before and of the pattern."""
    last = max(rates_per_s, default=0)
    for slot in range(last - _SLOTS_PER_DAY + 1, last + 1):
        rate, before = rates_per_s.get(slot), rates_per_s.get(slot - 1)
        if rate is None or before is None:
            continue
        ratio = _ratio(rates_per_s, slot - 1, slot)
        if ratio is not None:
            yield rate - before, rate - before * ratio


def _ratio(rates_per_s: Mapping[int, float], slot: int, later: int) -> float | None:
    """Rate of a later slot over that of a slot, on the days before; None without such a day."""
    now_per_s = later_per_s = 0.0
    for day in range(1, DAYS_KEPT.value + 1):
        offset_slots = day * _SLOTS_PER_DAY
        if slot - offset_slots in rates_per_s and later - offset_slots in rates_per_s:
            now_per_s += rates_per_s[slot - offset_slots]
            later_per_s += rates_per_s[later - offset_slots]
    return later_per_s / now_per_s if now_per_s > 0.0 else None


def _slot(at_s: float) -> int:
    return math.floor(at_s / DAILY_SLOT_S.value)
