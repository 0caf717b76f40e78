"""Rows that a source deletes before they are read: the longest outage, refusals and cautions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.api.plan import plan
from headway.assumptions.resources import JVM_START_S
from headway.cli.main import run
from headway.domain import Drift, Finding, FindingCode, JobProfile, Plan, WarmUp
from headway.domain.finding import CAUTIONS
from headway.errors import InputError
from headway.models.job.setting import duration_model
from headway.words import words_of
from tests.factories import a_profile, kept

HOUR_S = 3600.0


def planned(profile: JobProfile | None = None, **options: Any) -> Plan:
    asked: dict[str, Any] = {"rate": 5000.0, "target": "p99 <= 30s", "cores": 4}
    return kept(plan(profile or a_profile(), **(asked | options)))


def survived(answer: Plan) -> Finding:
    (finding,) = (one for one in answer.findings if one.code is FindingCode.OUTAGE_SURVIVED)
    return finding


def first_batch_s(answer: Plan, rows: float, profile: JobProfile | None = None) -> float:
    """The first batch after an outage, as long as planned: found from the plan's own durations."""
    assert answer.durations is not None
    configuration = answer.configuration
    slots, partitions = configuration.num_slots, configuration.shuffle_partitions
    model = duration_model(profile or a_profile(), slots, partitions)
    return answer.durations.planned_ratio * float(model.mean_s(rows))


def test_an_outage_may_last_as_long_as_rows_are_kept_less_what_comes_before_they_are_read() -> None:
    # Rows that cost enough for a rate limit within ten times the profiled batch.
    scan, aggregate = a_profile().stages
    profile = a_profile(stages=(replace(scan, task_per_row_s=2e-4), aggregate))
    answer = planned(profile, retention="6h", target="p99 <= 3s")
    finding = survived(answer)
    limit_rows = answer.configuration.max_offsets_per_trigger
    assert limit_rows is not None
    batch_s = first_batch_s(answer, float(limit_rows), profile)
    assert finding.numbers["first_batch_s"] == pytest.approx(batch_s, rel=1e-3)
    assert finding.numbers["outage_s"] == pytest.approx(6 * HOUR_S - batch_s, rel=1e-6)
    assert "restart_s" not in finding.numbers
    assert "its time is unknown" in words_of(finding)


def test_a_restart_and_a_batch_without_a_limit_take_time_too() -> None:
    warm_up = WarmUp(start_age_s=12.0, first_batch_extra_s=8.0, steady_age_s=80.0)
    profile = replace(
        a_profile(), warm_up=warm_up, drift=Drift(exponent=0.0, reference_age_s=300.0),
        shape=replace(a_profile().shape, sources=("rate",)),
    )  # fmt: skip
    answer = planned(profile, retention="2h")
    assert answer.configuration.max_offsets_per_trigger is None
    numbers = survived(answer).numbers
    assert answer.durations is not None
    # The process until the application begins, from then to the first batch, and its cold code.
    restart_s = JVM_START_S.value + 12.0 + answer.durations.planned_ratio * 8.0
    assert numbers["restart_s"] == pytest.approx(restart_s, rel=1e-3)
    rows = 5000.0 * (numbers["outage_s"] + restart_s)
    assert numbers["first_batch_s"] == pytest.approx(first_batch_s(answer, rows), rel=1e-3)
    total_s = numbers["outage_s"] + restart_s + numbers["first_batch_s"]
    assert total_s == pytest.approx(2 * HOUR_S, rel=1e-6)


def test_without_an_option_nothing_is_said() -> None:
    assert not [one for one in planned().findings if one.code is FindingCode.OUTAGE_SURVIVED]


def test_an_outage_as_long_as_the_retention_is_refused() -> None:
    targets = ["p99 <= 30s", "catch_up <= 3h after 6h"]
    with pytest.raises(InputError, match=r"retention 6 h: an outage of 6 h loses rows on any"):
        planned(target=targets, retention="6h")
    assert planned(target=targets, retention="7h").feasible


def test_an_outage_a_little_shorter_is_a_caution() -> None:
    longest_s = survived(planned(retention="6h")).numbers["outage_s"]
    outage_s = 0.5 * (longest_s + 6 * HOUR_S)
    targets = ["p99 <= 30s", f"catch_up <= 12h after {outage_s:.6f}s"]
    answer = planned(target=targets, retention="6h")
    codes = [one.code for one in answer.findings]
    assert FindingCode.RETENTION_LOSES_ROWS in codes
    (caution,) = (one for one in answer.findings if one.code is FindingCode.RETENTION_LOSES_ROWS)
    assert caution.code in CAUTIONS
    assert words_of(caution).startswith("caution: an outage of 5.99 h loses rows")
    shorter = ["p99 <= 30s", f"catch_up <= 12h after {longest_s - 60.0:.6f}s"]
    fewer = planned(target=shorter, retention="6h")
    assert FindingCode.RETENTION_LOSES_ROWS not in [one.code for one in fewer.findings]


def test_the_command_and_the_spec_file_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
    options = ["--rate", "24k/s", "--target", "p99 <= 2s", "--retention", "6h", "--json"]
    assert run(["plan", str(example), *options]) == 0
    by_command = json.loads(capsys.readouterr().out)
    spec = tmp_path / "job.yaml"
    spec.write_text(
        "apiVersion: headway/v1\nkind: StreamingJob\nmetadata: {name: words}\nspec:\n"
        f"  profile: {example}\n  rate: 24k/s\n  target: p99 <= 2s\n  retention: 6h\n"
    )
    assert run(["plan", str(spec), "--json"]) == 0
    by_spec = json.loads(capsys.readouterr().out)
    (first,) = (one for one in by_command["findings"] if one["code"] == "outage_survived")
    (second,) = (one for one in by_spec["findings"] if one["code"] == "outage_survived")
    assert first["numbers"]["retention_s"] == second["numbers"]["retention_s"] == 21600.0
    assert any("an outage of at most 5.9" in text for text in by_command["warnings"])


def test_it_is_refused_where_losses_are_not_modelled() -> None:
    with pytest.raises(InputError, match=r"retention.*micro-batches"):
        plan(a_profile(), rate=5000.0, target="p99 <= 1s", mode="real-time", retention="6h")
