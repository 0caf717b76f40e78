"""``headway ordered``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headway.api.ordered import ordered_plan
from headway.cli.jobs import profiled
from headway.cli.options import Command, json_option, output_option
from headway.cli.outputs import OUTPUT_FILE
from headway.cli.progress import Progress
from headway.cli.questions import given_options, options_of
from headway.cli.terminal import answer, remark, suggest
from headway.domain.query_questions import OrderedQuestion
from headway.errors import ExitCode
from headway.formats.text_file import write_text
from headway.report.ordered import ordered_sheet, placement_csv


@click.command("ordered", cls=Command)
@click.argument("profile", metavar="LOG|PROFILE")
@options_of(OrderedQuestion)
@output_option("Write the table of placed keys, CSV.", type=OUTPUT_FILE)
@json_option
def command(profile: str, output: str | None, as_json: bool, *, keys: Path, **_: Any) -> int:
    """Choose shuffle partitions and place heavy keys, for work that is done key by key.

    \b
    headway ordered job.profile.yaml --keys keys.csv -o placed.csv
    headway ordered job.profile.yaml --keys keys.jsonl --rate 50k/s --json

    The rows of a key are processed one after another, so a heavy key makes a long task. Spark's
    own hash decides which keys share a partition; placed keys go where the load is lowest. Three
    lines of PySpark write the file:

    \b
    counts = df.groupBy(F.col("KEY").alias("key")).count().dropna()
    top = counts.orderBy(F.desc("count")).limit(100_000)
    top.toPandas().to_csv("keys.csv", index=False)

    With a limit, give --total-rows df.count(). Exits with 3 if the heaviest key alone needs
    longer than the trigger interval.
    """
    job = profiled(profile)
    with Progress("placing keys"):
        plan = ordered_plan(job, **given_options(OrderedQuestion))
    if output is not None:
        write_text(output, placement_csv(plan.placed), label="the table of placed keys")
        remark(f"wrote {output}")
    answer(plan, as_json=as_json, sheet=ordered_sheet(plan, file=output))
    if not as_json:
        suggest(f"headway ordered {profile} --keys {keys} -o placed.csv")
    return ExitCode.OK if plan.keeps_up else ExitCode.INFEASIBLE
