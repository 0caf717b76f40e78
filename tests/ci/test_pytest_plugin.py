"""The plugin: plans in tests, and nothing heavy in runs that do not ask for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headway.errors import InputError
from headway.pytest_plugin import assert_meets
from tests.factories import a_plan, an_infeasible_plan

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("target", ["p99 <= 3s", "mean <= 1.5s", "p95 <= 2s", "batch p99 <= 1s"])
def test_a_target_that_the_plan_meets_passes(target: str) -> None:
    assert_meets(a_plan(), target)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        # The plan's own statistic counts at the plan's confidence, not as predicted.
        ("p99 <= 2.5s", "p99 <= 2.50 s is missed: up to 2.60 s"),
        ("mean <= 1.25s", "up to 1.30 s"),
        ("batch mean <= 500ms", "batch mean <= 500 ms is missed: predicted 600 ms"),
    ],
)
def test_what_is_not_kept_says_by_how_much(target: str, expected: str) -> None:
    with pytest.raises(AssertionError, match=expected):
        assert_meets(a_plan(), target)


def test_a_plan_that_misses_its_own_promise_fails() -> None:
    with pytest.raises(AssertionError, match="infeasible: p99 <= 3"):
        assert_meets(an_infeasible_plan())


@pytest.mark.parametrize("target", ["p80 <= 1s", "window p99 <= 9s", "soon"])
def test_what_cannot_be_held_is_reported(target: str) -> None:
    with pytest.raises(InputError):
        assert_meets(a_plan(), target)


def test_the_fixture_plans_specs_and_profiles(tmp_path: Path) -> None:
    test = tmp_path / "test_orders.py"
    test.write_text(
        "from headway.pytest_plugin import assert_meets\n\n"
        "def test_spec(headway_plan):\n"
        f"    plan = headway_plan({str(ROOT / 'configs' / 'orders.yaml')!r})\n"
        "    assert_meets(plan, 'p99 <= 2s')\n\n"
        "def test_profile(headway_plan):\n"
        f"    plan = headway_plan({str(ROOT / 'examples' / 'word-count.profile.yaml')!r},\n"
        "                        rate='24k/s', target='p99 <= 100ms')\n"
        "    assert_meets(plan)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly",
         "-c", "/dev/null", "--rootdir", str(tmp_path), str(test)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "infeasible: p99 <= 100 ms" in done.stdout


def test_errors_show_the_line_of_the_test_and_no_frame_of_ours(tmp_path: Path) -> None:
    test = tmp_path / "test_orders.py"
    test.write_text(
        "from headway.pytest_plugin import assert_meets\n\n"
        "def test_plan(headway_plan):\n"
        "    headway_plan('no-such.yaml', rate='24k/s', target='p99 <= 1s')\n\n"
        "def test_target(headway_plan):\n"
        f"    plan = headway_plan({str(ROOT / 'configs' / 'orders.yaml')!r})\n"
        "    assert_meets(plan, 'soon')\n\n"
        "def test_missed(headway_plan):\n"
        f"    plan = headway_plan({str(ROOT / 'configs' / 'orders.yaml')!r})\n"
        "    assert_meets(plan, 'p99 <= 1ms')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly",
         "-c", "/dev/null", "--rootdir", str(tmp_path), str(test)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "3 failed" in done.stdout, done.stdout + done.stderr
    assert not re.search(r"headway/\w+\.py:\d+|headway/api", done.stdout)
    assert "no-such.yaml: no such file" in done.stdout


def test_loading_it_loads_nothing_heavy() -> None:
    code = (
        "import sys; import pytest; before = set(sys.modules); import headway.pytest_plugin; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['headway']"
