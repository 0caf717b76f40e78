"""``headway watch``: recorded files and a growing log, without Spark."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM
from types import SimpleNamespace

import numpy as np
import pytest

import headway
from headway.api.results import as_text, figures_of
from headway.api.watch import Watcher, watch
from headway.cli.main import run
from headway.domain import JobProfile
from headway.domain.live import Look, Reason
from headway.errors import EventLogError, InputError
from headway.formats.open_metrics import prometheus_text
from headway.formats.profile_file import save_profile
from headway.profiler import schema
from headway.report.watched import look_metrics
from headway.tuner.live_query import _warm_up_length
from tests.factories import a_profile
from tests.live_logs import BEGIN_S, QUERY_ID, RUN_ID, FakeQuery, a_log
from tests.profiler.event_log import EPOCH_S, MAP, AppLog, Query

TARGET = "p99 <= 3s"


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "orders.profile.yaml"
    save_profile(a_profile(), path)
    return str(path)


def a_file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "orders.headway.jsonl"
    path.write_text(text)
    return str(path)


def test_what_runs_as_predicted_is_held(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_file(tmp_path, a_log())
    assert run(["watch", log, "--profile", profile, "--target", TARGET, "--once", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["standing"] == "held"
    assert said["measured"]["rate_per_s"] == pytest.approx(5000, rel=0.01)
    assert said["measured"]["backlog_rows"] == 0
    predicted = said["predicted"]["tuple_latency_s"]["p99"]
    assert said["measured"]["latency"]["p99"] == pytest.approx(predicted, rel=0.1)
    assert said["late_ratio"] == 0.0
    assert said["budget_left_ratio"] == 1.0
    assert said["drift"]["alarm"] is False
    assert said["configuration"]["executors"] == 2
    assert said["configuration"]["trigger_s"] == 1.0
    assert run(["watch", log, "--profile", profile, "--target", TARGET, "--once"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("orders (3f1c7e0a): the target is met (p99 <= 3.00 s)")


def test_costs_that_drift_are_found_and_end_with_4(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    usual = [*query.head(), *query.batches(60)]
    query.factor = 1.6
    log = a_file(tmp_path, "\n".join([*usual, *query.batches(120)]) + "\n")
    arguments = ["watch", log, "--profile", profile, "--target", TARGET, "--once"]
    assert run(arguments) == 4
    assert " times what the profile says, since " in capsys.readouterr().out
    look = watch(log, profile=profile, target=TARGET).look()
    assert look.standing == "drifted"
    assert look.drift is not None and look.drift.since_s is not None
    assert abs(look.drift.since_s - 1_800_000_060) < 10


def test_a_run_that_begins_cold_and_lies_as_far_off_as_runs_do_is_no_drift(
    tmp_path: Path, profile: str
) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    query.factor = 3.0
    lines = [*query.head(), *query.batches(1)]
    query.factor = 1.05
    log = a_file(tmp_path, "\n".join([*lines, *query.batches(120)]) + "\n")
    assert run(["watch", log, "--profile", profile, "--target", TARGET, "--once"]) == 0
    look = watch(log, profile=profile, target=TARGET).look()
    assert look.drift is not None and not look.drift.is_alarm
    assert look.drift.duration_ratio == pytest.approx(1.05, abs=0.03)
    assert look.drift.num_batches_to_find is not None


def test_batches_before_executors_came_are_no_drift(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0, num_slots=4)
    lines = [*query.head(executors=1), *query.batches(60)]
    query.num_slots = 8
    lines += [*list(query.head())[-1:], *query.batches(180)]
    look = watch(a_file(tmp_path, "\n".join(lines) + "\n"), profile=profile, target=TARGET).look()
    assert look.configuration.executors == 2
    assert look.drift is not None and not look.drift.is_alarm
    assert look.drift.duration_ratio == pytest.approx(1.0, abs=0.03)


def test_a_young_jvm_is_no_drift(tmp_path: Path, profile: str) -> None:
    """A query beside the JVM that its profile was made in: a half slower at first, as foreseen."""
    query = FakeQuery(a_profile(), 5000.0, jvm_age_s=5.0)
    log = a_file(tmp_path, "\n".join([*query.head(), *query.batches(200)]) + "\n")
    look = watch(log, profile=profile, target=TARGET).look()
    assert look.drift is not None and not look.drift.is_alarm
    assert look.prediction is not None and look.prediction.batch_duration is not None
    assert look.batch_duration is not None
    assert look.prediction.batch_duration.mean_s == pytest.approx(
        look.batch_duration.mean_s, rel=0.1
    )


def test_a_backlog_shows_in_the_latency_and_in_the_late_rows(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    lines = [*query.head(), *query.batches(30)]
    # From here on a batch takes half of what arrives.
    read, at_s = query.read, query.at_s
    for number in range(20):
        query.batch_id += 1
        latest = read + 2500 + (number + 1) * 2500
        lines.append(query.line(at_s + number, 0.4, read, read + 2500, latest))
        read += 2500
    look = watch(a_file(tmp_path, "\n".join(lines) + "\n"), profile=profile, target=TARGET).look()
    assert look.backlog_rows == pytest.approx(50_000, rel=0.01)
    assert look.late_ratio is not None and look.late_ratio > 0.05
    assert look.budget_left_ratio is not None and look.budget_left_ratio < 0
    assert look.latency is not None and look.latency.p99_s > 5.0


def in_bursts(number: int, *, runs: int = 1) -> str:
    """A log of a query on a trigger of 1 s whose source then has rows every half a minute only."""
    query = FakeQuery(a_profile(), 5000.0)
    lines = [*query.head(), *query.batches(30)]
    for burst in range(1, number + 1):
        query.batch_id += 1
        start, end = query.read, query.read + 2500
        line = query.line(query.at_s + 30.0 * burst, 0.4, start, end, end)
        lines.append(line.replace(RUN_ID, f"{1 + burst % runs}{RUN_ID[1:]}"))
        query.read = end
    return "\n".join(lines) + "\n"


def test_rows_after_a_pause_of_the_source_have_not_waited_since_the_batch_before(
    tmp_path: Path, profile: str
) -> None:
    look = watch(a_file(tmp_path, in_bursts(30)), profile=profile, target=TARGET).look()
    assert look.configuration.trigger_s == 1.0
    # No trigger before had found them, so they waited for one at most, and for their batch.
    assert look.latency is not None and look.latency.p99_s < 1.4
    assert look.late_ratio == 0.0


def test_a_driver_that_is_slow_between_batches_hides_no_wait(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    lines = [*query.head()]
    for number in range(40):
        start, end = query.read, query.read + 5500
        lines.append(query.line(query.at_s + 1.1 * number, 1.0, start, end, end))
        query.read, query.batch_id = end, query.batch_id + 1
    log = a_file(tmp_path, "\n".join(lines) + "\n")
    look = watch(log, profile=profile, target=TARGET, trigger=0.0).look()
    # Half of the time since the batch before, and the batch itself.
    assert look.latency is not None and look.latency.mean_s == pytest.approx(1.52, abs=0.02)


def test_rows_have_waited_while_the_query_was_down(tmp_path: Path, profile: str) -> None:
    log = a_file(tmp_path, in_bursts(30, runs=2))
    look = watch(log, profile=profile, target=TARGET, trigger="1s").look()
    assert look.late_ratio is not None and look.late_ratio > 0.2


def test_the_utilization_of_few_batches_is_that_of_their_triggers(
    tmp_path: Path, profile: str
) -> None:
    watcher = watch(a_file(tmp_path, a_log(3)), profile=profile, target=TARGET)
    look = watcher.look()
    durations_s = [observed.batch.duration_s for observed in watcher._live.observed]
    assert look.utilization_ratio == pytest.approx(sum(durations_s[:2]) / 2.0)


def test_a_clock_that_is_set_back_makes_no_latency_negative(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    lines = [*query.head(), *query.batches(30)]
    for number in range(30):
        query.batch_id += 1
        start, end = query.read, query.read + 5000
        lines.append(query.line(query.at_s - 3600.0 + number, 0.4, start, end, end))
        query.read = end
    look = watch(a_file(tmp_path, "\n".join(lines) + "\n"), profile=profile, target=TARGET).look()
    assert look.rate_per_s == pytest.approx(5000, rel=0.01)
    assert look.seen_s == pytest.approx(29.4)
    assert look.latency is not None and 0.4 < look.latency.mean_s < 1.4


@pytest.mark.parametrize(("idle_ago_s", "standing"), [(None, "silent"), (8.0, "held")])
def test_a_query_without_rows_is_not_silent(
    tmp_path: Path,
    profile: str,
    monkeypatch: pytest.MonkeyPatch,
    idle_ago_s: float | None,
    standing: str,
) -> None:
    now_s = BEGIN_S + 300.0
    monkeypatch.setattr("headway.api.watch.time", SimpleNamespace(time=lambda: now_s))
    text = a_log()
    if idle_ago_s is not None:
        at = datetime.fromtimestamp(now_s - idle_ago_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        idle = {"Event": schema.QUERY_IDLE, "id": QUERY_ID, "runId": RUN_ID, "timestamp": at}
        text += json.dumps(idle, separators=(",", ":")) + "\n"
    look = watch(a_file(tmp_path, text), profile=profile, target=TARGET).look()
    assert look.standing == standing
    assert look.silent_s == pytest.approx(idle_ago_s or 180.0, abs=1.0)


def test_a_query_that_has_failed_does_not_meet_its_target(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    end = {"Event": schema.QUERY_TERMINATED, "id": QUERY_ID, "runId": RUN_ID}
    how = ["--profile", profile, "--target", TARGET, "--once"]
    log = a_file(tmp_path, a_log() + json.dumps({**end, "exception": "left out"}) + "\n")
    assert run(["watch", log, *how]) == 4
    text = capsys.readouterr().out
    assert "orders (3f1c7e0a): the query has failed" in text
    assert run(["watch", log, *how, "--prometheus"]) == 4
    assert 'headway_active{query="orders (3f1c7e0a)"} 0\n' in capsys.readouterr().out
    stopped = a_file(tmp_path, a_log() + json.dumps({**end, "exception": None}) + "\n")
    assert run(["watch", stopped, *how]) == 0
    text = capsys.readouterr().out
    assert "the target is met" in text and "query      has ended" in text


def test_a_rate_that_needs_more_is_recommended(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    lines = [*query.head(), *query.batches(60)]
    table_rate = 5000.0
    watcher = watch(a_file(tmp_path, "\n".join(lines) + "\n"), profile=profile, target=TARGET)
    assert watcher.look().change is None
    path = tmp_path / "orders.headway.jsonl"
    busy = FakeQuery(a_profile(), 60 * table_rate, seed=2)
    busy.at_s, busy.read, busy.batch_id = query.at_s, query.read, query.batch_id
    offset = query.read - int(busy.rate_per_s * (query.at_s - 1_800_000_000.0))
    with path.open("a") as file:
        for number in range(90):
            latest = int(busy.rate_per_s * (query.at_s + number + 1 - 1_800_000_000.0)) + offset
            # Longer than the trigger interval: batches of 0.9 s would show that the target is kept.
            file.write(busy.line(query.at_s + number, 2.5, busy.read, latest, latest) + "\n")
            busy.read, busy.batch_id = latest, busy.batch_id + 1
    look = watcher.look()
    assert look.change is not None or not look.is_feasible
    if look.change is not None:
        assert look.change.then.executors > look.change.now.executors
        assert figures_of(look)["change"] is not None


def test_a_target_out_of_reach_is_not_explained_by_a_setting_that_holds(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rule waits for a second bin before it says that no setting suffices."""
    log = a_file(tmp_path, a_log())
    assert run(["watch", log, "--profile", profile, "--target", "p99 <= 20ms", "--once"]) == 3
    text = capsys.readouterr().out
    assert "no setting within bounds meets the target" in text
    assert "no setting within bounds meets the target at the forecast rate" in text
    assert "the setting holds" not in text


