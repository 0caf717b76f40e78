"""What makes no sense to the calls about turns and shedding, where no Spark is needed to say so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import bring_back, schedule, shed, shedding_batches
from headway.errors import InputError
from headway.runtime.gate.clock import require_classic
from headway.runtime.gate.decision_log import DecisionLog
from headway.runtime.gate.turn import Turn, require_turn_of
from headway.runtime.shedding.checkpoint import committed_batches
from headway.turns.arguments import (
    MEMORY,
    NAME,
    given_windows,
    known_profile,
    row_and_window_target,
)
from tests.runtime.sharing.log_cases import PlainFiles

NAN, INF = float("nan"), float("inf")
NOBODY: Any = object()


def batches(**changes: Any) -> object:
    """A function for stateless queries that is right but for the changes."""
    given: dict[str, Any] = {
        "keep": print, "give_up": print, "checkpoint": "checkpoint", "arrived": "timestamp",
        "limit": "2s", "costs": {"cheap": "20us"}, "cost": "kind", "fixed": "1s",
    }  # fmt: skip
    return shedding_batches(**(given | changes))


def taken() -> Turn:
    """A turn that a query has already."""
    turn = Turn(print)
    turn.join(NOBODY, 1, NOBODY)
    return turn


ANYTHING: Any = NOBODY
CASES: dict[str, tuple[Callable[[], object], str]] = {
    "a session that is none": (lambda: schedule(ANYTHING), "expected a SparkSession"),
    "no session": (lambda: schedule(None), "spark: got None"),  # type: ignore[arg-type]
    "an unknown policy": (lambda: schedule(ANYTHING, "fastest"), "expected one of fcfs"),
    "a policy in capitals": (lambda: schedule(ANYTHING, "FCFS"), "is 'FCFS'; expected one of"),
    "a policy that is a list": (lambda: schedule(ANYTHING, ["rr"]), "expected one of fcfs"),  # type: ignore[arg-type]
    "memory in parsecs": (
        lambda: schedule(ANYTHING, memory_limit="2 parsecs"), "memory_limit: '2 parsecs' is not",
    ),
    "memory without a unit": (
        lambda: MEMORY.read("14", "memory_limit"), "memory_limit: '14' has no unit",
    ),
    "memory below nothing": (lambda: MEMORY.read(-1, "memory_limit"), "or more than 0 bytes"),
    "no memory": (lambda: MEMORY.read("0g", "memory_limit"), "or more than 0 bytes"),
    "memory that is no number": (lambda: MEMORY.read(NAN, "memory_limit"), "or more than 0 bytes"),
    "memory in a list": (lambda: MEMORY.read([1], "memory_limit"), r"is \[1\]; expected a size"),
    "memory that is true": (lambda: MEMORY.read(True, "memory_limit"), "is True; expected a size"),
    "a class that is infinite": (
        lambda: batches(costs={float("inf"): "1us"}), "costs: got a class inf; expected values",
    ),
    "a log in no folder": (
        lambda: DecisionLog("nowhere/gate.jsonl"), "nowhere/gate.jsonl: cannot be written: No such",
    ),
    "a log that is a folder": (lambda: DecisionLog("."), "cannot be written: Is a directory"),
    "a log that cannot be written": (lambda: DecisionLog("/proc/gate"), "a folder that exists"),
    "a log without a name": (lambda: DecisionLog(""), "expected a file, e.g. 'gate.jsonl'"),
    "a log that is a number": (lambda: DecisionLog(3), "decisions: got 3"),  # type: ignore[arg-type]
    "a log with a null in its name": (lambda: DecisionLog("a\0b"), "expected a file"),
    "no target": (lambda: row_and_window_target(None), "target is None"),  # type: ignore[arg-type]
    "a bare number as a target": (lambda: row_and_window_target(3), "target is 3; expected"),  # type: ignore[arg-type]
    "a target that is none among others": (
        lambda: row_and_window_target(["p99 <= 2s", None]), "expected a list of texts",  # type: ignore[list-item]
    ),
    "a target in furlongs": (lambda: row_and_window_target("p99 <= 3 furlongs"), "not a duration"),
    "a target below nothing": (lambda: row_and_window_target("p99 <= -1s"), "not a duration"),
    "a target of batches": (lambda: row_and_window_target("batch p99 <= 2s"), "at most one of"),
    "a target of batch jobs": (lambda: row_and_window_target("deadline <= 10m"), "not a target"),
    "two targets of rows": (
        lambda: row_and_window_target(["p99 <= 2s", "p95 <= 1s"]), "at most one of rows",
    ),
    "windows of no length": (lambda: given_windows(0, 0, 0), "window_slide is 0; expected more"),
    "windows that end before they begin": (lambda: given_windows(-1, 0, 0), "expected 0 or more"),
    "windows of no number": (lambda: given_windows(NAN, 0, 0), "window_slide is nan"),
    "windows without an end": (lambda: given_windows(INF, 0, 0), "at most ten years"),
    "windows in a list": (lambda: given_windows([1], 0, 0), r"window_slide is \[1\]"),
    "windows in parsecs": (lambda: given_windows("1 parsec", 0, 0), "window_slide: '1 parsec'"),
    "windows that are true": (lambda: given_windows(True, 0, 0), "window_slide is True"),
    "windows at no time": (lambda: given_windows("5s", NAN, 0), "window_offset is nan"),
    "a delay below nothing": (lambda: given_windows("5s", 0, -1), "watermark_delay is -1"),
    "no delay": (lambda: given_windows("5s", 0, None), "watermark_delay is None"),
    "a delay of no window": (lambda: given_windows(None, 0, "3s"), "without window_slide"),
    "an offset of no window": (lambda: given_windows(None, "3s", 0), "without window_slide"),
    "a name without letters": (lambda: NAME.read("", "name"), "name is ''; expected a text"),
    "a name that is a number": (lambda: NAME.read(3, "name"), "name is 3; expected a text"),
    "a profile that is a number": (lambda: known_profile(3), "profile is 3"),
    "a profile that is not there": (lambda: known_profile("nowhere.yaml"), "no such file"),
    "a query that is none": (lambda: require_classic(None), "expected a running StreamingQuery"),  # type: ignore[arg-type]
    "the name of a query": (lambda: require_classic("orders"), "query: got 'orders'"),  # type: ignore[arg-type]
    "a turn at nothing": (lambda: Turn(None), "in_turn: got None; expected a function"),  # type: ignore[arg-type]
    "a turn that is a function": (lambda: require_turn_of(NOBODY, print), "gate.in_turn"),
    "a turn that another has": (lambda: require_turn_of(NOBODY, taken()), "one for each query"),
    "rows that are none": (
        lambda: shed(None, arrived="t", older_than="2s"), "rows: got None",  # type: ignore[arg-type]
    ),
    "rows older than nothing": (
        lambda: shed(ANYTHING, arrived="t", older_than=0), "older_than is 0; expected more than 0",
    ),
    "rows of no age": (
        lambda: shed(ANYTHING, arrived="t", older_than=None), "older_than is None",  # type: ignore[arg-type]
    ),
    "rows of an age without a number": (
        lambda: shed(ANYTHING, arrived="t", older_than=NAN), "older_than is nan",
    ),
    "rows that are never old": (
        lambda: shed(ANYTHING, arrived="t", older_than=INF), "at most ten years",
    ),
    "a class without an age": (
        lambda: shed(ANYTHING, arrived="t", older_than={"a": None}, cost="kind"),  # type: ignore[dict-item]
        r"older_than\['a'\] is None",
    ),
    "a class without a name": (
        lambda: shed(ANYTHING, arrived="t", older_than={None: "2s"}, cost="kind"),  # type: ignore[dict-item]
        "older_than: got a class None",
    ),
    "no function that keeps": (lambda: batches(keep=None), "keep is None; expected a function"),
    "no function that gives up": (lambda: batches(give_up="f"), "give_up is 'f'"),
    "a limit that is no number": (lambda: batches(limit=NAN), "limit is nan"),
    "a batch that takes no time": (lambda: batches(fixed=0), "fixed is 0"),
    "costs that are a number": (lambda: batches(costs=3), "costs is 3"),
    "a cost below nothing": (lambda: batches(costs={"a": -1}), r"costs\['a'\] is -1"),
    "giving up below nothing": (lambda: batches(give_up_cost=-1), "give_up_cost is -1"),
    "no column of costs": (lambda: batches(cost=None), "cost: got None; expected the name"),
    "an arrival that is a number": (lambda: batches(arrived=3), "arrived: got 3"),
    "a checkpoint that is a number": (lambda: batches(checkpoint=3), "checkpoint: got 3"),
    "a checkpoint to bring back from that is none": (
        lambda: bring_back(None, ANYTHING, arrived="t", older_than="2s"),  # type: ignore[arg-type]
        "checkpoint: got None",
    ),
    "an address of which a path has dropped a slash": (
        lambda: batches(checkpoint=Path("s3a://bucket/orders")), "expected the address as a text",
    ),
    "rows to bring back that are none": (
        lambda: bring_back("empty", ANYTHING, arrived="t", older_than="2s"), "rows: got <object",
    ),
    "a folder that is no checkpoint": (
        lambda: committed_batches(PlainFiles(), "empty"), "no offset log",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "says"), CASES.values(), ids=list(CASES))
def test_what_makes_no_sense_has_one_clear_answer(
    call: Callable[[], object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=says) as refused:
        call()
    words = str(refused.value)
    assert "\n" not in words
    assert re.search("expected|has no unit|at most", words), words
    assert [one.name for one in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize(
    "written", [b"hello", b"v1\n{}\n-", b"v1\n[]\n-", b"\xff\xfe\0", b"", b"v1\n{"]
)
def test_the_offset_log_of_somebody_else_is_refused_with_its_file(
    written: bytes, tmp_path: Path
) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_bytes(written)
    with pytest.raises(InputError, match=r"offsets/0: not an entry of Spark's offset log; expec"):
        committed_batches(PlainFiles(), str(tmp_path))
