"""Rows of every type that Spark can group and aggregate, in files, with all aggregates."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_MS = 1_730_613_570_000
"""Half a minute before the clocks of New York go back."""
AWKWARD = "a.b ,;{}()=`'\"ü"
SCHEMA = (
    f"ts timestamp, id long, `pane` string, `{AWKWARD.replace('`', '``')}` string, _under int, "
    "day date, at timestamp, local timestamp_ntz, bytes binary, flag boolean, tiny tinyint, "
    "price decimal(38,18), x double, f float, nested struct<a:int,`b c`:string>, many array<int>, "
    "v long, large long, d decimal(10,2)"
)
OLD_DATES = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
"""Dates of the first year are as they are written; Spark 3.5 asks."""
KEYS: tuple[tuple[str, ...], ...] = (
    ("pane", AWKWARD),
    ("_under", "day"),
    ("at", "local", "pane"),
    ("bytes", "flag"),
    ("tiny", "price"),
    ("x",),
    ("f", "nested"),
    ("many", "gap"),
)
"""All columns by which rows are grouped; ``gap`` is an interval."""
AGGREGATES: dict[str, str] = {
    # Which rows there are, and that none is there twice.
    "n": "count(*)",
    "ids": "bit_or(shiftleft(1L, CAST(id AS INT)))",
    "id_sum": "sum(id)",
    "counted": "count(v)",
    "both": "count(v, x)",
    "counted_all": "count(ALL d)",
    "flags": "count_if(flag)",
    "sum_v": "sum(v)",
    "sum_tiny": "sum(ALL tiny)",
    "sum_d": "sum(d)",
    "sum_d_some": "sum(d) FILTER (WHERE flag)",
    "sum_price": "sum(price)",
    "sum_x": "sum(x)",
    "sum_f": "sum(f)",
    "sum_gap": "sum(gap)",
    "sum_months": "sum(make_ym_interval(0, tiny))",
    "sum_none": "sum(d) FILTER (WHERE id < 0)",
    "avg_v": "avg(v)",
    "avg_large": "avg(large)",
    "avg_d": "avg(d)",
    "avg_d_some": "mean(d) FILTER (WHERE v > 0)",
    "avg_price": "avg(price)",
    "avg_wide": "avg(CAST(d AS decimal(38,25)))",
    "avg_x": "mean(ALL x)",
    "avg_gap": "avg(gap)",
    "avg_none": "avg(d) FILTER (WHERE id < 0)",
    "min_x": "min(x)",
    "max_x": "max(x)",
    "min_f": "min(f)",
    "max_d": "max(d)",
    "min_price": "min(price)",
    "max_word": f"max(`{AWKWARD.replace('`', '``')}`)",
    "min_bytes": "min(bytes)",
    "max_day": "max(day)",
    "min_at": "min(at)",
    "max_local": "max(local)",
    "max_flag": "max(flag)",
    "min_nested": "min(nested)",
    "max_many": "max(many)",
    "min_gap": "min(gap)",
    "max_pair": "max(struct(d AS `the price`, id))",
    "bits_and": "bit_and(large)",
    "bits_xor": "bit_xor(large) FILTER (WHERE v > 0)",
    "all_flags": "bool_and(flag)",
    "each_flag": "every(flag)",
    "any_flag": "bool_or(flag)",
    "some_flag": "some(flag)",
    "var": "variance(v)",
    "var_samp": "var_samp(d)",
    "dev": "stddev(x)",
    "dev_short": "std(v)",
    "dev_samp": "stddev_samp(v) FILTER (WHERE v > 0)",
    "var_pop": "var_pop(large)",
    "dev_pop": "stddev_pop(d)",
    "last_v": "max_by(v, id)",
    "first_word": "min_by(pane, id)",
    "last_map": "max_by(map('v', v), id)",
    "last_nested": "max_by(nested, struct(id)) FILTER (WHERE flag)",
    "values": "approx_count_distinct(v)",
    "prices": "approx_count_distinct(price)",
    "days": "approx_count_distinct(day)",
    "numbers": "approx_count_distinct(x) FILTER (WHERE flag)",
    "sketch": "hll_sketch_agg(v)",
    "sketch_small": "hll_sketch_agg(pane, 10)",
    "bitmap": "bitmap_construct_agg(bitmap_bit_position(id))",
    # The names of the log's own columns, and of one aggregate's parts.
    "size": "count(*)",
    "end": "max(id)",
    "newest": "min(id)",
    "avg_v_count": "sum(id)",
}
VIEWS = {
    "sketch": "hll_sketch_estimate(sketch)",
    "sketch_small": "hll_sketch_estimate(sketch_small)",
    "sum_months": "CAST(sum_months AS STRING)",
}
"""How results are compared that hold the same in different bytes, or that PySpark cannot read."""
if tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 1):
    AGGREGATES |= {
        "theta": "theta_sketch_agg(v)",
        "theta_small": "theta_sketch_agg(id, 5)",
        "kll": "kll_sketch_agg_bigint(id)",
        "kll_double": "kll_sketch_agg_double(CAST(id AS DOUBLE))",
    }
    VIEWS |= {
        "theta": "theta_sketch_estimate(theta)",
        "theta_small": "theta_sketch_estimate(theta_small)",
        "kll": "kll_sketch_get_quantile_bigint(kll, 0.5D)",
        "kll_double": "kll_sketch_get_quantile_double(kll_double, 0.9D)",
    }


def aggregates_of(place: int) -> dict[str, str]:
    """The aggregates that are counted with the keys at a place: all keys together have all."""
    return {name: AGGREGATES[name] for name in list(AGGREGATES)[place % len(KEYS) :: len(KEYS)]}


Results = dict[tuple[Any, ...], dict[str, Any]]
"""Batch, size, start [ms] and key to results by aggregate."""


def typed_rows(seeded: random.Random, times_ms: Iterable[int]) -> list[dict[str, Any]]:
    """Rows with nulls, extremes, NaN and both zeros; ``id`` numbers them from 0."""
    choice = seeded.choice
    return [
        {
            "ts": EPOCH + timedelta(milliseconds=at_ms, microseconds=seeded.randrange(1000)),
            "id": number,
            "pane": choice(["a", "b", "", "ü😀", None]),
            AWKWARD: choice(["x", "pane=3", "__HIVE_DEFAULT_PARTITION__", None]),
            "_under": choice([1, -2, None]),
            "day": choice([date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31), None]),
            "at": choice([EPOCH, EPOCH + timedelta(microseconds=START_MS * 1000 + 1), None]),
            "local": choice([datetime(1900, 1, 1), datetime(2024, 11, 3, 1, 30), None]),
            "bytes": choice([b"", b"\x00\xff", b"\xfe", None]),
            "flag": choice([True, False, None]),
            "tiny": choice([-128, 127, 0, None]),
            "price": choice(
                [Decimal("1234567890123456.123456789012345678"), Decimal("-0.000000000000000001"),
                 Decimal(seeded.randrange(10**20)).scaleb(-18), None]
            ),
            "x": choice([0.0, -0.0, math.nan, math.inf, 1.5, None]),
            "f": choice([0.0, -0.0, math.nan, 0.1, None]),
            "nested": choice([{"a": 1, "b c": "x"}, {"a": None, "b c": ""}, None]),
            "many": choice([[], [1, None], [2], None]),
            "v": choice([0, -5, seeded.randrange(10**6), None]),
            "large": choice([2**62, 2**63 - 1, -(2**63), None]),
            "d": choice([Decimal(seeded.randrange(-(10**9), 10**9)).scaleb(-2),
                         Decimal("99999999.99"), None]),
        }
        for number, at_ms in enumerate(times_ms)
    ]  # fmt: skip


def write_typed(folder: Path, number: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """One file of a batch, in the order that Spark reads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = pa.schema(
        [("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("pane", pa.string()),
         (AWKWARD, pa.string()), ("_under", pa.int32()), ("day", pa.date32()),
         ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
         ("bytes", pa.binary()), ("flag", pa.bool_()), ("tiny", pa.int8()),
         ("price", pa.decimal128(38, 18)), ("x", pa.float64()), ("f", pa.float32()),
         ("nested", pa.struct([("a", pa.int32()), ("b c", pa.string())])),
         ("many", pa.list_(pa.int32())), ("v", pa.int64()), ("large", pa.int64()),
         ("d", pa.decimal128(10, 2))]
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    draft, path = folder / ".draft", folder / f"{number:03}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=kinds), draft)
    draft.rename(path)
    os.utime(path, (number + 1, number + 1))


def typed_stream(spark: SparkSession, folder: Path) -> DataFrame:
    source = spark.readStream.schema(SCHEMA).options(**OLD_DATES).option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder)).selectExpr("*", "make_dt_interval(0, 0, 0, v) AS gap")


