"""Ordinary jobs: the split, the events, the runs of a block, and what the page counts."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import ordinary_limits
import ordinary_page
import pandas as pd  # type: ignore[import-untyped]
import pytest
from campaign.kept_runs import kept_run, run_of
from campaign.schedule import JUDGE
from campaign.workloads import Stream
from ordinary import judging, landing
from ordinary.advice import OTHER_SLOTS, TOO_MANY, advised_lines, advised_run
from ordinary.events import (
    AUCTION_COLUMNS,
    EVENTS_PER_EPOCH,
    FIRST_AUCTION_ID,
    FIRST_PERSON_ID,
    IS_AUCTION,
    IS_BID,
    IS_PERSON,
    number_of,
    numbered_events,
)
from ordinary.jobs import JOBS
from ordinary.judging import NOT_KNOWN, NOT_STABLE, STABLE, judged_block, verdict_of
from ordinary.legs import ADVISED_FILE, FEWER, FIRST, legs_of
from ordinary.limits import LIMITS, decided
from ordinary.nexmark import TOP, top_bids
from ordinary.record import block_folder, put_back
from ordinary.split import (
    ADVISED,
    CORES,
    FEWER_CORES,
    MOST_ADVISED,
    NUM_BLOCKS,
    PRODUCTION,
    RATE,
    SPLIT,
    blocks,
    drawn_split,
    judged_runs,
    production_run,
    split_digest,
)
from ordinary.tables import against_capacity, largest_part, sure_promises, wrong_of_runs
from ordinary_jobs import count_lines
from result_lines import keep, lines_of

from headway.domain import (
    Arrivals,
    EventTimeWindow,
    JobProfile,
    StatefulOperator,
    StateOperatorProfile,
)
from headway.errors import HeadwayError
from headway.formats.profile_file import load_profile
from headway.models.job.capacity import sustainable_rate_per_s
from headway.models.job.predict import predict
from headway.profiler.operators import Operator
from headway.profiler.streaming.stage_kinds import StageKind
from tests.profiler.streaming.test_stage_fit import a_run
from tests.sources import ROOT

Row = dict[str, Any]
AN_HOUR_MIN = 60.0


def test_the_split_is_the_one_that_was_drawn() -> None:
    assert json.loads(SPLIT.read_text()) == drawn_split(list(JOBS))
    assert sorted(job for block in blocks() for job in block) == sorted(JOBS)


def test_no_judged_setting_is_the_one_in_production() -> None:
    for block, jobs in enumerate(blocks(), start=1):
        for job in jobs:
            known = production_run(block, job)
            runs = list(judged_runs(block, job))
            assert len({run.name for run in runs}) == len(runs) == 4
            for run in runs:
                assert (run.setting, run.cores) != (known.setting, known.cores)
                assert 0.3 <= run.setting.share / known.setting.share <= 3.01
            assert [run.cores for run in runs].count(FEWER_CORES) == 1
            assert [run.repeat for run in runs if run.why == RATE] == [1, 2]


def test_each_block_takes_an_hour_at_most(tmp_path: Path) -> None:
    lines = count_lines(range(1, NUM_BLOCKS + 1), tmp_path)
    minutes = [float(found[1]) for line in lines if (found := re.search(r"([\d.]+) min", line))]
    assert len(minutes) == NUM_BLOCKS
    assert max(minutes) <= AN_HOUR_MIN


def test_what_is_on_record_is_not_run_again(tmp_path: Path) -> None:
    first = next(leg for leg in legs_of(1) if leg.phase == FIRST)
    run = first.runs(tmp_path)[0]
    keep(tmp_path / first.group.name / "truth.jsonl", {"name": run.name})
    assert run.name not in {left.name for left in first.left(tmp_path)}
    assert len(first.left(tmp_path)) == len(first.jobs) - 1


def test_advised_runs_are_carried_out_with_those_that_are_judged(tmp_path: Path) -> None:
    leg = next(leg for leg in legs_of(1) if leg.phase not in (FIRST, FEWER))
    before = len(leg.runs(tmp_path))
    line = {
        "workload": leg.jobs[0], "trigger_s": 0.0, "partitions": 32, "share": 0.6, "left_out": None,
    }  # fmt: skip
    keep(tmp_path / ADVISED_FILE, line)
    keep(tmp_path / ADVISED_FILE, {"workload": leg.jobs[0], "left_out": TOO_MANY})
    runs = leg.runs(tmp_path)
    assert len(runs) == before + 1
    assert advised_run(1, line) in runs


def test_three_runs_are_advised_at_most_and_on_the_cores_there_are() -> None:
    profile = load_profile(ROOT / "examples" / "word-count.profile.yaml")
    lines = list(advised_lines(profile, 100_000.0, "nexmark-q0"))
    ran = [line for line in lines if line["left_out"] is None]
    assert 1 <= len(ran) <= MOST_ADVISED
    assert all(line["slots"] <= CORES for line in ran)
    for line in ran:
        run = advised_run(1, line)
        assert run.measured_s >= max(24 * line["trigger_s"], 60.0)
    assert all(line["left_out"] == OTHER_SLOTS for line in lines if line.get("slots", 0) > CORES)


@pytest.mark.parametrize("rate_per_s", [1.0, 777.7, 30_000.0, 999_999.0])
def test_the_arrival_of_a_row_tells_its_number(rate_per_s: float) -> None:
    start_us = 1_900_000_000_000_000
    for row in (0, 1, 2, 3, 49, 50, 12_345, 7_654_321):
        arrival_us = start_us + int(row * 1e6 // rate_per_s)
        assert number_of(arrival_us, start_us, rate_per_s) == row


def test_a_stream_that_is_too_fast_to_number_is_refused() -> None:
    with pytest.raises(ValueError, match="rate_per_s is 2e"):
        numbered_events(None, Stream(rate_per_s=2e6))  # type: ignore[arg-type]


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    kinds = [_holds(condition) for condition in (IS_PERSON, IS_AUCTION, IS_BID)]
    assert [sum(kind) for kind in kinds] == [1, 3, 46]
    assert all(sum(of_one) == 1 for of_one in zip(*kinds, strict=True))
    ids = [
        eval(AUCTION_COLUMNS["auction"].replace("DIV", "//"), {"number": number})
        for number in (1, 2, 3, 51)
    ]
    assert ids == [FIRST_AUCTION_ID + place for place in range(4)]
    assert FIRST_PERSON_ID == 1000


def _holds(condition: str) -> list[bool]:
    """A condition on numbers in SQL, over the first events."""
    python = re.sub(r"(\S+ % \d+\)) BETWEEN (\d+) AND (\d+)", r"\2 <= \1 <= \3", condition)
    return [bool(eval(python, {"number": number})) for number in range(EVENTS_PER_EPOCH)]


class _State:
    """The state of a key, as Spark hands it to a pandas function."""

    exists = False
    get: tuple[str, ...] = ()

    def update(self, value: tuple[str, ...]) -> None:
        self.exists, self.get = True, value


def test_only_the_highest_bids_of_an_auction_are_kept() -> None:
    state = _State()
    frames = [pd.DataFrame({"price": range(8), "bidder": range(8)})] * 2
    (ranked,) = top_bids((7,), iter(frames), state)
    assert ranked["price"].tolist() == [7, 7, 6, 6, 5, 5, 4, 4, 3, 3]
    assert len(json.loads(state.get[0])) == TOP
    (again,) = top_bids((7,), iter([pd.DataFrame({"price": [99], "bidder": [1]})]), state)
    assert again["price"].tolist()[:2] == [99, 7]


def test_files_land_whole(tmp_path: Path) -> None:
    landing.fill(tmp_path / "landing", 2, 3)
    files = sorted((tmp_path / "landing").iterdir())
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [row["order_id"] for row in rows] == list(range(6))
    columns = {column.split()[0] for column in landing.SCHEMA.split(", ")}
    assert all(row.keys() == columns for row in rows)


def a_line(role: str, error: float, number: int, **changes: Any) -> Row:
    """A judged run that was predicted too high by a share."""
    seen = {"mean": 1.0, "p50": 1.0, "p95": 1.5, "p99": 2.0, "count": 9}
    said = {name: value * (1 + error) for name, value in seen.items()}
    line = {
        "group": "plain-two", "workload": "nexmark-q0", "name": f"nexmark-q0/a/judge/{number}",
        "why": RATE, "play": number, "role": JUDGE, "cores_of_others": 0.0,
        "fit_set": split_digest(), "rate_per_s": 900.0, "limit_per_s": 1000.0,
        "setting": {"trigger_s": 1.0, "partitions": 4, "share": 0.9, "backlog": False},
        "truth": {"kept_up": True, "latency": seen, "duration": {"mean": 0.5, "p95": 0.6},
                  "windows": None, "rows_per_s": 900.0, "num_batches": 40},
        "fitted": {"role": role, "runs": 1, "group": "plain-two"},
        "predicted": {
            "stable": True, "near_saturation": False, "calibrated": True, "duration": None,
            "latency": {**said, "mean90": [0.9, 1.4], "p99_90": [2.1, 4.0]}, "windows": None,
        },
        "promises": [[0.99, 0.0, 1.0], [0.97, 0.0, 0.0], [0.96, 1.0, 0.0], [0.3, 0.0, 1.0]],
        "verdict": STABLE,
        "verdicts": [STABLE, NOT_STABLE],
        "far_verdicts": [STABLE, NOT_KNOWN],
        "parts": {
            "duration": [0.6, 0.5], "checkpoint": [0.1, 0.1], "driver": [0.1, 0.12],
            "state_commit": 0.0, "rows": 900.0,
            "levels": [{"shuffled": False, "tasks": [0.2, 0.1], "span": [0.3, 0.2], "launch": 0.0}],
            "latency_given_duration": {"mean": 1.0, "p99": 2.0},
        },
        "stages": ["stage 0 (read the stream)"],
    }  # fmt: skip
    return line | changes


def test_the_page_counts_errors_promises_verdicts_and_what_is_left_out(tmp_path: Path) -> None:
    rows = [
        *(a_line(PRODUCTION, error, number) for number, error in enumerate((0.3, 0.1), start=1)),
        *(a_line(ADVISED, error, number) for number, error in enumerate((0.05, 0.1), start=1)),
        a_line(ADVISED, 0.0, 3, cores_of_others=1.0),
        {"block": 1, "workload": "nexmark-q1", "left_out": "no run is advised: why"},
    ]
    page = "\n".join(ordinary_page.page_lines(rows, {}, "Made."))
    in_short, _, _ = page.partition("## Stability")
    summary = {line.split("|")[1].strip(): line for line in in_short.splitlines() if "|" in line}
    assert "| one run, as production has it | 2 | 0 | 0 | 4 | 0% (0 of 4)" in page
    assert "| 200% of the capacity | 0% (0 of 2) | 100% (2 of 2) | 0% (0 of 2) |" in page
    one_run = summary["one run, as production has it"]
    assert "| 2 | 20.0% | 50% | 20.0% | 50% | 50% (2 of 4)" in one_run
    assert one_run.rstrip(" |").endswith("| 6 | 33% (2 of 6)")
    assert "| 2 | 7.5% | 100% |" in summary["that and the advised runs"]
    assert "| no run is advised | 1 |" in page
    assert "other processes used the machine | 1 |" in page
    assert "stage 0 (read the stream)" in page
    assert "| mean | 2 | 0.0% | 100% |" in page


def test_a_false_verdict_is_beyond_a_tenth_of_the_limit() -> None:
    asked = [[STABLE, NOT_STABLE], [NOT_STABLE] * 2, [STABLE] * 2, [NOT_KNOWN, NOT_STABLE]]
    rows = [
        {
            "verdicts": verdicts, "cores_of_others": 0.0, "truth": {"num_batches": 10},
            "workload": "nexmark-q1", "cores": 2, "limit_per_s": 1_000.0 * number,
        }
        for number, verdicts in enumerate(asked, start=1)
    ]  # fmt: skip
    by_probe = against_capacity(rows, {})
    assert (by_probe.false_stable, by_probe.false_unstable, by_probe.num_open) == (1, 1, 1)
    assert (by_probe.by_probe_alone, by_probe.cleared, by_probe.num_asked) == (2, 0, 8)
    # A run of so few batches shows no trend.
    short = [row | {"truth": {"num_batches": 9}} for row in rows]
    assert against_capacity(short, {}) == (0, 0, 0, 0, 0, 0)


def test_a_run_at_the_rate_decides_between_a_verdict_and_the_probe(tmp_path: Path) -> None:
    row = a_line(ADVISED, 0.0, 1, verdicts=[NOT_STABLE, STABLE], limit_per_s=1_000.0, cores=2)
    lines = [
        {"rate_per_s": 810, "truth": {"kept_up": False, "rows_per_s": 700.0}},
        {"rate_per_s": 1_100, "truth": {"kept_up": True, "rows_per_s": 900.0}},
    ]
    for line in lines:
        keep(tmp_path / LIMITS, {"workload": row["workload"], "cores": 2, **line})
    # Fewer rows came than should, so the second run decides nothing.
    (rate,) = decided(tmp_path)
    assert rate.rate_per_s == 810
    against = against_capacity([row], decided(tmp_path))
    assert (against.false_unstable, against.cleared) == (0, 1)
    assert (against.false_stable, against.by_probe_alone) == (1, 1)
    assert [asked.rate_per_s for asked in ordinary_limits.disputed_rates([row])] == [810, 1_100]


class _WithoutProfile:
    """Runs of a group, of which no profile is made: the error names those that it was asked of."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def of(self, job: str) -> list[Row]:
        return [row for row in self._rows if row["workload"] == job]

    def fitted_on(self, rows: list[Row]) -> JobProfile:
        raise HeadwayError(" and ".join(row["name"] for row in rows))


