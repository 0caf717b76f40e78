"""Aggregates as partial results that can be merged: columns per pane, and final results.

Everything is Spark SQL text, so nothing here loads PySpark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from headway.errors import InputError

PREFIX = "_headway_"
"""Prefix of columns with partial results, which no query may use."""

_MERGED_BY = {
    **dict.fromkeys(("count", "count_if"), "sum"),
    **{name: name for name in ("sum", "min", "max", "bit_and", "bit_or", "bit_xor")},
    **dict.fromkeys(("bool_and", "every"), "bool_and"),
    **dict.fromkeys(("bool_or", "some", "any"), "bool_or"),
    "hll_sketch_agg": "hll_union_agg",
    "theta_sketch_agg": "theta_union_agg",
    "bitmap_construct_agg": "bitmap_or_agg",
    **{f"kll_sketch_agg_{kind}": f"kll_merge_agg_{kind}" for kind in ("bigint", "float", "double")},
}
_OF_MOMENTS = {
    **dict.fromkeys(("variance", "var_samp"), "IF(n > 1, m2 / (n - 1), NULL)"),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), "IF(n > 1, sqrt(m2 / (n - 1)), NULL)"),
    "var_pop": "IF(n > 0, m2 / n, NULL)",
    "stddev_pop": "IF(n > 0, sqrt(m2 / n), NULL)",
}
_BY_ORDER = {"max_by": "max", "min_by": "min"}
_IN_ORDER = "its result depends on the order of rows, which partial results do not keep"
_ALL_VALUES = "it needs every value of the window at once"
_REFUSED = {
    **dict.fromkeys(("first", "first_value", "last", "last_value", "any_value"), _IN_ORDER),
    **dict.fromkeys(
        ("median", "mode", "percentile", "percentile_cont", "percentile_disc"),
        f"{_ALL_VALUES}; kll_sketch_agg_double(x) merges, from Spark 4.1 on",
    ),
    **dict.fromkeys(
        ("approx_percentile", "percentile_approx"),
        "Spark has no function that merges it; kll_sketch_agg_double(x) merges, from Spark 4.1 on",
    ),
    **dict.fromkeys(("collect_list", "array_agg", "listagg", "string_agg"), _IN_ORDER),
    "collect_set": f"{_ALL_VALUES}; hll_sketch_agg(x) or bitmap_construct_agg(x) merge",
}
_DISTINCT = f"{_ALL_VALUES}; approx_count_distinct(x) merges"
# Chan, Golub and LeVeque 1979: avoids differences of large numbers for values far from 0.
_MERGED_MOMENTS = """aggregate(
    collect_list({column}) FILTER (WHERE {column}.n > 0),
    named_struct('n', 0L, 'mean', 0.0D, 'm2', 0.0D),
    (a, b) -> named_struct(
        'n', a.n + b.n,
        'mean', a.mean + (b.mean - a.mean) * b.n / (a.n + b.n),
        'm2', a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * b.n / (a.n + b.n)
    )
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One column of the result: partial results, how they merge, and the final expression.

    ``partials`` and ``merges`` have the same columns in the same order; merging may be repeated.
    """

    name: str
    direct: str
    partials: Mapping[str, str]
    merges: Mapping[str, str]
    final: str


def read_aggregates(texts: Mapping[str, str]) -> tuple[Aggregate, ...]:
    """Aggregates from Spark SQL text, by the name of their column.

    Parameters
    ----------
    texts : mapping of str to str
        E.g. ``{"n": "count(*)", "spent": "sum(price) FILTER (WHERE paid)"}``.

    Raises
    ------
    InputError
        If there is none, or one cannot be merged from partial results; states why.

    Examples
    --------
    >>> read_aggregates({"n": "count(*)"})[0].merges
    {'_headway_n': 'sum(`_headway_n`)'}
    >>> read_aggregates({"users": "count(distinct user)"})
    Traceback (most recent call last):
    ...
    headway.errors.InputError: users: 'count(distinct user)' cannot be shared: it needs every value
    of the window at once; approx_count_distinct(x) merges
    """
    if not texts:
        raise InputError("aggregates: none given; expected e.g. {'n': 'count(*)'}")
    return tuple(_read(name, text) for name, text in texts.items())


def quoted(name: str) -> str:
    """A column name quoted for SQL, with any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def _read(name: str, text: str) -> Aggregate:
    function, arguments, condition = _call(name, text)
    if re.match(r"distinct\b", arguments[0], re.IGNORECASE) if arguments else False:
        raise _refusal(name, text, _DISTINCT)
    only = f" FILTER (WHERE {condition})" if condition else ""
    column = PREFIX + name
    if function in _MERGED_BY:
        return _merged(name, text, {column: text}, _MERGED_BY[function], quoted(column))
    if function in ("avg", "mean") and len(arguments) == 1:
        return _average(name, text, arguments[0], only)
    if function in _OF_MOMENTS and len(arguments) == 1:
        return _moments(name, text, arguments[0], only, _OF_MOMENTS[function])
    if function in _BY_ORDER and len(arguments) == 2:
        value, order = arguments
        kept = f"CASE WHEN ({order}) IS NOT NULL THEN struct({order} AS o, {value} AS v) END"
        extreme = _BY_ORDER[function]
        partial = {column: f"{extreme}({kept}){only}"}
        return _merged(name, text, partial, extreme, f"{quoted(column)}.v")
    if function == "approx_count_distinct" and len(arguments) == 1:
        sketch = f"hll_sketch_agg({arguments[0]}, 12){only}"
        final = f"coalesce(hll_sketch_estimate({quoted(column)}), 0L)"
        direct = f"coalesce(hll_sketch_estimate({sketch}), 0L)"
        return _merged(name, direct, {column: sketch}, "hll_union_agg", final)
    why = _REFUSED.get(function, f"{function} is not known to merge from partial results")
    raise _refusal(name, text, why)


def _merged(name: str, direct: str, partials: Mapping[str, str], by: str, final: str) -> Aggregate:
    merges = {column: f"{by}({quoted(column)})" for column in partials}
    return Aggregate(name=name, direct=direct, partials=partials, merges=merges, final=final)


def _average(name: str, text: str, value: str, only: str) -> Aggregate:
    total, count = f"{PREFIX}{name}_sum", f"{PREFIX}{name}_count"
    partials = {total: f"sum({value}){only}", count: f"count({value}){only}"}
    final = f"IF({quoted(count)} > 0, {quoted(total)} / {quoted(count)}, NULL)"
    return _merged(name, text, partials, "sum", final)


def _moments(name: str, text: str, value: str, only: str, of_moments: str) -> Aggregate:
    column = PREFIX + name
    number = f"CAST({value} AS DOUBLE)"
    partial = (
        f"named_struct('n', count({number}){only}, 'mean', avg({number}){only}, "
        f"'m2', var_pop({number}){only} * count({number}){only})"
    )
    final = re.sub(r"\b(n|m2)\b", lambda found: f"{quoted(column)}.{found[0]}", of_moments)
    return Aggregate(
        name=name,
        direct=text,
        partials={column: partial},
        merges={column: _MERGED_MOMENTS.format(column=quoted(column))},
        final=final,
    )


def _call(name: str, text: str) -> tuple[str, list[str], str]:
    """Function, arguments and condition of ``f(x, y) FILTER (WHERE condition)``."""
    head = re.match(r"\s*([A-Za-z_]\w*)\s*\(", text)
    if head is None:
        raise _no_call(name, text)
    end, commas = _closing(text, head.end())
    tail = text[end + 1 :] if end >= 0 else "?"
    condition = ""
    if tail.strip():
        filtered = re.match(r"\s*filter\s*\(\s*where\s+", tail, re.IGNORECASE)
        until = _closing(tail, filtered.end())[0] if filtered else -1
        if filtered is None or until < 0 or tail[until + 1 :].strip():
            raise _no_call(name, text)
        condition = tail[filtered.end() : until].strip()
    places = [head.end() - 1, *commas, end]
    parts = [text[a + 1 : b].strip() for a, b in pairwise(places)]
    return head[1].lower(), [part for part in parts if part], condition


def _closing(text: str, start: int) -> tuple[int, list[int]]:
    """Where the bracket that is open at ``start`` closes, and its own commas; -1 if it does not."""
    depth, quote, commas = 1, "", list[int]()
    for place in range(start, len(text)):
        each = text[place]
        if quote:
            quote = "" if each == quote and text[place - 1] != "\\" else quote
        elif each in "'\"`":
            quote = each
        elif each in "([":
            depth += 1
        elif each in ")]":
            depth -= 1
            if depth == 0:
                return place, commas
        elif each == "," and depth == 1:
            commas.append(place)
    return -1, commas


def _refusal(name: str, text: str, why: str) -> InputError:
    return InputError(f"{name}: {text!r} cannot be shared: {why}")


def _no_call(name: str, text: str) -> InputError:
    return InputError(
        f"{name}: {text!r} is not one call of an aggregate; expected e.g. 'sum(price)', "
        "with FILTER (WHERE ...) or without; what is made of several, make of their columns"
    )


def columns_of(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Columns of all aggregates together."""
    return {column: text for part in parts for column, text in part.items()}
