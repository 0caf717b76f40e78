"""Shedding on real queries: every row once, kept or shed, over replays and restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from headway import bring_back, shed, shedding_batches
from headway.errors import InputError
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.shedding.checkpoint import committed_batches

NUM_FILES, ROWS_PER_FILE = 4, 50
PATIENCE_S = 180.0


@pytest.fixture
def numbered(spark: SparkSession, tmp_path: Path) -> Iterator[DataFrame]:
    """Numbered rows in files, a file a batch; half of them arrived long ago."""
    folder = tmp_path / "rows"
    folder.mkdir()
    now_s = time.time()
    for file in range(NUM_FILES):
        lines = []
        for at in range(ROWS_PER_FILE):
            number = file * ROWS_PER_FILE + at
            kind = "dear" if number % 5 == 0 else "cheap"
            # Old: beyond the limit of both classes, of the dear ones only, or of none.
            age_s = (3000.0, 300.0, 0.0)[number % 3]
            row = {"n": number, "kind": kind, "us": round((now_s - age_s) * 1e6)}
            lines.append(json.dumps(row))
        (folder / f"{file}.json").write_text("\n".join(lines))
    yield (
        spark.readStream.schema("n long, kind string, us long")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withColumn("arrived", sf.timestamp_micros("us"))
    )


def run_all(writer: object, checkpoint: Path) -> StreamingQuery:
    started: StreamingQuery = (
        writer.option("checkpointLocation", str(checkpoint))  # type: ignore[attr-defined]
        .trigger(availableNow=True)
        .start()
    )
    assert started.awaitTermination(int(PATIENCE_S))
    assert started.exception() is None
    return started


LIMITS = {"cheap": "20min", "dear": "2min"}


def is_late(number: int) -> bool:
    return number % 3 == 0 or (number % 3 == 1 and number % 5 == 0)


def test_produced_is_kept_plus_shed_in_one_state_and_a_replay_sheds_the_same(
    spark: SparkSession, numbered: DataFrame, tmp_path: Path
) -> None:
    batches: dict[int, list[tuple[int | None, bool, int]]] = {}

    def collect(batch: DataFrame, batch_id: int) -> None:
        found = batch.collect()
        batches.setdefault(batch_id, [])
        batches[batch_id] = [(row.key, row.shed, row["count"]) for row in found]

    def query() -> object:
        marked = shed(numbered, arrived="arrived", older_than=LIMITS, cost="kind")
        # Dear work is guarded, and its key is null for what is shed.
        key = sf.when(~sf.col("shed"), sf.col("n") % 4)
        counts = marked.groupBy(key.alias("key"), "shed").count()
        return counts.writeStream.outputMode("complete").foreachBatch(collect)

    checkpoint = tmp_path / "checkpoint"
    ended = run_all(query(), checkpoint)
    everything = NUM_FILES * ROWS_PER_FILE
    late = sum(map(is_late, range(everything)))
    last = batches[max(batches)]
    assert sum(count for *_, count in last) == everything
    assert [(key, count) for key, was_shed, count in last if was_shed] == [(None, late)]
    assert sum(count for _, was_shed, count in last if not was_shed) == everything - late
    observed = [progress["observedMetrics"]["shedding"] for progress in ended.recentProgress]
    assert sum(one["shed"] for one in observed) == late
    assert sum(one["rows"] for one in observed) == everything
    # The driver dies before the last commit is written: the batch runs again, later.
    before = batches.pop(max(batches))
    last_id = max(
        int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit()
    )
    for file in (checkpoint / "commits").glob(f"*{last_id}*"):
        file.unlink()
    time.sleep(1.0)
    run_all(query(), checkpoint)
    assert sorted(batches[last_id], key=str) == sorted(before, key=str)
    assert sum(count for *_, count in batches[last_id]) == everything


def test_what_was_shed_can_be_brought_back(
    spark: SparkSession, numbered: DataFrame, tmp_path: Path
) -> None:
    checkpoint, out = tmp_path / "checkpoint", str(tmp_path / "out")
    marked = shed(numbered, arrived="arrived", older_than=LIMITS, cost="kind")

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.withColumn("batch", sf.lit(batch_id)).write.mode("overwrite").json(
            f"{out}/{batch_id}"
        )

    run_all(marked.writeStream.foreachBatch(write), checkpoint)
    batches = committed_batches(SparkFiles(spark), str(checkpoint))
    assert [number for number, *_ in batches] == [*range(NUM_FILES)]
    assert not any(ends for *_, ends in batches)
    schema = "n long, kind string, arrived timestamp, shed boolean, batch int"
    everything = spark.read.schema(schema).json([f"{out}/{one}" for one in range(NUM_FILES)])
    found = bring_back(
        checkpoint, everything.drop("shed"), arrived="arrived", older_than=LIMITS, cost="kind"
    )
    with pytest.raises(InputError, match="no offsets of Kafka; expected a column 'batch'"):
        of_kafka = everything.drop("batch").selectExpr("*", "'t' topic", "0 partition", "n offset")
        bring_back(checkpoint, of_kafka, arrived="arrived", older_than=LIMITS, cost="kind")
    back = sorted(row.n for row in found.collect())
    assert back == sorted(row.n for row in everything.where("shed").collect())
    assert back == [number for number in range(NUM_FILES * ROWS_PER_FILE) if is_late(number)]


def test_rows_of_kafka_are_brought_back_by_their_offsets(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As Spark's own source of Kafka keeps its offsets; the last batch was never committed."""
    began_s = 1_760_000_000
    ends = {7: {"0": 2, "1": 1}, 8: {"0": 4, "1": 1}, 9: {"0": 5, "1": 3, "2": 1}, 10: {"0": 9}}
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    for batch, by_partition in ends.items():
        metadata = json.dumps({"batchTimestampMs": 1000 * (began_s + 10 * batch), "conf": {}})
        lines = ["v1", metadata, json.dumps({"orders": by_partition})]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(lines))
        if batch < 10:
            (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    # Every row arrived 5 s before batch 9 began: batch 8 was 5 s too early to shed it.
    arrived = f"timestamp_seconds({began_s + 85}) arrived"
    places = [(0, offset) for offset in range(9)] + [(1, offset) for offset in range(4)] + [(2, 0)]
    rows = spark.createDataFrame(places, "partition int, offset long")
    rows = rows.selectExpr("'orders' topic", "partition", "offset", arrived)
    found = bring_back(tmp_path, rows, arrived="arrived", older_than="2s")
    assert found.columns == [*rows.columns, "batch"]
    back = sorted((row.batch, row.partition, row.offset) for row in found.collect())
    assert back == [(9, 0, 4), (9, 1, 1), (9, 1, 2), (9, 2, 0)]
    everything = bring_back(tmp_path, rows, arrived="arrived", older_than="1ms").count()
    assert everything == len(back)
    with pytest.raises(InputError, match="no column 'offset'; expected topic, partition and off"):
        bring_back(tmp_path, rows.drop("offset"), arrived="arrived", older_than="2s")


def test_a_stateless_batch_keeps_the_punctual_rows_and_decides_once(
    spark: SparkSession, numbered: DataFrame, tmp_path: Path
) -> None:
    kept: dict[int, list[int]] = {}
    given_up: dict[int, list[int]] = {}

    def into(where: dict[int, list[int]]) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, batch_id: int) -> None:
            where[batch_id] = sorted(row.n for row in batch.select("n").collect())

        return write

    checkpoint = tmp_path / "checkpoint"
    each = shedding_batches(
        into(kept), into(given_up), arrived=sf.col("arrived"), limit="20min",
        costs={"cheap": "1s", "dear": "60s"}, cost="kind", fixed="1s",
    )  # fmt: skip
    run_all(numbered.writeStream.foreachBatch(each), checkpoint)
    numbers = sorted(number for rows in (*kept.values(), *given_up.values()) for number in rows)
    assert numbers == list(range(NUM_FILES * ROWS_PER_FILE))
    assert all(number % 3 != 0 for rows in kept.values() for number in rows)
    assert any(kept.values())
    num_shed = sum(len(rows) for rows in given_up.values())
    assert (each.count.num_rows, each.count.num_shed) == (NUM_FILES * ROWS_PER_FILE, num_shed)
    before = kept[NUM_FILES - 1], given_up[NUM_FILES - 1]
    # On replay the decision stands, whatever the time would say now.
    for file in (checkpoint / "commits").glob(f"*{NUM_FILES - 1}*"):
        file.unlink()
    late = shedding_batches(
        into(kept), into(given_up), checkpoint=checkpoint, arrived="arrived", limit="20min",
        costs={"cheap": "1000s", "dear": "2000s"}, cost="kind", fixed="5000s",
    )  # fmt: skip
    run_all(numbered.writeStream.foreachBatch(late), checkpoint)
    assert (kept[NUM_FILES - 1], given_up[NUM_FILES - 1]) == before


