"""Real load steps of 20-60-20% of capacity: what the tuner predicted, and what was measured.

    python benchmarks/run.py tuning_real --measure --part trigger --minutes 110
    python benchmarks/run.py tuning_real --list
    python benchmarks/run.py tuning_real --output docs/tuning-real.md

Runs of the newest rule, by the git tree of headway/tuner/rule, are judged; those of rules before
it are named. The first line of a part on a machine has its profile, capacity and target, fixed
before the first judged run there. Each finished run is a line, so an interrupted measurement
continues after it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_progress import batches_of
from result_lines import keep, lines_of, machine_of, rule_tree, this_machine
from tuning_page import page_of
from tuning_steps import (
    LEARNED,
    MODES,
    PARTS,
    REPEATS,
    TRIGGER_S,
    Line,
    Part,
    Schedule,
    finished_runs_of,
    fixed_question,
    predicted_decision_s,
    stepped,
    worked,
)

import headway
from headway.formats.profile_file import dump_profile, load_profile
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import clock_source_jar
from headway.runtime.word_count import clock_lines

RESULTS = Path(__file__).parent / "results" / "tuning-real.jsonl"
_STRETCHES_S, _FITTED_S = (110.0, 170.0, 45.0), 60.0
_SHORT_STRETCHES_S, _SHORT_FITTED_S = (75.0, 60.0, 10.0), 15.0
_PROBE_S = 12.0


def options(parser: argparse.ArgumentParser) -> None:
    """Where results are, and what to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", action="store_true", help="On a quiet machine.")
    parser.add_argument("--list", action="store_true", help="List the missing runs and stop.")
    parser.add_argument("--part", choices=[*PARTS], help="Both by default.")
    parser.add_argument("--mode", choices=MODES, help="All three by default.")
    parser.add_argument("--minutes", type=float, default=110.0, help="Start no longer run.")
    parser.add_argument("--short", action="store_true", help="One run in act, as a trial.")


def text(given: argparse.Namespace) -> str | None:
    """The page, if nothing is to be measured."""
    parts = [PARTS[given.part]] if given.part else [*PARTS.values()]
    stretches_s = _SHORT_STRETCHES_S if given.short else _STRETCHES_S
    if given.list:
        for part in parts:
            missing = _missing(part, given)
            minutes = len(missing) * 1.05 * sum(stretches_s) / 60.0
            print(f"{part.name}: {len(missing)} runs, {minutes:.0f} min", *missing, sep="\n  ")
        return None
    if given.measure:
        ends_s = time.monotonic() + 60.0 * given.minutes
        for part in parts:
            _measure(part, given, stretches_s, ends_s)
        return None
    lines = lines_of(given.results)
    return page_of(lines, None if given.output is None else given.output.parent)


def runs_of(part: Part, repeats: int) -> list[tuple[int, str]]:
    """Repeat and mode, the modes of each repeat in random order."""
    found = []
    for repeat in range(1, repeats + 1):
        order = random.Random(f"{part.name}-{repeat}").sample(MODES, len(MODES))
        found += [(repeat, mode) for mode in order]
    return found


def _missing(part: Part, given: argparse.Namespace) -> list[tuple[int, str]]:
    finished = finished_runs_of(part, lines_of(given.results), rule_tree()[:8])
    done = {(run["repeat"], run["mode"]) for run in finished}
    runs = [(1, "act")] if given.short else runs_of(part, REPEATS)
    return [run for run in runs if run not in done and given.mode in (None, run[1])]


