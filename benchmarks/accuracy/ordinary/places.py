"""Where a run has its data: static tables, folders of files, topics, and what its sink writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ordinary.events import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUM_PRODUCTS, NUM_STORES, NUM_CUSTOMERS = 2_000, 40, 20_000
_TABLES: dict[str, tuple[int, tuple[str, ...]]] = {
    "products": (
        NUM_PRODUCTS,
        (
            "id AS product",
            "concat('product', id) AS title",
            f"concat('category', {drawn('category', 12, 'id')}) AS category",
            f"cast(1 + {drawn('weight', 900, 'id')} AS double) AS weight",
        ),
    ),
    "stores": (
        NUM_STORES,
        (
            "id AS store",
            "concat('store', id) AS town",
            f"concat('region', {drawn('region', 4, 'id')}) AS region",
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Folders of a run, and the broker and topic if it reads Kafka.

    ``tables`` has the static tables, ``landing`` the files that arrive; ``output`` is for its sink.
    """

    tables: Path
    output: Path
    landing: Path
    servers: str = ""
    topic: str = ""


def write_tables(spark: SparkSession, tables: Path) -> None:
    """The static tables of the shop as Parquet, a file each; those that exist stay as they are."""
    for name, (num_rows, columns) in _TABLES.items():
        if (tables / name / "_SUCCESS").exists():
            continue
        rows = spark.range(num_rows).selectExpr(*columns)
        rows.coalesce(1).write.mode("overwrite").parquet(str(tables / name))
