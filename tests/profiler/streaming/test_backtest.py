"""Runs left out of the fit are predicted, and what is said of it is what was observed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headway
from headway.api.page import page
from headway.api.results import as_text, figures_of
from headway.cli.main import run
from headway.domain import Backtest
from headway.errors import EventLogError
from headway.formats.as_json import json_text
from headway.profiler.streaming.backtest import BY_SETTING, BY_TIME
from tests.profiler.event_log import EPOCH_S, AppLog, Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOW = Query(name="orders", rate_per_s=5_000.0, trigger_s=2.0, seed=1)
SETTINGS = (
    SLOW,
    replace(SLOW, rate_per_s=20_000.0, trigger_s=1.0, started_s=EPOCH_S + 200, seed=2),
    replace(SLOW, rate_per_s=15_000.0, trigger_s=2.0, started_s=EPOCH_S + 400, seed=3),
    replace(SLOW, rate_per_s=15_300.0, trigger_s=2.0, started_s=EPOCH_S + 600, seed=4),
    replace(SLOW, rate_per_s=9_000.0, trigger_s=1.0, started_s=EPOCH_S + 800, seed=5),
)


def written(folder: Path, *queries: Query) -> Path:
    log = AppLog(app_id="app-1", executors=(4,))
    for query in queries:
        log.add(query)
    path = folder / "app-1"
    path.write_text("\n".join(log.lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def by_setting(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Backtest:
    path = written(tmp_path_factory.mktemp("logs"), *SETTINGS)
    return headway.backtest(path, session=spark)


def test_each_setting_is_predicted_from_the_others(by_setting: Backtest) -> None:
    assert by_setting.rule == BY_SETTING
    assert len(by_setting.runs) == len(SETTINGS)
    rates = [run.prediction.arrivals.rate_per_s for run in by_setting.runs]
    assert rates == pytest.approx([query.rate_per_s for query in SETTINGS], rel=0.02)
    mean, p99 = map(by_setting.median_error_ratio, ("mean", "p99"))
    assert mean is not None
    assert p99 is not None
    # The costs are linear and the noise is 2%: what is left is chance.
    assert mean < 0.03
    assert p99 < 0.05
    held, num_intervals = by_setting.intervals_held
    assert num_intervals == 2 * len(SETTINGS)
    assert held == num_intervals


def test_repeats_of_a_setting_are_left_out_together(spark: SparkSession, tmp_path: Path) -> None:
    # With its repeat in the fit the slow machine of the last two runs would be known.
    slow = [replace(query, slowness=1.5) for query in SETTINGS[2:4]]
    found = headway.backtest(written(tmp_path, *SETTINGS[:2], *slow), session=spark)
    errors = [one.error_ratio("mean") for one in found.runs[2:]]
    assert all(error is not None and error < -0.1 for error in errors)


def test_one_setting_is_split_in_time(spark: SparkSession, tmp_path: Path) -> None:
    found = headway.backtest(written(tmp_path, SETTINGS[1]), session=spark)
    assert found.rule == BY_TIME
    (only,) = found.runs
    assert only.num_batches < SETTINGS[1].num_batches / 2 + 1
    assert only.error_ratio("mean") == pytest.approx(0.0, abs=0.03)


def test_rows_after_a_pause_came_since_the_trigger_that_found_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The rows of half a minute come within a second: none waited for longer than that."""
    paused = replace(SLOW, rate_per_s=700.0, trigger_s=1.0, quiet_triggers=(10, 50), num_batches=60)
    path = written(tmp_path, paused)
    (run_left_out,) = headway.backtest(path, session=spark).runs
    assert run_left_out.observed_latency.mean_s == pytest.approx(0.84, abs=0.1)
    assert run_left_out.observed_latency.p99_s < 1.6
    for statistic in ("mean", "p99"):
        assert run_left_out.error_ratio(statistic) == pytest.approx(0.0, abs=0.1)
    profile = headway.profile(path, session=spark)
    # Rows come in groups of one batch, and the rate is that of all the time.
    assert profile.arrivals.rate_per_s == pytest.approx(700.0, rel=0.05)
    rows = profile.arrivals.rate_per_s * 30.0
    assert profile.arrivals.dispersion_ratio == pytest.approx(rows, rel=0.3)


