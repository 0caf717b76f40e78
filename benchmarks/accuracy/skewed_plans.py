"""Real runs of plans for jobs with heavy keys: p99 predicted from profile and keys, and measured.

    python benchmarks/run.py skewed_plans --measure          # resumes if it was interrupted
    python benchmarks/run.py skewed_plans --output docs/skewed-plans.md

Each finished profile or run is a line of the results and is not run again when it resumes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from statistics import median

import numpy as np
from pages import headed, save_svg, svg_pyplot
from result_lines import lines_of
from skewed_jobs import BY_KEY, PLACED
from skewed_runs import CORES, WAYS, Amount, Line, measure, split_digest

from headway.errors import HeadwayError
from headway.units import format_duration, format_rate

RESULTS = Path(__file__).parent / "results" / "skewed-plans.jsonl"
GOAL_RATIO = 0.06
_PICTURE = "img/skewed-plans.svg"


def options(parser: argparse.ArgumentParser) -> None:
    """The results file, and whether to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", action="store_true", help="20 minutes on a quiet machine")
    parser.add_argument("--short", action="store_true", help="the smallest setting, as a trial")


def text(given: argparse.Namespace) -> str | None:
    """The page."""
    if given.measure:
        measure(given.results, Amount.short() if given.short else Amount.of_split())
        return None
    lines = lines_of(given.results)
    others = sorted({line["split"] for line in lines} - {split_digest()})
    if others:
        raise HeadwayError(
            f"{given.results}: of split {', '.join(others)}, expected {split_digest()}; measure "
            "into an empty file"
        )
    runs = [line for line in lines if "run" in line and line["truth"] is not None]
    if runs and given.output is not None:
        _draw(runs, given.output.parent / _PICTURE)
    return "\n".join(_page(runs)) + "\n"


def _page(runs: Sequence[Line]) -> Iterator[str]:
    yield "# Plans of jobs with heavy keys\n"
    yield (
        "Made by `make skewed-plans-page` from `benchmarks/accuracy/results/skewed-plans.jsonl`, "
        "which `make skewed-plans` measures.\n"
    )
    if not runs:
        yield "Not measured yet: `make skewed-plans` on a quiet machine, 20 minutes."
        return
    yield from _about()
    yield from _summary(runs)
    yield f"![Predicted and measured p99]({_PICTURE})\n"
    yield from _promises(runs)
    yield from _stages(runs)
    yield from _left_out()


def _about() -> Iterator[str]:
    yield (
        f"Four jobs on {CORES} cores were each profiled in two configurations, and their rows were "
        "counted by key. `headway plan --keys` plans each job for its target. The planned "
        "configuration is run by key, as the plan assumes, and with the heaviest keys in the "
        "buckets that `headway ordered --keys` prints. Jobs, targets, rates and profiled "
        "configurations are in `benchmarks/accuracy/skewed-split.json`, which was committed before "
        "the first run. Judged runs have other random seeds than profiled ones.\n"
    )
    yield from headed("| job | rows |")
    for job in Amount.of_split().jobs:
        yield f"| {job.name} | {job.does} |"
    yield ""


