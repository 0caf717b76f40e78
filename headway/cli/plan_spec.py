"""``headway plan`` of a spec file: values of the file, unless options replace them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from headway.cli.options import refuse
from headway.domain import Deadline
from headway.domain.argument import JobKind, refuse_for
from headway.domain.question import PlanQuestion

if TYPE_CHECKING:
    from headway.spec.spec_file import SpecFile


def planned_spec(file: str, options: Mapping[str, Any]) -> tuple[JobKind, SpecFile]:
    """The spec file to plan and the kind of its job, after what contradicts it has been refused."""
    from headway.api.specs import is_spec
    from headway.spec.spec_file import load_spec

    if not is_spec(file):
        raise click.UsageError("Missing option '--target'.", click.get_current_context())
    if "mode" in options:
        refuse(["--mode"], "a spec file is planned in micro-batches; give the profile")
    spec_file = load_spec(file)
    is_batch = spec_file.kind == "BatchJob"
    kind = JobKind.ENDING if is_batch else JobKind.QUERY
    refuse_for(kind, PlanQuestion, options)
    targets = options.get("target", ())
    if any(isinstance(target, Deadline) is not is_batch for target in targets) or (
        is_batch and len(targets) > 1
    ):
        job = "batch" if is_batch else "streaming"
        example = "one 'deadline <= 10m'" if is_batch else "latencies, e.g. 'p99 <= 3s'"
        refuse(["--target"], f"{file} is a {job} job; expected {example}")
    return kind, spec_file
