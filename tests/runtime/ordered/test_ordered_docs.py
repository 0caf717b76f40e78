"""The code of docs/ordered-streams.md runs as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.ordered.test_ordered_stream import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "ordered-streams.md"
ROWS = [
    {"card": card, "at": "2026-05-01T00:00:00Z", "partition": 0, "offset": at, "amount": 10.0 * at}
    for at, card in enumerate(["gold 1", "b", "gold 1", "c", "b", "gold 1"])
]


@STREAMS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_code_of_the_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for part in range(2):
        lines = "\n".join(json.dumps(row) for row in ROWS[part::2])
        (tmp_path / "events" / f"{part}.json").write_text(lines)
    (tmp_path / "cards.csv").write_text("key,share\ngold 1,0.5\n")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    blocks = [block for block in blocks if not block.startswith("spark.conf")]
    assert len(blocks) == 5
    names: dict[str, Any] = {"spark": spark, "__name__": "__main__"}
    for block in blocks:
        exec(compile(block.replace("/data/cards", str(tmp_path)), PAGE.name, "exec"), names)
    found = spark.read.parquet(str(tmp_path / "scores")).collect()
    assert sorted(map(tuple, found)) == [
        ("b", 1, 10.0), ("b", 2, 30.0), ("c", 1, 30.0),
        ("gold 1", 1, 0.0), ("gold 1", 2, 20.0), ("gold 1", 3, 30.0),
    ]  # fmt: skip
    assert names["placed"].isStreaming
    assert names["visits"].columns == ["card", "n", "ended_at"]
    assert names["rich"].columns == ["card", "n", "is_high"]