def _measure(
    part: Part, given: argparse.Namespace, stretches_s: Sequence[float], ends_s: float
) -> None:
    """Measure the missing runs of a part, in one warm session, as far as there is time."""
    missing = _missing(part, given)
    longest_s = 1.1 * sum(stretches_s) + 10.0
    if not missing or time.monotonic() + longest_s > ends_s:
        return
    with tempfile.TemporaryDirectory(prefix="headway-tuning-") as name:
        folder = Path(name)
        fixed = [
            one
            for one in lines_of(given.results)
            if (one["part"], machine_of(one)) == (part.name, this_machine()) and "mode" not in one
        ]
        if not fixed:
            fitted_s = _SHORT_FITTED_S if given.short else _FITTED_S
            fixed = [_fixed(part, folder, fitted_s)]
            keep(given.results, fixed[0])
        question = fixed[0]
        path = folder / "fixed.profile.yaml"
        path.write_text(question["profile"], encoding="utf-8")
        profile = load_profile(path)
        with _session(part) as spark:
            _run_for(spark, part, folder / "warm-up", 0.4 * question["capacity_per_s"], 30.0)
            for repeat, mode in missing:
                if time.monotonic() + longest_s > ends_s:
                    print("no time for more; the rest is still missing", file=sys.stderr)
                    return
                schedule = Schedule.of(question["capacity_per_s"], stretches_s, seed=repeat)
                target = question["target"]
                known_s = _known_s(part, lines_of(given.results))
                decision_s = predicted_decision_s(part, profile, target, schedule, known_s)
                print(f"{part.name} {repeat} {mode}", file=sys.stderr, flush=True)
                run = stepped(spark, part, profile, target, schedule, mode, folder, known_s)
                keep(
                    given.results,
                    {
                        "part": part.name, "repeat": repeat, "mode": mode,
                        "machine": this_machine(), "target": target, "rule": rule_tree()[:8],
                        "rates_per_s": schedule.rates_per_s, "from_s": schedule.from_s,
                        "ends_s": schedule.ends_s, "predicted_decision_s": decision_s, **run,
                    },
                )  # fmt: skip


def _fixed(part: Part, folder: Path, fitted_s: float) -> Line:
    """Profile, capacity and target, from separate runs in a separate session."""
    with _session(part, event_log=folder / "log") as spark:
        rough_per_s = _rough_capacity_per_s(spark, part, folder)
        names = []
        # A tuner begins by a plan for the profiled rate; the rough capacity may be 15% too high.
        for share in (0.2, 0.5):
            names.append(f"fitted-{share:.0%}")
            _run_for(spark, part, folder / names[-1], share * rough_per_s, fitted_s)
    profile = headway.profile(folder / "log", queries=names, trigger=TRIGGER_S, engine="in-process")
    capacity_per_s, target = fixed_question(part, profile)
    return {
        "part": part.name, "machine": this_machine(), "capacity_per_s": round(capacity_per_s, 3),
        "target": target, "profile": dump_profile(profile),
    }  # fmt: skip


def _session(part: Part, event_log: Path | None = None) -> Any:
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        **local_checkpoint_conf(),
    }
    if part.waits_ms:
        conf["spark.executor.memory"] = "700m"  # below that of a worker
    return embedded_session(
        app_name="headway tuned steps", master=part.master, event_log_dir=event_log,
        jars=[clock_source_jar()], driver_memory="1g", extra_conf=conf,
    )  # fmt: skip


def _run_for(
    spark: Any, part: Part, checkpoint: Path, rate_per_s: float, run_s: float,
    *, trigger_s: float = TRIGGER_S, max_rows: int | None = None,
) -> list[tuple[float, float, int]]:  # fmt: skip
    """Batches of a query at one rate; with ``max_rows``, from a backlog that does not end."""
    lines = clock_lines(
        spark, rate_per_s=rate_per_s, num_source_partitions=part.source_partitions,
        start_epoch_s=None if max_rows is None else time.time() - 3600.0,
        max_rows_per_trigger=max_rows,
    )  # fmt: skip
    query = (
        worked(lines, part)
        .writeStream.format("noop")
        .outputMode("update")
        .queryName(checkpoint.name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{trigger_s:g} seconds")
        .start()
    )
    try:
        query.awaitTermination(round(run_s))
        return batches_of(list(query.recentProgress))
    finally:
        query.stop()


def _rough_capacity_per_s(spark: Any, part: Part, folder: Path) -> float:
    """From the time that more rows add to a batch of a backlog; the profile gives the real one."""
    took_s = []
    for rows in reversed(part.probed_rows):
        batches = _run_for(
            spark, part, folder / f"probe-{rows}", 1e6, _PROBE_S, trigger_s=0.0, max_rows=rows
        )
        took_s.append(statistics.median(one[1] for one in batches[len(batches) // 2 :]))
    few, many = part.probed_rows
    return (many - few) / max(took_s[0] - took_s[1], 1e-3)


def _known_s(part: Part, lines: Sequence[Line]) -> list[float]:
    """What a tuner on this machine knows of its changes from the runs before [s]."""
    runs = [one for one in finished_runs_of(part, lines) if machine_of(one) == this_machine()]
    acted = [one[LEARNED[part.name]] for one in runs if one["mode"] == "act"]
    return [*acted[-1]] if acted else []
