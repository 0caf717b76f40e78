"""Of several node types those without room for an executor are skipped, for every kind of job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import headway
from headway.api.results import as_text
from headway.domain import StateProfile
from headway.errors import InputError
from headway.formats.profile_file import load_any_profile
from tests.factories import a_profile
from tests.planner.jobs import GIB
from tests.planner.test_backlog import ended
from tests.planner.test_dstreams import FITTED, profiled
from tests.planner.test_real_time import a_query
from tests.sources import ROOT

ROOMY = "roomy:cores=4,memory=64g,price=0.2"
TINY = "tiny:cores=2,memory=64g,price=0.1"
TIGHT = "tight:cores=4,memory=64m,price=0.1"
BATCH = ROOT / "examples" / "nightly-totals.profile.yaml"
KINDS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "query": (a_profile, {"rate": 2000.0, "target": "p99 <= 3s"}),
    "batch job": (lambda: load_any_profile(BATCH), {"target": "deadline <= 10m"}),
    "backlog": (ended, {"target": "deadline <= 10m"}),
    "DStreams": (lambda: profiled(FITTED), {"rate": 300.0, "target": "p99 <= 20s"}),
    "Real-Time Mode": (
        a_query, {"rate": 5000.0, "target": "p99 <= 800ms", "mode": "real-time"},
    ),
}  # fmt: skip


def planned(kind: str, *node_types: str, **asked: Any) -> Any:
    make_profile, question = KINDS[kind]
    fixed = {"max_nodes": 8, "cores": 4, "executor_memory_bytes": 2**30}
    return headway.plan(make_profile(), node_types=node_types, **(question | fixed | asked))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("small", "why"),
    [
        (TINY, "tiny: 2 cores are too few for an executor of 4"),
        (TIGHT, "tight: too little memory"),
        ("dear:cores=4,memory=64g,price=99", "dear: one node costs 99 per hour, more than"),
    ],
)
def test_a_type_without_room_is_skipped_and_the_plan_says_so(
    kind: str, small: str, why: str
) -> None:
    plan = planned(kind, small, ROOMY, budget=9.0)
    assert plan.node_type.name == "roomy"
    (refused,) = plan.refused_node_types
    assert refused.startswith(why)
    text = " ".join(as_text(plan).split())
    assert f"rejected node types {why}" in text
    assert plan.to_dict()["refused_node_types"] == [refused]
    if kind in ("query", "batch job", "backlog"):
        assert f"Rejected node types\n  {why[:20]}" in headway.explain(plan)
    alone = planned(kind, ROOMY, budget=9.0)
    assert alone.refused_node_types == ()
    assert (alone.nodes, alone.spark_conf) == (plan.nodes, plan.spark_conf)
    assert "rejected node types" not in as_text(alone)


@pytest.mark.parametrize("kind", KINDS)
def test_if_no_type_has_room_all_reasons_are_named(kind: str) -> None:
    with pytest.raises(InputError) as refusal:
        planned(kind, TINY, TIGHT)
    assert str(refusal.value).startswith(
        "no node type can run the job: tiny: 2 cores are too few for an executor of 4; tight: "
    )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "query"])
def test_tasks_that_fit_on_no_executor_of_a_type_rule_it_out(kind: str) -> None:
    halves = "halves:cores=4,executors=2,price=0.1"
    plan = planned(kind, halves, ROOMY, cores=None, task_cpus=4)
    assert plan.node_type.name == "roomy"
    assert plan.refused_node_types == (
        "halves: an executor of 2 cores has no room for a task of 4",
    )


def test_a_type_without_memory_for_the_state_of_a_backlog_is_skipped() -> None:
    state = StateProfile(
        rows=10_000_000, memory_bytes=100 * GIB, commit_per_partition_s=0.01, growth_per_s=0.0
    )
    profile = replace(ended(), state=state, state_partitions=8, state_store="hdfs")
    plan = headway.plan(
        profile,
        target="deadline <= 2h",
        executor_memory_bytes=8 * GIB,
        cores=4,
        budget=8.0,
        node_types=["dear:cores=4,memory=64g,price=2", "cheap:cores=4,memory=64g,price=0.1"],
    )
    assert plan.node_type is not None and plan.node_type.name == "cheap"
    (refused,) = plan.refused_node_types
    assert refused.startswith("dear: 4 nodes, the most that are allowed, have no memory for the st")
