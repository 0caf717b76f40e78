"""Shared windows: the paper's figures from the models, gains predicted and measured on Spark.

python benchmarks/run.py window_sharing --measure --results benchmarks/sharing/results/runs.jsonl
python benchmarks/run.py window_sharing --output docs/window-sharing.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import enorm_section
import window_kafka_section
import window_section
from window_measured import cells_of
from window_runs_shared import measure

from headway.formats.profile_file import load_profile

RESULTS = Path(__file__).parent / "results" / "runs.jsonl"
PICTURES = Path(__file__).parents[2] / "docs" / "img"
_USE = Path(__file__).with_name("use.md")


def options(parser: argparse.ArgumentParser) -> None:
    """The results file, and whether to measure."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder of pictures")
    parser.add_argument("--measure", action="store_true", help="three hours on a quiet machine")
    parser.add_argument("--short", action="store_true", help="one small setting, as a trial")


def text(given: argparse.Namespace) -> str | None:
    """The page; without a folder, pictures are linked but not drawn."""
    if given.measure:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        measure(given.results, short=given.short)
        return None
    return "\n".join(_page(given.results, given.pictures)) + "\n"


def _page(results: Path, pictures: Path | None) -> Iterator[str]:
    cells = cells_of(results)
    if cells and pictures is not None:
        from window_pictures import draw

        draw(cells, pictures)
    yield "# Shared windows"
    yield ""
    yield "Made by `make window-sharing`."
    yield ""
    yield from _USE.read_text().splitlines()
    yield ""
    profile = load_profile(results.with_name("profile.yaml")) if cells else None
    blind = cells_of(results, from_repeat=window_section.REPEATS - 1)
    yield from window_section.section(cells, profile, blind)
    yield ""
    yield from window_kafka_section.section(results.with_name("kafka.jsonl"))
    yield ""
    yield from enorm_section.section()
