"""Numbers of three digits: the numbers that are printed, as a list of all of them.

A value that is promised, such as a rate or a limit, is rounded to the safe side of it, so that
whoever asks for the printed number gets what it promises.
"""

from __future__ import annotations

import math

from headway.units import format_rate

RANKS_PER_DECADE = 900
"""How many numbers of three digits there are between a power of ten and the next."""
_SAME_RATIO, _EXACT_DIGITS = 1e-11, 6


def rank_of(number: float) -> int:
    """Index of the last number with three digits that is not above, in the list of all of them.

    >>> rank_of(100.0), rank_of(57_483.0) - rank_of(57_300.0)
    (1800, 1)
    """
    exponent = math.floor(math.log10(number))
    # A number that already has three digits keeps them.
    digits = math.floor(round(number / 10.0 ** (exponent - 2), 9))
    return RANKS_PER_DECADE * exponent + digits - 100


def number_at(rank: int) -> float:
    """The number with three digits at an index.

    >>> number_at(rank_of(57_483.0)), number_at(rank_of(0.0123)), number_at(rank_of(999.0) + 1)
    (57400.0, 0.0123, 1000.0)
    """
    exponent, digits = divmod(rank, RANKS_PER_DECADE)
    return float(f"{digits + 100}e{exponent - 2}")


def rounded_down(value: float) -> float:
    """The last number with three digits that is not above.

    >>> rounded_down(57_483.0), rounded_down(0.0)
    (57400.0, 0.0)
    """
    return number_at(rank_of(value)) if 0.0 < value < math.inf else value


def rounded_up(value: float) -> float:
    """The next number with three digits that is not below.

    >>> rounded_up(0.44202), rounded_up(2.0), rounded_up(float("inf"))
    (0.443, 2.0, inf)
    """
    if not 0.0 < value < math.inf:
        return value
    rank = rank_of(value)
    return number_at(rank + (number_at(rank) < value * (1.0 - _SAME_RATIO)))


def format_rate_down(rate_per_s: float) -> str:
    """A rate up to which something holds, for people: it still holds at the printed rate.

    >>> format_rate_down(141_808.0), format_rate_down(50_000.0)
    ('141k/s', '50k/s')
    """
    return format_rate(rounded_down(rate_per_s))


def format_max_rate(rate_per_s: float) -> str:
    """A max rate for people: of three digits, or a requested one with up to six of its digits.

    >>> format_max_rate(61_800.0), format_max_rate(61_847.377)
    ('61.8k/s', '61.8473k/s')
    """
    if math.isclose(rounded_down(rate_per_s), rate_per_s, rel_tol=1e-9):
        return format_rate(rate_per_s)
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) + 1 - _EXACT_DIGITS)
    return format_rate(math.floor(rate_per_s / unit) * unit, _EXACT_DIGITS)


def size_text(num_bytes: float) -> str:
    """A number of bytes in three digits.

    >>> size_text(1536), size_text(3 * 2**30)
    ('1.5 KiB', '3 GiB')
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if num_bytes >= 1024**power:
            return f"{num_bytes / 1024**power:.3g} {unit}"
    return f"{num_bytes:.0f} bytes"


def format_money(amount: float, *, currency: str = "", sign: bool = False) -> str:
    """An amount of money for people: three significant digits, whole from 100 on.

    >>> format_money(12_345.6, currency="USD"), format_money(0.19234)
    ('12,346 USD', '0.192')
    >>> format_money(70.08, sign=True)
    '+70.1'
    """
    digits = f"{amount:{'+' if sign else ''},.0f}"
    if abs(amount) < 100:
        digits = f"{amount:{'+' if sign else ''}.3g}"
    return f"{digits} {currency}".rstrip()


def signed_percent(ratio: float, num_decimals: int = 0) -> str:
    """A change in per cent, with its sign; one too small for the decimals is not said to be none.

    >>> signed_percent(0.231), signed_percent(-0.002), signed_percent(0.002, 1)
    ('+23%', '-<1%', '+0.2%')
    >>> signed_percent(0.0), signed_percent(-0.0001, 1)
    ('+0%', '-<0.1%')
    """
    step_percent = 10.0**-num_decimals
    if 0.0 < abs(ratio) < 0.005 * step_percent:
        return f"{'+' if ratio > 0.0 else '-'}<{step_percent:.{num_decimals}f}%"
    return f"{ratio:+.{num_decimals}%}"
