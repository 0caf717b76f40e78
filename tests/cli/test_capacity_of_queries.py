"""``headway capacity``: an application of several queries, which may count on turns."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import run

# Not imported: every process that collects the tests would load it.
pytestmark = pytest.mark.skipif(find_spec("cvxpy") is None, reason="needs headway[capacity]")

QUERIES = """\
apiVersion: headway/v1
kind: QuerySchedule
metadata: {name: clicks}
spec:
  cores: 2
  queries:
"""
QUERY = (
    "  - {{name: q{at}, declared: {{source_partitions: 2, task_per_row: 4us, task_fixed: 20ms, "
    "driver: 80ms, shuffle_task_per_row: 1us, shuffle_partitions: 2}}, rate: 8k/s, "
    "target: window p99 <= {limit}, trigger: 1s, window_slide: 10s, window_start: {start}s}}\n"
)
STREAM = (
    "{declared: {source_partitions: 2, task_per_row: 4us, task_fixed: 20ms, driver: 80ms}, "
    "rate: 8k/s, target: p99 <= 2s}"
)
FLEET = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {{name: fleet}}
spec:
  catalog:
    currency: USD
    date: 2026-11-01
    nodes: [{{name: small, cores: 2, memory: 8g, price_per_hour: 0.1}}]
  jobs:
  - {{name: clicks, {job}}}
  pools: [{{name: shared, cores_per_executor: 2}}]
  schedule: hourly
"""


def a_fleet(folder: Path, turns: str, *, limit: str = "1500ms", num_queries: int = 16) -> str:
    queries = [QUERY.format(at=at, limit=limit, start=0.6 * at) for at in range(num_queries)]
    (folder / "queries.yaml").write_text(QUERIES + "".join(queries))
    fleet = folder / "fleet.yaml"
    fleet.write_text(FLEET.format(job=f"file: queries.yaml, turns: {turns}"))
    return str(fleet)


def executors(
    folder: Path, turns: str, capsys: pytest.CaptureFixture[str], **changes: Any
) -> list[int]:
    assert run(["capacity", a_fleet(folder, turns, **changes), "--json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    return list(job["executors"])


@pytest.mark.statistical
def test_turns_need_fewer_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = executors(tmp_path, "none", capsys)
    with_turns = executors(tmp_path, "any", capsys)
    assert len(set(with_turns)) == 1 and len(with_turns) == 24
    assert 1 <= max(with_turns) < max(without)
    # As `headway schedule` counts them.
    assert run(["schedule", str(tmp_path / "queries.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "promise"


def test_a_target_that_only_turns_meet_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Below what the driver takes for the two batches of a window, however many cores there are.
    assert run(["capacity", a_fleet(tmp_path, "none", limit="150ms", num_queries=2)]) == 3
    out = capsys.readouterr().out
    assert "no number of executors meets the targets of 2 queries" in out


def test_turns_of_a_single_job_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET.format(job=f"streaming: {STREAM}, turns: any"))
    assert run(["capacity", str(fleet)]) == 2
    assert "expected a file of the kind QuerySchedule" in capsys.readouterr().err
    (tmp_path / "job.yaml").write_text(
        f"apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {{name: one}}\nspec: {STREAM}\n"
    )
    fleet.write_text(FLEET.format(job="file: job.yaml, turns: any"))
    assert run(["capacity", str(fleet)]) == 2
    assert "has 'turns: any', which needs a QuerySchedule" in capsys.readouterr().err
