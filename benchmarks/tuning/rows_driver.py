"""A driver with numbered rows whose queries are changed again and again, until it is killed.

    python benchmarks/tuning/rows_driver.py FOLDER --sinks file,idempotent --changes 10 --seed 1 \\
        --kill "stopped" --after 3

Rows are numbered 0, 1, 2, ..., so the rows at each sink show whether one was lost or doubled.
Every change goes through the tuner's own state machine, which writes it down first, so a killed
driver continues it at its next start.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.domain import Configuration, QuerySetting, Target
from headway.domain.live import Bounds, Reason
from headway.domain.tuner import Phase, TunerState
from headway.errors import HeadwayError
from headway.formats.profile_file import load_profile
from headway.formats.tuner_files import load_tuner, profile_hash
from headway.profiler.recording.live import QueryFeed
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.tuning.actuators import Actuators
from headway.runtime.tuning.clean_stop import NoGapError
from headway.runtime.tuning.session import running_slots
from headway.tuner.live_query import LiveQuery
from headway.tuner.live_rule import LiveRule
from headway.tuner.machine import TunerMachine

ROOT = Path(__file__).parents[2]
SINKS = ("file", "idempotent", "plain", "stateful")
KEYS = 10
TOPIC = "rows"
_TRIGGERS_S = (1.0, 1.5, 2.0)
_ROWS = (400, 1000, 2500)
_PARTITIONS = (1, 2, 3)
_MOST_CHANGES_FACTOR = 5
_NEXT_BATCH_WITHIN_S, _GAP_WITHIN_S = 60.0, 240.0


class Killer:
    """Kills this driver, its JVM first, at the n-th time that a named point is reached."""

    def __init__(self, point: str | None, after: int) -> None:
        self._point, self._left = point, after
        self.jvm: int | None = None

    def at(self, name: str) -> None:
        """A point is reached."""
        if name != self._point:
            return
        if self._left > 0:
            self._left -= 1
            return
        if self.jvm is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def build_of(
    sink: str, folder: Path, killer: Killer, servers: str | None
) -> Callable[[Any, QuerySetting], Any]:
    """The function that starts a query of numbered rows into a sink."""
    out = folder / f"{sink}.out"

    def each_in_its_folder(rows: Any, batch_id: int) -> None:
        killer.at("offsets logged")
        rows.write.mode("overwrite").json(str(out / f"batch={batch_id}"))
        killer.at("rows written")

    def append(rows: Any, _batch_id: int) -> None:
        killer.at("offsets logged")
        rows.write.mode("append").json(str(out))
        killer.at("rows written")

    def build(spark: Any, setting: QuerySetting) -> Any:
        rows = (
            spark.readStream.format("rate-micro-batch")
            .options(rowsPerBatch=setting.reader_options["maxOffsetsPerTrigger"], numPartitions="2")
            .load()
            .select("value")
        )
        if sink == "stateful":
            rows = rows.groupBy((rows.value % KEYS).alias("key")).count()
        if sink == "kafka":
            rows = rows.selectExpr("CAST(value AS STRING) AS value")
        writer = rows.writeStream.queryName(sink).trigger(**setting.trigger)
        writer = writer.option("checkpointLocation", str(folder / f"{sink}.checkpoint"))
        if sink == "kafka":
            to_topic = {"kafka.bootstrap.servers": servers, "topic": TOPIC}
            return writer.format("kafka").options(**to_topic).start()
        if sink == "file":
            return writer.format("json").option("path", str(out)).start()
        if sink == "stateful":
            writer = writer.outputMode("update")
        write = append if sink == "plain" else each_in_its_folder
        return writer.foreachBatch(write).start()

    return build


def machine_of(
    spark: Any, sink: str, folder: Path, killer: Killer, servers: str | None
) -> TunerMachine:
    """The tuner's state machine over one query, at rest or as a kill left it."""
    profile = load_profile(ROOT / "examples" / "word-count.profile.yaml")
    if sink != "stateful":
        profile = replace(profile, shape=replace(profile.shape, stateful_operators=()))
    executors, cores = running_slots(spark)
    first = Configuration(
        executors=executors,
        cores_per_executor=cores,
        shuffle_partitions=2,
        trigger_s=1.0,
        max_offsets_per_trigger=1000,
    )
    target = Target.parse("p99 <= 30s")
    live = LiveQuery(feed=QueryFeed(), profile=profile, target=target)
    path = folder / f"{sink}.tuner.json"
    state = load_tuner(path) or TunerState(
        profile_hash=profile_hash(profile),
        target=str(target),
        phase=Phase.LEARN,
        original=first,
        last_good=first,
    )
    actuators = Actuators(
        spark=spark,
        build=build_of(sink, folder, killer, servers),
        at=killer.at,
        query_id=state.query_id,
        root=state.root,
    )
    bounds = Bounds(min_executors=1, max_executors=executors)
    rule = LiveRule(live=live, bounds=bounds)
    return TunerMachine(actuators, rule, state, path, acts=True, at=killer.at)


