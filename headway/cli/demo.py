"""``headway demo``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from headway.cli.options import Command, output_option
from headway.cli.outputs import OUTPUT_FOLDER
from headway.cli.progress import Progress
from headway.cli.terminal import remark, show, suggest
from headway.errors import ExitCode, InputError, require_packages


@click.command("demo", cls=Command)
@output_option(
    "Folder for all files; a new one in the working folder by default.", type=OUTPUT_FOLDER
)
@click.option("--quick", is_flag=True, help="Shorter runs and fewer comparisons, about a minute.")
def command(output: Path | None, quick: bool) -> int:
    """Profile, predict, plan and run a real query on an embedded Spark, in about two minutes.

    \b
    headway demo
    headway demo --quick -o demo

    Runs a real streaming word count, profiles its event log, predicts two settings it has not
    run, plans for a p99 target at a higher rate, runs the plan, and prints predicted beside
    measured. Exits with 1 if the target was missed.
    """
    require_packages("spark", "the demonstration", "pyspark")
    from headway.demo.run import FULL, QUICK, busy_note, run_demo
    from headway.demo.story import story

    folder = output or Path(f"headway-demo-{datetime.now().strftime('%Y%m%d-%H%M%S')}")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder}: the folder is not empty; give another one with -o")
    note = busy_note()
    if note is not None:
        remark(f"note: {note}")
    with Progress(plain=True) as progress:
        outcome = run_demo(
            folder,
            QUICK if quick else FULL,
            is_busy=note is not None,
            step=progress.step,
            share=progress.share,
        )
    show(story(outcome))
    suggest(f"headway plan {folder / 'word-count.profile.yaml'} --rate 50k/s --target 'p99 <= 3s'")
    return ExitCode.OK if outcome.promise_kept else ExitCode.FAILURE
