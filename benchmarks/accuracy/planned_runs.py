"""Plans for random targets, each run for real: was the promise kept?

Profiles are those of the fitted runs of a campaign (`run_campaign`) on two cores; rates, targets
and pinned partitions are drawn with a fixed seed before anything is run. Each plan is run as it is,
feasible or not: an infeasible one names the setting that comes closest.

    python benchmarks/run.py planned_runs WORK_FOLDER --output results/planned.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.reading import read_group
from campaign.running import (
    MeasuredRun,
    Query,
    append_line,
    campaign_session,
    measured_run,
    read_lines,
    warm_up,
)
from campaign.schedule import FIT, GROUPS, WARM_S
from campaign.workloads import WORKLOADS, Stream

import headway
from headway.domain import (
    JobProfile,
    StreamAnswer,
)

GROUP = GROUPS["two-cores"]
PLANNED = ("aggregation", "json", "tumbling", "pandas", "skewed")
TARGETS_EACH = 9
SEED = 20261121
WARM_UP_S = 15.0
LEAST_MEASURED_S = 8.0

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A promise to plan for."""

    name: str
    workload: str
    rate_per_s: float
    target: str
    pinned_partitions: int | None


def asked_of(workload: str, carried_per_s: float) -> Iterator[Asked]:
    """Random promises about a workload: from easy to impossible."""
    draw = random.Random(f"{SEED}-{workload}")
    for number in range(TARGETS_EACH):
        statistic = draw.choice(("mean", "p95", "p99"))
        limit_s = math.exp(draw.uniform(math.log(0.25), math.log(5.0)))
        yield Asked(
            name=f"plan/{workload}/{number}",
            workload=workload,
            rate_per_s=draw.uniform(0.1, 0.85) * carried_per_s,
            target=f"{statistic} <= {limit_s * 1000:.0f}ms",
            pinned_partitions=draw.choice((None, None, 2, 4, 8)),
        )


def profiles(folder: Path) -> dict[str, JobProfile]:
    """A profile of each workload from its fitted runs."""
    measured = read_group(GROUP, folder / GROUP.name)
    return {
        name: measured.fitted_on([row for row in measured.of(name) if row["role"] == FIT])
        for name in PLANNED
    }


def planned(profile: JobProfile, asked: Asked) -> StreamAnswer:
    """The plan for the machine the profile comes from."""
    return headway.plan(
        profile,
        rate=asked.rate_per_s,
        target=asked.target,
        max_nodes=1,
        node_cores=GROUP.num_slots,
        cores=GROUP.num_slots,
        partitions=asked.pinned_partitions,
        checkpoint="new",
    )


def run_plans(folder: Path) -> None:
    """Plan and run what is not yet run."""
    work = folder / "planned"
    work.mkdir(exist_ok=True)
    carried = {
        row["workload"]: row["carried_per_s"]
        for row in read_lines(folder / GROUP.name / "probes.jsonl")
    }
    known = profiles(folder)
    done = {row["name"] for row in read_lines(work / "truth.jsonl")}
    every = [one for name in PLANNED for one in asked_of(name, carried[name])]
    random.Random(SEED).shuffle(every)
    with campaign_session(GROUP, work) as spark:
        for name in PLANNED:
            warm_up(spark, WORKLOADS[name], work, carried[name], WARM_UP_S)
        for place, asked in enumerate(every):
            if asked.name in done:
                continue
            plan = planned(known[asked.workload], asked)
            print(f"{place + 1} of {len(every)}: {asked.name}, {asked.target}", file=sys.stderr)
            setting = plan.configuration
            query = Query(
                name=asked.name,
                workload=WORKLOADS[asked.workload],
                stream=Stream(
                    rate_per_s=asked.rate_per_s,
                    max_rows_per_trigger=setting.max_offsets_per_trigger,
                ),
                trigger_s=setting.trigger_s,
                partitions=setting.shuffle_partitions,
            )
            measured = measured_run(
                spark,
                query,
                warm_s=WARM_S + setting.trigger_s,
                measured_s=max(LEAST_MEASURED_S, 4 * setting.trigger_s),
                folder=work,
            )
            append_line(work / "truth.jsonl", _row(asked, plan, measured))


def _row(asked: Asked, plan: StreamAnswer, measured: MeasuredRun) -> Row:
    setting, latency = plan.configuration, plan.prediction.tuple_latency
    return {
        "name": asked.name,
        "workload": asked.workload,
        "rate_per_s": asked.rate_per_s,
        "target": asked.target,
        "statistic": plan.target.statistic,
        "limit_s": plan.target.limit_s,
        "pinned_partitions": asked.pinned_partitions,
        "feasible": plan.feasible,
        "planned_latency_s": plan.planned_latency_s
        if math.isfinite(plan.planned_latency_s)
        else None,
        "predicted": None if latency is None else {"mean": latency.mean_s, "p99": latency.p99_s},
        "setting": {
            "trigger_s": setting.trigger_s,
            "partitions": setting.shuffle_partitions,
            "max_rows": setting.max_offsets_per_trigger,
        },
        **measured.as_json(),
    }


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of run_campaign")
    parser.add_argument("--output", type=Path, required=True, help="gzipped JSON lines")


def run(given: argparse.Namespace) -> None:
    """Plan, run, and write the lines."""
    run_plans(given.folder)
    lines = [json.dumps(row) for row in read_lines(given.folder / "planned" / "truth.jsonl")]
    given.output.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))
    print(f"{given.output}: {len(lines)} plans")
