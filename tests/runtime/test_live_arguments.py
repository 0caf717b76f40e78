"""What makes no sense to the calls on a running Spark is refused by name, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headway
from headway.errors import HeadwayError, InputError
from tests.sources import ROOT

PROFILE = ROOT / "examples" / "word-count.profile.yaml"
RUNNING: Any = SimpleNamespace(readStream=None)
"""As much of a session as is looked at before its arguments are read."""
STOPPED: Any = SimpleNamespace(readStream=None, _sc=SimpleNamespace(_jsc=None))
"""A session after ``stop()``: PySpark then forgets its context in Java."""
NOTHING: Any = object()


def tune(spark: Any = RUNNING, build: Any = print, **changes: Any) -> object:
    """A tuner that is right but for the changes."""
    right: dict[str, Any] = {
        "profile": PROFILE,
        "target": "p99 <= 3s",
        "state": "orders.tuner.json",
    }
    return headway.tune(spark, build, **(right | changes))


def explore(spark: Any = RUNNING, folder: Any = "exploration", **changes: Any) -> object:
    """An exploration that is right but for the changes."""
    build: Any = print
    return headway.explore(spark, build, "p99 <= 3s at 50k/s", folder=folder, **changes)


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "a request to nobody": (
        lambda: headway.stop_when_asked(NOTHING), "query: got <object .*; expected a StreamingQ",
    ),
    "a recorder of nothing": (lambda: headway.record(NOTHING, "a"), "spark: got <object"),
    "a recorder of no session": (lambda: headway.record(None, "a"), "spark: got None"),  # type: ignore[arg-type]
    "a recorder of a stopped session": (
        lambda: headway.record(STOPPED, "a.headway.jsonl"), "spark: the session is stopped",
    ),
    "a tuner of a stopped session": (lambda: tune(STOPPED), "spark: the session is stopped"),
    "an exploration in a stopped session": (
        lambda: explore(STOPPED), "spark: the session is stopped",
    ),
    "an exploration in none": (lambda: explore(None), "spark: got None; expected a SparkSession"),
    "metrics of a stopped session": (
        lambda: headway.publish_metrics(spark=STOPPED), "spark: the session is stopped",
    ),
    "metrics of a number": (lambda: headway.publish_metrics(spark=NOTHING), "spark: got <object"),
    "a gate of a stopped session": (lambda: headway.schedule(STOPPED), "session is stopped"),
    "steps for nobody": (lambda: tune(at=5), "at is 5; expected a function"),
    "a rate limit in words": (lambda: tune(rate_limit="no"), "rate_limit is 'no'; expected True"),
    "allowances of several kinds": (lambda: tune(allow={5, "a"}), "allow is .*; expected a text"),
    "a query by number": (
        lambda: headway.watch(RUNNING, profile=PROFILE, target="p99 <= 3s", query=5),  # type: ignore[arg-type]
        "query is 5; expected the name of a query",
    ),
    "an address by number": (
        lambda: headway.publish_metrics(port=0, host=5),  # type: ignore[arg-type]
        "host is 5; expected an address",
    ),
    "a seed in words": (lambda: explore(seed="x"), "seed is 'x'; expected a whole number"),
    "a lesson to nobody": (lambda: explore(lesson=5), "lesson is 5; expected a function"),
    "progress to nobody": (lambda: explore(progress="p"), "progress is 'p'; expected a function"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "says"), CASES.values(), ids=list(CASES))
def test_what_makes_no_sense_has_one_clear_answer(
    call: Callable[[], object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [5, None, "", " ", "a\0b", ["a"]])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("path", lambda path: headway.record(RUNNING, path)),
        ("state", lambda path: tune(state=path)),
        ("folder", lambda path: explore(folder=path)),
        ("off", lambda path: headway.schedule(RUNNING, off=path)),
        ("file", lambda path: headway.publish_metrics(file=path)),
        ("events", lambda path: headway.publish_metrics(events=path)),
    ],
)
def test_what_is_no_path_is_refused(name: str, call: Callable[[Any], Any], path: Any) -> None:
    if path is None and name in ("off", "file", "events"):
        pytest.skip("they may be left out")
    with pytest.raises(InputError, match=rf"^{name} is .*; expected a f(ile|older)") as said:
        call(path)
    assert "\n" not in str(said.value)


def test_a_switch_is_a_file_that_somebody_can_make(tmp_path: Path) -> None:
    for off, says in (
        (tmp_path, "is a folder"),
        (tmp_path / "nowhere" / "gate.off", "is in no folder that exists"),
        (tmp_path / ("x" * 300), "cannot be looked at"),
    ):
        with pytest.raises(InputError, match=rf"^off: .*{says}.*; expected a file in a folder"):
            headway.schedule(RUNNING, off=off)


def test_a_file_is_no_folder_for_an_exploration() -> None:
    context = SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)),
        master="local[2]",
        defaultParallelism=2,
    )
    conf = SimpleNamespace(get=lambda _key, default=None: default)
    session: Any = SimpleNamespace(readStream=None, _sc=context, sparkContext=context, conf=conf)
    with pytest.raises(HeadwayError, match=r"no folder can be made there .*; expected one that ex"):
        explore(session, folder=PROFILE)
