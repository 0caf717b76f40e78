"""`headway plan SPEC.yaml`: the plan that the file describes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headway.cli.main import run
from tests.seeds import few_settings

ROOT = Path(__file__).parents[2]
ORDERS = str(ROOT / "configs" / "orders.yaml")
NIGHTLY = str(ROOT / "configs" / "nightly-totals.yaml")
BATCH_PROFILE = str(ROOT / "examples" / "nightly-totals.profile.yaml")
BACKLOG = str(ROOT / "examples" / "nightly-backlog.profile.yaml")
PIPELINE = str(ROOT / "examples" / "pipelines" / "word-count.yaml")
DEADLINE = ("--target", "deadline <= 10m")


def test_a_spec_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", ORDERS, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["feasible"]
    assert data["target"]["text"] == "p99 <= 2.00 s"
    assert data["spark_conf"]["spark.executor.memory"] == "4g"


def test_options_count_instead_of_what_the_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rate", "30k/s", "--target", "p99 <= 1s", "--partitions", "4", "--max-nodes", "9"]
    assert run(["plan", ORDERS, *words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rate_per_s"] == 30_000
    assert data["target"]["limit_s"] == 1.0
    assert data["configuration"]["shuffle_partitions"] == 4
    assert data["spark_conf"]["spark.executor.memory"] == "4g"
    assert run(["plan", NIGHTLY, "--target", "deadline <= 50s", "--json"]) in (0, 3)
    assert json.loads(capsys.readouterr().out)["deadline"]["limit_s"] == 50.0


def test_declared_figures_are_never_called_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "configs" / "clicks-declared.yaml"), "--strict"]) == 5
    assert "Based on declared costs: nothing was measured." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "job", "profile"),
    [
        ([ORDERS], "orders", "examples/word-count.profile.yaml"),
        ([str(ROOT / "configs" / "clicks-declared.yaml")], "clicks", ""),
        ([NIGHTLY], "nightly-totals", ""),
        ([BATCH_PROFILE, "--target", "deadline <= 10m"], "nightly-totals", ""),
        ([BACKLOG, "--target", "deadline <= 10m"], "headway totals", ""),
        ([PIPELINE, "--target", "p99 <= 5s"], "word-count", ""),
    ],
)
def test_a_page_names_the_job_and_has_a_command_that_runs(
    words: list[str], job: str, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_settings(monkeypatch)
    assert run(["plan", *words, "-o", str(tmp_path / "plan.html")]) == 0
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert f"<title>{job}: " in page
    assert re.search(rf'<div class="soft">Headway plan[^·]* · {job} · ', page)
    assert f"<dt>from</dt><dd>{words[0]}</dd>" in page
    commands = re.findall(r'"command":"headway predict (\S+) ', page)
    assert [Path(file).resolve() for file in commands] == ([ROOT / profile] if profile else [])
    assert ('id="w-same"' in page) is bool(profile)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([ORDERS, "--concurrent-jobs", "3"], "--concurrent-jobs: only DStreams"),
        ([ORDERS, "--target", "deadline <= 1m"], "is a streaming job; expected latencies"),
        ([NIGHTLY, "--target", "p99 <= 1m"], "is a batch job; expected one 'deadline <= 10m'"),
        ([NIGHTLY, "--rate", "1k/s"], "--rate: not with a deadline"),
        ([str(ROOT / "configs" / "nodes.yaml")], "got 'NodeCatalog'; expected StreamingJob or"),
        (["none.yaml"], "none.yaml: no such file"),
    ],
)
def test_what_cannot_be_planned_says_why(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err


def test_every_fault_of_a_spec_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(Path(ORDERS).read_text().replace("24k/s", "fast").replace("<= 2s", "<= 2"))
    assert run(["plan", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert any("spec.rate: got 'fast'" in line for line in lines)
    assert any("spec.target: got" in line for line in lines)
    assert all(line.startswith(f"headway: {path}:") for line in lines)


def test_a_batch_job_is_explained_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([NIGHTLY], [str(ROOT / "examples" / "nightly-totals.profile.yaml"), *DEADLINE]):
        assert run(["plan", *words]) == 0
        short = capsys.readouterr().out
        assert run(["plan", *words, "--verbose"]) == 0
        verbose = capsys.readouterr().out
        assert verbose.splitlines()[0] == short.splitlines()[0]
        assert "run time by nodes" in verbose
        assert "\nWhere the run time comes from\n" in verbose
