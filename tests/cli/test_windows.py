"""``headway windows``: what sharing would save, with the code to paste, or exit 3."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.api.results import as_text
from headway.cli.main import run
from headway.domain import (
    EventTimeWindow,
    JobProfile,
    ObservedSetting,
    StateProfile,
)
from headway.domain.sharing import QueryWindows
from headway.errors import InputError
from tests.factories import a_profile
from tests.planner.jobs import SLIDING, windowed


def job(row_s: float = 2e-5, last_row_s: float = 1.25e-5, **changes: object) -> JobProfile:
    made = windowed(windows=(SLIDING,))
    first = replace(made.stages[0], task_per_row_s=row_s)
    last = replace(made.stages[1], task_per_row_s=last_row_s)
    return replace(made, stages=(first, last), **changes)  # type: ignore[arg-type]


def file_of(profile: JobProfile, folder: Path) -> str:
    path = folder / "job.profile.yaml"
    headway.save_profile(profile, path)
    return str(path)


def test_the_answer_first_then_the_table_then_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["windows", file_of(job(), tmp_path), "--rate", "50k/s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 min every 5 s at 50k/s: ")
    assert "utilisation" in lines[0]
    assert [line.split()[0] for line in lines[3:7]] == ["direct", "panes", "fused", "log"]
    assert any("headway.shared_windows(" in x or "headway.window_log(" in x for x in lines)
    assert max(map(len, lines[2:7])) <= 100


def test_json_has_what_the_call_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(job(), tmp_path)
    asked = ["windows", path, "--window", "1h every 5m", "--window", "10m", "--json"]
    # At 5k/s a second state in each batch costs more than sharing saves.
    assert run([*asked, "--rate", "50k/s"]) == 0
    printed = json.loads(capsys.readouterr().out)
    gain = headway.windows(path, ["1h every 5m", "10m"], rate=50_000.0)
    assert [way["how"] for way in printed["ways"]] == ["direct", "panes", "fused", "log"]
    assert printed["ways"][1]["batch_mean_s"] == pytest.approx(gain.ways[1].batch_mean_s)
    assert (printed["pane_s"], printed["windows_per_row"]) == (300.0, 13.0)
    assert printed["pays"] is True
    for way in printed["ways"]:
        assert way["saved_s"]["low"] <= way["saved_s"]["mid"] <= way["saved_s"]["high"]


def test_where_nothing_pays_it_exits_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cheap = job(row_s=1e-9, last_row_s=1e-9)
    shape = replace(cheap.shape, windows=(EventTimeWindow(
        kind="tumbling", size_s=60.0, slide_s=60.0),))  # fmt: skip
    assert run(["windows", file_of(replace(cheap, shape=shape), tmp_path)]) == 3
    text = capsys.readouterr().out
    assert "keep counting directly" in text
    assert "1 window per row, panes of 1 min" in text


def test_a_query_without_windows_tells_nothing(tmp_path: Path) -> None:
    assert run(["windows", file_of(a_profile(), tmp_path)]) == 2
    with pytest.raises(InputError, match="no windows of a fixed size"):
        headway.windows(a_profile())
    with pytest.raises(InputError, match="expected a list"):
        headway.windows(job(), "1h")


def test_more_rows_and_more_keys_make_sharing_pay_more() -> None:
    gains = [headway.windows(job(), rate=rate) for rate in (2e4, 5e4, 1e5)]
    panes, log = (
        [way.saved_s for gain in gains for way in gain.ways if way.how == how]
        for how in ("panes", "log")
    )
    assert panes == sorted(panes)
    assert log == sorted(log)


def test_measured_state_rows_narrow_what_is_not_known() -> None:
    unmeasured = headway.windows(job()).ways[1]
    state = StateProfile(
        rows=12_000,
        memory_bytes=10**6,
        commit_per_partition_s=0.002,
        growth_per_s=0.0,
        updated_rows=12_200.0,
        updated_row_s=6e-6,
    )
    gain = headway.windows(job(state=state))
    assert gain.batch_keys == pytest.approx(1000.0)
    measured = gain.ways[1]
    width = [way.saved_high_s - way.saved_low_s for way in (unmeasured, measured)]
    assert width[1] <= width[0]
    assert not any("time of a state row" in text for text in gain.assumed)


def test_the_break_even_is_where_panes_save_nothing() -> None:
    gain = headway.windows(job(row_s=2e-6))
    assert 0 < gain.break_even_rows < float("inf")
    at_even = headway.windows(job(row_s=2e-6), rate=gain.break_even_rows)
    # More rows bring more keys, so panes pay there at the latest.
    assert at_even.ways[1].saved_s >= 0.0


def test_the_modes_of_the_paper_and_the_deal_of_partitions_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gain = headway.windows(job())
    unshared, in_place, split = gain.work_by_mode_s.values()
    assert in_place < split < unshared
    assert gain.break_even_windows_ratio < gain.windows.num_copies
    pauses_s = list(gain.pause_by_mode_s.values())
    assert pauses_s[0] == pauses_s[1] > pauses_s[2] == 0.0
    assert gain.busiest_ratio == pytest.approx(1.0)
    made = job()
    hot = replace(made, stages=(made.stages[0], replace(made.stages[1], hot_share_ratio=0.5)))
    assert headway.windows(hot).busiest_ratio > 4.0
    run(["windows", file_of(hot, tmp_path)])
    out = capsys.readouterr().out
    assert "unshared" in out and "salted keys" in out
    # Nine partitions on eight slots: one slot has two.
    odd = headway.windows(job(), partitions=9)
    assert odd.busiest_ratio == pytest.approx(16 / 9)


PLAN = """== Physical Plan ==
HashAggregate(keys=[area#1], functions=[sum(n#2L)])
+- Exchange hashpartitioning(area#1, 8), ENSURE_REQUIREMENTS, [plan_id=1]
   +- HashAggregate(keys=[area#1, user#3], functions=[sum(n#2L)])
      +- Exchange hashpartitioning(area#1, user#3, 8), ENSURE_REQUIREMENTS, [plan_id=2]
         +- HashAggregate(keys=[day#9], functions=[count(1)])
            +- Exchange hashpartitioning(day#9, coalesce(a#4, 1), 8), ENSURE_REQUIREMENTS
               +- Scan parquet [area#1,user#3]
"""


def test_exchanges_that_one_could_serve_are_reported_with_their_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text(PLAN)
    path = file_of(job(), tmp_path)
    run(["windows", path, "--explain", str(plan)])
    assert 'df.repartition(8, "area") before the first' in capsys.readouterr().out
    run(["windows", path, "--explain", str(plan), "--json"])
    printed = json.loads(capsys.readouterr().out)["fusions"]
    assert printed == [
        {
            "by": ["area"],
            "exchanges": [["area"], ["area", "user"]],
            "shuffle_partitions": 8,
            "spared": 1.0,
        }
    ]
    plan.write_text(PLAN.replace("area#1, user#3, 8", "user#3, 8"))
    run(["windows", path, "--explain", str(plan)])
    assert "no two consecutive ones" in capsys.readouterr().out
    plan.write_text("nothing")
    assert run(["windows", path, "--explain", str(plan)]) == 2
    assert run(["windows", path, "--explain", str(tmp_path / "missing")]) == 2


QUERIES = """\
apiVersion: headway/v1
kind: SharedWindows
metadata: {name: clicks}
spec:
  rate: 50k/s
  queries:
  - {name: dash-board, windows: [1m every 5s, 10s]}
  - {name: totals, windows: 10s}
"""


def test_several_queries_are_held_against_each_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clicks.windows.yaml"
    file.write_text(QUERIES)
    path = file_of(job(), tmp_path)
    assert run(["windows", path, "--queries", str(file), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["windows"] == ["10 s", "1 min every 5 s"]
    assert [(query["name"], query["windows"]) for query in printed["queries"]] == [
        ("dash-board", ["10 s", "1 min every 5 s"]),
        ("totals", ["10 s"]),
    ]
    apart = sum(query["utilization_ratio"] for query in printed["queries"])
    assert printed["apart_utilization_ratio"] == pytest.approx(apart)
    assert printed["best"]["utilization_ratio"] < apart
    # The first query counts all of the windows, and so costs what the direct way does.
    assert printed["queries"][0]["batch_mean_s"] == pytest.approx(
        printed["ways"][0]["batch_mean_s"]
    )
    assert run(["windows", path, "--queries", str(file)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "by 2 queries" in out
    assert "totals alone, 10 s: batch" in out
    assert run(["windows", path, "--queries", str(file), "--window", "10s"]) == 2
    assert run(["windows", path, "--queries", str(file), "--trigger", "0s"]) == 2
    assert run(["windows", path, "--queries", str(tmp_path / "missing")]) == 2


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("totals", "dash-board", "two queries are called 'dash-board'"),
        ("totals, windows: 10s", "totals, windows: 10s every 5s", "expected different sizes"),
        ("windows: 10s", "windows: often", "expected a window, e.g. 10m"),
        ("[1m every 5s, 10s]", "[1m, 1m every 5s]", "expected different sizes"),
    ],
)
def test_queries_that_cannot_be_shared_are_refused_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, why: str
) -> None:
    file = tmp_path / "clicks.windows.yaml"
    file.write_text(QUERIES.replace(old, new))
    assert run(["windows", file_of(job(), tmp_path), "--queries", str(file)]) == 2
    complaint = capsys.readouterr().err
    assert why in complaint and "clicks.windows.yaml:" in complaint


def test_the_code_of_several_queries_on_a_log_adds_each_as_a_reader() -> None:
    gain = headway.windows(job(), ["1m every 5s", "10s"])
    log = next(way for way in gain.ways if way.how == "log")
    several = replace(
        gain,
        best=replace(log, is_stable=True, utilization_ratio=0.1),
        queries=(
            QueryWindows(
                name="dash-board", windows=gain.windows, batch_mean_s=1.0, utilization_ratio=0.5
            ),
        ),
    )
    text = as_text(several)
    assert 'sink=write_dash_board, name="dash-board",' in text
    assert '\n    checkpoint="CHECKPOINT",\n    trigger=' in text
    # Direct windows of all in one query are no choice in update mode.
    direct = replace(several, best=replace(gain.ways[0], utilization_ratio=0.1))
    assert direct.paying
    assert not replace(direct, is_update=True).paying


@pytest.mark.parametrize("trigger", ["1s", "0s"])
def test_sharing_is_compared_where_windows_counted_directly_are_too_much(
    trigger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with batches of 10^15 rows, of which sharing saved 132,000 days."""
    path, windows = file_of(job(), tmp_path), ["--window", "1h every 5m", "--window", "10m"]
    asked = ["windows", path, *windows, "--trigger", trigger, "--rate"]
    direct_rate = next(
        rate
        for rate in range(10, 1000, 10)
        if not headway.windows(path, ["1h every 5m", "10m"], rate=f"{rate}k/s", trigger=trigger)
        .ways[0]
        .is_stable
    )
    assert run([*asked, f"{direct_rate}k/s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "nan" not in out
    assert "stable" in out.partition("  way")[0] and "unlike windows counted directly" in out
    gain = headway.windows(path, ["1h every 5m", "10m"], rate=f"{direct_rate}k/s", trigger=trigger)
    assert gain.best.is_stable
    stable = [way for way in gain.ways if way.is_stable]
    assert stable
    for way in stable:
        assert 0.0 < way.saved_s < 3600.0
        assert way.pays
    assert gain.batch_rows < 60.0 * gain.rate_per_s
    # Far beyond that no way keeps up: there is nothing to be gained, and nothing to keep.
    assert run([*asked, "900M/s"]) == 3
    assert "not stable, however the windows are counted" in capsys.readouterr().out
    assert run([*asked, "900M/s", "--json"]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert [way["batch_mean_s"] for way in printed["ways"]] == [None] * 4


def test_a_query_without_a_trigger_is_compared_by_its_batches() -> None:
    """It is always busy: "utilisation 100% instead of 100%" is no gain."""
    gain = headway.windows(job(), ["1h every 5m"], rate="120k/s", trigger="0s")
    direct, panes = gain.ways[:2]
    assert direct.is_stable and panes.pays and panes.batch_mean_s < 0.6 * direct.batch_mean_s
    best = replace(panes, window_p99_s=direct.window_p99_s)
    text = as_text(replace(gain, best=best))
    assert text.startswith("1 h every 5 min at 120k/s: panes, as fast as possible: batches of ")
    # Just below its capacity the direct query has batches of half a minute; panes do not.
    near = headway.windows(job(), ["1h every 5m"], rate="160k/s", trigger="0s")
    assert near.ways[0].batch_mean_s > 10.0
    assert panes.batch_mean_s < near.ways[1].batch_mean_s < 2.0 * panes.batch_mean_s
    late = as_text(replace(gain, best=direct))
    assert late.startswith(
        "1 h every 5 min at 120k/s: sharing shortens batches, but delays windows"
    )


@pytest.mark.parametrize("trigger", ["0s", "500ms"])
def test_more_rows_take_a_way_longer_also_where_the_direct_query_is_late(trigger: str) -> None:
    """Its batches have the rows that it keeps up with, not those of the direct query."""
    for number in range(1, 4):
        batches_s = [
            headway.windows(job(), ["1h every 5m"], rate=f"{rate}k/s", trigger=trigger)
            .ways[number]
            .batch_mean_s
            for rate in (60, 100, 140, 160, 180, 220)
        ]
        assert batches_s == sorted(batches_s)


def test_update_mode_knows_the_log_alone() -> None:
    made = job()
    update = replace(made, shape=replace(made.shape, output_mode="update"))
    gain = headway.windows(update)
    assert [way.how for way in gain.ways] == ["direct", "log"]
    assert gain.is_update
    append = headway.windows(made)
    # All windows that a batch touches are made anew in each, not only those that end.
    assert gain.ways[1].saved_s < append.ways[3].saved_s
    forced = replace(gain, best=gain.ways[1])
    assert 'emit="update"' in as_text(forced)
    # A window shows as soon as its rows are counted, by either way.
    latencies = [way.window_p99_s for way in gain.ways]
    assert None not in latencies
    assert latencies[0] < append.ways[0].window_p99_s  # type: ignore[operator]


def test_a_row_and_a_key_are_singular() -> None:
    made = job()
    gain = replace(headway.windows(made, rate="10k/s"), batch_rows=1.2, batch_keys=0.9)
    assert "\n  1 row and 1 key per batch, " in as_text(gain)


def test_a_rate_limit_bounds_the_rows_of_a_batch() -> None:
    made = job()
    limited = replace(
        made,
        settings=tuple(
            replace(one, configuration=replace(one.configuration, max_offsets_per_trigger=1000))
            for one in made.settings
        ),
    )
    assert headway.windows(limited, rate="50k/s").batch_rows == 1000.0


def test_other_keys_are_priced_by_the_state_rows_of_all_settings() -> None:
    made = job()
    with pytest.raises(InputError, match="num_keys: the profile does not say"):
        headway.windows(made, num_keys=10)
    (one,) = made.settings[:1]
    driver_s = sum(phase.mean_s for phase in made.driver_phases)
    fixed_s = driver_s + sum(stage.task_fixed_s for stage in made.stages)

    def seen(rows: float, updated: float, row_s: float, state_row_s: float) -> ObservedSetting:
        return replace(
            one,
            rows_per_batch_low=rows,
            rows_per_batch_high=rows,
            updated_rows=updated,
            batch_duration_mean_s=fixed_s + 1.0 + row_s * rows + state_row_s * updated,
        )

    both = replace(made, settings=(seen(1e4, 1.2e4, 2e-6, 5e-6), seen(2e5, 1.2e5, 2e-6, 5e-6)))
    few, many = (headway.windows(both, num_keys=number, rate="5k/s") for number in (100, 5000))
    assert few.batch_keys < many.batch_keys
    assert few.ways[0].batch_mean_s < many.ways[0].batch_mean_s
    # More state rows are what sharing saves most of.
    assert few.ways[1].saved_s < many.ways[1].saved_s