def looks_under(
    peak: tuple[float, float, float], tmp_path: Path, profile: str, target: str
) -> list[tuple[float, Look]]:
    """Looks at a query with a peak at ``start, end, rate``, after every sixth batch, and when."""
    query = FakeQuery(a_profile(), 5000.0, peak=peak)
    path = tmp_path / "orders.headway.jsonl"
    path.write_text("\n".join(query.head()) + "\n")
    watcher = watch(path, profile=profile, target=target, executors=(1, 2))
    found = []
    while query.at_s < BEGIN_S + peak[1] + 90.0:
        with path.open("a") as file:
            file.write("\n".join(query.batches(6)) + "\n")
        found.append((query.at_s - BEGIN_S, watcher.look()))
    return found


def test_a_peak_that_all_rows_stayed_in_time_under_is_not_out_of_bounds(
    tmp_path: Path, profile: str
) -> None:
    looks = looks_under((120.0, 180.0, 400_000.0), tmp_path, profile, "p99 <= 4s")
    assert all(not look.late_ratio for _, look in looks)
    for _, look in looks:
        assert look.is_feasible
        assert look.standing in ("learning", "held")


def test_a_peak_beyond_the_bounds_is_out_of_bounds_until_it_is_over(
    tmp_path: Path, profile: str
) -> None:
    start_s, end_s, rate_per_s = 120.0, 180.0, 3_000_000.0
    looks = looks_under((start_s, end_s, rate_per_s), tmp_path, profile, "p99 <= 2s")
    beyond = [at_s for at_s, look in looks if look.standing == "out_of_bounds"]
    assert beyond
    assert start_s < min(beyond)
    for _, look in looks:
        if look.standing == "out_of_bounds":
            assert not look.is_feasible
            assert look.why_no_change != Reason.HOLD.value
            text = as_text(look)
            assert "the setting holds" not in text


