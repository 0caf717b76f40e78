"""``headway FILE``: what a file is, and the commands that fit it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headway.api.file_kinds import is_log
from headway.cli.jobs import profiled
from headway.cli.options import Command
from headway.cli.terminal import show
from headway.domain.argument import JobKind
from headway.formats.own_files import read_text
from headway.formats.profile_file import load_any_profile
from headway.report.columns import aligned
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
_OF_SCHEMAS = {"plan": _OF_PLANS, "deadline-plan": _OF_PLANS, "lock": _OF_LOCKS}
_OF_RESULTS = (("report {file} -o result.html", "a page to share"),)
_OF_ENDING_JOBS = (
    ("plan {file} --target 'deadline <= 10m'", "the fewest nodes for a deadline"),
    ("report {file} -o profile.html", "its stages as a page"),
)
_KIND = re.compile(r"(?m)^kind:\s*['\"]?(\w+)")
_HEAD_CHARS = 4096
_SCHEMA = re.compile(r"headway\.([a-z-]+)/v\d+")


@click.command("headway", cls=Command)
@click.argument("file")
def command(file: str) -> None:
    """Say what a file is, and which commands fit it."""
    if is_log(file):
        job = profiled(file)
        description, commands = f"event logs of {job.called}", _of_job(job)
    else:
        description, commands = _of_file(file)
    lines = aligned(
        [(f"headway {line.format(file=shlex.quote(file))}", purpose) for line, purpose in commands]
    )
    show("\n".join([f"{file}: {description}", "", *lines]))


def _of_file(file: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    text = read_text(Path(file), expected="an event log, a profile, a spec file or a result")
    schema, kind = _SCHEMA.search(text[:_HEAD_CHARS]), _KIND.search(text)
    if schema is None and kind is not None:
        of_kind = _OF_SPECS.get(_ALIKE.get(kind[1], kind[1]), ())
        return f"a spec file of the kind {kind[1]}", (*of_kind, *_OF_ANY_SPEC)
    if schema is None or schema[1] in ("profile", "application-profile"):
        job: Any = load_any_profile(file)
        return f"the profile of {job.called}\n{profile_origin(job)}", _of_job(job)
    return f"what Headway wrote, a {schema[1]}", _OF_SCHEMAS.get(schema[1], _OF_RESULTS)


def _of_job(job: Any) -> tuple[tuple[str, str], ...]:
    """The commands that fit a profiled job."""
    is_of_query = job.result_kind == "profile"
    if job.job_kind is JobKind.ENDING or (is_of_query and job.drain is not None):
        return _OF_ENDING_JOBS
    rate = format_rate(job.arrivals.rate_per_s) if is_of_query else "50k/s"
    return (
        (f"plan {{file}} --rate {rate} --target 'p99 <= 3s'", "the fewest nodes for a target"),
        ("predict {file} --executors 4", "latency at another setting"),
        ("report {file} -o profile.html", "its runs and stages as a page"),
    )
