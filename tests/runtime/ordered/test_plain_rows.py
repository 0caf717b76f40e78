"""On a real Spark: every value comes to the step, and out of it, as it was, packed or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.profiler.plan_text import PlanShape, read_plan
from headway.runtime.ordered import plain_rows
from tests.runtime.ordered.test_ordered_stream import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One row of nulls, the least, the largest, and what only looks like a null.
VALUES = {
    "b": ("byte", "-128", "127", "0"),
    "s": ("short", "-32768", "32767", "0"),
    "i": ("int", "-2147483648", "2147483647", "0"),
    "l": ("long", "-9223372036854775808", "9223372036854775807", "9007199254740993"),
    "f": ("float", "'-Infinity'", "3.4028235e38", "'NaN'"),
    "d": ("double", "-0.0D", "4.9e-324D", "'NaN'"),
    "ok": ("boolean", "false", "true", "false"),
    "text": ("string", "''", "'\u00fc\U0001f680'", "'NaN'"),
    "raw": ("binary", "X''", "X'00ff'", "X'00'"),
    "day": ("date", "'0001-01-01'", "'9999-12-31'", "'1970-01-01'"),
    "at": (
        "timestamp",
        "'0001-01-02 00:00:00Z'",
        "'9999-12-30 23:59:59.999999Z'",
        "'1970-01-01 00:00:00Z'",
    ),
    "amount": ("decimal(38,3)", "'-99999999999999999999999999999999999.999'", "'0.001'", "'0'"),
}
WITHOUT_ZONE = {"local": ("timestamp_ntz", "'0001-01-01'", "'9999-12-31 01:02:03.4'", "'1970-1-1'")}
LEAVING = ("b", "s", "i", "l", "f", "d", "ok", "text", "raw")


def rows(spark: SparkSession, columns: dict[str, tuple[str, str, str, str]]) -> DataFrame:
    """A row of nulls, and three of values; all of one key."""
    lines = [
        ", ".join(
            f"CAST({('NULL', *values)[at]} AS {kind}) AS {name}"
            for name, (kind, *values) in columns.items()
        )
        for at in range(4)
    ]
    selects = [f"SELECT 'a' AS k, {at} AS n, {line}" for at, line in enumerate(lines)]
    return spark.sql(" UNION ALL ".join(selects))


def asked(columns: dict[str, tuple[str, str, str, str]]) -> dict[str, Any]:
    """What gives back all values as they came, and their texts in Python."""
    names = tuple(columns)

    def step(row: Any, state: Any) -> tuple[Any, list[tuple[Any, ...]]]:
        seen = repr(tuple(getattr(row, name) for name in names))
        return (seen,), [(seen, state and state.seen, *(getattr(row, name) for name in LEAVING))]

    outputs = ", ".join(f"{name} {columns[name][0]}" for name in LEAVING)
    return {
        "key": "k", "by": "n", "step": step,
        "state": "seen string", "output": f"seen string, last string, {outputs}",
    }  # fmt: skip


def streamed(
    spark: SparkSession, folder: Path, rows: DataFrame, half: int, **asked: Any
) -> tuple[list[str], PlanShape]:
    """Rows of output of a stream of one half of these rows, and what it ran."""
    # As Spark 4 does by itself, also dates of long ago.
    for kind in ("datetime", "int96"):
        spark.conf.set(f"spark.sql.parquet.{kind}RebaseModeInWrite", "CORRECTED")
    rows.where((rows.n > 1) == bool(half)).coalesce(1).write.parquet(str(folder / f"in/{half}"))
    source = spark.readStream.schema(rows.schema).parquet(str(folder / "in/*"))
    ordered = headway.ordered(source, **asked, checkpoint=str(folder / "checkpoint"))
    found: list[str] = []
    query = (
        ordered.writeStream.foreachBatch(lambda batch, _: found.extend(map(repr, batch.collect())))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return found, read_plan(query._jsq.explainInternal(False))


@STREAMS
@pytest.mark.parametrize("columns", [VALUES, VALUES | WITHOUT_ZONE], ids=["plain", "packed"])
def test_values_come_and_leave_as_they_were(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: dict[str, tuple[str, str, str, str]],
) -> None:
    table = rows(spark, columns)
    with monkeypatch.context() as patched:
        # As a release before began the checkpoint: everything packed.
        patched.setattr(plain_rows, "arrive_plain", lambda _: False)
        patched.setattr(plain_rows, "leave_plain", lambda _: False)
        before, shape = streamed(spark, tmp_path, table, 0, **asked(columns))
    assert (shape.deals_out_buckets, shape.packs_rows) == (True, True)
    after, shape = streamed(spark, tmp_path, table, 1, **asked(columns))
    assert (shape.deals_out_buckets, shape.packs_rows) == (True, columns is not VALUES)
    assert any("InArrow" in name for name in shape.operators) == shape.packs_rows

    # A table is packed on both ways.
    expected = headway.ordered(table, **asked(columns)).collect()
    assert sorted(before + after) == sorted(map(repr, expected))
    seen = [row.seen for row in expected]
    assert len(set(seen)) == 4
    assert seen[0] == repr((None,) * len(columns))
    for value in (-(2**63), 2**53 + 1, float("nan"), -0.0, b"\x00\xff"):
        assert repr(value) in "".join(seen[1:])