def cheaper_rows(profile: JobProfile, ratio: float) -> JobProfile:
    stages = (replace(one, task_per_row_s=one.task_per_row_s * ratio) for one in profile.stages)
    return replace(profile, stages=tuple(stages))


@pytest.mark.parametrize(
    ("peak", "jvm_age_s"), [((0.0, 25.0, 200_000.0), 3000.0), ((0.0, 0.0, 0.0), 1.0)]
)
def test_a_heavy_start_is_no_warm_up_for_a_profile_that_is_off_at_many_rows(
    tmp_path: Path, peak: tuple[float, float, float], jvm_age_s: float
) -> None:
    query = FakeQuery(a_profile(), 5000.0, peak=peak, jvm_age_s=jvm_age_s)
    is_fresh = jvm_age_s < 60.0
    lines = [*query.head()]
    for number in range(100):
        query.factor = 1.0 + 2.0 * 0.8**number if is_fresh else 1.0
        lines += query.batches(1)
    log = a_file(tmp_path, "\n".join(lines) + "\n")
    live = watch(log, profile=cheaper_rows(a_profile(), 0.7), target="p99 <= 9s")._live
    live.read()
    telling = live._telling()
    rows = np.array([float(one.batch.num_rows) for one in telling])
    expected_s = live._expected_s(live.configuration(), telling, rows)
    ratios = np.array([one.batch.duration_s for one in telling]) / expected_s
    num_cut = _warm_up_length(telling, ratios, rows)
    assert 3 <= num_cut <= 20 if is_fresh else num_cut == 0


