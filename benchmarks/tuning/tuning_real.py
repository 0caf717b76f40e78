"""Real load steps of 20-60-20% of capacity: what the tuner predicted, and what was measured.

    python benchmarks/run.py tuning_real --measure --part trigger --minutes 110
    python benchmarks/run.py tuning_real --list
    python benchmarks/run.py tuning_real --output docs/tuning-real.md

The first line of a part on a machine has its profile, capacity and target, fixed before the first
judged run there. Each finished run is a line, so an interrupted measurement continues after it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pages import headed, on_days
from query_progress import batches_of
from result_lines import keep, lines_of, machine_of, this_machine
from tuning_figures import (
    Figure,
    changes_of,
    figures_of,
    floor_ratio_of,
    late_share,
    off_ratio_of,
)
from tuning_pictures import draw
from tuning_steps import (
    MODES,
    PARTS,
    TRIGGER_S,
    Line,
    Part,
    Schedule,
    fixed_question,
    predicted_decision_s,
    stepped,
    worked,
)

import headway
from headway.formats.profile_file import dump_profile, load_profile
from headway.profiler.spark.session import embedded_session, local_checkpoint_conf
from headway.runtime.clock_source import build_clock_source_jar
from headway.runtime.word_count import clock_lines
from headway.units import counted

RESULTS = Path(__file__).parent / "results" / "tuning-real.jsonl"
WITHIN_RATIO = 0.3
_STRETCHES_S, _FITTED_S, _REPEATS = (110.0, 170.0, 45.0), 60.0, 5
_SHORT_STRETCHES_S, _SHORT_FITTED_S = (75.0, 60.0, 10.0), 15.0
_PROBE_S = 12.0
_LEARNED = {"trigger": "pauses_s", "executors": "provisioning_s"}
"""What a tuner knows from earlier runs; the runs from before that are not judged."""
_FORMED = {
    "trigger": "(A18) in theory.md was made: it corrects what a restart is expected to show",
    "executors": "(A19) in theory.md was made: it adds the backlog to what a change is expected to "
    "show, and the tuner read old batches again after it had added executors",
}
_PICTURE = "img/tuning-real.svg"


def options(parser: argparse.ArgumentParser) -> None:
    """Where results are, and what to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", action="store_true", help="On a quiet machine.")
    parser.add_argument("--list", action="store_true", help="List the missing runs and stop.")
    parser.add_argument("--part", choices=[*PARTS], help="Both by default.")
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
    figures = {part.name: _figures_of([*_runs_of(part, lines)]) for part in PARTS.values()}
    if given.output is not None and any(one.off_ratio is not None for one in _all(figures)):
        draw(figures, given.output.parent / _PICTURE, WITHIN_RATIO)
    return "\n".join(_page(lines, figures)) + "\n"


def runs_of(part: Part, repeats: int) -> list[tuple[int, str]]:
    """Repeat and mode, the modes of each repeat in random order."""
    found = []
    for repeat in range(1, repeats + 1):
        order = random.Random(f"{part.name}-{repeat}").sample(MODES, len(MODES))
        found += [(repeat, mode) for mode in order]
    return found


def _missing(part: Part, given: argparse.Namespace) -> list[tuple[int, str]]:
    done = {(one["repeat"], one["mode"]) for one in _runs_of(part, lines_of(given.results))}
    runs = [(1, "act")] if given.short else runs_of(part, _REPEATS)
    return [one for one in runs if one not in done]


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
        with _session(part, folder) as spark:
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
                        "machine": this_machine(), "target": target,
                        "rates_per_s": schedule.rates_per_s, "from_s": schedule.from_s,
                        "ends_s": schedule.ends_s, "predicted_decision_s": decision_s, **run,
                    },
                )  # fmt: skip


def _fixed(part: Part, folder: Path, fitted_s: float) -> Line:
    """Profile, capacity and target, from separate runs in a separate session."""
    with _session(part, folder, event_log=folder / "log") as spark:
        rough_per_s = _rough_capacity_per_s(spark, part, folder)
        names = []
        for share in (0.2, 0.6):
            names.append(f"fitted-{share:.0%}")
            _run_for(spark, part, folder / names[-1], share * rough_per_s, fitted_s)
    profile = headway.profile(folder / "log", queries=names, trigger=TRIGGER_S, engine="in-process")
    capacity_per_s, target = fixed_question(part, profile)
    return {
        "part": part.name, "machine": this_machine(), "capacity_per_s": round(capacity_per_s, 3),
        "target": target, "profile": dump_profile(profile),
    }  # fmt: skip


