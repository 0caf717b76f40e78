"""Each Python process of Headway is started in one way, without its working folder on the path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from headway.errors import InputError
from headway.processes import AllCores, python_command, python_environment
from tests.sources import PACKAGE

_STARTS_PYTHON = re.compile(r"\[\s*(?:str\()?sys\.executable|\"python3?\"|'python3?'")


def test_only_one_module_starts_python() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if _STARTS_PYTHON.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"processes.py"}


def test_a_process_imports_what_this_one_imports_and_nothing_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headway.py").write_text("raise SystemExit('executed')")
    # Beside the checkout of these tests there may be an installed one.
    without_headway = [folder for folder in sys.path if not (Path(folder) / "headway").is_dir()]
    for entries in (["", *sys.path], ["", *without_headway]):
        monkeypatch.setattr(sys, "path", entries)
        code = "import headway, sys; print(headway.__file__, sys.flags.safe_path)"
        done = subprocess.run(
            python_command("-c", code),
            env=dict(python_environment()),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [str(PACKAGE / "__init__.py"), "True"]


def a_process_ends(number: int, process_of_test: int) -> int:
    """A square; any other process than that of the test ends before it has one."""
    if number == 3 and os.getpid() != process_of_test:
        os._exit(1)
    return number * number


def a_refusal(number: int) -> int:
    if number >= 20:
        raise InputError(f"{number} is too much")
    return number


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.processes.num_cores", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_results_come_in_order_whichever_process_computes_them() -> None:
    with AllCores() as cores:
        process_ids = cores.compute([partial(slow_process_id, number) for number in range(40)])
        assert cores.compute([partial(pow, 2, number) for number in range(5)]) == [1, 2, 4, 8, 16]
    assert [number for number, _ in process_ids] == list(range(40))
    assert len({process_id for _, process_id in process_ids}) == 2


def slow_process_id(number: int) -> tuple[int, int]:
    time.sleep(0.02)
    return number, os.getpid()


@pytest.mark.usefixtures("two_cores")
def test_this_process_does_something_else_first_while_another_one_computes() -> None:
    with AllCores() as cores:
        waits = partial(time.sleep, 3.0)
        outcomes = cores.compute(
            [partial(slow_process_id, number) for number in range(20)], first=waits
        )
    assert os.getpid() not in {process_id for _, process_id in outcomes}
    # Also where no other process computes.
    done: list[int] = []
    assert AllCores().compute([partial(pow, 2, 3)], first=lambda: done.append(1)) == [8]
    assert done == [1]


@pytest.mark.usefixtures("two_cores")
def test_what_a_process_does_not_compute_this_one_computes() -> None:
    computations = [partial(a_process_ends, number, os.getpid()) for number in [3] * 20 + [4]]
    with AllCores() as cores:
        assert cores.compute(computations) == [9] * 20 + [16]
    # Nor can everything be handed to another process.
    unpicklable = [lambda number=number: number for number in range(20)]
    with AllCores() as cores:
        assert cores.compute(unpicklable) == list(range(20))


@pytest.mark.usefixtures("two_cores")
def test_the_first_error_is_raised_as_if_one_process_had_computed_all() -> None:
    with AllCores() as cores, pytest.raises(InputError, match=r"^20 is too much$"):
        cores.compute([partial(a_refusal, number) for number in range(30)])
