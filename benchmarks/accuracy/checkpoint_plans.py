r"""Plans on one and two cores or executors, from new and existing checkpoints, each run for real.

The workload is the demo's, a stateful word count. Profiles are those of the fitted runs of a
campaign (`run_campaign`); rates and limits are drawn with a fixed seed before anything is run.
An existing checkpoint was written by an earlier run, with the shuffle partitions that the profile
says it fixes. For one of the plans, the usual rules of thumb are run, too.

    python benchmarks/run.py checkpoint_plans WORK_FOLDER \
        --results benchmarks/accuracy/results/checkpoint-plans.jsonl --output docs/plans-run.md
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from campaign.checkpoint_page import page
from campaign.reading import read_group
from campaign.running import (
    Query,
    campaign_session,
    measured_run,
    run_query,
    warm_up,
)
from campaign.schedule import FIT, GROUPS, WARM_S, Group
from campaign.workloads import WORKLOADS, Stream
from pages import made_by
from result_lines import keep, lines_of

import headway
from headway.domain import (
    Configuration,
    JobProfile,
    StreamAnswer,
)
from headway.planner.checkpoint import pinned_partitions

WORKLOAD = "aggregation"
STATISTICS = ("mean", "p50", "p95", "p99")
CHECKPOINTS = ("new", "existing")
SEED = 20261122
WARM_UP_S = 60.0
"""About as old as the JVMs of the fitted runs: executors compile more slowly."""
BEFORE_S, BEFORE_TRIGGER_S = 6.0, 1.0
"""The run that writes the checkpoint."""
LEAST_MEASURED_S = 8.0
LEAST_CARRIED_RATIO, MOST_CARRIED_RATIO = 0.05, 0.6
LEAST_LIMIT_S, MOST_LIMIT_S = 0.4, 5.0
RULES_PLACE, RULES_RATE_RATIO, RULES_TARGET = "two cores", 0.4, "p99 <= 2s"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where plans may run, and the group whose runs they are made from."""

    name: str
    group: Group
    max_nodes: int
    cores: int

    def group_of(self, nodes: int) -> Group:
        """The session of a plan with this number of nodes."""
        if self.max_nodes == 1:
            return self.group
        return replace(
            self.group,
            name=f"{nodes}-executors",
            master=f"local-cluster[{nodes},{self.cores},1024]",
        )


