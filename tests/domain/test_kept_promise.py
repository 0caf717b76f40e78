"""Promises come back from plans and locks as they were made, of every kind, to the last digit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.domain import (
    Burst,
    CatchUp,
    Deadline,
    DuringBurst,
    Metric,
    Promise,
    Target,
    parse_promise,
)
from headway.domain.kept_promise import PROMISE_FORM, KeptPromise, _numbers, is_about
from headway.errors import InputError
from headway.formats.as_json import deadline_json, json_text, plan_json
from headway.formats.from_json import parse_any_plan, parse_plan
from headway.formats.lock_file import Lock, Locked, LockedBatch, load_lock, save_lock
from tests.factories import a_plan
from tests.planner.test_deadline import answer

durations_s = st.floats(1e-3, 1e6)
written_s = st.integers(1, 10**9 - 1).map(lambda number: number / 1000)


def promises(seconds: st.SearchStrategy[float], rates: st.SearchStrategy[float]) -> Any:
    """Promises of every kind about a stream."""
    bursts = st.builds(
        lambda rate_per_s, length_s, more_s: Burst(
            rate_per_s=rate_per_s,
            length_s=length_s,
            every_s=None if more_s is None else length_s + more_s,
        ),
        rates,
        seconds,
        st.none() | seconds,
    )
    targets = st.builds(
        Target,
        metric=st.sampled_from(Metric),
        quantile=st.none() | st.floats(0.01, 0.99999),
        limit_s=seconds,
    )
    return (
        targets
        | st.builds(DuringBurst, target=targets, burst=bursts)
        | st.builds(CatchUp, limit_s=seconds, after=seconds | bursts)
    )


exact = promises(durations_s, st.floats(1e-3, 1e9))
of_people = promises(written_s, st.integers(1, 10**9 - 1).map(float))


@given(target=st.builds(Target, quantile=st.none() | st.floats(0.01, 0.99999), limit_s=durations_s),
       also=st.lists(exact, max_size=4))  # fmt: skip
def test_a_plan_keeps_every_promise(target: Target, also: list[Promise]) -> None:
    text = json_text(plan_json(replace(a_plan(), target=target, also=tuple(also))))
    again = parse_plan(text, name="plan.json")
    assert (again.target, again.also) == (target, tuple(also))
    assert json_text(plan_json(again)) == text
    forms = {each["form"] for each in json.loads(text)["promises"]}
    assert forms == {PROMISE_FORM}


@given(limit_s=durations_s)
def test_a_deadline_plan_keeps_its_deadline(limit_s: float) -> None:
    text = json_text(deadline_json(replace(answer(1e4), deadline=Deadline(limit_s=limit_s))))
    again = parse_any_plan(text, name="plan.json")
    assert getattr(again, "deadline") == Deadline(limit_s=limit_s)  # noqa: B009  # of a union


def a_lock(kept: list[Promise], deadline: Deadline) -> Lock:
    sizes: dict[str, Any] = {"executors": 1, "cores_per_executor": 2, "nodes": 1, "file": "a.yaml"}
    return Lock(
        headway_version="0",
        jobs=(
            Locked(
                name="a", rate_per_s=1.0, shuffle_partitions=2, trigger_s=1.0,
                targets=tuple(map(str, kept)), promises=tuple(map(KeptPromise.of, kept)), **sizes,
            ),
        ),
        batch_jobs=(
            LockedBatch(
                name="b", run_time_s=1.0,
                targets=(str(deadline),), promises=(KeptPromise.of(deadline),), **sizes,
            ),
        ),
    )  # fmt: skip


@settings(deadline=None)
@given(kept=st.lists(exact, min_size=1, max_size=3), limit_s=durations_s)
def test_a_lock_keeps_every_promise(
    tmp_path_factory: pytest.TempPathFactory, kept: list[Promise], limit_s: float
) -> None:
    path = tmp_path_factory.mktemp("lock") / "headway.lock"
    save_lock(a_lock(kept, Deadline(limit_s=limit_s)), path)
    then = load_lock(path)
    assert [each.promise() for each in then.jobs[0].promises] == kept
    assert then.batch_jobs[0].promises[0].promise() == Deadline(limit_s=limit_s)


@given(promise=of_people | st.builds(Deadline, limit_s=written_s))
def test_the_text_of_what_people_write_is_the_promise(promise: Promise | Deadline) -> None:
    read, meant = KeptPromise.of(parse_promise(str(promise))), KeptPromise.of(promise)
    assert is_about(read, meant)
    for mine, yours in zip(_numbers(read), _numbers(meant), strict=True):
        assert (mine is None) == (yours is None)
        assert mine is None or mine == pytest.approx(yours, rel=1e-8)
    assert str(parse_promise(read.text)) == read.text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("p99 <= 1.2349s", "p99 <= 1.2349 s"),
        ("p99 <= 3s", "p99 <= 3.00 s"),
        ("batch p99.99999 < 30.5ms", "batch p99.99999 <= 30.5 ms"),
        ("catch_up <= 1234.9s after 30m", "catch_up <= 1234.9 s after 30 min"),
        ("mean <= 1s during 150.123k/s for 121s", "mean <= 1.00 s during 150.123k/s for 121 s"),
        ("deadline <= 1h1s", "deadline <= 3601 s"),
    ],
)
def test_a_promise_is_shown_with_the_digits_it_has(written: str, shown: str) -> None:
    assert str(parse_promise(written)) == shown


def test_plans_and_locks_of_earlier_versions_are_read(tmp_path: Path) -> None:
    promise = CatchUp.parse("catch_up <= 1.2349s after 30m")
    data = plan_json(replace(a_plan(), also=(promise,)))
    del data["promises"]
    data["also"] = ["catch_up <= 1.23 s after 30 min"]
    again = parse_plan(json_text(data), name="plan.json")
    assert again.target == a_plan().target
    assert again.also == (CatchUp(limit_s=1.23, after=1800.0),)
    found = a_lock([promise], Deadline(limit_s=60.0))
    old = replace(
        found,
        jobs=tuple(
            replace(job, promises=(), targets=("catch_up <= 1.23 s after 30 min",))
            for job in found.jobs
        ),
    )
    save_lock(old, tmp_path / "headway.lock")
    text = (tmp_path / "headway.lock").read_text(encoding="utf-8")
    assert load_lock(tmp_path / "headway.lock").jobs[0].promises == ()
    newer = text.replace(PROMISE_FORM, "headway.promise/v9")
    (tmp_path / "headway.lock").write_text(newer, encoding="utf-8")
    with pytest.raises(InputError, match=r"promises\.0|promises\[0\].*headway.promise/v9"):
        load_lock(tmp_path / "headway.lock")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"form": "headway.promise/v9"}, "this Headway reads headway.promise/v1"),
        ({"kind": "catch_up"}, "needs after_s or burst"),
        ({"kind": "during_burst"}, "needs burst"),
        ({"kind": "deadline"}, "not a promise of a streaming job"),
        ({"kind": "hope"}, "got 'hope'; expected one of latency"),
        ({"metric": None}, "needs a metric"),
        ({"limit_s": -1.0}, "limit_s is -1.0"),
        ({"limit_s": None}, "limit_s"),
    ],
)
def test_what_is_no_promise_is_reported_with_its_place(change: dict[str, Any], said: str) -> None:
    data: Any = plan_json(a_plan())
    data["promises"][0] |= change
    with pytest.raises(InputError, match=said):
        parse_plan(json_text(data), name="plan.json")


def test_infinity_is_no_limit() -> None:
    with pytest.raises(ValueError, match="limit_s"):
        KeptPromise(kind="deadline", text="", limit_s=math.inf)
