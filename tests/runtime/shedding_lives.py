"""Lives of a query that sheds: new checkpoints at one path, restarts, failures, drivers killed.

A life is a checkpoint, from its first batch until it is deleted. Its rows are numbered; each must
be kept or given up as its batch has decided, once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway import shedding_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_ARE_OF_S = {"fresh": (0.0,), "old": (5_000.0, 9_000.0), "mixed": (0.0, 60.0, 300.0, 5_000.0)}
"""Ages of rows when they are written; the limits of all lives lie between fresh and old. [s]"""
SPARKS_OWN = ("metadata", ".metadata.crc", "offsets", "commits", "sources")
FORMS: dict[str, Callable[[Path], str | Path]] = {
    "text": str,
    "path": Path,
    "address": Path.as_uri,
    "with a slash": lambda path: f"{path}/",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A start of the query; ``fails`` is where in a batch it raises, and in which, if at all."""

    fails: tuple[str, int] | None
    limit: str
    costs: dict[str, str]
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Rows of each batch, as class and age, and the starts of the query."""

    number: int
    ages: str
    batches: tuple[tuple[tuple[str | None, float | None], ...], ...]
    runs: tuple[Run, ...]
    is_all_deleted: bool


def a_life(number: int) -> Life:
    """A random life, the same for the same number."""
    seeded = random.Random(f"life {number}")
    # Fresh after old and old after fresh: a decision of an earlier life would be seen.
    ages = seeded.choice(["fresh", "old", "mixed"] if number % 2 else ["old", "mixed"])
    batches = tuple(
        tuple(
            (
                seeded.choice(["cheap", "cheap", "dear", "new", None]),
                None if seeded.random() < 0.1 else seeded.choice(ROWS_ARE_OF_S[ages]),
            )
            for _ in range(seeded.choice([0, 1, 5, 20]))
        )
        for _ in range(seeded.randint(1, 3))
    )
    fails = [
        (seeded.choice(["before", "between", "after"]), seeded.randrange(len(batches)))
        for _ in range(seeded.choice([0, 1, 1, 2]))
    ]
    # Where rows are fresh, all can be in time; where they are mixed, some classes cost too much.
    dear = "1ms" if ages == "fresh" else seeded.choice(["1ms", "10s", "100s"])
    runs = tuple(
        Run(
            fails=fail,
            limit=seeded.choice(["1000s", "1500s", "2000s"]),
            costs={"cheap": "100us", "dear": dear} if seeded.random() < 0.8 else {"cheap": "5ms"},
            form=seeded.choice([*FORMS]),
        )
        for fail in [*fails, None]
    )
    return Life(
        number=number,
        ages=ages,
        batches=batches,
        runs=runs,
        is_all_deleted=seeded.random() < 0.6,
    )


class LivesFolder:
    """What lives leave behind: rows, checkpoint, what was kept and given up, how far they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.attempts = folder / "attempts.jsonl"
        self._at = folder / "at.json"

    def rows(self, life: Life) -> Path:
        """The folder of the rows of a life, which are written at its first start."""
        folder = self.folder / f"rows-{life.number}"
        if not folder.exists():
            draft = self.folder / "draft"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            number = 0
            for batch, rows in enumerate(life.batches):
                lines = []
                for kind, age_s in rows:
                    us = None if age_s is None else round((time.time() - age_s) * 1e6)
                    lines.append(json.dumps({"n": number, "kind": kind, "us": us}))
                    number += 1
                (draft / f"{batch}.json").write_text("\n".join(lines))
                os.utime(draft / f"{batch}.json", (1_700_000_000 + batch,) * 2)
            draft.rename(folder)
        return folder

    def written(self, life: Life) -> list[dict[str, Any]]:
        """The rows of a life, as written."""
        files = sorted(self.rows(life).glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def into(self, life: Life, what: str) -> Callable[[DataFrame, int], None]:
        """A sink that replaces what a batch wrote before, and counts the attempt."""

        def write(batch: DataFrame, batch_id: int) -> None:
            numbers = sorted(row.n for row in batch.collect())
            folder = self.folder / f"{what}-{life.number}"
            folder.mkdir(exist_ok=True)
            draft = folder / ".draft"
            draft.write_text(json.dumps(numbers))
            draft.rename(folder / f"{batch_id}.json")
            line = {"life": life.number, "batch": batch_id, "what": what, "numbers": numbers}
            with self.attempts.open("a") as out:
                out.write(json.dumps(line) + "\n")

        return write

    def by_batch(self, life: Life, what: str) -> dict[int, list[int]]:
        """Numbers that a sink has, by batch."""
        files = (self.folder / f"{what}-{life.number}").glob("*.json")
        return {int(file.stem): json.loads(file.read_text()) for file in files}

    @property
    def at(self) -> tuple[int, int]:
        """The life and the start of it that are next."""
        return tuple(json.loads(self._at.read_text())) if self._at.exists() else (0, 0)

    def reach(self, life: int, run: int) -> None:
        """Remember them, also if the driver is killed then."""
        draft = self._at.with_suffix(".draft")
        draft.write_text(json.dumps([life, run]))
        draft.rename(self._at)


def live_on(spark: SparkSession, folder: Path, num_lives: int) -> None:
    """Go on with the lives of a folder from where they are; each is checked when it has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    lives = LivesFolder(folder)
    while lives.at[0] < num_lives:
        number, place = lives.at
        life = a_life(number)
        if place < len(life.runs):
            start_once(spark, lives, life, life.runs[place])
            lives.reach(number, place + 1)
            continue
        # A driver that is killed while it deletes goes on with that, after the check.
        if place == len(life.runs):
            check_life(lives, life)
            lives.reach(number, place + 1)
        delete_checkpoint(lives, life)
        lives.reach(number + 1, 0)


def start_once(spark: SparkSession, lives: LivesFolder, life: Life, run: Run) -> None:
    """Start the query of a life, until it has read everything or fails as it should."""
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import functions as sf

    def raised(where: str, batch_id: int) -> None:
        if run.fails == (where, batch_id):
            raise RuntimeError(f"fails {where} the sinks")

    keep, give_up = lives.into(life, "kept"), lives.into(life, "given_up")

    def keep_first(batch: DataFrame, batch_id: int) -> None:
        raised("before", batch_id)
        keep(batch, batch_id)
        raised("between", batch_id)

    def then_give_up(batch: DataFrame, batch_id: int) -> None:
        give_up(batch, batch_id)
        raised("after", batch_id)

    each = shedding_batches(
        keep_first, then_give_up, checkpoint=FORMS[run.form](lives.checkpoint), arrived="arrived",
        limit=run.limit, costs=run.costs, cost="kind", fixed="10ms",
    )  # fmt: skip
    reader = spark.readStream.schema("n long, kind string, us long").option("maxFilesPerTrigger", 1)
    rows = reader.json(str(lives.rows(life))).withColumn("arrived", sf.timestamp_micros("us"))
    writer = rows.writeStream.foreachBatch(each)
    query = writer.option("checkpointLocation", str(lives.checkpoint)).trigger(availableNow=True)
    try:
        query.start().awaitTermination()
    except StreamingQueryException as error:
        if run.fails is None or f"fails {run.fails[0]} the sinks" not in str(error):
            raise


def check_life(lives: LivesFolder, life: Life) -> None:
    """Each row is kept or given up, once, as its batch has decided, at every attempt."""
    kept, given_up = lives.by_batch(life, "kept"), lives.by_batch(life, "given_up")
    rows = {row["n"]: row for row in lives.written(life)}
    numbers = [number for sink in (kept, given_up) for batch in sink.values() for number in batch]
    assert sorted(numbers) == sorted(rows), (life.number, "lost or twice")
    for batch in kept.keys() | given_up.keys():
        file = lives.checkpoint / "headway-shed" / f"{batch}.json"
        decision = json.loads(file.read_text())
        metadata = json.loads((lives.checkpoint / "metadata").read_text())
        assert decision["query"] == metadata["id"], (life.number, "of another life")
        first_us = dict(decision["kept_from_us"])
        of_batch = kept.get(batch, []) + given_up.get(batch, [])
        by_decision = sorted(n for n in of_batch if is_kept(rows[n], first_us))
        assert kept.get(batch, []) == by_decision, (life.number, batch)
    for line in lives.attempts.read_text().splitlines():
        attempt = json.loads(line)
        if attempt["life"] == life.number:
            sink = kept if attempt["what"] == "kept" else given_up
            assert sink[attempt["batch"]] == attempt["numbers"], (life.number, attempt)
    judged = {n for n, row in rows.items() if row["kind"] in ("cheap", "dear") and row["us"]}
    if life.ages == "fresh":
        assert not any(given_up.values()), (life.number, "fresh rows were given up")
    if life.ages == "old":
        cheap = {n for n in judged if rows[n]["kind"] == "cheap"}
        assert cheap.isdisjoint(n for batch in kept.values() for n in batch), life.number
    assert judged.issuperset(n for batch in given_up.values() for n in batch), life.number


def is_kept(row: dict[str, Any], first_us: dict[str, int | None]) -> bool:
    """Whether a decision keeps a row: unknown ones, and those of known classes from a time on."""
    if row["us"] is None or row["kind"] not in first_us:
        return True
    least_us = first_us[row["kind"]]
    return least_us is not None and row["us"] >= least_us


def delete_checkpoint(lives: LivesFolder, life: Life) -> None:
    """Delete it as a whole, or only what Spark has written."""
    if life.is_all_deleted:
        shutil.rmtree(lives.checkpoint, ignore_errors=True)
        return
    for name in SPARKS_OWN:
        path = lives.checkpoint / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def main(folder: Path, num_lives: int) -> None:
    """A driver of its own, to be killed."""
    from headway.profiler.spark.session import embedded_session, local_checkpoint_conf

    with embedded_session(
        app_name="shedding",
        master="local[2]",
        driver_memory="1g",
        extra_conf=local_checkpoint_conf(),
    ) as spark:
        live_on(spark, folder, num_lives)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
