"""Numbered rows through a thousand changes and kills: none lost, none doubled if idempotent.

    make exactness

Each cell of the matrix runs in a folder of its own and ends in a line of the results; a cell that
has a line is not run again, so the matrix may be interrupted at any time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from result_lines import keep, lines_of

from headway.errors import HeadwayError

HERE = Path(__file__).parent
DRIVER = HERE / "rows_driver.py"
RESULTS = HERE / "results" / "exactness.jsonl"
POINTS = (
    *("state written", "before stop", "stopped", "before start", "started"),
    *("offsets logged", "rows written", "begun in file sink"),
)
"""Arrows of the state machine, then points within a batch."""
IN_KAFKA = "begun in Kafka's sink"
ALL_SINKS = ("file", "idempotent", "plain", "stateful")
MAY_DOUBLE = ("plain", "kafka")
_PATIENCE_S = 600.0
_CHANGES_PER_CELL = 40
_TIMES_OF = {"offsets logged": 4, "rows written": 4, "begun in file sink": 40, IN_KAFKA: 10}


@dataclass(frozen=True)
class Cell:
    """Runs of the driver, one after the other, each killed at a point except the last."""

    point: str | None
    seed: int
    kinds: tuple[str, ...] = ("trigger", "limit", "partitions")
    sinks: tuple[str, ...] = ALL_SINKS
    changes: int = _CHANGES_PER_CELL
    kills: int = 3
    master: str = "local[2]"

    @property
    def name(self) -> str:
        """Its name in the results."""
        kinds, sinks = "+".join(self.kinds), "+".join(self.sinks)
        return f"{self.point or 'no kill'}/{kinds}/{sinks}/{self.master}/{self.changes}/{self.seed}"


def cells() -> Iterator[Cell]:
    """The matrix: every kind of change at every point, a thousand changes in all."""
    for point in (None, *POINTS):
        for seed in (1, 2):
            yield Cell(point=point, seed=seed)
    executors = "local-cluster[2,1,900]"
    for point in (None, "state written", "before executors", "executors asked for"):
        for seed in (1, 2):
            yield Cell(point=point, seed=seed, kinds=("executors",), master=executors, kills=2)
    for point in (None, "stopped", IN_KAFKA):
        for seed in (1, 2):
            yield Cell(point=point, seed=seed, sinks=("kafka",))


def run_cell(cell: Cell, folder: Path) -> dict[str, object]:
    """Run one cell in a folder; return what it found."""
    num_killed = 0
    with _broker_of(cell, folder) as more:
        for turn in range(cell.kills + 1):
            is_last = turn == cell.kills or cell.point is None
            killed = _drive(cell, folder, turn, more, is_last=is_last)
            num_killed += killed
            if is_last:
                break
    changes = [json.loads(line) for line in _lines(folder / "changes.jsonl")]
    return {
        "cell": cell.name,
        **asdict(cell),
        "num_changes": sum(one["outcome"] == "made" for one in changes),
        "num_given_up": sum(one["outcome"] != "made" for one in changes),
        "num_killed": num_killed,
        "rows": {sink: counted_rows(folder, sink) for sink in cell.sinks},
    }


@contextmanager
def _broker_of(cell: Cell, folder: Path) -> Iterator[list[str]]:
    """A broker that outlives the drivers, if the cell needs one; what its drivers need to know."""
    if "kafka" not in cell.sinks:
        yield []
        return
    from kafka_broker.broker import running_lane
    from kafka_broker.jars import connector_jars
    from rows_driver import TOPIC

    jars = ",".join(map(str, connector_jars()))
    with running_lane(folder / "broker") as lane:
        lane.make_topic(TOPIC, 2)
        yield ["--servers", lane.servers, "--jars", jars]


def _drive(cell: Cell, folder: Path, turn: int, more: Sequence[str] = (), *, is_last: bool) -> bool:
    """Run the driver; return whether it was killed. The last run makes the remaining changes."""
    share = max(cell.changes // (cell.kills + 1), 1)
    if is_last:
        share = max(cell.changes - len(_lines(folder / "changes.jsonl")), 1)
    command = [sys.executable, str(DRIVER), str(folder), "--sinks", ",".join(cell.sinks)]
    command += ["--kinds", ",".join(cell.kinds), "--changes", str(share)]
    command += ["--seed", str(100 * cell.seed + turn), "--master", cell.master]
    command += more
    if not is_last and cell.point is not None:
        # Batches are more frequent than changes, and looks at a checkpoint than batches.
        after = _TIMES_OF.get(cell.point, 1) * share - 1
        command += ["--kill", cell.point, "--after", str(after)]
    with (folder / f"driver-{turn}.log").open("wb") as output:
        driver = subprocess.Popen(
            command, cwd=HERE.parents[1], stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = driver.wait(_PATIENCE_S)
        except BaseException:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            raise
    was_killed = code == -signal.SIGKILL
    if code != 0 and not was_killed:
        text = (folder / f"driver-{turn}.log").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{cell.name}: the driver ended with {code}\n{text}")
    return was_killed


def counted_rows(folder: Path, sink: str) -> dict[str, int]:
    """Rows of a sink: how many numbers are missing below the highest, how many occur twice."""
    if sink == "stateful":
        return _counted_state(folder)
    numbers: Counter[int] = Counter(
        json.loads(line)["value"] for file in _data_files(folder, sink) for line in _lines(file)
    )
    highest = max(numbers, default=-1)
    return {
        "rows": highest + 1,
        "lost": highest + 1 - len(numbers),
        "doubled": sum(numbers.values()) - len(numbers),
    }


def _counted_state(folder: Path) -> dict[str, int]:
    """Counts of keys: the newest of each must add up to the rows that were read."""
    newest: dict[int, tuple[int, int]] = {}
    for file in _data_files(folder, "stateful"):
        batch = int(file.parent.name.partition("=")[2])
        for line in _lines(file):
            row = json.loads(line)
            newest[row["key"]] = max(newest.get(row["key"], (-1, 0)), (batch, row["count"]))
    commits = folder / "stateful.checkpoint" / "commits"
    last = max(int(one.name) for one in commits.iterdir() if one.name.isdecimal())
    read = _rows_read(folder / "stateful.checkpoint" / "offsets" / str(last))
    total = sum(count for _, count in newest.values())
    return {"rows": read, "lost": max(read - total, 0), "doubled": max(total - read, 0)}


def _rows_read(offsets: Path) -> int:
    return int(json.loads(offsets.read_text().splitlines()[-1])["offset"])


def _data_files(folder: Path, sink: str) -> Iterator[Path]:
    """Files with rows: of the file sink those that its log names, as Spark reads them."""
    out = folder / f"{sink}.out"
    if sink != "file":
        yield from sorted(out.rglob("part-*.json"))
        return
    named: dict[str, None] = {}
    logs = sorted(
        (out / "_spark_metadata").glob("[0-9]*"),
        key=lambda one: (int(one.name.partition(".")[0]), one.name),
    )
    for log in logs:
        for line in _lines(log)[1:]:
            named[json.loads(line)["path"].rpartition("/")[2]] = None
    yield from (out / name for name in named)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def faults_of(found: dict[str, object]) -> list[str]:
    """What must not be: rows lost anywhere, or doubled by a sink that is idempotent."""
    rows = found["rows"]
    assert isinstance(rows, dict)
    faults = []
    for sink, counted in rows.items():
        if counted["lost"]:
            faults.append(f"{found['cell']}: {sink} lost {counted['lost']} of {counted['rows']}")
        if counted["doubled"] and sink not in MAY_DOUBLE:
            faults.append(f"{found['cell']}: {sink} doubled {counted['doubled']}")
        if not counted["rows"]:
            faults.append(f"{found['cell']}: {sink} has no rows at all")
    return faults


def options(parser: argparse.ArgumentParser) -> None:
    """Where results are kept, and how many cells are run."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--most", type=int, help="Maximum number of cells to run.")
    parser.add_argument("--minutes", type=float, default=math.inf, help="Begin no cell after that.")
    parser.add_argument("--changes", type=int, help="Changes of each cell, for a trial.")


