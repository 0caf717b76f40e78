"""Logs of queries that become slower and slower: what is said of them, and what is promised."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import headway
from headway.cli.main import run
from headway.domain import FindingCode, GrowthCause, JobProfile
from headway.formats.profile_file import load_profile, save_profile
from headway.words import words_of
from tests.profiler.event_log import AppLog, Query

NUM_BATCHES = 200
STEADY = Query(name="orders", rate_per_s=10_000.0, num_batches=NUM_BATCHES, seed=4)
GROWING = replace(STEADY, warm_up=tuple(np.linspace(0.5, 2.2, NUM_BATCHES)))
Change = Callable[[dict[str, Any], float], None]


def written(folder: Path, query: Query, change: Change | None = None) -> Path:
    """The log of a query; ``change`` alters its progress, by the share of the run that is over."""
    events = [json.loads(line) for line in AppLog(executors=(4,)).add(query).lines]
    if change is not None:
        for event in events:
            if "progress" in event:
                change(event["progress"], event["progress"]["batchId"] / query.num_batches)
    path = folder / "app-1"
    path.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> JobProfile:
    return headway.profile(written(tmp_path_factory.mktemp("growing"), GROWING))


def test_the_good_half_is_not_cut_and_the_growth_is_reported(growing: JobProfile) -> None:
    (setting,) = growing.settings
    assert setting.num_batches_cut <= 3
    growth = growing.growth
    assert growth is not None
    assert growth.last_s / growth.first_s == pytest.approx(2.2 / 0.5, rel=0.2)
    assert growth.span_s == pytest.approx(NUM_BATCHES, rel=0.05)
    assert growth.is_same_load
    assert growth.part.startswith("stage")
    assert growth.causes == ()


def test_a_steady_query_does_not_grow(tmp_path: Path) -> None:
    assert headway.profile(written(tmp_path, STEADY)).growth is None


def test_a_rising_load_is_no_growth(tmp_path: Path) -> None:
    load = tuple((5.0 * n, 4_000.0 + 400.0 * n) for n in range(1, 40))
    profile = headway.profile(written(tmp_path, replace(STEADY, rate_per_s=4_000.0, load=load)))
    assert profile.growth is None


def test_growth_under_a_load_that_changes_is_found(tmp_path: Path) -> None:
    load = tuple((10.0 * n, 15_000.0 if n % 2 else 6_000.0) for n in range(1, 20))
    profile = headway.profile(written(tmp_path, replace(GROWING, load=load)))
    assert profile.growth is not None
    assert not profile.growth.is_same_load
    assert profile.growth.last_s > 2.0 * profile.growth.first_s


def test_a_minute_of_growth_is_none_yet(tmp_path: Path) -> None:
    short = replace(GROWING, num_batches=60, warm_up=tuple(np.linspace(0.5, 2.2, 60)))
    profile = headway.profile(written(tmp_path, short))
    assert profile.growth is None
    assert profile.settings[0].num_batches_cut <= 3


def add_listing(progress: dict[str, Any], part: float) -> None:
    extra_ms = round(900 * part)
    progress["durationMs"]["latestOffset"] = 5 + extra_ms
    progress["durationMs"]["triggerExecution"] += extra_ms
    progress["sources"][0]["description"] = "FileStreamSource[file:/landing]"


def add_sink_log(progress: dict[str, Any], part: float) -> None:
    extra_ms = round(900 * part)
    progress["durationMs"]["addBatch"] += extra_ms
    progress["durationMs"]["triggerExecution"] += extra_ms
    progress["sink"]["description"] = "FileSink[file:/out]"


def grow_state(progress: dict[str, Any], part: float) -> None:
    progress["stateOperators"][0]["numRowsTotal"] = 1_000_000 + round(400_000 * part)


@pytest.mark.parametrize(
    ("query", "change", "cause"),
    [
        (STEADY, add_listing, "listing"),
        (STEADY, add_sink_log, "sink_log"),
        (GROWING, grow_state, "state_rows"),
    ],
)
def test_the_likely_cause_is_named(
    tmp_path: Path, query: Query, change: Change, cause: GrowthCause
) -> None:
    growth = headway.profile(written(tmp_path, query, change)).growth
    assert growth is not None
    assert growth.causes == (cause,)


def test_the_profile_file_carries_it_and_others_load_without(
    growing: JobProfile, tmp_path: Path
) -> None:
    path = tmp_path / "job.profile.yaml"
    save_profile(growing, path)
    again = load_profile(path).growth
    assert again is not None
    assert growing.growth is not None
    assert again.last_s == pytest.approx(growing.growth.last_s, rel=1e-5)
    save_profile(replace(growing, growth=None), path)
    assert "growth" not in path.read_text(encoding="utf-8").replace("growth_per_s", "")
    assert load_profile(path).growth is None


@pytest.mark.parametrize("cause", get_args(GrowthCause))
def test_each_cause_has_words(growing: JobProfile, cause: GrowthCause) -> None:
    assert growing.growth is not None
    without = words_of(growing.growth.findings[1])
    assert "the log does not show why" in without
    caused = replace(
        growing.growth,
        causes=(cause,),
        state_first_rows=1e6,
        state_last_rows=2e6,
        largest_first_share=0.2,
        largest_last_share=0.6,
        gc_first_s=0.1,
        gc_last_s=0.4,
    )
    words = words_of(caused.findings[1])
    assert "likely cause: the " in words or "likely cause: garbage collection" in words


HEADLINE = "no plan holds unless that stops"


def test_no_plan_is_promised_while_it_grows(growing: JobProfile) -> None:
    steady = replace(growing, growth=None)
    target = "p99 <= 10s"
    feasible = headway.plan(steady, rate=10_000, target=target, max_nodes=4, cores=4)
    plan = headway.plan(growing, rate=10_000, target=target, max_nodes=4, cores=4)
    assert feasible.feasible
    assert not plan.feasible
    assert plan.configuration == feasible.configuration
    assert plan.kept_probability is None
    codes = [finding.code for finding in plan.findings]
    assert codes[:2] == [FindingCode.BATCHES_GROW, FindingCode.GROWTH_CAUSE]
    assert "grew" in plan.binding[0]


def test_every_command_begins_with_it(
    growing: JobProfile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, path = written(tmp_path, GROWING), tmp_path / "job.profile.yaml"
    assert run(["profile", str(log), "-o", str(path)]) == 0
    assert HEADLINE in capsys.readouterr().err.splitlines()[0]
    assert run(["profile", str(log), "--check"]) == 0
    assert HEADLINE in " ".join(capsys.readouterr().out.split())
    assert run(["predict", str(path)]) == 0
    first = capsys.readouterr().out.split("\n\n", maxsplit=1)[0]
    assert first.startswith("Batches grew from ")
    assert HEADLINE in " ".join(first.split())
    options = ["--rate", "10k/s", "--target", "p99 <= 10s", "--max-nodes", "4"]
    assert run(["plan", str(path), *options]) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("Batches grew from ")
    assert HEADLINE in " ".join(printed.split("\n  ")[0].split())
    assert "certain" not in printed
    assert run(["plan", str(path), *options, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["feasible"] is False
    assert [one["code"] for one in found["findings"]][:2] == ["batches_grow", "growth_cause"]
    assert HEADLINE in found["warnings"][0]


def test_a_survey_says_it_to_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path, GROWING)
    assert run(["profile", str(log), "--check", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["logs"]
    assert found["growth"]["last_s"] > found["growth"]["first_s"]


# Growth that is measured well enough to say until when a plan holds.

LAST_LISTING_S, LIMIT_S = 0.9, 10.0


def listing_for(extra_s: float) -> Change:
    """Files to list take some time, the same in each batch."""

    def change(progress: dict[str, Any], _: float) -> None:
        add_listing(progress, extra_s / LAST_LISTING_S)

    return change


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> JobProfile:
    return headway.profile(written(tmp_path_factory.mktemp("listing"), STEADY, add_listing))


def test_how_fast_a_part_grows_is_measured(listing: JobProfile) -> None:
    growth = listing.growth
    assert growth is not None
    assert growth.part == "latest_offset"
    assert growth.part_rise_ratio == pytest.approx(LAST_LISTING_S / NUM_BATCHES, rel=0.02)
    assert growth.ended is not None
    assert growth.ended.startswith("2026-09-21T14:1")


@pytest.mark.parametrize(
    ("query", "change"),
    [
        (GROWING, None),  # without a cause
        (replace(STEADY, load=((80.0, 25_000.0),)), add_listing),  # and a changing load
        (STEADY, lambda progress, part: add_listing(progress, part**4)),  # faster and faster
    ],
)
def test_other_growth_is_not_extrapolated(
    tmp_path: Path, query: Query, change: Change | None
) -> None:
    growth = headway.profile(written(tmp_path, query, change)).growth
    assert growth is not None
    assert not growth.is_foreseeable


def test_the_plan_holds_until_the_date_and_not_for_long_after(
    listing: JobProfile, tmp_path: Path
) -> None:
    """Logs of the same query at later dates are its judge."""
    target = f"p99 <= {LIMIT_S:g}s"
    plan = headway.plan(listing, rate=10_000, target=target, max_nodes=1, cores=4)
    assert plan.feasible
    (promise,) = (one for one in plan.findings if one.code is FindingCode.GROWTH_ENDS_PROMISE)
    assert listing.growth is not None
    slope = LAST_LISTING_S / NUM_BATCHES
    setting: dict[str, Any] = {
        "trigger": plan.configuration.trigger_s,
        "partitions": plan.configuration.shuffle_partitions,
        "rate": 10_000,
    }

    def p99_s(after_s: float) -> float:
        log = written(tmp_path, STEADY, listing_for(LAST_LISTING_S + slope * after_s))
        prediction = headway.predict(headway.profile(log), **setting)
        return prediction.tuple_latency.p99_s if prediction.tuple_latency else float("inf")

    held_s = promise.numbers["held_s"]
    assert promise.numbers["is_missed"]
    assert p99_s(held_s) <= LIMIT_S
    # The date is early by what 95% confidence adds to the durations of one run.
    assert p99_s(4.0 * held_s) > LIMIT_S


def test_the_command_prints_the_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, path = written(tmp_path, STEADY, add_listing), tmp_path / "job.profile.yaml"
    assert run(["profile", str(log), "-o", str(path)]) == 0
    capsys.readouterr()
    options = ["--rate", "10k/s", "--target", "p99 <= 10s", "--max-nodes", "1", "--cores", "4"]
    assert run(["plan", str(path), *options]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert " until 2026-09-21 14:" in printed
    assert run(["profile", str(log), "--check"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a plan holds until a date only, unless that stops" in printed
