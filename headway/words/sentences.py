"""Sentences with places for the numbers and the names of a finding.

A place is a key of the finding, and behind a colon the form in which it is shown: one of Python's,
such as ``.0%``, one of Headway's, such as ``duration``, or ``#`` and the word for what it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headway.digits import format_rate_down
from headway.domain import Finding
from headway.units import counted, format_duration, format_rate, spark_memory_text


def rows_text(number: float) -> str:
    """A number of rows: a count as it is, an estimate with four digits.

    Files have six digits of an estimate, and what is printed of one read back must be the same.

    >>> rows_text(1_298_695), rows_text(1_298_695.4), rows_text(1_298_700.0)
    ('1,298,695 rows', '1,299,000 rows', '1,299,000 rows')
    """
    if isinstance(number, int):
        return counted(number, "row")
    return counted(round(float(f"{float(f'{number:.6g}'):.4g}")), "row")


def stable_up_to(max_rate_per_s: float) -> str:
    """The highest rate at which a setting is stable, if there is one."""
    if not max_rate_per_s > 0:
        return "not stable at any rate"
    return f"stable up to {format_rate_down(max_rate_per_s)}"


_FORMS: Mapping[str, Callable[[float], str]] = {
    "duration": format_duration,
    "rate": format_rate,
    "rows": rows_text,
    "about rows": lambda number: rows_text(float(f"{number:.3g}")),
    "memory": lambda number: spark_memory_text(round(number)),
    "stability": stable_up_to,
    "above 1": lambda ratio: f"{ratio - 1.0:.0%}",
}


class _Figure:
    """A number of a finding, which a place shows in its form."""

    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number

    def __format__(self, form: str) -> str:
        if form.startswith("#"):
            return counted(round(self.number), form[1:])
        in_words = _FORMS.get(form)
        return format(self.number, form) if in_words is None else in_words(self.number)


def filled(sentence: str, finding: Finding) -> str:
    """A sentence with the numbers and the names of a finding in its places.

    Raises KeyError if one is missing.

    >>> from headway.domain import FindingCode
    >>> failed = Finding(code=FindingCode.JOBS_FAILED, numbers={"num_jobs": 2, "after_s": 90.0})
    >>> filled("{num_jobs:#job} failed after {after_s:duration}", failed)
    '2 jobs failed after 90.0 s'
    """
    shown: dict[str, object] = {**finding.names}
    shown |= {name: _Figure(number) for name, number in finding.numbers.items()}
    return sentence.format_map(shown)
