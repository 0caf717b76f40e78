"""A plan as variables of Terraform."""

from __future__ import annotations

import json

from headway.emitters.plans import (
    AnyPlan,
    is_batch,
    promise_of,
    query_options_of,
    reader_options_of,
)
from headway.emitters.submission import Submission


def render(plan: AnyPlan, *, version: str, submission: Submission) -> str:
    """The text of a ``*.auto.tfvars.json``: data for resources of your own, named by the job."""
    name = submission.identifier
    options = query_options_of(plan)
    trigger = options.get("trigger")
    limit = options.get("maxOffsetsPerTrigger")
    reader = dict(reader_options_of(plan))
    found = {
        f"{name}_spark_conf": dict(plan.spark_conf),
        f"{name}_num_workers": plan.nodes,
        **({} if trigger is None else {f"{name}_trigger": trigger}),
        **({} if limit is None else {f"{name}_max_offsets_per_trigger": int(limit)}),
        **({} if is_batch(plan) else {f"{name}_reader_options": reader}),
        f"{name}_planned_by": f"headway {version}, {promise_of(plan)}",
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
