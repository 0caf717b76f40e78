"""What a query with shared windows was first started as, kept beside its state in the checkpoint.

Spark compares the types of state only: state of other windows, or of another aggregate with the
same type, would be read as if it were that of the query.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError
from headway.formats.own_files import parse_json
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.panes import WindowQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GUARD_FILE = "headway-windows.json"


def hold_against_first_start(
    df: DataFrame, query: WindowQuery, how: str, checkpoint: str, exchanges: Sequence[str] = ()
) -> None:
    """Keep what the query is at its first start, and compare with that at each later one.

    Parameters
    ----------
    df : DataFrame
        The stream, before its aggregation.
    query : WindowQuery
        The windows, keys and aggregates.
    how : str
        How they are shared.
    checkpoint : str
        The folder that the query is started with.
    exchanges : sequence of str
        Shuffles in Spark's plan, by which rows find their state.

    Raises
    ------
    HeadwayError
        If the query is not what it was at the first start.
    """
    files, folder = SparkFiles(df.sparkSession), checkpoint.rstrip("/")
    now = _first_start(df, query, how, exchanges)
    if files.exists(f"{folder}/{GUARD_FILE}"):
        guard_file = f"{folder}/{GUARD_FILE}"
        first = parse_json(files.read(guard_file), name=guard_file, expected="the first start")
        for part_name, text in now.items():
            if first.get(part_name) != text:
                raise HeadwayError(
                    f"{folder}: {part_name} at the first start: {_in_words(first.get(part_name))}; "
                    f"now: {_in_words(text)}. Rows would not find their state, or that of "
                    "something else: start as before, or with a new checkpoint"
                )
        return
    if exchanges and files.exists(f"{folder}/offsets"):
        raise HeadwayError(
            f"{folder}: the checkpoint of a query that was not started as {how}; its state is "
            "elsewhere. Start the query with a new checkpoint"
        )
    files.write_new(f"{folder}/{GUARD_FILE}", json.dumps(now))


def _first_start(
    df: DataFrame, query: WindowQuery, how: str, exchanges: Sequence[str]
) -> dict[str, Any]:
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    return {
        "how": how,
        "time": query.time,
        "key": [f"{name} {types[name]}" for name in query.key],
        "windows": list(map(str, query.windows.windows)),
        "aggregates": [f"{aggregate.name} = {aggregate.direct}" for aggregate in query.aggregates],
        "exchanges": list(exchanges),
    }


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
