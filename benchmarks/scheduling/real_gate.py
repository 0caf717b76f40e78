"""Real queries under each policy, beside Spark by itself; results a line a run.

    make scheduling-real                # what is missing, up to 2 h 20 min; three times for all
    python benchmarks/run.py real_gate --list
    python benchmarks/run.py real_gate --cells spread-8-0.7 --policies fifo,promise --runs 1

Events of ads, as in the Yahoo benchmark: views of each campaign in windows of 5 s, their ends
spread by `startTime` or all on the epoch grid. Loads are shares of the rows that the queries of a
cell take together, measured of a backlog, anew on each machine, after each kind of query was
profiled alone. From these profiles comes the verdict of each cell, which is written down before its
first run on that machine. A part is a run of a cell: one warmed session runs all its ways in random
order. Windows still open at the end count as late. Parts that are whole in the folder of results
are not measured again, a part that was cut is, and none is begun that would not end within the
budget.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cores import cores_between, cpu_time
from real.busy import collector_s
from real.calibration import calibrated, session, together_ratio
from real.cells import CELLS, TARGETS, WAYS, WINDOW_S, Cell, Way, ways_of_run
from real.measured import is_starved, num_rows, outcome
from real.queries import Planned, planned_queries, start
from real.records import commit, last_measured, mean_of_ways_s
from real.verdicts import verdict_of
from result_lines import keep, lines_of, machine_of, this_machine

from headway.units import parse_duration_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUM_CORES = 2
RESULTS = Path(__file__).parent / "results"
_AROUND_A_RUN_S = 6.0
"""Queries are started and stopped."""
_NUM_DUMPS = 3
_SESSION_WARM_UPS = 3.0
"""Warm-ups in which a new session compiles what all cells run: its first way was a half slower."""


def options(parser: argparse.ArgumentParser) -> None:
    """What may be asked."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--cells", default=",".join(cell.name for cell in CELLS))
    parser.add_argument("--policies", default=",".join(way.name for way in WAYS), help="ways")
    parser.add_argument("--first-run", type=int, default=1, help="number of the first")
    parser.add_argument("--runs", type=int, default=4, help="number of the last")
    parser.add_argument("--windows", type=int, default=120, help="windows of a run, all queries")
    parser.add_argument("--warm-up", type=float, default=40.0, help="before a cell, seconds")
    parser.add_argument("--settle", type=float, default=20.0, help="before each run, seconds")
    parser.add_argument("--calibrate", type=float, default=20.0, help="six runs a kind, seconds")
    parser.add_argument("--budget", help="start nothing that would end later, e.g. '40m'")
    parser.add_argument("--list", action="store_true", help="say what is missing, and how long")
    parser.add_argument("--commit", action="store_true", help="commit results after each cell")
    parser.add_argument("--seed", type=int, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Lengths of what is measured [s], and when to stop."""

    results: Path
    num_windows: int
    warm_up_s: float
    settle_s: float
    stop_at_s: float

    def counted_s(self, cell: Cell) -> float:
        """Time of a run that counts [s]."""
        return WINDOW_S * self.num_windows / cell.num_windowed

    def part_s(self, cell: Cell, num_ways: int) -> float:
        """Time of a run of a cell, all ways in turn [s].

        >>> usual = Asked(results=Path(), num_windows=120, warm_up_s=40, settle_s=20, stop_at_s=0)
        >>> [round(usual.part_s(cell, 9) / 60) for cell in CELLS]
        [16, 16, 27, 16, 16, 27, 12]
        """
        run_s = self.settle_s + self.counted_s(cell) + _AROUND_A_RUN_S
        return self.warm_up_s + _AROUND_A_RUN_S + num_ways * run_s


def run(given: argparse.Namespace) -> None:
    """Calibrate, write the verdicts down, run what is missing, and append a line for each run."""
    budget_s = parse_duration_s(given.budget) if given.budget else float("inf")
    asked = Asked(
        results=given.results,
        num_windows=given.windows,
        warm_up_s=given.warm_up,
        settle_s=given.settle,
        stop_at_s=time.monotonic() + budget_s,
    )
    cells = [_cell(name) for name in given.cells.split(",")]
    if given.list:
        _list_missing(cells, given, asked)
        return
    work = Path(tempfile.mkdtemp(prefix="headway-real-gate-"))
    try:
        capacities = _calibration(cells, given, work)
        _write_verdicts(cells, capacities, given.results)
        with ExitStack() as open_session:
            spark: SparkSession | None = None
            for number in range(given.first_run - 1, given.runs):
                for cell in cells:
                    ways = _missing_ways(cell, number, given)
                    if not ways:
                        continue
                    ends_s = time.monotonic() + asked.part_s(cell, len(ways))
                    if ends_s > asked.stop_at_s:
                        print(f"{cell.name}, run {number}: not within {given.budget}", flush=True)
                        continue
                    if spark is None:
                        spark = open_session.enter_context(session(work / "spark", NUM_CORES))
                        longer = replace(asked, warm_up_s=_SESSION_WARM_UPS * asked.warm_up_s)
                        _warm_up(spark, work, cell, capacities[cell.name], longer)
                    _run_cell(spark, work, cell, number, ways, capacities[cell.name], asked)
                    if given.commit:
                        commit(given.results, f"Measured {cell.name}, run {number + 1}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _cell(name: str) -> Cell:
    for cell in CELLS:
        if cell.name == name:
            return cell
    raise SystemExit(f"no cell {name!r}; expected some of {', '.join(one.name for one in CELLS)}")


def _calibration(
    cells: list[Cell], given: argparse.Namespace, work: Path
) -> dict[str, dict[str, float]]:
    """By cell, rows per second that make a load of 1 of each kind on this machine.

    As found before, or now.
    """
    file = given.results / "calibration.jsonl"
    known = _calibrated(file)
    missing = sorted({kind for cell in cells for kind in cell.kinds} - set(known))
    if missing:
        print(f"calibrates {', '.join(missing)}", flush=True)
        found = calibrated(
            missing,
            work / "calibration",
            _profiles(given.results),
            seconds=given.calibrate,
            num_cores=NUM_CORES,
        )
        for kind, capacity_per_s in found.items():
            keep(file, {"kind": kind, "capacity_per_s": capacity_per_s, **_when()})
        known |= found
    alone = {kind: known[kind] for cell in cells for kind in cell.kinds}
    unknown = {cell.queries: cell for cell in cells if cell.queries not in known}
    if unknown:
        folder = work / "together"
        with session(folder, NUM_CORES) as spark:
            for queries, cell in unknown.items():
                ratio = together_ratio(
                    spark, cell, alone, folder / cell.name, seconds=given.calibrate
                )
                print(f"{queries}: {ratio:.2f} of what they take alone", flush=True)
                keep(file, {"queries": queries, "together_ratio": ratio, **_when()})
                known[queries] = ratio
    return {
        cell.name: {kind: alone[kind] * known[cell.queries] for kind in cell.kinds}
        for cell in cells
    }


def _calibrated(file: Path) -> dict[str, float]:
    """What is known of this machine: capacities of kinds, ratios of queries together."""
    mine = [line for line in lines_of(file) if machine_of(line) == this_machine()]
    return {
        line.get("kind") or line["queries"]: line.get("capacity_per_s") or line["together_ratio"]
        for line in mine
    }


def _profiles(results: Path) -> Path:
    """Folder of the profiles of this machine."""
    return results / "profiles" / this_machine()


def _write_verdicts(
    cells: list[Cell], capacities: dict[str, dict[str, float]], results: Path
) -> None:
    """Before the first run of a cell on this machine; what was written down stays."""
    file, machine = results / "verdicts.jsonl", this_machine()
    written = {line["cell"] for line in lines_of(file) if machine_of(line) == machine}
    for cell in cells:
        if cell.name not in written:
            found = verdict_of(cell, capacities[cell.name], _profiles(results), NUM_CORES)
            keep(file, {**found, "machine": machine})
            print(f"{cell.name}: {found['policy'] or 'not worth it'}", flush=True)


def _missing_ways(cell: Cell, number: int, given: argparse.Namespace) -> list[Way]:
    """All ways of a part, or none where all of them are there."""
    lines = last_measured(lines_of(given.results / "runs.jsonl"))
    done = {line["way"] for line in lines if (line["cell"], line["run"]) == (cell.name, number)}
    ways = ways_of_run(
        cell,
        number,
        given.policies.split(","),
        mean_of_ways_s(lines, cell.name, number),
        given.seed,
    )
    return [] if done.issuperset(way.name for way in ways) else ways


def _list_missing(cells: list[Cell], given: argparse.Namespace, asked: Asked) -> None:
    """Parts that are missing; how many ways are repeated depends on the runs before."""
    total_s = 0.0
    for number in range(given.first_run - 1, given.runs):
        for cell in cells:
            ways = _missing_ways(cell, number, given)
            part_s = asked.part_s(cell, len(ways)) if ways else 0.0
            total_s += part_s
            if ways:
                print(f"{cell.name}, run {number}: {len(ways)} ways, {part_s / 60.0:.0f} min")
    print(f"{total_s / 3600.0:.1f} h, and the calibration before the first run")


def _run_cell(
    spark: SparkSession,
    work: Path,
    cell: Cell,
    number: int,
    ways: list[Way],
    capacities: dict[str, float],
    asked: Asked,
) -> None:
    _warm_up(spark, work, cell, capacities, asked)
    for way in ways:
        line = _measured(spark, work, cell, way, capacities, asked)
        keep(asked.results / "runs.jsonl", {"cell": cell.name, "run": number, **line})
        print(f"{cell.name} {number} {way.name}: {_summary(line)}", flush=True)


def _warm_up(
    spark: SparkSession, work: Path, cell: Cell, capacities: dict[str, float], asked: Asked
) -> None:
    if asked.warm_up_s > 0.0:
        warm_up = replace(asked, settle_s=asked.warm_up_s, num_windows=0)
        _measured(spark, work, cell, WAYS[0], capacities, warm_up)


def _measured(
    spark: SparkSession,
    root: Path,
    cell: Cell,
    way: Way,
    capacities: dict[str, float],
    asked: Asked,
) -> dict[str, Any]:
    """One run of a cell under one way of scheduling it."""
    from headway.api.schedule import schedule
    from headway.runtime.gate.windows import windows_of_query

    folder = Path(tempfile.mkdtemp(dir=root))
    began = _when()
    with ExitStack() as ends:
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        planned = list(_planned(cell, way, capacities))
        queries = []
        for one in planned:
            queries.append(start(spark, one, folder))
            ends.callback(queries[-1].stop)
        grids = [windows_of_query(query) for query in queries]
        gate = None
        if way.policy is not None:
            gate = ends.enter_context(schedule(spark, way.policy))
            for one, query in zip(planned, queries, strict=True):
                gate.add(query, target=TARGETS[one.kind])
        time.sleep(asked.settle_s)
        from_s, load_then = time.time(), os.getloadavg()[0]
        used_before, collected_before_s = cpu_time(), collector_s(spark)
        time.sleep(asked.counted_s(cell))
        until_s, cores = time.time(), cores_between(used_before, cpu_time())
        collected_s = collector_s(spark) - collected_before_s
        progress = [query.recentProgress for query in queries]
        report = None if gate is None else asdict(gate.report())
        failed = [query.name for query in queries if query.exception() is not None]
        if asked.num_windows:
            # Diagnosis only: whatever it meets, the run counts.
            with suppress(Exception):
                _tell_starved(spark, planned, queries, progress, from_s)
    measured = []
    for one, grid, seen in zip(planned, grids, progress, strict=True):
        came = outcome(seen, grid, from_s, until_s)
        measured.append(
            {
                "name": one.name,
                "windows_s": [round(float(late_s), 4) for late_s in came.window_latency_s],
                "num_open": came.num_open,
                "num_batches": came.num_batches,
                "row_mean_s": came.row_latency_mean_s if came.num_batches else None,
                "row_p99_s": came.row_latency_quantile_s(0.99) if came.num_batches else None,
                "rows": num_rows(seen, from_s),
                "offered_rows": one.rate_per_s * (until_s - from_s),
            }
        )
    return {
        "way": way.name,
        **began,
        "counted_s": until_s - from_s,
        "load_average": load_then,
        "cores_busy": cores.busy,
        "cores_of_others": cores.of_others,
        "cores_stolen": cores.stolen,
        "collector_s": collected_s,
        "failed": failed,
        "queries": measured,
        "report": None if report is None else _brief(report),
    }


def _tell_starved(
    spark: SparkSession,
    planned: list[Planned],
    queries: list[Any],
    progress: list[Any],
    from_s: float,
) -> None:
    """Spark may starve a query, a gate must not; what stages and threads do tells why."""
    starved = [
        query.name
        for one, query, seen in zip(planned, queries, progress, strict=True)
        if is_starved(num_rows(seen, from_s), one.rate_per_s * (time.time() - from_s))
    ]
    if starved:
        jvm: Any = spark._jvm
        pid = jvm.java.lang.ProcessHandle.current().pid()
        handle, name = tempfile.mkstemp(prefix="headway-starved-", suffix=".txt")
        with os.fdopen(handle, "w") as out:
            for query in queries:
                print(query.name, query.status, file=out)
            tracker = spark.sparkContext.statusTracker()
            for job in tracker.getActiveJobsIds():
                print(job, tracker.getJobInfo(job), file=out)
            store = spark.sparkContext._jsc.sc().statusStore()
            for stage in tracker.getActiveStageIds():
                pool = store.lastStageAttempt(stage).schedulingPool()
                print(stage, pool, tracker.getStageInfo(stage), file=out)
            waiting = spark.sparkContext._jsc.sc().taskScheduler().rootPool()
            in_order = waiting.getSortedTaskSetQueue()
            for place in range(in_order.size()):
                one = in_order.apply(place)
                print(one.parent().name(), one.name(), one.priority(), file=out, end=" ")
                print(one.runningTasks(), one.isZombie(), file=out)
            # The scheduler logs what it ignores; the session's log goes with the session.
            print(Path(f"/proc/{pid}/fd/2").read_text(errors="replace"), file=out)
            out.flush()
            for _ in range(_NUM_DUMPS):
                subprocess.run(["jstack", str(pid)], stdout=out, check=False)
                time.sleep(1.0)
        print(f"few rows of {', '.join(starved)}: threads in {name}", flush=True)


def _planned(cell: Cell, way: Way, capacities: dict[str, float]) -> Iterator[Planned]:
    for number, one in enumerate(planned_queries(cell, capacities, trigger_s=way.trigger_s)):
        yield replace(one, pool=f"pool{number}") if way.in_pools else one


def _brief(report: dict[str, Any]) -> dict[str, Any]:
    """What the gate says of itself, without its queries but for its errors."""
    predicted = [one["predicted_duration_mean_s"] for one in report["queries"]]
    observed = [one["observed_duration_mean_s"] for one in report["queries"]]
    short = {name: value for name, value in report.items() if name != "queries"}
    return {**short, "predicted_duration_s": predicted, "observed_duration_s": observed}


def _summary(line: dict[str, Any]) -> str:
    found = [one for query in line["queries"] for one in query["windows_s"]]
    num_open = sum(query["num_open"] for query in line["queries"])
    mean_s = sum(found) / max(len(found), 1)
    policy = "" if line["report"] is None else f", {line['report']['policy']}"
    return f"{len(found)} windows, mean {mean_s:.2f} s, {num_open} open{policy}"


def _when() -> dict[str, Any]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": at, "process": os.getpid(), "machine": this_machine()}