def _summary(runs: Sequence[Line]) -> Iterator[str]:
    exact = [line["rows_of_tasks"] == line["reckoned_rows"] for line in runs]
    by_key = _of(runs, BY_KEY)
    promised = [line for line in by_key if line["predicted"]["latency"]]
    kept = [line for line in promised if line["feasible"]]
    yield from headed("| expected | result | one repeat compared with another | |")
    error, floor = _error(promised, _latency_p99_s), _floor(promised, _latency_p99_s)
    yield _verdict(
        f"p99 tuple latency, median error at most {GOAL_RATIO:.0%}",
        f"{_shown(error)} over {len(promised)} runs", _shown(floor),
        None if error is None else error <= GOAL_RATIO,
    )  # fmt: skip
    yield _verdict(
        "rows of every task exact, also with placed keys",
        f"{sum(exact)} of {len(runs)} runs, {sum(_rows(line) for line in runs):,} rows", "",
        all(exact),
    )  # fmt: skip
    figures: tuple[tuple[str, Callable[[Line], tuple[float, float]]], ...] = (
        ("p99 batch duration, median error", _duration_p99_s),
        ("mean batch duration, median error", _duration_mean_s),
    )
    for said, pair in figures:
        error, floor = _error(promised, pair), _floor(promised, pair)
        yield _verdict(said, _shown(error), _shown(floor), None)
    for way in WAYS:
        for said, pair in (("mean", _stage_mean_s), ("p99", _stage_p99_s)):
            of = _of(runs, way)
            error, floor = _error(of, pair), _floor(of, pair)
            yield _verdict(
                f"{said} of the stage, {way}, median error", _shown(error), _shown(floor), None
            )
    met = sum(line["truth"]["latency"]["p99"] <= line["limit_s"] for line in kept)
    yield _verdict(
        "targets of feasible plans met", f"{met} of {len(kept)}", "", met == len(kept) or None
    )
    yield ""
    yield (
        "The third column is the same statistic with one repeat as the prediction of another. No "
        "model can be expected to do better on this machine.\n"
    )


def _promises(runs: Sequence[Line]) -> Iterator[str]:
    yield "## Tuple latency as planned\n"
    yield from headed(
        "| job | target | rate | trigger | partitions | predicted p99 | measured | error |"
    )
    for line in _of(runs, BY_KEY):
        trigger = format_duration(line["trigger_s"]) if line["trigger_s"] else "none"
        shown = f"| {line['job']} | {line['target']} | {format_rate(line['rate_per_s'])} | "
        shown += f"{trigger} | {line['partitions']} | "
        if line["predicted"]["latency"] is None:
            measured_s = line["truth"]["latency"]["p99"]
            yield f"{shown}unavailable: too close to saturation | {format_duration(measured_s)} | |"
            continue
        predicted_s, measured_s = _latency_p99_s(line)
        yield (
            f"{shown}{format_duration(predicted_s)} | {format_duration(measured_s)} | "
            f"{predicted_s / measured_s - 1:+.1%} |"
        )
    yield ""


def _stages(runs: Sequence[Line]) -> Iterator[str]:
    yield "## The stage behind the exchange\n"
    yield (
        "The largest task is given by its share of all rows of the run, predicted from the hashes "
        "of the keys that were counted beforehand, and measured. Mean and p99 are those of the "
        "time from the launch of the stage's first task to the end of its last, over the batches "
        "after the warm-up.\n"
    )
    yield from headed(
        "| job | keys | partitions | largest task | measured | mean | measured | p99 | measured |"
    )
    for line in runs:
        rows = line["rows_of_tasks"]
        pairs = (*_stage_mean_s(line), *_stage_p99_s(line))
        yield (
            f"| {line['job']} | {line['way']} | {line['partitions']} | "
            f"{line['predicted']['largest_share']:.2%} | {max(rows) / sum(rows):.2%} | "
            f"{' | '.join(map(format_duration, pairs))} |"
        )
    yield ""
    saved = [
        f"{job} {_median(of, BY_KEY) / _median(of, PLACED):.2f}"
        for job, of in sorted(_grouped(runs).items())
        if {line["way"] for line in of} == set(WAYS)
    ]
    if saved:
        yield f"p99 of the stage by key over that with placed keys: {', '.join(saved)}.\n"


def _left_out() -> Iterator[str]:
    yield "## What is left out\n"
    yield (
        "All runs used one machine with two cores. On few slots, placed keys save less than on "
        "many (docs/ordered.md simulates 16). The placed jobs use Spark's own operators, with the "
        "code that `headway ordered` prints; runs of `headway.ordered` with placed keys are on "
        "[another page](ordered-speed.md). With placed keys, Headway predicts the stage, but not "
        "the tuple latency."
    )


