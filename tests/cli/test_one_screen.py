"""Plans of every kind of job fit one screen, as far as they are on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.main import run
from tests.goldens.commands import COMMANDS

RECORD = Path(__file__).parents[1] / "goldens" / "record"
LONG = ("--verbose", "--json", "--format", "--quiet")
PLANS = [
    name
    for name, command in COMMANDS.items()
    # Pipelines list their rules of thumb.
    if command.startswith("plan ") and "pipelines/" not in command
    if not name.endswith("refused") and not any(option in command for option in LONG)
]


@pytest.mark.parametrize("name", PLANS)
def test_an_answer_on_record_fits_one_screen(name: str) -> None:
    _, out = (RECORD / f"{name}.txt").read_text(encoding="utf-8").split("== stdout\n")
    lines = out.partition("== stderr")[0].splitlines()
    assert 5 < len(lines) <= 25, "\n".join(lines)
    # What the run did is said once, and nothing is said of what has no value.
    assert not any(line.split()[-2:] == ["rate", "0/s"] for line in lines if line.split())


def test_there_are_plans_of_every_kind() -> None:
    kinds = {name.partition("-")[0] for name in PLANS}
    assert kinds >= {"stream", "windows", "batch", "backlog", "dstreams", "real", "spec"}


@pytest.mark.parametrize("limit", ["1s", "50s"])
def test_a_deadline_that_no_node_type_meets_fits_one_screen(
    limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what only some answers have: costs, rejected node types, a run that would help."""
    profile = RECORD.parents[2] / "examples" / "nightly-totals.profile.yaml"
    node_types = ("m:cores=4,memory=16g,price=0.2", "small:cores=1,memory=2g,price=0.05")
    options = [word for node_type in node_types for word in ("--node-type", node_type)]
    assert run(["plan", str(profile), "--target", f"deadline <= {limit}", *options]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25, "\n".join(lines)
    assert lines[0].startswith("infeasible: ")
    assert any(line.startswith("  nearest target ") for line in lines)
    assert any(line.startswith("  small: ") for line in lines)
    assert any(line.startswith("  ~") for line in lines)
    assert lines[-1] == "--verbose shows the nearest plan in full"
