"""Aggregates as partial results that can be merged: columns per pane, and final results.

Everything is Spark SQL text, so nothing here loads PySpark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from headway.errors import InputError

PREFIX = "_headway_"
"""Prefix of Headway's own columns, which no query may use."""

_MERGED_BY = {
    **dict.fromkeys(("count", "count_if"), "sum"),
    **{name: name for name in ("min", "max", "bit_and", "bit_or", "bit_xor")},
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
_BY_ORDER = ("max_by", "min_by")
_OF_THEIR_OWN = ("sum", "avg", "mean", "approx_count_distinct", *_BY_ORDER)
_OWN_SIZE = ("theta_sketch_agg",)
"""Sketches whose union does not take over the size of its parts, but has an argument for it."""
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

    ``partials`` and ``merges`` have the same columns in the same order; merging may be repeated,
    and has the types of what it merges. A decimal average has ``quotient_of`` in place of
    ``final``: the total and the number that Spark's own division of averages gets.
    """

    name: str
    direct: str
    partials: Mapping[str, str]
    merges: Mapping[str, str]
    final: str = ""
    quotient_of: tuple[str, str] | None = None
    total: str = ""
    """The sum of the values, of whose type partial results are, for sums and averages."""
    type: str = ""
    """The result's type, of a decimal average."""


def read_aggregates(
    texts: Mapping[str, str], types: Mapping[str, str] | None = None
) -> tuple[Aggregate, ...]:
    """Aggregates from Spark SQL text, by the name of their column.

    Partial results are named by the position of their aggregate, so no two have the same name.
    ``types`` are Spark's types of each ``total`` and ``direct``; by default, none is a decimal.

    >>> read_aggregates({"n": "count(*)"})[0].merges
    {'_headway_0': 'sum(`_headway_0`)'}
    >>> read_aggregates({"users": "count(distinct user)"})
    Traceback (most recent call last):
    ...
    headway.errors.InputError: users: 'count(distinct user)' cannot be shared: it needs every value
    of the window at once; approx_count_distinct(x) merges
    """
    if not texts:
        raise InputError("aggregates: none given; expected e.g. {'n': 'count(*)'}")
    items = enumerate(texts.items())
    return tuple(_read(name, text, f"{PREFIX}{at}", types or {}) for at, (name, text) in items)


def knows_aggregate(function: str) -> bool:
    """Whether a function is an aggregate that merges, or one that is known not to."""
    return function in (_MERGED_BY | _OF_MOMENTS | _REFUSED) or function in _OF_THEIR_OWN


def is_single_call(text: str) -> bool:
    """Whether a text is one call of a known aggregate, not an expression around some.

    >>> is_single_call("sum(v) FILTER (WHERE v > 2)"), is_single_call("sum(v) / count(*)")
    (True, False)
    """
    try:
        return knows_aggregate(_call("", text)[0])
    except InputError:
        return False


def quoted(name: str) -> str:
    """A column name quoted for SQL, with any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def _read(name: str, text: str, column: str, types: Mapping[str, str]) -> Aggregate:
    function, arguments, condition = _call(name, text)
    if re.match(r"distinct\b", arguments[0], re.IGNORECASE) if arguments else False:
        raise _refusal(name, text, _DISTINCT)
    arguments = [re.sub(r"^all\s+", "", argument, flags=re.IGNORECASE) for argument in arguments]
    filter_sql = f" FILTER (WHERE {condition})" if condition else ""
    if function in ("sum", "avg", "mean") and len(arguments) == 1:
        return _sum_or_average(name, text, column, arguments[0], filter_sql, types)
    if function in _MERGED_BY:
        size = f", {arguments[1]}" if function in _OWN_SIZE and len(arguments) > 1 else ""
        merge_sql = f"{_MERGED_BY[function]}({quoted(column)}{size})"
        return _merged(name, text, {column: text}, merge_sql, quoted(column))
    if function in _OF_MOMENTS and len(arguments) == 1:
        return _moments(name, text, column, arguments[0], filter_sql, _OF_MOMENTS[function])
    if function in _BY_ORDER and len(arguments) == 2:
        value, order = arguments
        partial = f"{function}(struct({order} AS o, {value} AS v), {order}){filter_sql}"
        merge_sql = f"{function}({quoted(column)}, {quoted(column)}.o)"
        return _merged(name, text, {column: partial}, merge_sql, f"{quoted(column)}.v")
    if function == "approx_count_distinct" and len(arguments) == 1:
        # Sketches take values of few types, hashes of all.
        value = f"CASE WHEN ({arguments[0]}) IS NOT NULL THEN xxhash64({arguments[0]}) END"
        sketch = f"hll_sketch_agg({value}, 12){filter_sql}"
        final = f"coalesce(hll_sketch_estimate({quoted(column)}), 0L)"
        direct = f"coalesce(hll_sketch_estimate({sketch}), 0L)"
        merge_sql = f"hll_union_agg({quoted(column)})"
        return _merged(name, direct, {column: sketch}, merge_sql, final)
    why = _REFUSED.get(function, f"{function} is not known to merge from partial results")
    raise _refusal(name, text, why)


def _merged(
    name: str, direct: str, partials: Mapping[str, str], merge_sql: str, final: str
) -> Aggregate:
    merges = dict.fromkeys(partials, merge_sql)
    return Aggregate(name=name, direct=direct, partials=partials, merges=merges, final=final)


def _sum_or_average(
    name: str, text: str, column: str, value: str, filter_sql: str, types: Mapping[str, str]
) -> Aggregate:
    """Sums, with the number of values where the result needs it.

    Spark averages whole numbers in double, too, where their sum would overflow.
    """
    total = f"sum({value}){filter_sql}"
    kind = types.get(total, "")
    is_average = not re.match(r"\s*sum\b", text, re.IGNORECASE)
    count = f"{column}_count"
    divided = (quoted(column), quoted(count))
    merges = {column: f"sum({divided[0]})", count: f"sum({divided[1]})"}
    final, quotient_of = divided[0], None
    if kind.startswith("decimal"):
        # Without ANSI mode, a sum that overflows is null and stays null, while a sum of no values
        # is null and adds nothing. Spark would widen a sum of sums by ten digits with each merge.
        overflowed = f"count_if({divided[1]} > 0 AND {divided[0]} IS NULL) > 0"
        merged = f"CASE WHEN {overflowed} THEN NULL ELSE {merges[column]} END"
        merges[column] = f"CAST({merged} AS {kind})"
        if is_average:
            final, quotient_of = "", divided
    elif not is_average:
        return replace(_merged(name, text, {column: text}, merges[column], final), total=total)
    else:
        if not kind.startswith("interval"):
            value = f"CAST({value} AS DOUBLE)"
        final = f"IF({divided[1]} > 0, {divided[0]} / {divided[1]}, NULL)"
    return Aggregate(
        name=name,
        direct=text,
        partials={column: f"sum({value}){filter_sql}", count: f"count({value}){filter_sql}"},
        merges=merges,
        final=final,
        quotient_of=quotient_of,
        total=total,
        type=types.get(text, ""),
    )


def _moments(
    name: str, text: str, column: str, value: str, filter_sql: str, of_moments: str
) -> Aggregate:
    number = f"CAST({value} AS DOUBLE)"
    partial = (
        f"named_struct('n', count({number}){filter_sql}, 'mean', avg({number}){filter_sql}, "
        f"'m2', var_pop({number}){filter_sql} * count({number}){filter_sql})"
    )
    final = re.sub(r"\b(n|m2)\b", lambda symbol: f"{quoted(column)}.{symbol[0]}", of_moments)
    merge_sql = _MERGED_MOMENTS.format(column=quoted(column))
    return _merged(name, text, {column: partial}, merge_sql, final)


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
    separators = [head.end() - 1, *commas, end]
    parts = [text[a + 1 : b].strip() for a, b in pairwise(separators)]
    return head[1].lower(), [part for part in parts if part], condition


def _closing(text: str, start: int) -> tuple[int, list[int]]:
    """Where the bracket that is open at ``start`` closes, and its own commas; -1 if it does not."""
    depth, quote, commas = 1, "", list[int]()
    for position in range(start, len(text)):
        character = text[position]
        if quote:
            quote = "" if character == quote and text[position - 1] != "\\" else quote
        elif character in "'\"`":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth == 0:
                return position, commas
        elif character == "," and depth == 1:
            commas.append(position)
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
