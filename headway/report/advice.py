"""Advised runs for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from headway.domain import AdvisedRun
from headway.units import counted, format_duration


def advice_as_json(runs: Sequence[AdvisedRun]) -> str:
    """The runs as JSON."""
    return json.dumps(
        {
            "advised_runs": [
                {
                    "learns": run.learns,
                    "why": run.why,
                    "executors": run.configuration.executors,
                    "cores_per_executor": run.configuration.cores_per_executor,
                    "shuffle_partitions": run.configuration.shuffle_partitions,
                    "trigger_s": run.configuration.trigger_s,
                    "rate_per_s": run.rate_per_s,
                    "num_batches": run.num_batches,
                    "new_checkpoint": run.new_checkpoint,
                }
                for run in runs
            ]
        },
        indent=2,
    )


def advice_as_text(runs: Sequence[AdvisedRun]) -> str:
    """The runs for people, a paragraph each."""
    if not runs:
        return "nothing to run: rows, partitions, slots and repeats were all seen"
    lines = []
    for number, run in enumerate(runs, 1):
        setting = run.configuration
        trigger = (
            f"trigger {format_duration(setting.trigger_s)}"
            if setting.trigger_s
            else "as fast as possible"
        )
        checkpoint = ", a new checkpoint" if run.new_checkpoint else ""
        lines.append(
            f"{number}. {trigger}, {counted(setting.shuffle_partitions, 'shuffle partition')}, "
            f"{counted(setting.num_slots, 'slot')}, about {run.rate_per_s:,.0f} rows/s, "
            f"{run.num_batches} batches after the warm-up{checkpoint}\n"
            f"   teaches {run.learns} ({run.why})"
        )
    return "\n".join(lines)
