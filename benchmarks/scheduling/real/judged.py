"""Verdicts that were recorded before the runs, beside what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pages import headed, yes_or_no
from result_lines import machine_of

from real.cells import CELLS, WAY_OF, WAYS
from real.comparison import Runs, best_of_sparks, difference, mean_s, runs_of_ways
from real.records import starving_ways

_PAYS_RATIO = 0.10
_POINTS = 0.15
_AT_ONCE_CHOSEN = "2026-11-26, 19:17 UTC"
_FIGURES_OF = {
    "fifo": "free",
    "trigger-500ms": "trigger-0.5",
    "trigger-1s": "trigger-1",
    "trigger-2s": "trigger-2",
}
"""What a verdict calls the ways that are no policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict, and what was measured on the machine that it was made for.

    ``policy`` is the recommended one, else `promise`; gains are over ``best``, the best of Spark's
    own ways. ``at_once`` has the number of batches at once in each run of a way with a gate.
    """

    name: str
    runs: Mapping[str, Runs]
    at_once: Mapping[str, Sequence[int]]
    verdict: Mapping[str, Any]
    best: str
    policy: str
    measured_gain_ratio: float

    @property
    def predicted_gain_ratio(self) -> float:
        """What the verdict says of the policy. [-]"""
        return float(self.verdict["gain_ratio"][self.policy])

    def figures(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Ways that were predicted and measured, with what the verdict says of them."""
        for way in WAYS:
            found = self.verdict["figures"].get(_FIGURES_OF.get(way.name, way.name))
            if found is not None and self.runs.get(way.name):
                yield way.name, found


def judged_verdicts(
    lines: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]]
) -> Iterator[Judged]:
    """Each verdict whose cell was measured on its machine."""
    whole = [one for one in lines if not one["failed"]]
    machines = list(dict.fromkeys(map(machine_of, whole)))
    for cell in CELLS:
        for number, machine in enumerate(machines, start=1):
            mine = [one for one in whole if machine_of(one) == machine]
            runs = runs_of_ways(mine, cell.name)
            best = best_of_sparks(runs, starving_ways(mine, cell.name))
            of = [one for one in verdicts if (one["cell"], machine_of(one)) == (cell.name, machine)]
            if best is None or not of:
                continue
            policy = of[-1]["policy"] if of[-1]["policy"] in runs else "promise"
            found = difference(runs[policy], runs[best]) if policy in runs else None
            if found is None or policy not in of[-1]["gain_ratio"]:
                continue
            yield Judged(
                name=cell.name if len(machines) == 1 else f"{cell.name}, machine {number}",
                runs=runs,
                at_once=_at_once(mine, cell.name),
                verdict=of[-1],
                best=best,
                policy=policy,
                measured_gain_ratio=-found.ratio,
            )


def _at_once(lines: Sequence[Mapping[str, Any]], cell: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: int(line["run"])):
        if line["cell"] == cell and line["report"] is not None:
            found[line["way"]].append(line["report"]["at_once"])
    return dict(found)


def verdict_table(judged: Sequence[Judged]) -> Iterator[str]:
    """Whether each verdict is right, and how far its gain is off."""
    yield "## The verdict before the run\n"
    yield (
        "The verdict is recorded before the first run of a cell on a machine, from profiles of "
        "each kind of query alone that were made on the same machine. It is right if the best "
        "policy gains more than 10% and the verdict says that taking turns pays, or if neither is "
        "so. Gains, predicted and measured, are over the best of Spark's own ways. Recorded "
        "verdicts are not changed when the models are corrected: those from before 2026-11-24 do "
        "not include the work of the driver on the cores.\n"
    )
    yield from headed(
        "| cell | verdict | best policy measured | right | policy | predicted gain | "
        "measured gain | within 15 points |"
    )
    num_right = num_near = 0
    for one in judged:
        gated = [way for way in one.runs if WAY_OF[way].policy is not None and way != "auto"]
        first = min(gated, key=lambda way: mean_s(one.runs[way]))
        pays = 1.0 - mean_s(one.runs[first]) / mean_s(one.runs[one.best]) > _PAYS_RATIO
        right = pays == one.verdict["pays"]
        near = abs(one.predicted_gain_ratio - one.measured_gain_ratio) <= _POINTS
        num_right, num_near = num_right + right, num_near + near
        yield (
            f"| {one.name} | {one.verdict['policy'] or 'not worth it'} | {first} | "
            f"{yes_or_no(right)} | {one.policy} | {one.predicted_gain_ratio:.0%} | "
            f"{one.measured_gain_ratio:.0%} | {yes_or_no(near)} |"
        )
    yield (
        f"\nRight in {num_right} of {len(judged)} cells (goal: 6 of 7); gain within 15 points in "
        f"{num_near} (goal: all).\n"
    )


def means_table(judged: Sequence[Judged]) -> Iterator[str]:
    """The mean window latencies behind the gains, and how far repeats differ."""
    if not judged:
        return
    yield (
        "Mean window latencies behind these gains, predicted and measured. The profiles are those "
        "of each kind of query alone. Together, the same work takes more core time, and if the "
        "cores are nearly always busy, this multiplies in the latency. A policy is predicted with "
        "the number of batches at once that the simulation finds best. Until "
        f"{_AT_ONCE_CHOSEN}, after the first run of each cell, a gate of a given policy started as "
        "many as keep the cores busy; since then it starts as many as its own simulation finds "
        "best. `auto` and FAIR are not predicted.\n"
    )
    yield from headed(
        "| cell | way | predicted | at once | measured | at once, by run | "
        "predicted over measured |"
    )
    errors: list[float] = []
    floors: list[float] = []
    for one in judged:
        for way, figures in one.figures():
            predicted_s, measured_s = float(figures["mean_s"]), mean_s(one.runs[way])
            at_once = one.at_once.get(way, ())
            errors.append(abs(predicted_s / measured_s - 1.0))
            floors += _floors(one.runs[way])
            yield (
                f"| {one.name} | {way} | {predicted_s:.2f} s | "
                f"{figures['at_once'] if at_once else '-'} | {measured_s:.2f} s | "
                f"{', '.join(map(str, at_once)) or '-'} | {predicted_s / measured_s:.2f} |"
            )
    floor = f"{np.median(floors):.0%}" if floors else "unknown, each way has one run"
    yield (
        f"\nMedian error {np.median(errors):.0%}; floor, the same of each run by the mean of the "
        f"other runs of its way: {floor}.\n"
    )


def _floors(runs: Runs) -> Iterator[float]:
    for number, latencies_s in runs.items():
        others = {other: of for other, of in runs.items() if other != number}
        if others:
            yield abs(mean_s(others) / float(latencies_s.mean()) - 1.0)
