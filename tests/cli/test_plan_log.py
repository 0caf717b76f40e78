"""Event logs instead of profiles: a plan, a prediction or a page of a log in one command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import headway
from headway.api.file_kinds import is_log
from headway.cli.main import run
from headway.domain import FindingCode
from headway.errors import InputError
from headway.formats.profile_file import load_profile
from headway.planner.verdict import judged_setting, lowest_target
from tests.planner.near_limits import random_question
from tests.profiler.event_log import (
    AppLog,
    Query,
    write_gzip,
    write_plain,
    write_rolling,
    write_zstd,
)
from tests.seeds import seeds

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
QUERY = Query(num_batches=40, noise=0.1)
SLOWER = replace(
    QUERY,
    name="other",
    query_id="cccccccc-0000-4000-8000-000000000009",
    phases_s={phase: 3.0 * mean_s for phase, mean_s in QUERY.phases_s.items()},
)
ASKED = ("--rate", "5k/s", "--target", "p99 <= 3s")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in each form, and the profile of it."""
    made = tmp_path_factory.mktemp("logs")
    lines = AppLog().add(QUERY).lines
    write_plain(lines, made / "plain")
    write_gzip(lines, made / "gzip")
    write_zstd(lines, made / "zstd")
    (made / "rolling").mkdir()
    write_rolling(lines, made / "rolling" / "eventlog_v2_app")
    headway.profile(made / "plain").save(made / "job.yaml")
    return made


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> str:
    assert run([*map(str, words)]) == code, capsys.readouterr()
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["plain", "gzip", "zstd", "rolling"])
def test_a_log_is_planned_as_its_profile_is(
    form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_log(folder / form)
    assert not is_log(folder / "job.yaml")
    of_log = printed(capsys, "plan", folder / form, *ASKED, "--json")
    of_profile = printed(capsys, "plan", folder / "job.yaml", *ASKED, "--json")
    log_plan, profile_plan = json.loads(of_log), json.loads(of_profile)
    # A profile's file has six digits.
    assert log_plan["spark_conf"] == profile_plan["spark_conf"]
    assert log_plan["planned_latency_s"] == pytest.approx(profile_plan["planned_latency_s"], 1e-4)
    text = printed(capsys, "predict", folder / form, "--rate", "5k/s")
    assert text == printed(capsys, "predict", folder / "job.yaml", "--rate", "5k/s")


def test_the_profile_is_kept_where_it_is_asked_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", str(folder / "plain"), *ASKED, "--profile", str(tmp_path / "p.yaml")]) == 0
    _, err = capsys.readouterr()
    assert f"wrote {tmp_path / 'p.yaml'}" in err
    assert "39 batches" in err
    assert (tmp_path / "p.yaml").read_bytes() == (folder / "job.yaml").read_bytes()


def test_queries_are_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_plain(AppLog().add(QUERY).add(SLOWER).lines, tmp_path / "log")
    fast, slow = (
        headway.predict(log, rate="5k/s", queries=[str(query.name)]).batch_duration
        for query in (QUERY, SLOWER)
    )
    assert fast is not None
    assert slow is not None
    assert 1.5 * fast.mean_s < slow.mean_s
    assert run(["plan", str(log), "--query", "nobody", *ASKED]) == 2
    assert "nobody" in capsys.readouterr().err
    profile = headway.profile(log, queries=["orders"])
    for job in (profile, EXAMPLES / "word-count.profile.yaml"):
        with pytest.raises(InputError, match="queries: it chooses queries of an event log"):
            headway.predict(job, queries=["orders"])


@pytest.mark.parametrize("option", [("--query", "orders"), ("--profile", "p.yaml")])
@pytest.mark.parametrize("command", ["plan", "predict"])
def test_what_is_for_logs_is_refused_for_a_profile(
    command: str, option: tuple[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(folder / "job.yaml"), *option]) == 2
    assert f"{option[0]}: it is for event logs" in capsys.readouterr().err
    assert not Path("p.yaml").exists()


def test_without_rate_and_target_it_is_what_the_profiled_setting_meets(folder: Path) -> None:
    profile = load_profile(folder / "job.yaml")
    plan = headway.plan(profile)
    assert plan.feasible
    assert plan.rate_per_s == profile.arrivals.rate_per_s
    asked = headway.plan(
        profile,
        rate=profile.arrivals.rate_per_s,
        target=plan.target,
        trigger=profile.baseline.trigger_s,
        checkpoint="existing",
    )
    # Fewer nodes may do the same; the trigger and the state stay.
    assert {change.setting for change in plan.changes} <= {
        "executors",
        "rate limit",
        "driver cores",
    }
    assert (plan.configuration, plan.planned_s) == (asked.configuration, asked.planned_s)
    not_asked = (FindingCode.RATE_OF_PROFILE, FindingCode.TARGET_OF_PROFILE)
    assert tuple(finding.code for finding in plan.findings[:2]) == not_asked
    assert plan.findings[2:] == asked.findings
    of_rate = headway.plan(profile, rate="1k/s")
    assert FindingCode.RATE_OF_PROFILE not in {finding.code for finding in of_rate.findings}
    assert of_rate.target.limit_s < 2 * plan.target.limit_s


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_no_lower_limit_of_three_digits_is_met_by_the_setting(seed: int) -> None:
    question = random_question(seed)
    assert question is not None
    setting = question.profile.baseline
    target = lowest_target(question, setting)
    if target is None:
        assert not judged_setting(question.with_limit(0, 1e6), setting).met
        return
    asked = replace(question, target=target)
    assert judged_setting(asked, setting).met
    lower = question.with_limit(0, target.limit_s * (1.0 - 2e-2))
    assert not judged_setting(lower, setting).met


def test_a_setting_that_meets_nothing_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match=r"target is missing, and the profiled setting meets none"):
        headway.plan(folder / "job.yaml", rate="900M/s")


