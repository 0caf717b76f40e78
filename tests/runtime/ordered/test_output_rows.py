"""Output values arrive as the function returned them, or are refused: no column changes one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from headway.errors import InputError
from headway.runtime.ordered.kept_state import StateForm, maker_of
from headway.runtime.ordered.kept_values import output_table

EAST = dt.timezone(dt.timedelta(hours=5))
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
UTC_TIME, PLAIN_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
COUNTS = pa.map_(pa.string(), pa.int64())

CHANGED: list[tuple[object, Any]] = [
    (1.5, pa.int64()),
    (-0.9, pa.int32()),
    (2.0, pa.int64()),
    (np.float64(2.7), pa.int64()),
    (Decimal(3), pa.int64()),
    (300, pa.int8()),
    (2**53 + 1, pa.float64()),
    (np.int64(2**53 + 1), pa.float64()),
    (16_777_217, pa.float32()),
    (1e300, pa.float32()),
    ("7", pa.float64()),
    (1, pa.bool_()),
    (7, pa.string()),
    (b"text", pa.string()),
    ("text", pa.binary()),
    (1.5, pa.decimal128(9, 2)),
    (Decimal("1.239"), pa.decimal128(9, 2)),
    (Decimal("1e20"), pa.decimal128(9, 2)),
    (1_700_000_000, UTC_TIME),
    (NOON.replace(tzinfo=None), UTC_TIME),
    (NOON, PLAIN_TIME),
    (1_700_000_000, PLAIN_TIME),
    (pd.Timestamp(1, unit="ns", tz="UTC"), UTC_TIME),
    (NOON.date(), UTC_TIME),
    (NOON, pa.date32()),
    (19_000, pa.date32()),
    ([1, 2.5], pa.list_(pa.int64())),
    (np.array([1.5]), pa.list_(pa.int64())),
    ("ab", pa.list_(pa.string())),
    ([[1], [2.5]], pa.list_(pa.list_(pa.int64()))),
    ({"a": 1.5, "b": ""}, PAIR),
    ({"a": 1, "c": 2}, PAIR),
    ((1,), PAIR),
    ({"x": 1.5}, COUNTS),
    ([("x", 1.5)], COUNTS),
]
UNCHANGED: list[tuple[object, Any, object]] = [
    (True, pa.int64(), 1),
    (np.int32(7), pa.int64(), 7),
    (3, pa.float64(), 3.0),
    (0.5, pa.float32(), 0.5),
    (float("inf"), pa.float32(), float("inf")),
    (np.bool_(True), pa.bool_(), True),
    (7, pa.decimal128(9, 2), Decimal("7.00")),
    (bytearray(b"\xff"), pa.binary(), b"\xff"),
    (NOON.astimezone(EAST), UTC_TIME, NOON),
    (NOON.replace(tzinfo=None), PLAIN_TIME, NOON.replace(tzinfo=None)),
    (NOON.date(), pa.date32(), NOON.date()),
    (np.array([0.5, 2.0]), pa.list_(pa.float64()), [0.5, 2.0]),
    ([None, (1,)], pa.list_(pa.list_(pa.int64())), [None, [1]]),
    ({"b": "x"}, PAIR, {"a": None, "b": "x"}),
    ((1, None), PAIR, {"a": 1, "b": None}),
    ({"x": 1, "y": None}, COUNTS, [("x", 1), ("y", None)]),
    ([("x", 1)], COUNTS, [("x", 1)]),
]


@pytest.mark.parametrize(("value", "kind"), CHANGED, ids=lambda part: repr(part)[:40])
def test_a_value_that_a_column_would_change_is_refused(value: object, kind: Any) -> None:
    with pytest.raises(InputError, match="output"):
        output_table([(0, None), (1, value)], pa.schema([("n", pa.int8()), ("c", kind)]), "step")
    try:
        form = StateForm(pa.schema([("c", kind)]))
    except InputError:
        return  # no type for a state
    # The digits of a decimal are counted when it is written; a double is the nearest to a number.
    if kind not in (pa.decimal128(9, 2), pa.float64()):
        with pytest.raises(InputError, match="for the state c; expected a value of type"):
            form.kept((value,))


@pytest.mark.parametrize(("value", "kind", "expected"), UNCHANGED, ids=lambda part: repr(part)[:40])
def test_a_value_that_fits_stays(value: object, kind: Any, expected: object) -> None:
    table = output_table([(None,), (value,)], pa.schema([("c", kind)]), "step")
    assert table.schema == pa.schema([("c", kind)])
    assert table.column("c").to_pylist() == [None, expected]


def test_columns_of_any_name_are_attributes() -> None:
    make = maker_of("Row", ["_id", "class", "n", "a b"])
    row = make((7, "x", 1, None))
    assert (row._id, getattr(row, "class"), row.n, getattr(row, "a b")) == (7, "x", 1, None)
    assert row._asdict() == {"_id": 7, "class": "x", "n": 1, "a b": None}
    assert row._replace(_id=8, n=2) == (8, "x", 2, None)
    assert repr(row) == "Row(_id=7, class='x', n=1, a b=None)"
    with pytest.raises(TypeError, match="no column m; there are _id, class, n, a b"):
        row._replace(m=1)
    with pytest.raises(InputError, match="state: n, n; expected different names"):
        StateForm(pa.schema([("n", pa.int64()), ("n", pa.int64())]))
