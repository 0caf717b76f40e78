"""The runs that `headway profile LOG --advise` names, of the production run of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from campaign.schedule import Setting

from headway.assumptions.advice import FEWEST_ADVISED_BATCHES
from headway.domain import AdvisedRun, JobProfile
from headway.models.job.advice import advised_runs
from ordinary.split import ADVISED, CORES, MOST_ADVISED, OrdinaryRun

NO_ADVICE, OTHER_SLOTS, TOO_MANY = (
    "no run is advised",
    "advised on more cores than the machine has",
    "advised beyond the fourth run",
)


def advised_lines(profile: JobProfile, carried_per_s: float, job: str) -> Iterator[dict[str, Any]]:
    """What is advised, a line for each run; ``left_out`` says why one is not run."""
    taken = 0
    for advised in advised_runs(profile):
        left_out = None
        if advised.configuration.num_slots > CORES:
            left_out = OTHER_SLOTS
        elif taken == MOST_ADVISED:
            left_out = TOO_MANY
        taken += left_out is None
        yield {"workload": job, **_setting(advised, carried_per_s), "left_out": left_out}
    if not taken:
        yield {"workload": job, "left_out": NO_ADVICE}


def _setting(advised: AdvisedRun, carried_per_s: float) -> dict[str, Any]:
    configuration = advised.configuration
    return {
        "trigger_s": configuration.trigger_s,
        "partitions": configuration.shuffle_partitions,
        "share": round(advised.rate_per_s / carried_per_s, 4),
        "slots": configuration.num_slots,
        "learns": advised.learns,
        "batches_s": FEWEST_ADVISED_BATCHES.value * configuration.trigger_s,
    }


def advised_run(block: int, line: dict[str, Any]) -> OrdinaryRun:
    """The run of a line that is not left out, with enough batches if that is on record."""
    setting = Setting(line["trigger_s"], line["partitions"], line["share"])
    return OrdinaryRun(
        block=block,
        job=line["workload"],
        role=ADVISED,
        setting=setting,
        batches_s=line.get("batches_s", 0.0),
    )
