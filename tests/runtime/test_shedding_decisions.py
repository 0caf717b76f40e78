"""Decisions about batches: of which query and batch they are, where they lie, how long."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headway import bring_back, shed, shedding_batches
from headway.errors import HeadwayError, InputError
from headway.runtime.shedding.checkpoint import (
    Decisions,
    batch_timestamp_ms,
    committed_batches,
    query_id,
)
from tests.runtime.sharing.log_cases import MemoryFiles

FOLDER = "store://orders"
CHEAP_AND_DEAR = (("cheap", 1_000), ("dear", None))


def logged(timestamp_ms: int, *sources: str, version: str = "v1") -> str:
    return "\n".join([version, json.dumps({"batchTimestampMs": timestamp_ms}), *sources])


def decisions_of(files: MemoryFiles, query: str, num_retained: int = 100) -> Decisions:
    return Decisions(files=files, checkpoint=FOLDER, query=query, num_retained=num_retained)


def test_a_decision_is_of_its_query_and_of_its_batch() -> None:
    files = MemoryFiles()
    files.write_new(f"{FOLDER}/offsets/7", logged(5_000))
    assert decisions_of(files, "q").of_batch(7) is None
    decisions_of(files, "q").keep(7, CHEAP_AND_DEAR)
    assert decisions_of(files, "q").of_batch(7) == CHEAP_AND_DEAR
    assert decisions_of(files, "other").of_batch(7) is None
    # A checkpoint that was set back decides anew about rows that are not the same.
    files.texts[f"{FOLDER}/offsets/7"] = logged(6_000)
    assert decisions_of(files, "q").of_batch(7) is None
    decisions_of(files, "other").keep(7, ())
    assert decisions_of(files, "other").of_batch(7) == ()
    files.texts[f"{FOLDER}/headway-shed/7.json"] = '{"least_bucket": {}}'
    with pytest.raises(InputError, match=r"headway-shed/7\.json: not a decision of Headway; exp"):
        decisions_of(files, "other").of_batch(7)


def test_a_decision_has_classes_of_every_type_that_a_column_may_have() -> None:
    """A repeated batch compares its column with them, so they come back as they were given."""
    files = MemoryFiles()
    files.write_new(f"{FOLDER}/offsets/7", logged(5_000))
    kinds: tuple[object, ...] = ("dear", 3, 1.5, True, Decimal("1.50"))
    decisions_of(files, "q").keep(7, tuple((kind, 1_000) for kind in kinds))
    kept = decisions_of(files, "q").of_batch(7)
    assert kept is not None
    assert [(kind, type(kind)) for kind, _ in kept] == [(kind, type(kind)) for kind in kinds]
    path = f"{FOLDER}/headway-shed/7.json"
    files.texts[path] = files.texts[path].replace("1.50", "one")
    with pytest.raises(InputError, match="not a decision of Headway"):
        decisions_of(files, "q").of_batch(7)


def test_decisions_are_deleted_with_the_batches_that_spark_deletes() -> None:
    files = MemoryFiles()
    for batch in (9, *range(5)):
        files.write_new(f"{FOLDER}/offsets/{batch}", logged(batch))
        decisions_of(files, "q", num_retained=2).keep(batch, ())
    assert files.names(f"{FOLDER}/headway-shed") == ["2.json", "3.json", "4.json"]


def test_both_forms_of_the_offset_log_are_read() -> None:
    for version, source in (("v1", '{"orders":{"0":40}}'), ("v2", '0:{"orders":{"0":40}}')):
        files = MemoryFiles()
        files.write_new(f"{FOLDER}/offsets/0", logged(2_500, source, version=version))
        files.write_new(f"{FOLDER}/commits/0", "")
        assert committed_batches(files, FOLDER) == [(0, 2.5, {("orders", 0): 40})]
        assert batch_timestamp_ms(files, FOLDER, 0) == 2_500


def test_an_entry_that_spark_deletes_meanwhile_is_left_out() -> None:
    class Deleted(MemoryFiles):
        def read(self, path: str) -> str:
            if path.endswith("offsets/3"):
                raise FileNotFoundError(path)
            return super().read(path)

    files = Deleted()
    for number in (3, 4):
        files.write_new(f"{FOLDER}/offsets/{number}", logged(1_000))
        files.write_new(f"{FOLDER}/commits/{number}", "")
    assert [number for number, *_ in committed_batches(files, FOLDER)] == [4]


def test_a_folder_that_is_not_the_checkpoint_is_refused() -> None:
    files = MemoryFiles()
    with pytest.raises(InputError, match="no query has this checkpoint; expected the folder"):
        query_id(files, FOLDER)
    with pytest.raises(InputError, match="batch 3 is not in its offset log; expected the folder"):
        batch_timestamp_ms(files, FOLDER, 3)
    files.write_new(f"{FOLDER}/metadata", "{}")
    with pytest.raises(InputError, match="not the metadata of a query"):
        query_id(files, FOLDER)


class Rows:
    """A folder with numbered rows, their classes and ages, and what became of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.kept: list[int] = []
        self.given_up: list[int] = []

    def add(self, rows: list[tuple[int, str | None, float | None]]) -> None:
        self.folder.mkdir(exist_ok=True)
        lines = []
        for number, kind, age_s in rows:
            us = None if age_s is None else round((time.time() - age_s) * 1e6)
            lines.append(json.dumps({"n": number, "kind": kind, "us": us}))
        file = self.folder / f"{len([*self.folder.iterdir()]):04}.json"
        file.write_text("\n".join(lines))

    def stream(self) -> DataFrame:
        rows = self.spark.readStream.schema("n long, kind string, us long")
        return rows.json(str(self.folder)).withColumn("arrived", sf.timestamp_micros("us"))

    def run(self, checkpoint: str, decided_in: str | None = None, limit: str = "10min") -> None:
        def into(numbers: list[int]) -> Callable[[DataFrame, int], None]:
            return lambda batch, _: numbers.extend(row.n for row in batch.collect())

        each = shedding_batches(
            into(self.kept), into(self.given_up), checkpoint=decided_in or checkpoint,
            arrived="arrived", limit=limit, costs={"cheap": "1ms", "dear": "2ms"}, cost="kind",
            fixed="1s",
        )  # fmt: skip
        writer = self.stream().writeStream.foreachBatch(each)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()


