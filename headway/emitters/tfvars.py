"""A plan as variables of Terraform."""

from __future__ import annotations

import json

from headway.domain import Answer
from headway.emitters.submission import Submission
from headway.emitters.wording import reader_options_of, writer_options_of


def render(plan: Answer, *, version: str, submission: Submission) -> str:
    """The text of a ``*.auto.tfvars.json``: data for resources of your own, named by the job."""
    name = submission.identifier
    trigger = plan.query_options.get("trigger")
    limit = plan.query_options.get("maxOffsetsPerTrigger")
    writer = dict(writer_options_of(plan))
    variables = {
        f"{name}_spark_conf": dict(plan.spark_conf),
        f"{name}_num_workers": plan.nodes,
        **({} if trigger is None else {f"{name}_trigger": trigger}),
        **({} if limit is None else {f"{name}_max_offsets_per_trigger": int(limit)}),
        **({} if plan.ends else {f"{name}_reader_options": dict(reader_options_of(plan))}),
        **({f"{name}_writer_options": writer} if writer else {}),
        f"{name}_planned_by": f"headway {version}, {plan.promises[0]}",
    }
    return json.dumps(variables, indent=2, ensure_ascii=False) + "\n"
