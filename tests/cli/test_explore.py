"""``headway explore``: what is wrong with a spec is said before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.results import as_text, figures_of
from headway.cli.main import run
from headway.domain import Explored
from headway.domain.later import with_changes
from headway.errors import InputError
from tests.factories import a_plan, a_profile

SPEC = """\
apiVersion: headway/v1
kind: Exploration
metadata: {name: counts}
spec: {code: counts.py, rate: 20k/s, target: p99 <= 3s, budget: 1m}
"""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "no such file; expected a Python file"),
        ("other = 1\n", "counts.py: has no function build(spark, setting)"),
        ("1 / 0\n", "counts.py: cannot be run (ZeroDivisionError: division by zero)"),
    ],
)
def test_code_that_starts_no_query_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str | None, message: str
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    if code is not None:
        (tmp_path / "counts.py").write_text(code)
    assert run(["explore", str(tmp_path / "spec.yaml"), "--folder", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_another_kind_of_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counts.py").write_text("def build(spark, setting): ...\n")
    (tmp_path / "spec.yaml").write_text(SPEC.replace("Exploration", "StreamingJob"))
    assert run(["explore", str(tmp_path / "spec.yaml")]) == 2
    assert "spec.yaml" in capsys.readouterr().err


def test_the_example_is_valid_and_a_budget_too_short_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["validate", "examples/exploring/counts.yaml"]) == 0

    @contextmanager
    def no_session(**_: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr("headway.api.explore.embedded_session", no_session)
    asked = ["explore", "examples/exploring/counts.yaml", "--budget", "5s"]
    assert run([*asked, "--folder", str(tmp_path / "out")]) == 2
    assert "too short for one run of 20.0 s" in capsys.readouterr().err


def test_progress_before_the_first_run_says_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_a_while(_spec: Path, *, progress: Any, **_: object) -> None:
        progress.__self__._print()
        raise InputError("stopped here")

    monkeypatch.setattr("headway.cli.explore.explore_spec", after_a_while)
    assert run(["explore", "examples/exploring/counts.yaml"]) == 2
    assert "s] starting Spark\n" in capsys.readouterr().err


def test_the_text_says_what_the_json_says(tmp_path: Path) -> None:
    found = Explored(
        folder=tmp_path,
        profile=a_profile(),
        plan=a_plan(),
        num_runs=6,
        spent_s=180.0,
        width_ratio=0.23,
    )
    text, data = as_text(found), figures_of(found)
    assert text.startswith("6 runs in 3 min: the 90% interval is 23% wide on either side")
    assert "the budget is spent" in text
    assert data["num_runs"] == 6
    assert data["answered"] is False


@pytest.mark.parametrize(
    ("probability", "outcome"),
    [(0.52, "too close to tell, 52% certain, 95% asked"), (0.0, "met by none of the settings")],
)
def test_a_target_that_may_be_met_is_not_called_missed(
    tmp_path: Path, probability: float, outcome: str
) -> None:
    missed = headway.plan(a_profile(), rate="5k/s", target="p99 <= 1ms", max_nodes=1)
    explored = Explored(
        folder=tmp_path,
        profile=a_profile(),
        plan=with_changes(missed, kept_probability=probability),
        num_runs=2,
        spent_s=60.0,
        width_ratio=0.3,
    )
    assert f"p99 <= 1 ms at 5k/s: {outcome}" in as_text(explored)


def test_what_each_run_showed_stays_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_runs(spec: str, *, progress: Any, lesson: Any, folder: Path, **_: Any) -> Explored:
        progress("warming up")
        for number in (1, 2):
            progress(f"run {number}: as fast as possible")
            lesson(f"run {number} (as fast as possible): p99 1.20 s measured")
        return Explored(
            folder=folder,
            profile=a_profile(),
            plan=a_plan(),
            num_runs=2,
            spent_s=60.0,
            width_ratio=0.3,
        )

    monkeypatch.setattr("headway.cli.explore.explore_spec", two_runs)
    assert run(["explore", "spec.yaml", "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert [line for line in lines if line.startswith("run ")] == [
        "run 1 (as fast as possible): p99 1.20 s measured",
        "run 2 (as fast as possible): p99 1.20 s measured",
    ]
    assert "warming up" in lines[0]
    assert out.startswith("2 runs in ")
