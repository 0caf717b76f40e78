"""Which runs are profiled and which are judged: fixed in a file before the first run.

`ordinary-split.json` is drawn once from its seed by `drawn_split`, and never changed after a run:
each line of the results names its digest. Rates are shares of the capacity that a probe finds
first on two cores. Advised runs are not in it: `headway profile --advise` names them, from the
production run alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from campaign.schedule import JUDGE, Setting, digest_of

SPLIT = Path(__file__).parents[1] / "ordinary-split.json"
PRODUCTION, ADVISED = "production", "advised"
"""Roles of runs beside those that are judged."""
SEED = 20261127
CORES, FEWER_CORES = 2, 1
RATE, TRIGGER, FEWER = "another rate", "another trigger", "another number of cores"
"""What a judged setting has that was never seen."""
NUM_BLOCKS = 6
_TRIGGERS_S = (0.0, 1.0, 2.0, 5.0)
_PARTITIONS = (4, 8)
_SHARES = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
_FACTORS = {RATE: (0.5, 1.5, 2.0, 3.0), TRIGGER: (0.5, 1.0, 1.5, 2.0), FEWER: (0.5, 0.75, 1.0)}
_TIMES_S = {
    PRODUCTION: {"warm_s": 20.0, "measured_s": 180.0},
    ADVISED: {"warm_s": 12.0, "measured_s": 60.0},
    JUDGE: {"warm_s": 12.0, "measured_s": 60.0},
}
MOST_ADVISED = 3
"""With the run in production, four runs at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryRun:
    """One run of a job; ``why`` says what of a judged setting was never seen.

    ``batches_s`` is how long the fewest batches take that Headway advises [s]: a run of them lasts
    longer than the split says if they do.
    """

    block: int
    job: str
    role: str
    setting: Setting
    cores: int = CORES
    why: str = ""
    repeat: int = 1
    batches_s: float = 0.0

    @property
    def name(self) -> str:
        """What its query is called, in event logs and results."""
        return f"{self.job}/{self.setting}-c{self.cores}/{self.role}/{self.repeat}"

    @property
    def warm_s(self) -> float:
        """Left out of what is measured [s]."""
        return float(_times(self.role)["warm_s"])

    @property
    def measured_s(self) -> float:
        """Measured after that [s]."""
        return max(float(_times(self.role)["measured_s"]), self.batches_s)

    @property
    def lasts_s(self) -> float:
        """From its start to its end [s]."""
        return self.warm_s + self.measured_s


def drawn_split(jobs: Sequence[str], seed: int = SEED) -> dict[str, Any]:
    """The split of these jobs as the file has it."""
    draw = random.Random(seed)
    drawn = {job: _drawn_job(draw) for job in jobs}
    shuffled = list(jobs)
    draw.shuffle(shuffled)
    return {
        "seed": seed,
        "times": _TIMES_S,
        "most_advised": MOST_ADVISED,
        "blocks": [sorted(shuffled[place::NUM_BLOCKS]) for place in range(NUM_BLOCKS)],
        "jobs": drawn,
    }


def _drawn_job(draw: random.Random) -> dict[str, Any]:
    production = Setting(draw.choice(_TRIGGERS_S), draw.choice(_PARTITIONS), draw.choice(_SHARES))
    other_s = draw.choice([one for one in _TRIGGERS_S if one != production.trigger_s])
    judged = []
    for why, factors in _FACTORS.items():
        setting = production._replace(
            share=round(production.share * draw.choice(factors), 4),
            trigger_s=other_s if why == TRIGGER else production.trigger_s,
        )
        cores = FEWER_CORES if why == FEWER else CORES
        judged.append({"why": why, "cores": cores, **_as_json(setting)})
    return {"production": _as_json(production), "judged": judged, "repeated": RATE}


def _as_json(setting: Setting) -> dict[str, Any]:
    return {name: value for name, value in setting._asdict().items() if name != "backlog"}


@cache
def _split() -> dict[str, Any]:
    split: dict[str, Any] = json.loads(SPLIT.read_text(encoding="utf-8"))
    return split


def _times(role: str) -> dict[str, float]:
    times: dict[str, float] = _split()["times"][role]
    return times


def split_digest() -> str:
    """Digest of the split, which every line of the results contains."""
    return digest_of(SPLIT)


def blocks() -> list[list[str]]:
    """Names of the jobs of each block."""
    return [list(jobs) for jobs in _split()["blocks"]]


def production_run(block: int, job: str) -> OrdinaryRun:
    """The one run as production has it."""
    setting = Setting(**_split()["jobs"][job]["production"])
    return OrdinaryRun(block=block, job=job, role=PRODUCTION, setting=setting)


def judged_runs(block: int, job: str) -> Iterator[OrdinaryRun]:
    """The runs that are predicted; one setting is run twice, for the floor."""
    of_job = _split()["jobs"][job]
    for judged in of_job["judged"]:
        setting = Setting(judged["trigger_s"], judged["partitions"], judged["share"])
        for repeat in (1, 2) if judged["why"] == of_job["repeated"] else (1,):
            yield OrdinaryRun(
                block=block,
                job=job,
                role=JUDGE,
                setting=setting,
                cores=judged["cores"],
                why=judged["why"],
                repeat=repeat,
            )