def another(
    running: Configuration, sink: str, kinds: list[str], choice: random.Random
) -> Configuration:
    """A setting that differs from the running one in one property."""
    kind = choice.choice([one for one in kinds if one != "partitions" or sink != "stateful"])
    if kind == "trigger":
        others = [one for one in _TRIGGERS_S if one != running.trigger_s]
        return replace(running, trigger_s=choice.choice(others))
    if kind == "limit":
        rows = [one for one in _ROWS if one != running.max_offsets_per_trigger]
        return replace(running, max_offsets_per_trigger=choice.choice(rows))
    if kind == "partitions":
        numbers = [one for one in _PARTITIONS if one != running.shuffle_partitions]
        return replace(running, shuffle_partitions=choice.choice(numbers))
    return replace(running, executors=2 if running.executors == 1 else 1)


def change_again_and_again(
    machines: dict[str, TunerMachine], given: argparse.Namespace, log: Path
) -> None:
    """Make the changes, each of the next query in turn, each after one more batch.

    A driver that is to be killed makes more, as on a busy machine some are given up, and a change
    that is given up does not reach every point.
    """
    choice = random.Random(given.seed)
    factor = 1 if given.kill is None else _MOST_CHANGES_FACTOR
    for number in range(factor * given.changes):
        sink = given.sinks[number % len(given.sinks)]
        machine = machines[sink]
        _wait_for_a_batch(machine)
        then = another(machine.running, sink, given.kinds, choice)
        machine.change_to(then, Reason.TRIGGER, Phase.APPLYING, why=f"change {number}")
        with log.open("a") as file:
            outcome = "made" if machine.running == then else "given up"
            file.write(json.dumps({"sink": sink, "change": number, "outcome": outcome}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _wait_for_a_batch(machine: TunerMachine) -> None:
    before = len(machine.rule.live.observed)
    ends_s = time.monotonic() + _NEXT_BATCH_WITHIN_S
    while len(machine.rule.live.observed) <= before and time.monotonic() < ends_s:
        machine.rule.live.read()
        time.sleep(0.1)


def kill_within_a_batch(machine: TunerMachine, killer: Killer, point: str) -> None:
    """Watch a checkpoint for a batch that has begun and is not committed yet."""

    def watch() -> None:
        while True:
            with contextlib.suppress(HeadwayError, AttributeError):
                actuators: Any = machine.actuators
                if actuators.is_cut():
                    killer.at(point)
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()


def end_in_a_gap(machine: TunerMachine) -> None:
    """End its query between two batches, however long that takes: no batch is interrupted."""
    ends_s = time.monotonic() + _GAP_WITHIN_S
    while True:
        try:
            machine.actuators.stop(machine.running.trigger_s)
            return
        except NoGapError:
            if time.monotonic() > ends_s:
                raise


def read_topic(spark: Any, servers: str, out: Path) -> None:
    """Write the rows of the topic to files, as those of the other sinks."""
    topic = spark.read.format("kafka").option("subscribe", TOPIC)
    rows = topic.option("kafka.bootstrap.servers", servers).load()
    rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS value").write.mode("overwrite").json(
        str(out)
    )


def main() -> None:
    """Run until the changes are made, or the driver is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sinks", type=lambda text: text.split(","), default=list(SINKS))
    parser.add_argument(
        "--kinds", type=lambda text: text.split(","), default=["trigger", "limit", "partitions"]
    )
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--servers", help="of Kafka")
    parser.add_argument("--jars", type=lambda text: [*map(Path, text.split(","))], default=[])
    given = parser.parse_args()
    killer = Killer(given.kill, given.after)
    conf = {"spark.sql.shuffle.partitions": "2", **local_checkpoint_conf()}
    if given.master.startswith("local-cluster"):
        conf["spark.executor.memory"] = "600m"  # below that of a worker
    with embedded_session(
        app_name="numbered rows", master=given.master, jars=given.jars, driver_memory="1g",
        extra_conf=conf,
    ) as spark:  # fmt: skip
        killer.jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        machines = {
            one: machine_of(spark, one, given.folder, killer, given.servers) for one in given.sinks
        }
        for machine in machines.values():
            machine.begin()
        if given.kill is not None and given.kill.startswith("begun in "):
            kill_within_a_batch(machines[given.sinks[0]], killer, given.kill)
        change_again_and_again(machines, given, given.folder / "changes.jsonl")
        for machine in machines.values():
            machine.end(restore=False)
            end_in_a_gap(machine)
        if "kafka" in given.sinks:
            read_topic(spark, given.servers, given.folder / "kafka.out")
    (given.folder / "ended").write_text("")


if __name__ == "__main__":
    main()