def typed_results(
    rows: DataFrame, key: Sequence[str], aggregates: Iterable[str], batch: int = 0
) -> Results:
    """Results by batch, window and key, in values that can be compared."""
    quoted = ["`" + name.replace("`", "``") + "`" for name in (*key, *aggregates)]
    views = dict(zip((*key, *aggregates), quoted, strict=True)) | {
        name: view for name, view in VIEWS.items() if name in aggregates
    }
    listed = rows.selectExpr(
        "unix_millis(window.end) - unix_millis(window.start)",
        "unix_millis(window.start)",
        *views.values(),
    ).collect()
    results = Results()
    for row in listed:
        size_ms, start_ms, *values = map(comparable, row)
        place = (batch, size_ms, start_ms, *values[: len(key)])
        assert place not in results, place
        results[place] = dict(zip(aggregates, values[len(key) :], strict=True))
    return results


def comparable(value: Any) -> Any:
    """Values that are the same when Spark's are: one NaN, one zero, what can be hashed."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return tuple(sorted((name, comparable(each)) for name, each in value.items()))
    if isinstance(value, tuple | list):
        return tuple(map(comparable, value))
    return value


def differences(results: Results, expected: Results) -> list[str]:
    """What differs; doubles may in their last bits, since they are added in another order."""
    found = [f"missing {place}: {expected[place]}" for place in expected if place not in results]
    found += [f"extra {place}: {results[place]}" for place in results if place not in expected]
    for place in results.keys() & expected.keys():
        found += [
            f"{place} {name}: {value!r}, expected {expected[place][name]!r}"
            for name, value in results[place].items()
            if not _is_close(value, expected[place][name])
        ]
    return found


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other and type(one) is type(other))
