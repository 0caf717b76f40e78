"""``headway schedule`` on inputs that make no sense: one clear answer each, within seconds."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headway.cli.main import run
from tests.sources import ROOT

WITHIN_S = 30.0
"""On a machine that does other things, too; alone each takes under two seconds."""

HEAD = "apiVersion: headway/v1\nkind: QuerySchedule\nmetadata: {name: clicks}\nspec:\n"
COSTS = (
    "{source_partitions: 2, task_per_row: 4us, task_fixed: 20ms, driver: 80ms, "
    "shuffle_task_per_row: 1us, shuffle_partitions: 2}"
)
BATCH_JOB = ROOT / "examples" / "nightly-totals.profile.yaml"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is asked, and what is answered: the exit code and words of it."""

    code: int
    says: str
    options: list[str] = field(default_factory=list)
    cores: str = "2"
    text: str | None = None
    names: tuple[str, ...] = ("q0", "q1", "q2")
    costs: str = f"declared: {COSTS}"
    rate: str = "8k/s"
    target: str = "window p99 <= 3s"
    trigger: str = "1s"
    slide: str = "10s"
    more: str = ""

    def write(self, file: Path) -> None:
        """As a user would write it."""
        if self.text is not None:
            file.write_text(self.text)
            return
        queries = "".join(
            f"  - {{name: {name}, {self.costs}, rate: {self.rate}, target: {self.target}, "
            f"trigger: {self.trigger}, window_slide: {self.slide}{self.more}}}\n"
            for name in self.names
        )
        file.write_text(f"{HEAD}  cores: {self.cores}\n  queries:\n{queries}")


CASES = {
    "a rate beyond any machine": Case(rate="1e15/s", code=3, says="backlog grows under every"),
    "no rate": Case(rate="0/s", code=2, says=r"rate: got '0/s'"),
    "windows longer than what is simulated": Case(
        slide="30d", code=2, says="no window is due within the 40 min"
    ),
    "a trigger of a week": Case(trigger="7d", code=0, says="Not worth it"),
    "a unit that there is not": Case(trigger="1w", code=2, says=r"trigger: got '1w'"),
    "a watermark delay beyond the target": Case(
        more=", watermark_delay: 1h", code=3, says="0 of 3"
    ),
    "windows that start late": Case(
        more=", window_start: 99999s", code=0, says="All windows end at the same time"
    ),
    "windows of a microsecond": Case(slide="1us", code=2, says="expected 1ms or more"),
    "a target of nothing": Case(target="window p99 <= 0s", code=2, says="target"),
    "no cores": Case(cores="0", code=2, says=r"cores: got 0"),
    "cores that owe": Case(cores="-1", code=2, says=r"cores: got -1"),
    "nothing in the file": Case(text="", code=2, says="empty"),
    "blanks in the file": Case(text="  \n\n", code=2, says="empty"),
    "a head and no body": Case(text=HEAD, code=2, says="spec"),
    "no query": Case(
        text=f"{HEAD}  cores: 2\n  queries: []\n",
        code=2,
        says="spec.queries: an empty list; expected a list of at least 1",
    ),
    "a table instead of a list": Case(
        text=f"{HEAD}  cores: 2\n  queries: {{a: 1}}\n", code=2, says="queries"
    ),
    "the profile of a batch job": Case(costs=f"profile: {BATCH_JOB}", code=2, says="batch job"),
    "a profile that is none": Case(costs="profile: queries.yaml", code=2, says="profile"),
    "two queries of one name": Case(
        names=("q0", "q1", "q0"), code=2, says="two queries are called 'q0'"
    ),
    "a policy that there is not": Case(
        options=["--policy", "fastest"], code=2, says="expected one of fcfs"
    ),
    "policies between semicolons": Case(
        options=["--policy", "fcfs;rr"], code=2, says="is 'fcfs;rr'"
    ),
    "all and one more": Case(options=["--policy", "all,fcfs"], code=2, says="is 'all'"),
    "a policy in capitals": Case(options=["--policy", "PROMISE"], code=2, says="is 'PROMISE'"),
    "a policy with a value": Case(options=["--policy", "rr=2"], code=2, says="is 'rr=2'"),
    "commas alone": Case(options=["--policy", ",,"], code=2, says="names none"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_makes_no_sense_has_one_clear_answer_within_seconds(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "queries.yaml"
    case.write(file)
    began_s = time.monotonic()
    code = run(["schedule", "queries.yaml", *case.options])
    assert time.monotonic() - began_s < WITHIN_S
    found = capsys.readouterr()
    assert code == case.code, found
    words = found.err if case.code == 2 else found.out
    assert re.search(case.says, words), words
    # One error for one fault, whichever of three queries has it first; never a trace.
    assert "Traceback" not in found.out + found.err
    assert "nan" not in words.lower().split()
    assert "inf" not in words.lower().split()
    if case.code != 2:
        again = run(["schedule", "queries.yaml", *case.options, "--json"])
        assert again == code
        json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
