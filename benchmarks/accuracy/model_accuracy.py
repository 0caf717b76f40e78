"""Every formula compared with a simulation of the rules that it models, as a Markdown page.

python benchmarks/run.py model_accuracy --output docs/model-accuracy.md
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor

from formulas.batches import (
    ROWS_CHAIN,
    ROWS_HEAVY,
    ROWS_LASTING,
    ROWS_LIGHT,
    ROWS_NOISY,
    WINDOWS,
)
from formulas.cells import LARGEST_CHANCE_RATIO, Cell, Family, section
from formulas.jobs import BATCH_JOBS, DSTREAMS, DSTREAMS_LASTING, REAL_TIME
from formulas.laws import LARGEST, SUMS
from formulas.queues import QUEUES, WAIT_RANGE
from formulas.stages import STAGES
from pages import made_by

FAMILIES = (
    SUMS,
    LARGEST,
    QUEUES,
    WAIT_RANGE,
    STAGES,
    ROWS_LIGHT,
    ROWS_NOISY,
    ROWS_HEAVY,
    ROWS_LASTING,
    ROWS_CHAIN,
    WINDOWS,
    DSTREAMS,
    DSTREAMS_LASTING,
    BATCH_JOBS,
    REAL_TIME,
)

PREFACE = f"""\
Each formula is compared with an event simulation that follows the same rules and does not use the
formula; [accuracy.md](accuracy.md) compares the rules with a running Spark. Errors are formula over
simulation, minus one. The standard error is that of the simulated value: a formula error of this
size is not significant. Random seeds are fixed, so the page is reproducible. The column "cells"
counts those in which a quantity is compared. The others do not have it (a mean that does not
exist), or their simulation has a standard error above {LARGEST_CHANCE_RATIO:.0%}, which cannot \
judge a formula.
"""


def simulated_cells(family: Family, workers: ProcessPoolExecutor) -> Mapping[str, Cell]:
    """All cells of a family that have a result, in order."""
    pending = {
        name: workers.submit(family.simulate, *arguments)
        for name, arguments in family.cells.items()
    }
    found: dict[str, Cell] = {}
    for number, (name, cell) in enumerate(pending.items()):
        if cell.result():
            found[name] = cell.result()
        print(f"\r{family.title}: {number + 1} of {len(pending)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def lines(families: tuple[Family, ...]) -> Iterator[str]:
    """The page."""
    yield "# Accuracy of the formulas"
    yield ""
    yield PREFACE
    started_s = time.perf_counter()
    body: list[str] = []
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as workers:
        for family in families:
            body += section(family, simulated_cells(family, workers))
    took_min = (time.perf_counter() - started_s) / 60.0
    yield f"{made_by('make model-accuracy')} It took {took_min:.0f} min."
    yield ""
    yield from body


def options(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--only", help="only families whose title contains this text")


def text(given: argparse.Namespace) -> str:
    """The page."""
    chosen = tuple(family for family in FAMILIES if (given.only or "") in family.title)
    return "\n".join(lines(chosen)).rstrip() + "\n"
