"""A campaign goes on without its work folder, from what of it is committed."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import keep_campaign
import pytest
from campaign.blocks import BLOCKS, Block, repeats
from campaign.kept_runs import kept_run, read_lines, write_lines
from campaign.reading import read_group
from campaign.record import PLANS, RUNS, put_back
from campaign.schedule import FIT, GROUPS, Run, fit_set_digest

from headway.domain import Arrivals, Configuration
from headway.models.job.predict import predict
from headway.profiler.streaming.samples import QueryRun
from headway.profiler.streaming.summarize import profile_of_runs
from tests.profiler.streaming.test_stage_fit import a_run

Row = dict[str, Any]
SMALL = next(block for block in BLOCKS if block.name == "small-1")
START_S = 1_900_000_000.0


def runs_of_block(block: Block) -> list[Run]:
    nowhere = Path("/nowhere")
    return [run for leg in block.legs(repeats(further=False)) for run in leg.left(nowhere)]


def measured(run: Run, number: int) -> QueryRun:
    size = 20_000 + 7_000 * (number % 5)
    sampled = a_run(size, run.setting.partitions, grows=False)
    at_s = START_S + 100.0 * number
    batches = [
        replace(batch, started_s=at_s + place) for place, batch in enumerate(sampled.batches)
    ]
    return replace(sampled, query_name=run.name, batches=tuple(batches))


def a_line(run: Run, number: int, **changes: Any) -> Row:
    row = {
        "group": run.group,
        "workload": run.workload,
        "role": run.role,
        "name": run.name,
        "setting": run.setting._asdict(),
        "rate_per_s": 1000.0,
        "carried_per_s": 5000.0,
        "started_s": START_S + 100.0 * number,
        "truth": {"from_s": START_S, "to_s": START_S + 20.0},
        "fit_set": fit_set_digest(),
        "jvm_age_s": 60.0 + number,
        "dispersion": 0.0,
        "run": kept_run(measured(run, number)),
    }
    return json.loads(json.dumps(row | changes))  # type: ignore[no-any-return]


def lines_of_block(block: Block) -> Iterator[Row]:
    for number, run in enumerate(runs_of_block(block)):
        line = a_line(run, number)
        yield line | ({"truth": None, "failed": "why", "run": None} if number == 1 else {})


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["group"], row["name"]))


def test_what_is_committed_is_not_run_again(tmp_path: Path) -> None:
    rows = list(lines_of_block(SMALL))
    write_lines(tmp_path / RUNS, rows)
    write_lines(tmp_path / PLANS, [{"name": "plan/json/0", "fit_set": fit_set_digest()}])
    folder = tmp_path / "work"
    assert put_back(folder, tmp_path) == len(rows)
    assert not any(leg.left(folder) for leg in SMALL.legs(repeats(further=False)))
    assert sum(leg.left_s(folder) for leg in SMALL.legs(repeats(further=False))) == 0.0
    # What is there is not put there twice.
    assert put_back(folder, tmp_path) == 0
    assert (folder / "planned" / "truth.jsonl").read_text().count("\n") == 1


def test_runs_of_another_fit_set_are_not_put_back(tmp_path: Path) -> None:
    (run, *_) = runs_of_block(SMALL)
    rows = [a_line(run, 0, fit_set="another")]
    rows.append({name: value for name, value in rows[0].items() if name != "fit_set"})
    write_lines(tmp_path / RUNS, rows)
    assert put_back(tmp_path / "work", tmp_path) == 0
    assert put_back(tmp_path / "work", tmp_path / "none") == 0


def test_profiles_of_runs_on_record_are_those_of_the_runs(tmp_path: Path) -> None:
    rows = list(lines_of_block(SMALL))
    write_lines(tmp_path / RUNS, rows)
    put_back(tmp_path / "work", tmp_path)
    group = SMALL.groups[0]
    back = read_group(group, tmp_path / "work" / group.name)
    assert back.log is None
    fitted = [row for row in back.of("aggregation") if row["role"] == FIT and row["truth"]]
    assert len(fitted) > 2
    of_group = {
        run.name: (run, number)
        for number, run in enumerate(runs_of_block(SMALL))
        if run.group == group.name
    }
    runs = [measured(*of_group[row["name"]]) for row in fitted]
    application = back.fitted_on(fitted).applications
    expected = profile_of_runs(runs, application, "1")
    setting = Configuration(executors=1, cores_per_executor=2, shuffle_partitions=4, trigger_s=1.0)
    arrivals = Arrivals(rate_per_s=15_000.0, dispersion_ratio=0.0)
    again, before = (
        predict(profile, setting, arrivals).tuple_latency
        for profile in (back.fitted_on(fitted), expected)
    )
    assert again is not None
    assert before is not None
    assert again.p99_s == pytest.approx(before.p99_s, rel=1e-3)
    assert back.jvm_age_s(fitted[0]) == 60.0 + of_group[fitted[0]["name"]][1]
    (failed,) = [row for row in back.truths if row["truth"] is None]
    assert back.run_of(failed) is None


def test_what_is_put_back_is_committed_as_it_was_and_blocks_that_are_not_whole_are_not(
    tmp_path: Path,
) -> None:
    rows = list(lines_of_block(SMALL))
    write_lines(tmp_path / RUNS, rows)
    given = Namespace(folder=tmp_path / "work", results=tmp_path)
    keep_campaign.run(given)
    kept = list(read_lines(tmp_path / RUNS))
    assert in_order(kept) == in_order(rows)
    before = (tmp_path / RUNS).read_bytes()
    keep_campaign.run(given)
    assert (tmp_path / RUNS).read_bytes() == before
    write_lines(tmp_path / RUNS, rows[:-1])
    keep_campaign.run(Namespace(folder=tmp_path / "cut", results=tmp_path))
    assert not list(read_lines(tmp_path / RUNS))
    assert {group.name for group in SMALL.groups} <= set(GROUPS)
