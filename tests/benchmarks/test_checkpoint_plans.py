"""Plans from new and existing checkpoints: what was drawn, and the page of what was run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import checkpoint_plans
from campaign.checkpoint_page import page
from result_lines import lines_of

RESULTS = Path(checkpoint_plans.__file__).parent / "results" / "checkpoint-plans.jsonl"
DOCS = Path(checkpoint_plans.__file__).parents[2] / "docs"


def test_the_page_is_that_of_the_committed_results() -> None:
    assert page(lines_of(RESULTS)) == (DOCS / "plans-run.md").read_text()


def test_a_place_with_two_nodes_runs_a_plan_on_as_many_as_it_says() -> None:
    one_core, _, executors = checkpoint_plans.PLACES
    assert one_core.group_of(1).master == "local[1]"
    assert [executors.group_of(nodes).master for nodes in (1, 2)] == [
        "local-cluster[1,1,1024]",
        "local-cluster[2,1,1024]",
    ]


def run(**changes: Any) -> dict[str, Any]:
    """A plan that was run, kept at half of its limit."""
    truth = {"latency": {"p99": 1.0}, "kept_up": True}
    return {
        "name": "one-core/new/p99",
        "place": "one core",
        "checkpoint": "new",
        "rule": None,
        "rate_per_s": 1000.0,
        "statistic": "p99",
        "limit_s": 2.0,
        "feasible": True,
        "told_s": 1.5,
        "nodes": 1,
        "setting": {"trigger_s": 1.0, "partitions": 2, "max_rows": None},
        "pinned_partitions": None,
        "state_partitions_seen": [2],
        "cores_of_others": 0.0,
        "truth": truth,
        **changes,
    }


def test_what_was_disturbed_is_named_and_judged_nowhere() -> None:
    text = page([{"made": "Made."}, run(), run(name="noisy", cores_of_others=0.9)])
    assert "| new checkpoint, planned as feasible | 1 | 0 | 0 |" in text
    assert "others used the machine or fewer than two batches were measured: noisy." in text


def test_a_missed_promise_counts_as_missed() -> None:
    text = page([{"made": "Made."}, run(limit_s=0.97), run(limit_s=0.5)])
    assert "| new checkpoint, planned as feasible | 0 | 1 | 1 |" in text


def test_partitions_other_than_the_pinned_ones_show() -> None:
    kept = run(checkpoint="existing", pinned_partitions=2)
    other = run(checkpoint="existing", pinned_partitions=8)
    assert "Of 2 queries started on an existing checkpoint, 1 ran" in page(
        [{"made": "Made."}, kept, other]
    )


def test_rules_without_a_measurement_are_reported_as_missed() -> None:
    rule = run(rule="200 partitions", truth=None, told_s=None, feasible=False)
    text = page([{"made": "Made."}, run(), rule])
    assert "| 200 partitions | 1 s, 2 partitions | over capacity | no | no two batches" in text
