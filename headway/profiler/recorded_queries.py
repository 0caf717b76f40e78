"""Every query that a log mentions: its runs, how each ended, and why some are of no use."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headway.assumptions.fits import LEAST_BATCHES
from headway.lazy_classes import dataclass
from headway.profiler.rows import Record
from headway.redaction import redact
from headway.units import counted

_LONGEST_LABEL = 60
_BEFORE_BATCHES = re.compile(r"\nrunId = ([0-9a-f-]{36})\nbatch = init\Z")
_RUN_NUMBER = re.compile(r", run (\d+)(?= of \d)")
_CONTINUOUS = ("WriteToContinuousDataSource", "ContinuousScan")


class QueryLife(NamedTuple):
    """What the events of a run's start and end say; a log may lack either."""

    query_id: str | None = None
    query_name: str | None = None
    has_ended: bool = False
    has_failed: bool = False

    def with_other(self, other: QueryLife) -> QueryLife:
        """The same run in another part of the log."""
        return QueryLife._make(mine or theirs for mine, theirs in zip(self, other, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuery:
    """A run of a query; of a query that was restarted, number 1 is the oldest of ``num_runs``.

    ``state`` is ``ended``, ``failed`` or ``running``; ``why_not`` says why no profile can be made
    of the run alone, and is empty if one can.
    """

    query_id: str
    run_id: str
    name: str | None
    number: int
    num_runs: int
    num_batches: int
    state: str
    why_not: str

    @property
    def number_text(self) -> str:
        """Which run of the query it is, as an addition to its name; empty if it is the only one."""
        return f", run {self.number} of {self.num_runs}" if self.num_runs > 1 else ""

    @property
    def text(self) -> str:
        """The run in a line."""
        newest = ", the newest" if self.number == self.num_runs > 1 else ""
        run = f"{self.number_text}{newest}"
        label = query_label(self.query_id, self.name)
        batches = counted(self.num_batches, "batch", "batches")
        state = "no end recorded" if self.state == "running" else self.state
        line = f"{label}{run}: {batches}, {state}"
        return f"{line}; of no use: {self.why_not}" if self.why_not else line


def query_label(query_id: str, query_name: str | None) -> str:
    """Name of a query in messages: its name, if it has one, and the start of its id.

    >>> query_label("3f1c7e0a-0d51-4a0e-9d1d-1f2e3d4c5b6a", "orders")
    'orders (3f1c7e0a)'
    """
    short_id = redact(query_id[:8])
    if not query_name:
        return short_id
    return f"{redact(query_name, longest=_LONGEST_LABEL)} ({short_id})"


def run_without_batches(description: str | None) -> str:
    """The run of an execution that belongs to none of its micro-batches; empty if none is named.

    >>> run_id = "25d64268-b435-4d2d-a393-7be200accae7"
    >>> run_without_batches(f"a\\nid = 1\\nrunId = {run_id}\\nbatch = init") == run_id
    True
    """
    match = _BEFORE_BATCHES.search(description or "")
    return match[1] if match else ""


def alike_in_one(notes: Iterable[str]) -> list[str]:
    """Notes, with one for all that say the same of several runs of a query.

    >>> alike_in_one([f"query a, run {number} of 5: left out" for number in (1, 2, 3, 5)])
    ['query a, runs 1, 2, 3 and 5 of 5: left out']
    """
    numbers_of: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        number = _RUN_NUMBER.search(note)
        around = (note[: number.start()], note[number.end() :]) if number else (note, "")
        numbers_of.setdefault(around, []).extend(number.groups() if number else ())
    return [
        f"{before}{_runs_text(numbers)}{after}" for (before, after), numbers in numbers_of.items()
    ]


def _runs_text(numbers: Sequence[str]) -> str:
    """The numbers of runs as an addition to the name of their query."""
    if len(numbers) < 2:
        return "".join(f", run {number}" for number in numbers)
    if int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 > 1:
        return f", runs {numbers[0]} to {numbers[-1]}"
    return f", runs {', '.join(numbers[:-1])} and {numbers[-1]}"


def recorded_queries(
    lives: Mapping[str, QueryLife], batches: Sequence[Record], plans: Mapping[str, str]
) -> tuple[RecordedQuery, ...]:
    """The runs of a log, those of one query together, the oldest first.

    ``lives`` and ``plans``, the texts of recorded plans, are by the id of the run.
    """
    by_run: dict[str, list[Record]] = defaultdict(list)
    for row in batches:
        by_run[row["run_id"] or ""].append(row)
    runs: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run_id in {*lives, *by_run}:
        life, rows = lives.get(run_id, QueryLife()), by_run.get(run_id, [])
        query_id = life.query_id or (rows[0]["query_id"] if rows else "") or "unknown"
        # A run without batches has no time: it failed, or is the last.
        started_s = min((row["started_s"] or 0.0 for row in rows), default=float("inf"))
        runs[query_id].append((started_s, run_id))
    recorded = []
    oldest_first = sorted(runs.items(), key=lambda query: (min(query[1])[0], query[0]))
    for query_id, of_query in oldest_first:
        for number, (_, run_id) in enumerate(sorted(of_query), start=1):
            life, rows = lives.get(run_id, QueryLife()), by_run.get(run_id, [])
            num_batches = len({row["batch_id"] for row in rows})
            state = "failed" if life.has_failed else "ended" if life.has_ended else "running"
            recorded.append(
                RecordedQuery(
                    query_id=query_id,
                    run_id=run_id,
                    name=life.query_name or (rows[0]["query_name"] if rows else None),
                    number=number,
                    num_runs=len(of_query),
                    num_batches=num_batches,
                    state=state,
                    why_not="; ".join(_why_not(num_batches, state, plans.get(run_id, ""))),
                )
            )
    return tuple(recorded)


def _why_not(num_batches: int, state: str, plan: str) -> Iterator[str]:
    if any(name in plan for name in _CONTINUOUS):
        yield "it runs in continuous mode, which has no micro-batches to profile"
    elif num_batches == 0:
        yield {
            "failed": "it failed before its first batch ended; the driver's log has the error",
            "ended": "it was stopped before its first batch ended",
            "running": "none of its batches ended in the log; let it run for some minutes",
        }[state]
    elif num_batches <= LEAST_BATCHES.value:
        remark = "; let it run longer, or limit the rows of a batch"
        if state == "failed":
            remark = ", and it failed before"
        yield f"at least {LEAST_BATCHES.value + 1} batches are needed{remark}"
