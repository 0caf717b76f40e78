"""What the judge of restarts reads from files, and the page that it makes."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS / "accuracy"), str(BENCHMARKS), *sys.path])


def files(**kinds: list[int]) -> dict[str, Any]:
    """A partition with files of some versions, each of as many bytes as its version."""
    return {kind: {"versions": found, "bytes": found} for kind, found in kinds.items()}


def test_versions_after_the_newest_snapshot_are_replayed() -> None:
    from judge_restarts import replayed_batches

    default = files(delta=list(range(1, 19)), snapshot=[11])
    assert replayed_batches([default]) == 7
    assert replayed_batches([default, files(delta=list(range(1, 19)), snapshot=[12])]) == 6.5
    # RocksDB without changelogs: each version is a snapshot, and tables have none.
    assert replayed_batches([files(zip=list(range(1, 19)), sst=[-1, -1])]) == 0
    assert replayed_batches([files(changelog=[1, 2, 3])]) == 3


def a_line(repeat: int, measured_s: float, *, profiled: bool = False) -> dict[str, Any]:
    parts = {"jvm_s": 2.0, "session_s": 3.0, "load_s": 1.0, "replay_s": 1.0, "first_batch_s": 3.0}
    return {
        "run": f"middle/default/restart-{repeat}",
        "size": "middle",
        "store": "default",
        "keys": 600_000,
        "repeat": repeat,
        "is_profiled": profiled,
        "replayed_batches": 6.0,
        "snapshot_bytes": 2**24,
        "measured_s": measured_s,
        "predicted": parts,
        "predicted_s": 10.0,
        "usual_s": 14.0,
    }


def page_of(folder: Path, lines: list[dict[str, Any]], memory: list[dict[str, Any]]) -> str:
    from restart_page import text

    for name, of_file in (("predictions", lines), ("memory", memory)):
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in of_file))
    return text(Namespace(predictions=folder / "predictions", memory=folder / "memory"))


def test_the_page_judges_only_restarts_that_were_not_profiled(tmp_path: Path) -> None:
    made = {"made": "Made today."}
    page = page_of(tmp_path, [made, a_line(1, 20.0, profiled=True), a_line(2, 12.5)], [])
    # 10 s instead of 12.5 s, and 14 s by the usual speeds; the profiled one is twice as long.
    assert "1 of 1 restarts that were not profiled took within 25%" in page
    assert "the largest error is 20%" in page
    assert "largest error is 12%" in page
    assert "| -20% |" in page
    assert "| default | 600,000 | 20.0 s | 12.5 s | -38% |" in page
    assert page.endswith("Made today.\n")


def test_the_page_counts_the_runs_that_were_ended(tmp_path: Path) -> None:
    planned = {"native_bytes": 2**27, "bound_bytes": 2**26, "hit_ratio": 0.9}
    run = {
        "heap_bytes": 2**30,
        "bound_bytes": 2**31,
        "peak_bytes": 2**30,
        "num_batches": 24,
        "hits": 90,
        "misses": 10,
        "planned": planned,
    }
    memory = [
        {"run": "bound/1", "was_killed": False, **run},
        {"run": "half/1", "was_killed": True, **run},
    ]
    page = page_of(tmp_path, [{"made": "Made today."}, a_line(2, 12.5)], memory)
    assert "Within the planned bound 0 of 1 runs were ended; within half of it 1 of 1." in page
    assert "| bound/1 | 2,048 MiB | 1,024 MiB | 24 | no | 90.0% |" in page


def test_without_predictions_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="run restart_runs, then judge_restarts"):
        page_of(tmp_path, [], [])
