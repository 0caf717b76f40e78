"""Backlogs that were run: the split, and the page about them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import backlogs
import pytest
from backlog_runs import JOBS, BacklogRun, Split
from result_lines import lines_of

from headway.domain import Drain
from headway.formats.profile_file import dump_profile
from tests.planner.test_backlog import BATCH_ROWS, ended, time_of


def line(run: BacklogRun, *, duration_s: float, profile: str | None = None) -> dict[str, Any]:
    return {
        "run": run.name, "day": "2026-11-27", "job": run.job, "cores": run.cores,
        "num_files": run.num_files, "backlog_rows": run.num_files * BATCH_ROWS,
        "num_batches": run.num_files, "duration_s": duration_s, "profile": profile,
    }  # fmt: skip


def page(lines: list[dict[str, Any]], folder: Path) -> str:
    results = folder / "lines.jsonl"
    results.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    text = backlogs.text(argparse.Namespace(results=results, measure=False, output=None))
    assert text is not None
    return text


def test_one_run_of_each_job_is_profiled_and_comes_first() -> None:
    runs, split = list(Split().runs()), Split()
    assert len({run.name for run in runs}) == len(runs)
    for job in JOBS:
        of_job = [run for run in runs if run.job == job]
        assert of_job[0] == split.profiled(job)
        assert of_job[1] == BacklogRun(
            job=job, cores=of_job[0].cores, num_files=of_job[0].num_files, repeat=2
        )
        assert len({(run.cores, run.num_files) for run in of_job}) == len(of_job) - 1


def test_the_page_has_the_error_of_each_run_and_its_floor(tmp_path: Path) -> None:
    profile = ended()
    assert profile.drain is not None
    first = Split().profiled("totals")
    again = BacklogRun(job="totals", cores=first.cores, num_files=first.num_files, repeat=2)
    more = BacklogRun(job="totals", cores=first.cores, num_files=500)
    again_s, more_s = (
        time_of(profile, run.num_files * BATCH_ROWS).mean_s(run.cores) for run in (again, more)
    )
    text = page(
        [
            line(first, duration_s=1.25 * again_s, profile=dump_profile(profile)),
            line(again, duration_s=again_s),
            line(more, duration_s=5.0 * more_s),
        ],
        tmp_path,
    )
    assert "| totals | 2 | 500 |" in text
    assert "| -80.0% |" in text
    assert "Median error 40.0%; 1 of 2 inside their 90% intervals" in text
    assert "differed from it by 25.0% (median over 1 query)" in text
    assert "Not measured yet" in page([], tmp_path)


def test_the_page_is_that_of_the_committed_results() -> None:
    results = Path(backlogs.RESULTS)
    docs = Path(__file__).parents[2] / "docs" / "backlogs.md"
    text = backlogs.text(argparse.Namespace(results=results, measure=False, output=docs))
    assert docs.read_text(encoding="utf-8") == text
    names = [line["run"] for line in lines_of(results)]
    assert set(names) <= {run.name for run in Split().runs()}


@pytest.mark.parametrize("batch_rows", [0.0, 500.0])
def test_a_drain_has_batches_of_its_rows(batch_rows: float) -> None:
    with pytest.raises(ValueError, match="batches of"):
        Drain(backlog_rows=100.0, batch_rows=batch_rows, num_batches=3, duration_s=1.0)