def test_batches_that_a_gate_holds_back_have_rows_of_the_whole_pause(tmp_path: Path) -> None:
    """Their rows had arrived; the query was not idle."""
    paused = replace(SLOW, trigger_s=1.0, quiet_triggers=(2, 5))
    log = AppLog(app_id="app-1", executors=(4,)).add(paused)
    for job in log.of("SparkListenerJobStart"):
        job["Properties"]["headway.gate.triggerMillis"] = "1000"
    (tmp_path / "app-1").write_text("\n".join(log.lines), encoding="utf-8")
    (run_left_out,) = headway.backtest(tmp_path / "app-1").runs
    assert run_left_out.observed_latency.mean_s > 2.0


def test_too_little_to_leave_a_part_out_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = written(tmp_path, replace(SLOW, num_batches=9))
    with pytest.raises(EventLogError, match="expected 10 to fit on half of them"):
        headway.backtest(path, session=spark)


def test_the_text_says_what_the_json_says(by_setting: Backtest) -> None:
    text = as_text(by_setting)
    assert text.splitlines()[1].startswith(BY_SETTING)
    assert text.startswith("Median error of the mean ")
    assert "10 of 10 90% intervals contain the measured value" in " ".join(text.split())
    found = json.loads(json_text(figures_of(by_setting)))
    assert found["schema"] == "headway.backtest/v1"
    assert found["intervals90_held"] == 10
    assert len(found["runs"]) == 5
    first = found["runs"][0]
    predicted = first["predicted"]["tuple_latency_s"]["mean"]
    observed = first["observed_tuple_latency_s"]["mean"]
    assert predicted / observed - 1 == pytest.approx(first["error_mean"], abs=1e-4)


def test_the_command_fails_beyond_max_error(
    by_setting: Backtest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headway.cli.backtest.backtest", lambda *_, **__: by_setting)
    assert run(["backtest", "log"]) == 0
    assert run(["backtest", "log", "--max-error", "20%"]) == 0
    assert run(["backtest", "log", "--max-error", "0.00001"]) == 4
    capsys.readouterr()
    assert run(["backtest", "log", "--max-error", "a lot"]) == 2
    assert "expected e.g. 15%" in capsys.readouterr().err


WARM_UP = tuple(1.0 + 3.0 * 0.8**number for number in range(20))
LOADS: dict[str, Query] = {
    "light start": replace(SLOW, rate_per_s=4_000.0, load=((16.0, 20_000.0),)),
    "heavy start": replace(SLOW, rate_per_s=20_000.0, load=((16.0, 4_000.0),)),
    "rising": replace(
        SLOW, rate_per_s=4_000.0, load=tuple((5.0 * n, 4_000.0 + 1_200.0 * n) for n in range(1, 15))
    ),
    "waves": replace(
        SLOW,
        rate_per_s=15_000.0,
        load=tuple((10.0 * n, 15_000.0 if n % 2 else 5_000.0) for n in range(1, 8)),
    ),
}


def cut_of(folder: Path, query: Query) -> int:
    """Batches that a profile leaves out, but for the first of the run, which always is."""
    (setting,) = headway.profile(written(folder, query)).settings
    return setting.num_batches_cut - 1


@pytest.mark.parametrize("name", LOADS)
def test_a_load_that_changes_is_no_warm_up(tmp_path: Path, name: str) -> None:
    query = replace(LOADS[name], trigger_s=1.0, num_batches=80)
    assert cut_of(tmp_path, query) == 0


@pytest.mark.parametrize("name", ["light start", "waves"])
def test_a_warm_up_is_recognised_under_a_load_that_changes(tmp_path: Path, name: str) -> None:
    query = replace(LOADS[name], trigger_s=1.0, num_batches=80, warm_up=WARM_UP)
    assert 4 <= cut_of(tmp_path, query) <= 20


def test_the_headline_says_the_error_of_mean_and_p99(by_setting: Backtest) -> None:
    mean, p99 = map(by_setting.median_error_ratio, ("mean", "p99"))
    headline = f"edian error of the mean {mean:.1%}, of the p99 {p99:.1%} in 5 held-out runs"
    assert as_text(by_setting).startswith(f"M{headline}\n")
    assert figures_of(by_setting)["headline"] == f"m{headline}"
    assert repr(by_setting) == f"<Backtest: m{headline}>"
    assert f"M{headline}" in page(by_setting)
