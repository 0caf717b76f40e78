"""No theory on the shelf: every model is asked by a command, or waits with a reason."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import reach  # type: ignore[import-not-found]  # noqa: E402


def waits(name: str) -> bool:
    """Whether a function, or its whole module, is on the list."""
    return name in reach.WAITING or name.rpartition(".")[0] in reach.WAITING


def test_every_function_of_a_model_is_asked_or_waits() -> None:
    assert not [name for name in reach.unasked() if not waits(name)], (
        "no command asks them: wire or remove them, or say in scripts/reach.py what they wait for"
    )


def test_every_module_of_models_is_reached_by_a_command_or_waits() -> None:
    by_command = set().union(*reach.commands().values())
    short = [one.removeprefix("headway.models.") for one in reach.models() if one not in by_command]
    partly = {name.rpartition(".")[0] for name in reach.WAITING}
    assert not [one for one in short if one not in reach.WAITING and one not in partly]


def test_nothing_waits_that_is_asked_by_now() -> None:
    unasked = set(reach.unasked())
    by_command = set().union(*reach.commands().values())

    def still(name: str) -> bool:
        is_module = f"headway.models.{name}" in reach.trees()
        inside = any(one == name or one.startswith(f"{name}.") for one in unasked)
        return inside or (is_module and f"headway.models.{name}" not in by_command)

    assert not [name for name in reach.WAITING if not still(name)], "take them off the list"


def test_each_is_still_in_the_code() -> None:
    names = {
        f"{module.removeprefix('headway.models.')}.{name}"
        for module in reach.models()
        for name in reach.definitions(module)
    }
    modules = {module.removeprefix("headway.models.") for module in reach.models()}
    assert set(reach.WAITING) <= names | modules


def test_a_function_that_nothing_reads_is_found() -> None:
    assert "scheduling.d_over.d_over" in set(reach.unasked())
    assert ("headway.models.batches.dstreams", "dstreams_latency") in reach.asked()
    assert "headway.models.batches.dstreams" in reach.commands()["plan"]