def test_a_run_from_a_new_checkpoint_is_watched_anew(tmp_path: Path, profile: str) -> None:
    before = FakeQuery(a_profile(), 5000.0, factor=30.0, query_id="1" * 8 + QUERY_ID[8:])
    log = [*before.head(), *before.batches(40)]
    path = tmp_path / "orders.headway.jsonl"
    path.write_text("\n".join(log) + "\n")
    watcher = watch(path, profile=profile, target=TARGET, query="orders")
    late = watcher.look()
    assert late.standing != "held"
    ended = {"Event": schema.QUERY_TERMINATED, "id": before.query_id, "runId": "r"}
    after = FakeQuery(a_profile(), 5000.0)
    with path.open("a") as file:
        file.write("\n".join([json.dumps(ended), *after.batches(60)]) + "\n")
    look = watcher.look()
    assert look.query == "orders (3f1c7e0a)"
    assert look.standing == "held"
    assert (look.num_batches, look.late_ratio, look.backlog_rows) == (60, 0.0, 0)


def test_a_growing_log_is_read_on(tmp_path: Path, profile: str) -> None:
    query = FakeQuery(a_profile(), 5000.0)
    path = tmp_path / "orders.headway.jsonl"
    path.write_text("\n".join([*query.head(), *query.batches(4)]) + "\n")
    watcher = headway.watch(path, profile=profile, target=TARGET)
    assert isinstance(watcher, Watcher)
    assert watcher.look().standing == "learning"
    with path.open("a") as file:
        file.write("\n".join(query.batches(30)) + "\n")
    look = watcher.look()
    assert look.standing == "held"
    assert look.num_batches == 34