def _grouped(runs: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in runs:
        found[line["job"]].append(line)
    return found


def _of(runs: Sequence[Line], way: str) -> list[Line]:
    return [line for line in runs if line["way"] == way]


def _rows(line: Line) -> int:
    return int(sum(line["rows_of_tasks"]))


def _median(runs: Sequence[Line], way: str) -> float:
    return median(_stage_p99_s(line)[1] for line in _of(runs, way))


def _latency_p99_s(line: Line) -> tuple[float, float]:
    return line["predicted"]["latency"]["p99"], line["truth"]["latency"]["p99"]


def _duration_p99_s(line: Line) -> tuple[float, float]:
    return line["predicted"]["duration"]["p99"], line["truth"]["duration"]["p99"]


def _duration_mean_s(line: Line) -> tuple[float, float]:
    return line["predicted"]["duration"]["mean"], line["truth"]["duration"]["mean"]


def _stage_mean_s(line: Line) -> tuple[float, float]:
    return line["predicted"]["stage"]["mean"], float(np.mean(line["stage_s"]))


def _stage_p99_s(line: Line) -> tuple[float, float]:
    return line["predicted"]["stage"]["p99"], float(np.quantile(line["stage_s"], 0.99))


def _error(runs: Sequence[Line], pair: Callable[[Line], tuple[float, float]]) -> float | None:
    errors = [abs(predicted / measured - 1.0) for predicted, measured in map(pair, runs)]
    return median(errors) if errors else None


def _floor(runs: Sequence[Line], pair: Callable[[Line], tuple[float, float]]) -> float | None:
    """The same statistic, with each repeat as the prediction of each other repeat of its job."""
    errors = [
        abs(pair(one)[1] / pair(other)[1] - 1.0)
        for of in _grouped(runs).values()
        for one, other in permutations(of, 2)
    ]
    return median(errors) if errors else None


def _shown(error: float | None) -> str:
    return "-" if error is None else f"{error:.1%}"


def _verdict(said: str, figure: str, floor: str, met: bool | None) -> str:
    word = "" if met is None else "met" if met else "missed"
    return f"| {said} | {figure} | {floor} | {word} |"


def _draw(runs: Sequence[Line], path: Path) -> None:
    """Predicted against measured p99: tuple latency of the plans, and the stage in both ways."""
    pyplot = svg_pyplot()
    picture, panels = pyplot.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    promised = [line for line in _of(runs, BY_KEY) if line["predicted"]["latency"]]
    for panel, title, of, pair in (
        (panels[0], "tuple latency of the plan", promised, _latency_p99_s),
        (panels[1], "stage behind the exchange", runs, _stage_p99_s),
    ):
        if not of:
            continue
        most = 1.1 * max(max(pair(line)) for line in of)
        panel.plot([0.0, most], [0.0, most], color="0.4", linewidth=1)
        panel.fill_between(
            [0.0, most], [0.0, most * (1 - GOAL_RATIO)], [0.0, most * (1 + GOAL_RATIO)],
            color="0.9", label=f"within {GOAL_RATIO:.0%}",
        )  # fmt: skip
        for at, (job, lines) in enumerate(sorted(_grouped(of).items())):
            for way, mark in ((BY_KEY, "o"), (PLACED, "^")):
                points = [pair(line)[::-1] for line in lines if line["way"] == way]
                if points:
                    panel.scatter(
                        *zip(*points, strict=True), marker=mark, color=f"C{at}", s=26,
                        label=f"{job}, {way}",
                    )  # fmt: skip
        panel.set(xlabel="measured p99 [s]", ylabel="predicted p99 [s]", title=title)
        panel.set(xlim=(0.0, most), ylim=(0.0, most))
    handles, labels = panels[1].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    save_svg(picture, path)