@pytest.mark.parametrize("is_all_deleted", [True, False])
def test_a_new_checkpoint_at_the_same_path_decides_anew(
    spark: SparkSession, tmp_path: Path, is_all_deleted: bool
) -> None:
    checkpoint = tmp_path / "checkpoint"
    first = Rows(spark, tmp_path / "first")
    first.add([(number, "cheap", 3600.0) for number in range(4)])
    first.run(str(checkpoint))
    assert (first.kept, sorted(first.given_up)) == ([], [0, 1, 2, 3])
    assert (checkpoint / "headway-shed" / "0.json").exists()
    # Deleted as a whole, or only what Spark has made.
    for folder in [checkpoint] if is_all_deleted else map(checkpoint.joinpath, SPARKS_OWN):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    second = Rows(spark, tmp_path / "second")
    second.add([(number, "cheap", 0.0) for number in range(10, 14)])
    second.run(str(checkpoint))
    assert (sorted(second.kept), second.given_up) == ([10, 11, 12, 13], [])


SPARKS_OWN = ("metadata", ".metadata.crc", "offsets", "commits", "sources")


def test_decisions_lie_in_the_checkpoint_on_any_file_system(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounted").mkdir()
    monkeypatch.chdir(tmp_path / "mounted")
    # A file system that only the session knows.
    link = "fs.viewfs.mounttable.shedding.link./all"
    spark.conf.set(link, (tmp_path / "mounted").as_uri())
    try:
        for place, checkpoint in enumerate(
            ((tmp_path / "mounted" / "a").as_uri(), "viewfs://shedding/all/b")
        ):
            rows = Rows(spark, tmp_path / f"rows{place}")
            rows.add([(0, "cheap", 3600.0), (1, "cheap", 0.0), (2, "dear", 0.0)])
            rows.run(checkpoint)
            assert (sorted(rows.kept), rows.given_up) == ([1, 2], [0])
            table = spark.read.schema("n long, us long").json(str(rows.folder))
            table = table.selectExpr("n", "timestamp_micros(us) arrived", "0 batch")
            back = bring_back(checkpoint, table, arrived="arrived", older_than="10min")
            assert [row.n for row in back.collect()] == [0]
    finally:
        spark.conf.unset(link)
    folders = sorted(each.name for each in (tmp_path / "mounted").iterdir())
    assert folders == ["a", "b"]
    for name in folders:
        assert (tmp_path / "mounted" / name / "headway-shed" / "0.json").exists()


def test_a_repeated_batch_is_split_alike_under_another_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint, rows = tmp_path / "checkpoint", Rows(spark, tmp_path / "rows")
    rows.add([(number, "cheap", 60.0 * number) for number in range(20)])
    rows.run(str(checkpoint))
    before = sorted(rows.kept), sorted(rows.given_up)
    assert all(before)
    for file in (checkpoint / "commits").iterdir():
        file.unlink()
    rows.kept.clear()
    rows.given_up.clear()
    rows.run(str(checkpoint), limit="7s")
    assert (sorted(rows.kept), sorted(rows.given_up)) == before


def test_both_ways_keep_what_they_cannot_judge(spark: SparkSession, tmp_path: Path) -> None:
    rows = Rows(spark, tmp_path / "rows")
    old = 3600.0
    rows.add(
        [(0, "cheap", old), (1, "dear", 0.0), (2, "new", old), (3, None, old), (4, "dear", None)]
    )
    rows.run(str(tmp_path / "split"))
    limits = {"cheap": "10min", "dear": "10min"}
    marked = shed(rows.stream(), arrived="arrived", older_than=limits, cost="kind")
    collected: list[tuple[int, bool]] = []
    query = (
        marked.writeStream.foreachBatch(
            lambda batch, _: collected.extend((row.n, row.shed) for row in batch.collect())
        )
        .option("checkpointLocation", str(tmp_path / "marked"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(rows.kept) == sorted(n for n, is_shed in collected if not is_shed) == [1, 2, 3, 4]
    assert rows.given_up == [n for n, is_shed in collected if is_shed] == [0]


def test_the_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = Rows(spark, tmp_path / "rows")
    rows.add([(0, "cheap", 0.0)])
    rows.run(str(tmp_path / "one"))
    with pytest.raises(Exception, match="and this batch is of query"):
        rows.run(str(tmp_path / "other"), decided_in=str(tmp_path / "one"))
    with pytest.raises(Exception, match="no query has this checkpoint"):
        rows.run(str(tmp_path / "third"), decided_in=str(tmp_path / "nowhere"))


def test_a_file_system_that_spark_lacks_is_named(spark: SparkSession) -> None:
    rows = spark.sql("SELECT current_timestamp() at, 0 batch")
    with pytest.raises(HeadwayError, match=r"^nowhere://ck/.*refuses it: No FileSystem for scheme"):
        bring_back("nowhere://ck", rows, arrived="at", older_than="2s")


def test_two_marked_streams_of_a_query_are_counted_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    counts = {}
    streams = []
    for name in ("orders", "clicks"):
        rows = Rows(spark, tmp_path / name)
        rows.add([(0, "cheap", 3600.0), *((at, "cheap", 0.0) for at in range(len(name)))])
        marked = shed(rows.stream(), arrived="arrived", older_than="10min", counted_as=name)
        streams.append(marked)
        counts[name] = (1 + len(name), 1)
    writer = streams[0].union(streams[1]).writeStream.format("noop")
    query = (
        writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    observed = query.recentProgress[0]["observedMetrics"]
    assert {name: (observed[name]["rows"], observed[name]["shed"]) for name in counts} == counts