def test_runs_that_were_advised_after_another_run_in_production_are_not_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = blocks()[0][0]
    line = {
        "workload": job, "trigger_s": 0.0, "partitions": 8, "share": 0.3, "left_out": None,
    }  # fmt: skip
    keep(tmp_path / ADVISED_FILE, line)
    roles = {
        production_run(1, job).name: PRODUCTION,
        advised_run(1, line).name: ADVISED,
        advised_run(1, line | {"share": 0.7}).name: ADVISED,
    }
    rows = [
        {"name": name, "role": role, "workload": job, "truth": {"num_batches": 40}}
        for name, role in roles.items()
    ]
    monkeypatch.setattr(judging, "read_groups", lambda *_: {"plain-two": _WithoutProfile(rows)})
    production, advised, _ = roles
    assert [left["left_out"] for left in judged_block(1, tmp_path)] == [
        f"no profile from 1 runs: {production}",
        f"no profile from 2 runs: {production} and {advised}",
    ]


def test_a_run_contradicts_only_what_is_called_stable_or_not_for_sure() -> None:
    behind = a_line(ADVISED, 0.0, 1)["truth"] | {"kept_up": False, "duration": {"p95": 3.0}}
    rows = [
        a_line(ADVISED, 0.0, number, verdict=verdict, **changes)
        for number, (verdict, changes) in enumerate(
            (
                (STABLE, {"truth": behind}), (NOT_KNOWN, {"truth": behind}), (NOT_KNOWN, {}),
                (NOT_STABLE, {}), (NOT_STABLE, {"truth": behind}), (STABLE, {}),
            )
        )
    ]  # fmt: skip
    assert wrong_of_runs(rows) == (1, 1, 6)


