"""``headway plan`` of a spec file: values of the file, unless options replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headway.cli.options import given, refuse
from headway.cli.progress import Progress
from headway.domain import Deadline

if TYPE_CHECKING:
    from headway.spec.spec_file import Planned

# What only plans of streams answer to.
OF_STREAMS = (
    "rate", "partitions", "trigger", "budget", "checkpoint", "source_partitions", "bursts",
    "relaxation", "from_start", "concurrent_jobs", "keys", "key_type", "total_rows",
)  # fmt: skip
# How the plan is shown; all else is what it is, and counts instead of what a spec file says.
_OF_OUTPUT = ("profile", "output_format", "output", "as_json", "strict", "verbose", "quiet")


def plan_of_spec(file: str) -> Planned:
    """Plan as in a spec file, unless options replace its values."""
    from headway.api.specs import is_spec, plan_file
    from headway.spec.spec_file import load_spec

    context = click.get_current_context()
    if not is_spec(file):
        raise click.UsageError("Missing option '--target'.", context)
    refuse(given("concurrent_jobs"), "only DStreams run several jobs at a time")
    spec_file = load_spec(file)
    changes = {
        name: value
        for name, value in context.params.items()
        if name not in _OF_OUTPUT and given(name)
    }
    is_batch, targets = spec_file.kind == "BatchJob", changes.pop("targets", ())
    if is_batch:
        refuse(given(*OF_STREAMS), "not with a deadline")
    else:
        refuse(given("rows"), "only for a spec of the kind BatchJob")
    if any(isinstance(target, Deadline) is not is_batch for target in targets) or (
        is_batch and len(targets) > 1
    ):
        kind = "batch" if is_batch else "streaming"
        example = "one 'deadline <= 10m'" if is_batch else "latencies, e.g. 'p99 <= 3s'"
        refuse(["--target"], f"{file} is a {kind} job; expected {example}")
    if targets:
        changes["target"] = targets[0] if is_batch else targets
    with Progress("planning"):
        return plan_file(spec_file, **changes)
