"""`headway plan SPEC.yaml`: the plan that the file describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.cli.main import run

ROOT = Path(__file__).parents[2]
ORDERS = str(ROOT / "configs" / "orders.yaml")


def test_a_spec_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", ORDERS, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["feasible"]
    assert data["target"]["text"] == "p99 <= 2.00 s"
    assert data["spark_conf"]["spark.executor.memory"] == "4g"


def test_declared_figures_are_never_called_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ROOT / "configs" / "clicks-declared.yaml"), "--strict"]) == 5
    assert "nothing of this job was measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([ORDERS, "--max-nodes", "3"], "--max-nodes: "),
        ([str(ROOT / "examples" / "word-count.profile.yaml")], "Missing option '--target'"),
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
