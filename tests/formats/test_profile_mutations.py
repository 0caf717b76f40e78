"""However a profile is damaged: read and used without a traceback or warning, or refused."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import headway
from headway.cli.main import run
from headway.domain import JobProfile
from headway.errors import HeadwayError
from headway.formats.profile_file import load_any_profile
from headway.limits import LARGEST_NUMBER, MOST_LONG
from tests.factories import a_profile
from tests.formats.profile_mutations import profile_mutations
from tests.seeds import examples
from tests.spec.test_mutations import PLACED

EXAMPLES = Path(__file__).parents[2] / "examples"
JOB = (EXAMPLES / "word-count.profile.yaml").read_text()
APPLICATION = (EXAMPLES / "nightly-totals.profile.yaml").read_text()


def num_used(texts: list[str], file: Path) -> int:
    """How many could be read; those are used, the others' messages have places."""
    used = 0
    for text in texts:
        file.write_text(text, encoding="utf-8")
        try:
            profile = load_any_profile(file)
        except HeadwayError as error:
            for line in str(error).splitlines():
                assert PLACED.match(line) or "expected" in line, (line, text)
            continue
        used += 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                if isinstance(profile, JobProfile):
                    headway.predict(profile)
                else:
                    headway.plan(profile, target="deadline <= 10m", max_nodes=3)
            except HeadwayError:
                pass
    return used


def test_some_hundred_damaged_profiles(tmp_path: Path) -> None:
    assert 20 < num_used(list(profile_mutations(300, seed=11)), tmp_path / "x.yaml") < 250


@pytest.mark.robustness
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_profiles(seed: int, tmp_path: Path) -> None:
    assert num_used(list(profile_mutations(1000, seed=seed)), tmp_path / "x.yaml") > 50


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, 2**31, 2**63 - 1, 2**63, 1e18, 5e-324]),
)


@examples(12, 60)
@given(place=st.integers(0, 10**6), number=NUMBERS, text=st.sampled_from([JOB, APPLICATION]))
def test_any_number_anywhere(
    place: int, number: float, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = yaml.safe_load(text)
    places = list(_numbers(document))
    holder, key = places[place % len(places)]
    holder[key] = number
    file = tmp_path_factory.getbasetemp() / "number.yaml"
    num_used([yaml.safe_dump(document, sort_keys=False)], file)


def _numbers(value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict | list):
        return []
    found: list[tuple[Any, Any]] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, int | float) and not isinstance(item, bool):
            found.append((value, key))
        found += _numbers(item)
    return found


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (
            JOB,
            r"\n  task_noise_ratio: ",
            "\n  observed: {zzz: 1}\n  task_noise_ratio: ",
            "stages[0].observed.zzz: unknown key",
        ),
        (JOB, r"exponent: [^,}\n]+", "exponent: null", "exponent: got nothing; expected a number"),
        (JOB, r"level: ", "'level ': ", "'level ': unknown key; did you mean 'level'?"),
        (
            APPLICATION,
            r"num_tasks: \d+",
            "num_tasks: 0",
            "stages[0]: num_tasks is 0; expected at least 1",
        ),
        (
            JOB,
            r"task_noise_ratio: [^,}\n]+",
            "task_noise_ratio: 11",
            "task_noise_ratio is 11.0; expected 0 or more, up to 10",
        ),
        (
            JOB,
            r"num_batches: \d+",
            f"num_batches: {2**63}",
            f"got {2**63}; expected a whole number between -{MOST_LONG} and {MOST_LONG}",
        ),
        (
            JOB,
            r"rate_per_s: [^,}\n]+",
            "rate_per_s: 1e300",
            f"got 1e+300; expected a number between -{LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}",
        ),
    ],
)
def test_each_fault_is_one_error_with_its_place(
    text: str,
    old: str,
    new: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damaged, num_changed = re.subn(old, new, text, count=1)
    assert num_changed
    file = tmp_path / "x.yaml"
    file.write_text(damaged, encoding="utf-8")
    target = ["--target", "deadline <= 10m"]
    command = ["plan", str(file), *target] if text == APPLICATION else ["predict", str(file)]
    assert run(command) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert all(PLACED.match(line) for line in printed.removeprefix("headway: ").splitlines()), (
        printed
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["plan", "--rate", "9/s", "--target", "p99<=3s", "--max-nodes", "1000000"], "10000"),
        (["plan", "--rate", "9/s", "--target", "p99<=3s", "--node-cores", "9999"], "4096"),
        (
            ["plan", "--rate", "9/s", "--target", "p99<=3s", "--node-type", "a:cores=999999999"],
            "cores is 999999999; expected at least 1 and at most 4,096",
        ),
        (["predict", "--executors", "999999999"], "100000"),
        (["predict", "--cores", "999999999"], "4096"),
        (["predict", "--partitions", "999999999"], "100000"),
        (["predict", "--trigger", "1e300s"], "at most ten years"),
        (["predict", "--rate", "1e300/s"], "is not a rate"),
    ],
)
def test_options_have_the_limits_of_specs(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = str(EXAMPLES / "word-count.profile.yaml")
    assert run([command[0], profile, *command[1:]]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executors": 10**9}, "executors is 1000000000; expected a whole number from 1 to"),
        ({"cores": 10**9}, "cores is 1000000000"),
        ({"partitions": 10**9}, "partitions is 1000000000"),
        ({"trigger": 1e300}, "at most ten years"),
        ({"rate": 1e300}, "expected a positive number"),
    ],
)
def test_library_calls_have_them_too(given: dict[str, float], message: str) -> None:
    with pytest.raises(HeadwayError, match=message):
        headway.predict(a_profile(), **given)  # type: ignore[call-overload]
    if "executors" not in given:
        asked: dict[str, Any] = {"rate": 100.0, **given}
        with pytest.raises(HeadwayError, match=message):
            headway.plan(a_profile(), target="p99 <= 3s", **asked)
