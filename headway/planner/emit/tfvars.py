"""A plan as variables of Terraform."""

from __future__ import annotations

import json

from headway.domain import Plan
from headway.planner.emit.submission import Submission


def render(plan: Plan, *, version: str, submission: Submission) -> str:
    """The text of a ``*.auto.tfvars.json``: data for resources of your own, named by the job."""
    name = submission.identifier
    trigger = plan.query_options.get("trigger")
    limit = plan.query_options.get("maxOffsetsPerTrigger")
    found = {
        f"{name}_spark_conf": dict(plan.spark_conf),
        f"{name}_num_workers": plan.nodes,
        **({} if trigger is None else {f"{name}_trigger": trigger}),
        **({} if limit is None else {f"{name}_max_offsets_per_trigger": int(limit)}),
        f"{name}_planned_by": f"headway {version}, {plan.target}",
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