def test_prometheus_can_scrape_it(
    tmp_path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_file(tmp_path, a_log())
    how = ["--profile", profile, "--target", TARGET, "--once", "--prometheus"]
    assert run(["watch", log, *how]) == 0
    text = capsys.readouterr().out
    assert "# TYPE headway_latency_seconds gauge\n" in text
    assert 'headway_executors{query="orders (3f1c7e0a)"} 2\n' in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) is not None
    look = watch(log, profile=profile, target=TARGET).look()
    assert prometheus_text(look_metrics(look)).splitlines()[0].startswith("# HELP")
    assert as_text(look)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "mean <= 1s"}, "expected a quantile"),
        ({"target": "window p99 <= 9s"}, "the latency of windows is not measured"),
        ({"executors": (4, 2)}, "expected the fewest first"),
        ({"executors": 4}, "expected fewest and most"),
        ({"trigger": "often"}, "trigger"),
        ({"source": 7}, "expected a session, a streaming query, or the path of a log"),
    ],
)
def test_what_makes_no_sense_is_said(
    tmp_path: Path, profile: str, given: dict[str, object], message: str
) -> None:
    how: dict[str, object] = {
        "source": a_file(tmp_path, a_log(3)),
        "profile": profile,
        "target": TARGET,
        **given,
    }
    with pytest.raises(InputError, match=message):
        watch(**how)  # type: ignore[arg-type]


def test_a_session_of_connect_is_refused(profile: str) -> None:
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session", "streams": None})
    with pytest.raises(InputError, match="Spark Connect"):
        watch(kind(), profile=profile, target=TARGET)


def test_a_missing_log_is_invalid_input(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "no/such", "--profile", profile, "--target", TARGET, "--once"]) == 2
    assert "no such file" in capsys.readouterr().err
    with pytest.raises(EventLogError):
        watch("no/such", profile=profile, target=TARGET)
    both = ["--json", "--prometheus"]
    assert run(["watch", "x", "--profile", profile, "--target", TARGET, *both]) == 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_ctrl_c_is_how_it_ends_on_a_terminal_and_in_a_pipe(
    tmp_path: Path, profile: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_file(tmp_path, a_log())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headway.cli.watch.time.sleep", interrupted)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    assert run(["watch", log, "--profile", profile, "--target", TARGET]) == 0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_sigterm_leaves_the_terminal_as_it_was(
    tmp_path: Path,
    profile: str,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = a_file(tmp_path, a_log())
    monkeypatch.setattr("headway.cli.watch.time.sleep", lambda _: signal.raise_signal(SIGTERM))
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    before = signal.getsignal(SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run(["watch", log, "--profile", profile, "--target", TARGET])
    assert ended.value.code == 128 + SIGTERM
    assert signal.getsignal(SIGTERM) is before


def test_the_profile_of_a_log_with_several_queries_is_of_the_watched_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Query(
        name="clicks",
        query_id="ab" * 8,
        jobs=((MAP,),),
        operators=(),
        started_s=EPOCH_S + 200.0,
    )
    written = AppLog(executors=(4,)).add(Query(name="orders")).add(other)
    log = a_file(tmp_path, "\n".join([*written.lines, ""]))
    call = ["watch", log, "--profile", log, "--target", TARGET, "--once", "--json"]
    num_phases = {}
    for name in ("orders", "clicks", other.query_id[:8]):
        assert run([*call, "--query", name]) == 0
        look = json.loads(capsys.readouterr().out)
        num_phases[name] = len(look["predicted"]["phases_s"])
    # One has a stage more.
    assert num_phases["orders"] == num_phases["clicks"] + 1 == num_phases[other.query_id[:8]] + 1
    assert run([*call, "--query", "payments"]) == 2
    assert "'payments': no such query" in capsys.readouterr().err
