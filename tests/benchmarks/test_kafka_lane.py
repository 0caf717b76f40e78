"""The Kafka lane without Kafka: its cases, its measures, its page, and why it would be skipped."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka.cases import MICRO_BATCH_CASES, REAL_TIME_CASES, Job, Mode
from kafka.page import page
from kafka.planned import implied_gap_s
from kafka.real_time import judge_real_time
from kafka.runs import recovery_of
from kafka_broker import jars
from kafka_lane import PLANNED_RESULTS

from headway.models.real_time.latency import real_time_latency
from headway.models.real_time.stages import RealTimeStage

ROOT = Path(__file__).parents[2]

_EPOCH_S = 1_900_000_000.0


def batch(started_s: float, waited_s: float, duration_s: float) -> Mapping[str, Any]:
    """A progress event; times count from the restart."""
    began_s = _EPOCH_S + started_s
    return {
        "timestamp": datetime.fromtimestamp(began_s, UTC).isoformat(timespec="milliseconds"),
        "numInputRows": 100,
        "durationMs": {"triggerExecution": round(duration_s * 1e3)},
        "observedMetrics": {"arrivals": {"first_us": round((began_s - waited_s) * 1e6)}},
    }


def test_every_case_has_topics_of_its_own_and_three_of_each_job_are_fitted() -> None:
    names = [case.name for case in MICRO_BATCH_CASES + REAL_TIME_CASES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,200}", name) for name in names)
    for job in (Job.TRANSFORM, Job.COUNT):
        fitted = [case for case in MICRO_BATCH_CASES if case.job is job and case.is_fitted]
        assert [case.trigger_s for case in fitted] == [0.0, 1.0, 2.0]
        assert all(
            (case.partitions, case.first_share, case.mode) == (4, None, Mode.PLAIN)
            for case in fitted
        )
    assert not any(case.is_fitted for case in REAL_TIME_CASES)


def test_a_recovery_lasts_until_a_batch_is_back_to_its_usual_size() -> None:
    rows = [100, 800, 400, 111, 109, 100, 120]
    events = [
        {**batch(float(second), 11.0 - second, 0.4), "numInputRows": many}
        for second, many in enumerate(rows)
    ]
    seen = recovery_of(events, usual_rows=100.0)
    assert seen["piled_up_s"] == pytest.approx(11.0)
    assert seen["num_batches"] == 4
    assert seen["time_s"] == pytest.approx(4.0)
    assert seen["is_over"]
    assert not recovery_of(events[:4], usual_rows=100.0)["is_over"]


def test_jars_that_are_not_what_was_pinned_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "headway" / "kafka" / "broker"
    folder.mkdir(parents=True)
    (folder / "one.jar").write_bytes(b"another")
    pinned = tmp_path / "sha256.txt"
    pinned.write_text(f"{hashlib.sha256(b'one').hexdigest()}  broker/one.jar\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "_CHECKSUMS", pinned)
    with pytest.raises(jars.KafkaUnavailableError, match=r"one\.jar has SHA-256 .* delete it"):
        jars.broker_class_path()


def test_without_jars_and_maven_the_lane_says_why_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(jars.KafkaUnavailableError, match="no mvn on PATH"):
        jars.broker_class_path()


def test_the_published_page_is_that_of_the_committed_results() -> None:
    results = ROOT / "benchmarks" / "accuracy" / "results"
    records, planned = (
        [json.loads(line) for line in (results / name).read_text().splitlines()]
        for name in ("kafka.jsonl", PLANNED_RESULTS)
    )
    assert page(records, planned) == (ROOT / "docs" / "kafka-accuracy.md").read_text()


def test_a_query_without_figures_has_its_reason_on_the_page() -> None:
    about = {
        **dict.fromkeys(("made", "command", "headway", "pyspark", "python", "machine"), "x"),
        "run_s": 1.0,
        "warm_s": 1.0,
        "jars": ["one.jar"],
    }
    failed = {"name": "count-p4", "case": {"mode": "plain"}, "failed": "Spark refuses it"}
    instant = {"name": "count-p2", "case": {"mode": "real time"}, "failed": "no slots"}
    text = page([{"about": about}, failed, instant])
    assert "* count-p4: Spark refuses it" in text
    assert "* count-p2: no figures: no slots" in text


def test_the_gap_that_a_p99_implies_is_the_one_it_was_made_with() -> None:
    case = next(case for case in REAL_TIME_CASES if (case.job, case.partitions) == ("transform", 4))
    stage = RealTimeStage(num_tasks=4, row_s=3e-5, row_cv=1.0)
    law = real_time_latency(case.rate_per_s, [stage], trigger_s=5.0, gap_s=0.2)
    p50_s, p95_s, p99_s = (0.002 + float(law.quantile_s(level)) for level in (0.5, 0.95, 0.99))
    loads = {"customMetrics": {"rocksdbLoadLatencyMs": 120}, "numStateStoreInstances": 4}
    run = {
        "name": case.name,
        "case": {
            "job": "transform", "partitions": 4, "rate_per_s": case.rate_per_s, "trigger_s": 5.0,
            "mode": "real time",
        },
        "shuffle_partitions": 2,
        "batches": [{"started_s": place * 5.12, "state": [loads]} for place in range(3)],
        "launch_s": [0.03, 0.07, 0.05],
        "to_append_s": {"mean": 0.002 + law.mean_s, "p50": p50_s, "p95": p95_s, "p99": p99_s},
    }  # fmt: skip
    (judged,) = judge_real_time([run])
    assert judged["predicted"]["gap_s"] == pytest.approx(0.12 + 0.05 + 0.03)
    assert judged["predicted"]["implied_gap_s"] == pytest.approx(0.2, abs=0.003)
    assert judged["predicted"]["p99"] == pytest.approx(p99_s, rel=0.02)
    assert judge_real_time([{"name": "x", "failed": "y", "case": {}}])


def test_the_gap_that_a_planned_p99_implies_is_the_one_it_was_made_with() -> None:
    stage = RealTimeStage(num_tasks=4, row_s=2e-5, row_cv=1.0)
    predicted_s, measured_s = (
        float(real_time_latency(4000.0, [stage], trigger_s=10.0, gap_s=gap_s).quantile_s(0.99))
        for gap_s in (0.2, 0.13)
    )
    run = {"job": "transform", "predicted": {"p99": predicted_s}, "measured": {"p99": measured_s}}
    assert implied_gap_s(run) == pytest.approx(0.13, abs=0.001)