PLACES = (
    Place(name="one core", group=GROUPS["one-core"], max_nodes=1, cores=1),
    Place(name="two cores", group=GROUPS["two-cores"], max_nodes=1, cores=2),
    Place(name="one or two executors", group=GROUPS["two-executors"], max_nodes=2, cores=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRun:
    """A setting to run, and what is predicted for it."""

    name: str
    place: Place
    checkpoint: str
    rate_per_s: float
    plan: StreamAnswer
    nodes: int
    configuration: Configuration
    predicted_s: float
    is_predicted_met: bool
    rule: str | None = None


def plans(place: Place, profile: JobProfile, carried_per_s: float) -> Iterator[ToRun]:
    """Each statistic from each checkpoint, at a random rate under a random limit."""
    draw = random.Random(f"{SEED}-{place.name}")
    for statistic in STATISTICS:
        for checkpoint in CHECKPOINTS:
            rate_per_s = draw.uniform(LEAST_CARRIED_RATIO, MOST_CARRIED_RATIO) * carried_per_s
            limit_s = math.exp(draw.uniform(math.log(LEAST_LIMIT_S), math.log(MOST_LIMIT_S)))
            plan = planned(
                place, profile, rate_per_s, f"{statistic} <= {limit_s * 1000:.0f}ms", checkpoint
            )
            yield ToRun(
                name=f"{place.name}/{checkpoint}/{statistic}".replace(" ", "-"),
                place=place,
                checkpoint=checkpoint,
                rate_per_s=rate_per_s,
                plan=plan,
                nodes=plan.nodes,
                configuration=plan.configuration,
                predicted_s=plan.planned_latency_s,
                is_predicted_met=plan.feasible,
            )


def rules(place: Place, profile: JobProfile, carried_per_s: float) -> Iterator[ToRun]:
    """One plan and the rules of thumb to compare it with, on the available nodes."""
    rate_per_s = RULES_RATE_RATIO * carried_per_s
    plan = planned(place, profile, rate_per_s, RULES_TARGET, "new")
    for number, rule in enumerate(plan.rules if plan.feasible else ()):
        if rule.nodes <= place.max_nodes:
            yield ToRun(
                name=f"rule/{number}",
                place=place,
                checkpoint="new",
                rate_per_s=rate_per_s,
                plan=plan,
                nodes=rule.nodes,
                configuration=rule.configuration,
                predicted_s=rule.latency_s,
                is_predicted_met=rule.keeps_target,
                rule=rule.rule,
            )


def planned(
    place: Place, profile: JobProfile, rate_per_s: float, target: str, checkpoint: str
) -> StreamAnswer:
    """The plan for a place."""
    return headway.plan(
        profile,
        rate=rate_per_s,
        target=target,
        max_nodes=place.max_nodes,
        node_cores=place.cores,
        cores=place.cores,
        checkpoint=checkpoint,
    )


def all_to_run(folder: Path) -> tuple[list[ToRun], dict[str, float], dict[str, int]]:
    """What is to run, the rate that each place carries, and the partitions of its checkpoints."""
    to_run: list[ToRun] = []
    carried: dict[str, float] = {}
    pinned: dict[str, int] = {}
    for place in PLACES:
        measured = read_group(place.group, folder / place.group.name)
        fitted = [row for row in measured.of(WORKLOAD) if row["role"] == FIT]
        profile = measured.fitted_on(fitted)
        carried[place.name] = fitted[0]["carried_per_s"]
        pinned[place.name] = pinned_partitions(profile) or profile.baseline.shuffle_partitions
        to_run += plans(place, profile, carried[place.name])
        if place.name == RULES_PLACE:
            to_run += rules(place, profile, carried[place.name])
    return to_run, carried, pinned


def run_plans(folder: Path) -> list[Row]:
    """Plan and run what has not been run yet; return the lines of all."""
    work = folder / "checkpoint-plans"
    work.mkdir(exist_ok=True)
    results = work / "truth.jsonl"
    done = {row["name"] for row in lines_of(results)}
    every, carried, pinned = all_to_run(folder)
    left = [one for one in every if one.name not in done]
    for master in sorted({one.place.group_of(one.nodes).master for one in left}):
        here = [one for one in left if one.place.group_of(one.nodes).master == master]
        random.Random(SEED).shuffle(here)
        group = here[0].place.group_of(here[0].nodes)
        checkpoints = work / group.name
        checkpoints.mkdir(exist_ok=True)
        with campaign_session(group, checkpoints) as spark:
            carried_per_s = carried[here[0].place.name]
            warm_up(spark, WORKLOADS[WORKLOAD], checkpoints, carried_per_s, WARM_UP_S)
            for place, one in enumerate(here):
                print(f"{master}: {place + 1} of {len(here)}, {one.name}", file=sys.stderr)
                keep(results, _measured(spark, one, pinned[one.place.name], checkpoints))
    return lines_of(results)


def _measured(spark: Any, one: ToRun, num_pinned: int, work: Path) -> Row:
    setting = one.configuration
    query = Query(
        name=one.name,
        workload=WORKLOADS[WORKLOAD],
        # Rows that follow a checkpoint continue where its rows began.
        stream=Stream(
            rate_per_s=one.rate_per_s,
            start_epoch_s=time.time(),
            max_rows_per_trigger=setting.max_offsets_per_trigger,
        ),
        trigger_s=setting.trigger_s,
        partitions=setting.shuffle_partitions,
    )
    if one.checkpoint == "existing":
        before = replace(query, trigger_s=BEFORE_TRIGGER_S, partitions=num_pinned)
        run_query(spark, before, run_s=BEFORE_S, folder=work)
    measured = measured_run(
        spark,
        query,
        warm_s=WARM_S + setting.trigger_s,
        measured_s=max(LEAST_MEASURED_S, 3 * setting.trigger_s),
        folder=work,
    )
    stores = {
        operator["numShufflePartitions"]
        for event in measured.events
        for operator in event["stateOperators"]
        if "numShufflePartitions" in operator
    }
    target = one.plan.target
    return {
        "name": one.name,
        "place": one.place.name,
        "checkpoint": one.checkpoint,
        "rule": one.rule,
        "rate_per_s": one.rate_per_s,
        "statistic": target.statistic,
        "limit_s": target.limit_s,
        "feasible": one.is_predicted_met,
        "told_s": one.predicted_s if math.isfinite(one.predicted_s) else None,
        "nodes": one.nodes,
        "setting": {
            "trigger_s": setting.trigger_s,
            "partitions": setting.shuffle_partitions,
            "max_rows": setting.max_offsets_per_trigger,
        },
        "pinned_partitions": num_pinned if one.checkpoint == "existing" else None,
        "state_partitions_seen": sorted(stores),
        **measured.as_json(),
    }


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("folder", type=Path, help="work folder of run_campaign", nargs="?")
    parser.add_argument("--results", type=Path, required=True, help="JSON lines")


def text(given: argparse.Namespace) -> str:
    """Plan, run, and write the lines if a folder is given; then make the page."""
    if given.folder is not None:
        made = {"made": made_by("make plan-accuracy", "PySpark")}
        rows = [made, *run_plans(given.folder)]
        given.results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return page(lines_of(given.results))