def test_a_job_with_an_end_has_the_deadline_that_its_run_meets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first command that a newcomer types is ``headway plan LOG``."""
    nightly = EXAMPLES / "nightly-totals.profile.yaml"
    lines = printed(capsys, "plan", nightly).splitlines()
    (limit,) = re.findall(r"nodes? meets? deadline <= ([\d.]+) s$", lines[0])
    assert "the lowest that the profiled setting meets: no other was given" in lines[1]
    assert "run time by nodes" in lines
    assert len(lines) <= 25
    assert run(["plan", str(nightly), "--target", f"deadline <= {limit}s"]) == 0
    assert capsys.readouterr().out.startswith(lines[0])
    fewest = headway.plan(nightly, target=f"deadline <= {limit}s").nodes
    assert headway.plan(nightly, target=f"deadline <= {float(limit) * 0.99}s").nodes > fewest


def test_a_job_in_real_time_mode_needs_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    live = str(EXAMPLES / "word-count.profile.yaml")
    assert run(["plan", live, "--rate", "5k/s", "--mode", "real-time"]) == 2
    assert "--target is missing" in capsys.readouterr().err


@pytest.mark.usefixtures("small_pages")
def test_a_log_is_explained_and_reported(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is the lowest p99 that the profiled setting meets" in " ".join(
        printed(capsys, "explain", folder / "plain").split()
    )
    page = tmp_path / "page.html"
    printed(capsys, "report", folder / "plain", "-o", page)
    of_log = page.read_text()
    printed(capsys, "report", folder / "job.yaml", "--log", folder / "plain", "-o", page)
    assert of_log.count("<svg") == page.read_text().count("<svg")
    assert str(folder / "plain") in of_log
    assert run(["report", str(folder / "plain"), "--log", "x", "-o", str(page)]) == 2
    assert "--log: " in capsys.readouterr().err
    printed(capsys, "plan", folder / "plain", *ASKED, "-o", page)
    assert f"headway predict {folder / 'plain'} " in page.read_text()


@pytest.mark.parametrize(
    ("name", "what", "commands"),
    [
        ("plain", "an event log of", ("plan", "predict", "report")),
        ("job.yaml", "the profile of", ("plan", "predict", "report")),
        (EXAMPLES / "nightly-totals.profile.yaml", "a batch application", ("plan", "report")),
        (ROOT / "configs/orders.yaml", "of the kind StreamingJob", ("plan", "lock", "check")),
        (ROOT / "configs/fleet.yaml", "of the kind CapacityPlan", ("capacity", "validate")),
        (ROOT / "configs/nodes.yaml", "of the kind NodeCatalog", ("validate",)),
    ],
)
def test_a_file_alone_is_described_with_what_fits(
    name: str | Path, what: str, commands: tuple[str, ...], folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = folder / name
    out = printed(capsys, file)
    assert out.startswith(f"{file}: ")
    assert what in out
    for command in commands:
        assert f"headway {command} {file}" in out


def test_a_plan_alone_is_described_with_what_fits(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(printed(capsys, "plan", folder / "job.yaml", *ASKED, "--json"))
    out = printed(capsys, plan)
    for command in ("explain", "emit", "report"):
        assert f"headway {command} {plan}" in out


def test_what_is_neither_a_command_nor_a_file_is_no_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["paln"]) == 2
    assert "did you mean 'headway plan'" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("hello\n")
    assert run([str(tmp_path / "notes.txt")]) == 2
    expected = "notes.txt: not a file that Headway reads; expected an event log, a profile, a spec"
    assert expected in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(["plan", str(tmp_path / "empty"), *ASKED]) == 2
    assert "no event log there" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        (EXAMPLES / "word-count.profile.yaml", "--rate", "24k/s", "--target", "p99 <= 2s"),
        (EXAMPLES / "word-count.profile.yaml", "--rate", "90k/s", "--target", "mean <= 1s",
         "--node-type", "m6i.2xlarge"),
        (EXAMPLES / "word-count.profile.yaml",),
        (EXAMPLES / "word-count.profile.yaml", "--rate", "24k/s", "--target", "p99 <= 9ms"),
        (EXAMPLES / "nightly-totals.profile.yaml", "--target", "deadline <= 2m"),
        *((ROOT / "configs" / name,) for name in ("orders.yaml", "clicks-declared.yaml")),
    ],
)  # fmt: skip
def test_an_answer_fits_one_screen(
    words: tuple[str | Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run(["plan", *map(str, words)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25, "\n".join(lines)
    # Without a rate, only what changes is listed.
    is_set = any("spark." in line or line.startswith("  ~") for line in lines)
    assert is_set or "infeasible" in lines[0]
