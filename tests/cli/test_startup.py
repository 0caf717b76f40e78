"""Start-up is part of the answer: heavy packages stay out, and pipes may close."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from headway.formats.profile_file import dump_profile
from tests.factories import a_profile
from tests.profiler.event_log import AppLog, Query, write_rolling

HEAVY = ("pyspark", "pandas", "cvxpy", "scipy", "matplotlib", "rich", "mcp", "anyio")
# Earlier releases load all that they have.
IS_NUMPY_LAZY = version("numpy") >= "2"
OF_NUMPY = ("numpy.polynomial", "numpy.random", "numpy.ma", "_hashlib") if IS_NUMPY_LAZY else ()
_LISTING = """
import sys
from headway.cli.main import run

code = run(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
sys.exit(code)
"""
PLAN = ["--rate", "5k/s", "--target", "p99 <= 5s"]


@pytest.fixture(scope="module")
def profile_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("profile") / "job.profile.yaml"
    path.write_text(dump_profile(a_profile()), encoding="utf-8")
    return str(path)


def loaded_modules(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LISTING, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["predict", "PROFILE"], ["plan", "PROFILE", *PLAN]], ids=["predict", "plan"]
)
def test_answers_come_without_heavy_packages(profile_file: str, arguments: list[str]) -> None:
    words = [profile_file if word == "PROFILE" else word for word in arguments]
    assert not loaded_modules(*words).intersection((*HEAVY, *OF_NUMPY))


def test_a_plan_of_a_stream_loads_nothing_of_batch_jobs_and_spec_files(profile_file: str) -> None:
    of_others = (
        "yaml",
        "headway.domain.application_profile",
        "headway.domain.deadline",
        "headway.spec.forms",
        "pydantic_core",
    )
    assert not loaded_modules("plan", profile_file, *PLAN).intersection(of_others)


def test_a_process_ends_without_looking_for_garbage() -> None:
    script = (
        "import atexit, gc\n"
        "from headway.cli.main import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 1000))\n"
        "main(['schema'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("True\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "configs/orders.yaml", "configs/fleet.yaml"],
        ["check", "configs/orders.yaml", "--baseline", "configs/headway.lock"],
        ["emit", "configs/orders.yaml", "--format", "kubeflow"],
        ["init", "-"],
        ["schema"],
    ],
    ids=lambda words: words[0],
)
def test_specs_are_read_and_checked_without_heavy_packages(arguments: list[str]) -> None:
    root = Path(__file__).parents[2]
    words = [str(root / word) if word.startswith("configs/") else word for word in arguments]
    # What reads a folder of a package as a zip brings half of the standard library along.
    assert not loaded_modules(*words).intersection((*HEAVY, "zipfile"))


def test_logs_are_profiled_without_heavy_packages(tmp_path: Path) -> None:
    log = write_rolling(AppLog().add(Query()).lines, tmp_path / "eventlog_v2_app-1")
    loaded = loaded_modules("profile", str(log))
    others = ("pyarrow", "http.client", "subprocess", "zipfile")
    assert not loaded.intersection((*HEAVY, *others, *OF_NUMPY))
    assert {"msgspec", "numpy"} <= loaded


def test_help_comes_without_numbers_and_schemas() -> None:
    """All in one process: the first one that loads such a module is named."""
    commands = ["predict", "plan", "profile", "demo", "emit", "check", "lock", "validate"]
    commands += ["capacity", "init", "schema", "mcp"]
    script = (
        "import sys\n"
        "from headway.cli.main import run\n"
        f"for command in {[[], *([name] for name in commands)]}:\n"
        "    assert run([*command, '--help']) == 0\n"
        f"    loaded = set(sys.modules) & set({[*HEAVY, 'numpy', 'pydantic', 'yaml', 'msgspec']})\n"
        "    assert not loaded, (command, loaded)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["plan", "PROFILE", *PLAN], ["plan", "-h"], ["--help"]])
def test_a_reader_that_has_seen_enough_ends_it_quietly(
    profile_file: str, arguments: list[str]
) -> None:
    words = [profile_file if word == "PROFILE" else word for word in arguments]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "headway", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_full_device_is_one_line(profile_file: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "headway", "plan", profile_file, *PLAN],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["headway: i/o: No space left on device"]
