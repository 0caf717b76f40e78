"""``headway FILE``: what a file is, and the commands that fit it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headway.api.file_kinds import PROFILE_SCHEMAS, schema_named
from headway.cli.jobs import profiled
from headway.cli.options import Command
from headway.cli.terminal import show
from headway.domain.argument import JobKind
from headway.errors import InputError
from headway.formats.own_files import read_text
from headway.formats.profile_file import load_any_profile
from headway.redaction import one_line, printable
from headway.report.columns import aligned, width
from headway.report.profiles import profile_origin
from headway.units import format_rate

#: What fits each kind of spec file; the first is what the file is for.
_OF_SPECS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "StreamingJob": (
        ("plan {file}", "the fewest nodes that meet its targets"),
        ("lock {file}", "record the plan as a baseline"),
        ("check {file}", "fail a CI build when a target is missed or a cost rises"),
    ),
    "CapacityPlan": (("capacity {file}", "the cheapest capacity for its jobs"),),
    "QuerySchedule": (("schedule {file}", "whether its queries should take turns"),),
    "Exploration": (("explore {file}", "run the most informative settings"),),
    "NodeCatalog": (("plan LOG --catalog {file} --node-type NAME", "choose from its node types"),),
    "SharedWindows": (("windows LOG --queries {file}", "whether sharing their windows pays"),),
    "Tuning": (("tune {file}", "keep the running query within its target"),),
    "MicroBatchPipeline": (
        ("predict {file}", "latency as described"),
        ("plan {file} --target 'p99 <= 3s'", "the fewest nodes for a target"),
        ("simulate {file}", "latency by simulation"),
    ),
}
_ALIKE = {"BatchJob": "StreamingJob", "OrderedPipeline": "MicroBatchPipeline"}
_OF_ANY_SPEC = (("validate {file}", "report every error with its position"),)
_OF_PLANS = (
    ("explain {file}", "every number with its formula and source"),
    ("emit {file} --format spark-defaults", "the configuration for your platform"),
    ("report {file} -o plan.html", "a page to share"),
)
_OF_LOCKS = (("check SPEC --baseline {file}", "compare jobs with this baseline"),)
_OF_EXPLORATIONS = (("explore SPEC --folder FOLDER", "continue it, in its folder"),)
_OF_SCHEMAS = {
    "plan": _OF_PLANS,
    "deadline-plan": _OF_PLANS,
    "lock": _OF_LOCKS,
    "exploration": _OF_EXPLORATIONS,
}
_OF_RESULTS = (("report {file} -o result.html", "a page to share"),)
_OF_DRAINS = (
    ("plan {file}{query_options} --target 'deadline <= 10m'", "the fewest nodes for a deadline"),
    ("report {file} -o profile.html", "its stages as a page"),
    ("diff {file} OTHER", "what differs from another run, and why"),
)
_OF_BATCH_JOBS = (("plan {file}", "its run time by nodes"), *_OF_DRAINS[1:])
_KIND = re.compile(r"(?m)^kind:\s*['\"]?(\w+)")
_HEAD_CHARS = 4096
_OF_HEADWAY = re.compile(r"(?m)^apiVersion:\s*['\"]?headway/")
_EXPECTED = (
    "an event log, a profile, a spec file, a lock file, or what a command printed with --json"
)


@click.command("headway", cls=Command)
@click.argument("file")
@click.option("--query", "queries", multiple=True, help="Query of an event log; repeatable.")
def command(file: str, queries: tuple[str, ...]) -> None:
    """Say what a file is, and which commands fit it."""
    job = profiled(file, queries)
    if job is not file:
        description, commands = f"an event log of {job.called}", _of_job(job)
    else:
        description, commands = _of_file(file)
    show(f"{file}: {description}\n")
    query_options = "".join(f" --query {shlex.quote(query)}" for query in queries)
    lines = [
        (f"headway {line.format(file=shlex.quote(file), query_options=query_options)}", use)
        for line, use in commands
    ]
    if sum(max(map(len, column)) for column in zip(*lines, strict=True)) + len("    ") <= width():
        show("\n".join(aligned(lines)))
    else:  # A command is not broken, so that it can be copied.
        click.echo("\n".join(f"  # {use}\n  {printable(line)}" for line, use in lines))


def _of_file(file: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    text = read_text(Path(file), expected=_EXPECTED)
    schema, kind = schema_named(text[:_HEAD_CHARS]), _KIND.search(text)
    of_kind = None if kind is None else _OF_SPECS.get(_ALIKE.get(kind[1], kind[1]))
    if schema is None and kind is not None and (of_kind or _OF_HEADWAY.search(text)):
        return f"a spec file of the kind {kind[1]}", (*(of_kind or ()), *_OF_ANY_SPEC)
    if schema is None:
        raise InputError(f"{one_line(file)}: not a file that Headway reads; expected {_EXPECTED}")
    if schema in PROFILE_SCHEMAS:
        job: Any = load_any_profile(file)
        return f"the profile of {job.called}\n{profile_origin(job)}", _of_job(job)
    words = schema.replace("-", " ")
    article = "an" if words[0] in "aeiou" else "a"
    return f"{article} {words} that Headway wrote", _OF_SCHEMAS.get(schema, _OF_RESULTS)


def _of_job(job: Any) -> tuple[tuple[str, str], ...]:
    """The commands that fit a profiled job."""
    is_of_query = job.result_kind == "profile"
    if job.job_kind is JobKind.ENDING:
        return _OF_BATCH_JOBS
    if is_of_query and job.drain is not None:
        return _OF_DRAINS
    rate = format_rate(job.arrivals.rate_per_s) if is_of_query else "50k/s"
    return (
        (
            f"plan {{file}}{{query_options}} --rate {rate} --target 'p99 <= 3s'",
            "the fewest nodes for a target",
        ),
        ("predict {file}{query_options} --executors 4", "latency at another setting"),
        ("report {file} -o profile.html", "its runs and stages as a page"),
    )