def test_names_are_any(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load().toDF("arrived.at", "cost class")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        renamed = rows.withColumn("Shed", sf.lit("mine"))
        marked = shed(renamed, arrived="arrived.at", older_than={1: "2s"}, cost="cost class")  # type: ignore[dict-item]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert marked.columns == ["arrived.at", "cost class", "Shed", "shed"]


def test_what_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT 1L n, 'a' kind, current_timestamp() at")
    with pytest.raises(InputError, match="no column 'arrived'; expected one of n, kind, at"):
        shed(rows, arrived="arrived", older_than="2s")
    with pytest.raises(InputError, match="need the column of the class"):
        shed(rows, arrived="n", older_than={"a": "2s"})
    with pytest.raises(InputError, match="needs limits by class"):
        shed(rows, arrived="n", older_than="2s", cost="kind")
    with pytest.raises(InputError, match=r"older_than is 0\.0; expected more"):
        shed(rows, arrived="n", older_than=0.0)
    with pytest.raises(InputError, match="already; rename it"):
        shed(rows.withColumnRenamed("kind", "Shed"), arrived="n", older_than="2s")
    for column, kind in (("kind", 1), ("n", "a")):
        with pytest.raises(InputError, match="is no value of column"):
            shed(rows, arrived="at", older_than={kind: "2s"}, cost=column)  # type: ignore[dict-item]
    for costs in ({}, {"a": "1s"}):
        with pytest.raises(InputError, match="expected classes that take longer than to give up"):
            shedding_batches(
                lambda *_: None, lambda *_: None, checkpoint=tmp_path, arrived="n", limit="2s",
                costs=costs, cost="kind", fixed="1s", give_up_cost="1s",
            )  # fmt: skip
    with pytest.raises(InputError, match="no offset log"):
        bring_back(tmp_path, rows, arrived="at", older_than="2s")
    (tmp_path / "offsets").mkdir()
    with pytest.raises(InputError, match="no committed batch; expected a query that has run"):
        bring_back(tmp_path, rows, arrived="at", older_than="2s")