def _session(part: Part, folder: Path, event_log: Path | None = None) -> Any:
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        **local_checkpoint_conf(),
    }
    if part.waits_ms:
        conf["spark.executor.memory"] = "700m"  # below that of a worker
    return embedded_session(
        app_name="headway tuned steps", master=part.master, event_log_dir=event_log,
        jars=[build_clock_source_jar(folder)], driver_memory="1g", extra_conf=conf,
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


def _page(lines: Sequence[Line], figures: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    yield "# Steps of load for real\n"
    yield (
        "Made by `make tuning-real-page` from `benchmarks/tuning/results/tuning-real.jsonl`, which "
        "`make tuning-real` measures.\n"
    )
    runs = [one for one in lines if "mode" in one]
    if not runs:
        yield "Not measured yet: run `make tuning-real` on a quiet machine, twice for 95 minutes."
        return
    yield (
        "The load of one query steps from 20 to 60 and back to 20% of its capacity. Capacity and "
        "target come from a profile that was made before the first of these runs. Rows arrive "
        "whether or not the query reads them. Part `trigger`: a word count on `local[2]`; trigger "
        "interval and rate limit are changed by a restart. Part `executors`: tasks that wait, on a "
        "local cluster; executors are added while it runs. Each part has three modes, in random "
        f"order. {_when(runs)}\n"
    )
    if any(one.off_ratio is not None for one in _all(figures)):
        yield f"![Each figure, measured over predicted, of every run in act]({_PICTURE})\n"
    for part in PARTS.values():
        of = [*_runs_of(part, lines)]
        if of:
            yield from _of_part(part, of)
        else:
            yield f"## Part {part.name}\n\nNot measured yet.\n"
    yield from _left_out(lines)


def _when(runs: Sequence[Line]) -> str:
    """On which days the runs were made, and on how many machines."""
    days = (time.strftime("%Y-%m-%d", time.gmtime(one["started_s"])) for one in runs)
    machines = counted(len({machine_of(one) for one in runs}), "machine")
    return f"Measured {on_days(days)} on {machines} with 2 cores."


def _runs_of(part: Part, lines: Sequence[Line]) -> Iterator[Line]:
    """Its finished runs; the first line of a part is not a run."""
    return (one for one in _all_runs_of(part, lines) if not _formed(one) and "void" not in one)


def _all_runs_of(part: Part, lines: Sequence[Line]) -> Iterator[Line]:
    return (one for one in lines if one["part"] == part.name and "mode" in one)


def _formed(run: Line) -> bool:
    """Whether what changes are expected to show was corrected after it, and by it."""
    return "void" not in run and run["mode"] == "act" and _LEARNED[run["part"]] not in run


def _known_s(part: Part, lines: Sequence[Line]) -> list[float]:
    """What a tuner on this machine knows of its changes from the runs before [s]."""
    runs = [one for one in _runs_of(part, lines) if machine_of(one) == this_machine()]
    acted = [one[_LEARNED[part.name]] for one in runs if one["mode"] == "act"]
    return [*acted[-1]] if acted else []


def _figures_of(runs: Sequence[Line]) -> list[Figure]:
    return [figure for run in runs if run["mode"] == "act" for figure in figures_of(run)]


def _all(figures: Mapping[str, Sequence[Figure]]) -> Iterator[Figure]:
    return (one for of in figures.values() for one in of)


def _of_part(part: Part, runs: Sequence[Line]) -> Iterator[str]:
    acted = [one for one in runs if one["mode"] == "act"]
    targets = list(dict.fromkeys(one["target"] for one in runs))
    yield f"## Part {part.name}: {' or '.join(targets)}\n"
    if len(targets) > 1:
        yield "Each machine has its own profile, and with it its own capacity and target.\n"
    planned = len(MODES) * _REPEATS
    if len(runs) < planned:
        rest = planned - len(runs)
        yield f"{len(runs)} of {planned} runs; the other {rest} are not measured yet.\n"
    if acted:
        yield from _acted(acted)
    else:
        yield "No run in act is measured yet, so predictions cannot be compared with anything.\n"
    yield from _modes(runs)


def _acted(acted: Sequence[Line]) -> Iterator[str]:
    """Predicted and measured figures of each run in act, and both over the runs."""
    found = _figures_of(acted)
    yield from headed("| repeat | change | figure | predicted | measured | off by |")
    for run in acted:
        changes = changes_of(run)
        given_up = [one["change"] for one in run["audit"] if one["event"] == "failed"]
        said = "none, tried and given up" if given_up else "none"
        if changes:
            said = "; ".join(f"{one['kind']}, {one['reason']}" for one in changes)
        for one in figures_of(run):
            yield f"| {run['repeat']} | {said} | {one.name} | {_shown(one)} |"
    yield ""
    yield (
        "Off by, over the runs: the median distance of measurements from their predictions, as a "
        "share of the prediction. The floor is the same median with the mean of the other runs as "
        "the prediction: how much runs of one setting differ from each other. It needs three "
        "runs.\n"
    )
    yield from headed("| figure | runs | not measured | as predicted | off by | floor | expected |")
    for name in dict.fromkeys(one.name for one in found):
        of = [one for one in found if one.name == name]
        kept = [one for one in of if one.is_met(WITHIN_RATIO)]
        none = sum(one.measured is None for one in of)
        verdict = "met" if len(kept) == len(of) else "missed"
        off, floor = _ratio(off_ratio_of(of)), _ratio(floor_ratio_of(of))
        yield f"| {name} | {len(of)} | {none} | {len(kept)} | {off} | {floor} | {verdict} |"
    yield (
        "\nAs predicted means within 30%; for `kept again` it means no later than predicted, since "
        "that is a bound. If there is more than one change, the decision is the first; the other "
        "figures are of the last, which replaces what was expected of the one before.\n"
    )


def _modes(runs: Sequence[Line]) -> Iterator[str]:
    yield from headed("| mode | runs | changes | late rows at 20% | at 60% | at 20% again |")
    for mode in MODES:
        of_mode = [one for one in runs if one["mode"] == mode]
        if of_mode:
            shares = [
                f"{statistics.median(late_share(one, at) for one in of_mode):.1%}"
                for at in range(3)
            ]
            changes = sum(len(changes_of(one)) for one in of_mode)
            yield f"| {mode} | {len(of_mode)} | {changes} | {' | '.join(shares)} |"
    yield ""


def _shown(one: Figure) -> str:
    if one.predicted is None or one.measured is None:
        return f"{_seconds(one.predicted)} | {_seconds(one.measured)} | -"
    off = "-" if one.off_ratio is None else f"{one.off_ratio:+.0%}"
    return f"{_seconds(one.predicted)} | {_seconds(one.measured)} | {off}"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _left_out(lines: Sequence[Line]) -> Iterator[str]:
    yield "## What is left out\n"
    for part in PARTS.values():
        runs = [*_runs_of(part, lines)]
        acted = [one for one in runs if one["mode"] == "act"]
        unchanged = sum(not changes_of(one) for one in acted)
        planned = len(MODES) * _REPEATS
        said = f"- Part `{part.name}`: {planned - len(runs)} of {planned} runs are not measured"
        if acted:
            said += f"; {unchanged} of {len(acted)} in act made no change"
        yield f"{said}{', so only the decision is judged there' if unchanged else ''}."
        if formed := sum(map(_formed, _all_runs_of(part, lines))):
            yield (
                f"- Part `{part.name}`: {counted(formed, 'earlier run')} in act, from which "
                f"{_FORMED[part.name]}. That cannot be judged by the same run."
            )
        void = [one["void"] for one in _all_runs_of(part, lines) if "void" in one]
        for why in dict.fromkeys(void):
            yield f"- Part `{part.name}`: {counted(void.count(why), 'void run')}: {why}."
    yield (
        "\n**The step down to fewer executors is not measured.** After any change the rule keeps "
        "the number of executors for at least half an hour, and a run takes less than six minutes: "
        "when the load falls back to 20%, the tuner does nothing. What it would do later is only "
        "simulated, on [another page](tuning-simulated.md). The executors that a run added are "
        "removed at its end by `stop(restore=True)`; that is not a decision of the rule. Tasks "
        "that wait show what more executors can carry, not what work on two cores gains. Pauses "
        "and delays are those of one machine."
    )
