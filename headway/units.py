"""Text <-> base units (seconds, bytes, records), and Spark's own spellings of them.

The only module that knows 1000 and 1024. Everything else computes in base units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from headway.errors import InputError
from headway.limits import LARGEST_NUMBER, LONGEST_S

_DURATION_S = {
    name: unit_s
    for names, unit_s in (
        ("us microsecond microseconds", 1e-6),
        ("ms millisecond milliseconds", 1e-3),
        ("s sec second seconds", 1.0),
        ("m min minute minutes", 60.0),
        ("h hour hours", 3600.0),
        ("d day days", 86400.0),
    )
    for name in names.split()
}
_COUNT = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_PER_S = {unit: _DURATION_S[unit] for unit in ("s", "sec", "second", "min", "minute", "h", "d")}
_BYTES: dict[str, int] = {
    name: 1024**power
    for power, names in enumerate(("b", "k kb ki kib", "m mb mi mib", "g gb gi gib", "t tb ti tib"))
    for name in names.split()
}
HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30  # as bills are compared
HOURS_PER_MONTH = DAYS_PER_MONTH * HOURS_PER_DAY
S_PER_HOUR = 3600.0
S_PER_DAY = HOURS_PER_DAY * S_PER_HOUR
_MIB = 1024**2
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_COUNTED = _NUMBER + r"\s*(?P<scale>[kKmMgG]?)"
_MS_PER_S = 1000
US_PER_MS = 1000
_SAME_RATIO = 5e-10  # nine digits
#: Steps as clocks have them; below them and above, decimal ones, of seconds and of days.
_CLOCK_STEPS_S = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0 * count for count in (1, 2, 5, 10, 15, 30)),
    *(S_PER_HOUR * count for count in (1, 2, 3, 6, 12, 24)),
)
_READABLE_FROM, _READABLE_TO = 0.1, 99_999.5  # in a unit that is not the usual one


def parse_duration_s(text: str) -> float:
    """Seconds of a duration such as ``2s``, ``500ms``, ``1.5 min``, ``1h30m``, ``2 seconds``.

    Numbers have units us, ms, s, min (or m), h, d, or these in words, as Spark's triggers take
    them; several may follow each other. Raises InputError if the text is not a duration; a bare
    number is none, since it has no unit.

    >>> parse_duration_s("500ms")
    0.5
    >>> parse_duration_s("1h30m")
    5400.0
    """
    part_pattern = re.compile(_NUMBER.replace("number", "part") + r"\s*(?P<unit>[a-zA-Z]+)\s*")
    remaining_text, total_s = text.strip(), 0.0
    if not remaining_text:
        raise _not_a("duration", text, "e.g. 500ms, 2s, 1.5min")
    while remaining_text:
        match = part_pattern.match(remaining_text)
        if match is None or match["unit"].lower() not in _DURATION_S:
            raise _not_a("duration", text, "a number and a unit, e.g. 500ms, 2s, 1.5min")
        total_s += float(match["part"]) * _DURATION_S[match["unit"].lower()]
        remaining_text = remaining_text[match.end() :]
    if not total_s <= LONGEST_S:
        raise _not_a("duration", text, "at most ten years, e.g. 500ms, 2s, 1.5min")
    # 700ms is 0.7, not 0.7000000000000001: far below what any clock here can tell.
    return float(f"{total_s:.12g}")


def parse_rate_per_s(text: str, *, may_be_zero: bool = False) -> float:
    """Records per second of a rate such as ``50k/s``, ``1.2M/min``, ``800``.

    Raises InputError if the text is not a rate, or the rate is negative, zero unless it
    ``may_be_zero``, or too large.

    >>> parse_rate_per_s("50k/s")
    50000.0
    >>> parse_rate_per_s("3M/min")
    50000.0
    """
    match = re.fullmatch(
        _COUNTED + r"\s*(?:(?:rows|records)?\s*/\s*(?P<per>[a-zA-Z]+))?", text.strip()
    )
    unit_s = _PER_S.get((match["per"] or "s").lower()) if match else None
    if match is None or unit_s is None:
        raise _not_a_rate(text)
    rate_per_s = float(match["number"]) * _COUNT[match["scale"].lower()] / unit_s
    if not 0 <= rate_per_s <= LARGEST_NUMBER or (rate_per_s == 0 and not may_be_zero):
        number = "0 or more" if may_be_zero else "a positive number of"
        raise _not_a("rate", text, f"{number} records per second, e.g. 50k/s")
    return rate_per_s


def parse_rows(text: str) -> float:
    """A number of rows such as ``40M``, ``1.5g``, ``800000``.

    Raises InputError if it is not a number of rows, or not positive, or too large.

    >>> parse_rows("40M")
    40000000.0
    """
    match = re.fullmatch(_COUNTED + r"\s*(?:rows|records)?", text.strip())
    num_rows = float(match["number"]) * _COUNT[match["scale"].lower()] if match else 0.0
    if not 0 < num_rows <= LARGEST_NUMBER:
        raise _not_a("number of rows", text, "e.g. 800000, 40M, 1.5G")
    return num_rows


def _not_a_rate(text: str) -> InputError:
    """What is wrong with a text that should be a rate, and what was probably meant by it."""
    of_bytes = re.fullmatch(_NUMBER + r"\s*[kKmMgG]i?(?:B|b|bit)\s*(?:/\s*s|ps)?", text.strip())
    if of_bytes is not None:
        return InputError(
            f"{text!r} counts bytes; expected rows per second: divide by the bytes of a row, "
            "e.g. 24k/s for 24 MB/s of rows of 1 kB"
        )
    spellings = r"\s*(?:[re]?ps|hz|(?:rows|records|events)\s*per\s*s\w*)"
    spelling = re.fullmatch(_COUNTED + spellings, text.strip(), re.IGNORECASE)
    if spelling is not None:
        rate = f"{spelling['number']}{spelling['scale']}/s"
        return InputError(f"{text!r} is not a rate; did you mean '{rate}'?")
    return _not_a("rate", text, "records per second, e.g. 50k/s, 800/s, 1.2M/min")


def parse_size_bytes(text: str) -> int:
    """Bytes of a memory size such as ``8g``, ``512m``, ``8Gi``; always binary, as in Spark.

    Raises InputError if the text is not a size; a bare number is none, since it has no unit.

    >>> parse_size_bytes("8g") == parse_size_bytes("8Gi") == 8 * 2**30
    True
    >>> parse_size_bytes("14")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: '14' has no unit; write 14g for gibibytes, or 14m for mebibytes
    """
    match = re.fullmatch(_NUMBER + r"\s*(?P<unit>[a-zA-Z]*)", text.strip())
    if match is not None and not match["unit"]:
        number = match["number"]
        raise InputError(
            f"{text!r} has no unit; write {number}g for gibibytes, or {number}m for mebibytes"
        )
    if match is None or match["unit"].lower() not in _BYTES:
        raise _not_a("size", text, "e.g. 512m, 8g, 8Gi")
    size_bytes = float(match["number"]) * _BYTES[match["unit"].lower()]
    if not math.isfinite(size_bytes):
        raise _not_a("size", text, "a finite size, e.g. 512m, 8g, 8Gi")
    return round(size_bytes)


def spark_memory_bytes(text: str) -> int:
    """Bytes of a memory setting as Spark itself reads it: a bare number is MiB.

    ``spark.executor.memory``, the overheads and Python's share are all kept in MiB. Raises
    InputError if the text is not a size.

    >>> spark_memory_bytes("4096") == spark_memory_bytes("4g") == 4 * 2**30
    True
    """
    bare = text.strip()
    return parse_size_bytes(f"{bare}m" if bare.isdecimal() else bare)


def ms_to_s(milliseconds: float) -> float:
    """Seconds of a number of milliseconds.

    >>> ms_to_s(250)
    0.25
    """
    return milliseconds / _MS_PER_S


def s_to_ms(seconds: float) -> int:
    """Whole milliseconds nearest to a number of seconds.

    >>> s_to_ms(0.5)
    500
    """
    return round(seconds * _MS_PER_S)


def format_duration(seconds: float) -> str:
    """A duration for people: three significant digits, the unit that reads best.

    >>> format_duration(0.0421), format_duration(2.304), format_duration(5400)
    ('42 ms', '2.30 s', '1.5 h')
    >>> format_duration(55.1e-6), format_duration(864_000), format_duration(0.0)
    ('55.1 us', '10 d', '0 ms')
    >>> format_duration(60.0), format_duration(100.4), format_duration(86400 * 1234.0)
    ('1 min', '100 s', '1234 d')
    """
    if math.isinf(seconds):
        return "unbounded"
    if 0 < seconds < 0.0009995:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 0.9995:
        return f"{seconds * _MS_PER_S:{'.3g' if seconds < 0.01 else '.0f'}} ms"
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 120 and seconds != 60:
        return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.3g} min"
    if seconds < 3 * S_PER_DAY:
        return f"{seconds / S_PER_HOUR:.3g} h"
    return f"{_without_exponent(seconds / S_PER_DAY)} d"


def unit_of_duration(text: str) -> tuple[str, float]:
    """The unit of a duration as it is written here, and its length [s].

    >>> unit_of_duration(format_duration(324.0))
    ('min', 60.0)
    """
    return (unit := text.rpartition(" ")[2]), _DURATION_S[unit]


def format_durations(*durations_s: float) -> list[str]:
    """As `format_duration`, for one sentence: in one unit, if all of them read well in it.

    >>> format_durations(0.948, 1.5), format_durations(87.7, 120.0), format_durations(7.16, 3600.0)
    (['0.948 s', '1.50 s'], ['87.7 s', '120 s'], ['7.16 s', '60 min'])
    """
    texts = [format_duration(duration_s) for duration_s in durations_s]
    if len({text.rpartition(" ")[2] for text in texts}) == 1:
        return texts
    for unit in ("ms", "s", "min", "h", "d"):
        numbers = [duration_s / _DURATION_S[unit] for duration_s in durations_s]
        # Nobody counts in tenths of a minute or of an hour.
        readable_from = _READABLE_FROM if unit in {"ms", "s"} else 1.0
        if min(numbers) >= readable_from and max(numbers) < 999.5:
            return [f"{_three_digits(number)} {unit}" for number in numbers]
    return texts


def _three_digits(number: float) -> str:
    """Three significant digits, zeros included; of larger numbers, all before the point."""
    return f"{number:#.3g}".rstrip(".") if number < 999.5 else f"{number:.0f}"


def _without_exponent(number: float, num_digits: int = 3) -> str:
    """Three significant digits; of larger numbers, all digits before the point."""
    return f"{number:.{num_digits}g}" if number < 999.5 else f"{number:.0f}"


def exact_duration(seconds: float) -> str:
    """A requested duration: like `format_duration`, but with all of its digits.

    At most nine digits; more are rounding errors.

    >>> exact_duration(3.0), exact_duration(1.2349), exact_duration(5430.0), exact_duration(0.0305)
    ('3.00 s', '1.2349 s', '90.5 min', '30.5 ms')
    """
    usual = format_duration(seconds)
    if math.isinf(seconds) or math.isclose(parse_duration_s(usual), seconds, rel_tol=_SAME_RATIO):
        return usual
    units = ("d", "h", "min", "s", "ms", "us")
    smaller_units = units[units.index(usual.split()[-1]) :]
    texts = [f"{seconds / _DURATION_S[unit]:.9g} {unit}" for unit in smaller_units]
    return next((text for text in texts if parse_duration_s(text) == seconds), texts[0])


def duration_beside(seconds: float, requested_s: float) -> str:
    """As `format_duration`, but in the unit of a requested duration that `exact_duration` writes in
    a smaller one than usual.

    >>> duration_beside(54.0, 262.0), duration_beside(211.2, 240.0), duration_beside(2881.4, 886.0)
    ('54.0 s', '3.52 min', '2881 s')
    """
    unit = exact_duration(requested_s).rpartition(" ")[2]
    is_usual = unit == format_duration(requested_s).rpartition(" ")[2]
    if is_usual or not _READABLE_FROM <= seconds / _DURATION_S[unit] < _READABLE_TO:
        return format_duration(seconds)
    return f"{_three_digits(seconds / _DURATION_S[unit])} {unit}"


def exact_rate(rate_per_s: float) -> str:
    """A requested rate: like `format_rate`, but with all of its digits.

    >>> exact_rate(150_000.0), exact_rate(150_123.0), exact_rate(0.25)
    ('150k/s', '150.123k/s', '0.25/s')
    """
    usual = format_rate(rate_per_s)
    if math.isclose(parse_rate_per_s(usual), rate_per_s, rel_tol=_SAME_RATIO):
        return usual
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if rate_per_s >= limit:
            return f"{rate_per_s / limit:.9g}{suffix}/s"
    return f"{rate_per_s:.9g}/s"


def format_rate(rate_per_s: float, num_digits: int = 3) -> str:
    """A rate for people.

    >>> format_rate(50000), format_rate(812.4), format_rate(1_250_000)
    ('50k/s', '812/s', '1.25M/s')
    >>> format_rate(999.7), format_rate(2.5e9)
    ('1k/s', '2.5G/s')
    >>> format_rate(61_847.3, 6)
    '61.8473k/s'
    """
    least = 1.0 - 0.5 * 10.0**-num_digits
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate_per_s >= least * limit:
            return f"{_without_exponent(rate_per_s / limit, num_digits)}{suffix}/s"
    return f"{rate_per_s:.{num_digits}g}/s"


def round_step(min_step: float) -> float:
    """The smallest of 1, 2, 2.5, 5, 10, 20, ... (or 0.5, 0.25, ...) that is not below it.

    >>> round_step(180.0), round_step(0.3)
    (200.0, 0.5)
    """
    power = 10.0 ** math.floor(math.log10(min_step))
    return next(
        power * times for times in (1, 2, 2.5, 5, 10) if power * times >= min_step * (1 - 1e-9)
    )


def round_step_s(min_step_s: float) -> float:
    """The smallest step of time that is round for people, and not below a minimum.

    >>> [round_step_s(min_step_s) for min_step_s in (0.16, 4.0, 48.0, 500.0, 5000.0, 100_000.0)]
    [0.2, 5.0, 60.0, 600.0, 7200.0, 172800.0]
    """
    if min_step_s <= 1.0:
        return round_step(min_step_s)
    longer_s = S_PER_DAY * round_step(max(min_step_s / S_PER_DAY, 1.0))
    # A length that was added up may be a hair above a round one.
    least_s = min_step_s * (1.0 - 1e-9)
    return next((step_s for step_s in _CLOCK_STEPS_S if step_s >= least_s), longer_s)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun, for people; ``plural`` where the plural is not just an s.

    >>> counted(1, "job"), counted(12000, "job"), counted(0, "batch", "batches")
    ('1 job', '12,000 jobs', '0 batches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def span_text(low: str, high: str) -> str:
    """A range whose ends are printed, as one of them if they are printed alike.

    >>> span_text("2", "4"), span_text("200 ms", "200 ms")
    ('2 to 4', '200 ms')
    """
    return low if low == high else f"{low} to {high}"


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["headway", "hpa", "static"]), listed(["hpa", "static"]), listed([])
    ('headway, hpa and static', 'hpa and static', '')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def spark_trigger_text(trigger_s: float) -> str:
    """A trigger interval as ``DataStreamWriter.trigger(processingTime=...)`` reads it.

    The trigger takes words; ``2s`` is refused there although configuration keys demand it.

    >>> spark_trigger_text(1.0), spark_trigger_text(0.25), spark_trigger_text(0)
    ('1 second', '250 milliseconds', '0 seconds')
    """
    milliseconds = s_to_ms(trigger_s)
    if milliseconds % _MS_PER_S:
        return f"{milliseconds} milliseconds"
    seconds = milliseconds // _MS_PER_S
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def spark_memory_text(size_bytes: int) -> str:
    """A memory size as every Spark version reads it: whole ``g``, else whole ``m``, rounded up.

    >>> spark_memory_text(8 * 2**30), spark_memory_text(1610612736)
    ('8g', '1536m')
    """
    mebibytes = -(-size_bytes // _MIB)
    return f"{mebibytes}m" if mebibytes % 1024 else f"{mebibytes // 1024}g"


def _not_a(kind: str, text: str, expected: str) -> InputError:
    return InputError(f"{text!r} is not a {kind}; expected {expected}")