def test_a_rate_beyond_what_is_printed_as_stable_is_not_called_stable() -> None:
    profile = load_profile(ROOT / "examples/word-count.profile.yaml")
    setting = profile.settings[-1].configuration

    def verdict(profile: JobProfile, rate_per_s: float) -> str:
        return verdict_of(predict(profile, setting, Arrivals(rate_per_s=rate_per_s)))

    assert verdict(profile, 1e3) == STABLE
    assert verdict(profile, 1e9) == NOT_STABLE
    highest_per_s = sustainable_rate_per_s(profile, setting)
    # It is nine tenths of what can be carried.
    assert verdict(profile, 1.02 * highest_per_s) == verdict(profile, 1.06 * highest_per_s)
    assert verdict(profile, 1.06 * highest_per_s) == NOT_KNOWN
    assert verdict(replace(profile, row_cost_half_range_ratio=1.0), 1e9) == NOT_KNOWN


def test_a_sure_promise_is_missed_beyond_five_percent() -> None:
    assert sure_promises([a_line(PRODUCTION, 0.0, 1)]) == (1, 3)


def test_a_run_on_record_keeps_its_stages_and_stateful_operators() -> None:
    sampled = a_run(20_000, 4, grows=False)
    window = EventTimeWindow(kind="tumbling", size_s=5.0, slide_s=5.0)
    chain = (StatefulOperator(name="StateStoreSave", windows=(window,)),)
    kind = StageKind(0, True, ("Exchange", "StateStoreSave"), 0)
    scan = (Operator(False, 1, "Scan parquet", "stores"),)
    operators = tuple(
        StateOperatorProfile(name=name, rows=rows, memory_bytes=9, num_stores=4, commit_s=0.25)
        for name, rows in (("stateStoreSave", 3), ("dedupe", 5_000))
    )
    run = replace(
        sampled,
        shape=replace(sampled.shape, chain=chain),
        batches=tuple(
            replace(
                batch,
                state=replace(batch.state, operators=operators),
                stages=tuple(replace(stage, kind=kind, operators=scan) for stage in batch.stages),
            )
            for batch in sampled.batches
        ),
    )
    again = run_of(json.loads(json.dumps(kept_run(run))))
    assert again.shape.chain == chain
    assert {stage.kind for batch in again.batches for stage in batch.stages} == {kind}
    assert {stage.operators for batch in again.batches for stage in batch.stages} == {scan}
    assert all(batch.state.operators == operators for batch in again.batches)


def test_the_part_that_is_off_most_is_named() -> None:
    name, error = largest_part(a_line(ADVISED, 0.0, 1))
    assert name == "stage 0 (read the stream)"
    assert error == pytest.approx(0.2)


def test_there_is_no_page_without_results(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="no results yet"):
        ordinary_page.text(Namespace(results=tmp_path))
    assert put_back(tmp_path, tmp_path) == 0
    assert lines_of(block_folder(tmp_path, 1) / ADVISED_FILE) == []