def run(given: argparse.Namespace) -> None:
    """Run the cells that have no result yet; end with an error if a row was lost or doubled."""
    done = {line["cell"]: line for line in lines_of(given.results)}
    every = [replace(one, changes=given.changes or one.changes) for one in cells()]
    todo: Sequence[Cell] = [one for one in every if one.name not in done][: given.most]
    faults: list[str] = []
    ends_s = time.monotonic() + 60.0 * given.minutes
    for number, cell in enumerate(todo, 1):
        if time.monotonic() > ends_s:
            break
        print(f"[{number}/{len(todo)}] {cell.name}", flush=True)
        began_s = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(
                prefix="headway-rows-", ignore_cleanup_errors=True
            ) as folder:
                found = run_cell(cell, Path(folder))
        except (RuntimeError, HeadwayError, subprocess.TimeoutExpired) as error:
            # It is run again next time; the others continue.
            faults.append(str(error))
            print(f"  not finished: {error}", flush=True)
            continue
        found["took_s"] = round(time.monotonic() - began_s, 1)
        keep(given.results, found)
        done[cell.name] = found
        print(f"  {found['num_changes']} changes, {found['took_s']} s: {found['rows']}", flush=True)
    total = sum(one["num_changes"] for one in done.values())
    faults += [fault for one in done.values() for fault in faults_of(one)]
    print(f"{total} changes, {sum(one['num_killed'] for one in done.values())} kills")
    print(f"{sum(cell.name not in done for cell in every)} of {len(every)} cells are left")
    print("\n".join(faults) or "no row lost, none doubled by an idempotent sink")
    if faults:
        sys.exit(1)
