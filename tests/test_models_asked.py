"""No theory on the shelf: every model is asked by a command or by a call of the library."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import reach  # type: ignore[import-not-found]  # noqa: E402


def test_every_function_of_a_model_is_asked() -> None:
    assert set(reach.unasked()) == set(reach.OTHER_SIDES), (
        "what nothing asks is wired, moves to tests/oracles, or goes; what is asked by now is "
        "taken off the list in scripts/reach.py"
    )


def test_every_module_of_models_is_reached_by_a_command_or_a_call() -> None:
    found = set().union(*reach.commands().values(), *reach.calls().values())
    assert not [one for one in reach.models() if one not in found]


def test_a_function_that_nothing_reads_is_found() -> None:
    trees = reach.trees()
    assert "headway.models.stages.skew" in trees
    assert ("headway.models.batches.dstreams", "dstreams_latency") in reach.asked()
    assert "headway.models.batches.dstreams" in reach.commands()["plan"]
    # Read in a table beside the functions, not in one of them.
    assert ("headway.models.scheduling.order", "slack_s") in reach.asked()
    assert "headway.models.scheduling.punctual" in reach.calls()["headway.shed"]
    assert "stages.shared_resources.alternating_slowdown" in set(reach.unasked())
