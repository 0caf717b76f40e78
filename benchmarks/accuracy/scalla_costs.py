"""The VLDB'15 paper's Table 4, and what the corrected model predicts for its cells.

``results/scalla-table-4.csv`` also assigns each cell to one of two halves. `scalla_fit` fits costs
to one half and writes them to ``results/scalla-costs.json``; the other half judges them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headway.models.arrays import Array
from headway.models.pipeline.parameters import Pipeline, PipelineSetting
from headway.planner.kinds.pipelines import latency_of
from headway.spec.kinds.pipelines import MicroBatchPipeline
from headway.spec.pipelines import rounds_of
from headway.spec.spec_file import load_spec_of

HERE = Path(__file__).parent
TABLE = HERE / "results" / "scalla-table-4.csv"
FITTED = HERE / "results" / "scalla-costs.json"
EXAMPLES = HERE.parents[1] / "examples" / "pipelines"
JOBS = ("sessionization", "word-count", "windowed-word-count")
BAND = 0.15
NUM_NODES = 10

# Costs of the engine, the same for all jobs; others depend on the row, a click or a tweet.
_OF_ENGINE = ("packing_s", "per_poll_s", "per_batch_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the paper's Table 4; the mean is None if latency was unbounded."""

    job: str
    mappers: int
    reducers: int
    shuffle_s: float
    poll_s: float
    mean_s: float | None
    is_fitted: bool

    @property
    def setting(self) -> PipelineSetting:
        """The setting on the paper's ten nodes."""
        return settings_of([self])


def table_4() -> list[Cell]:
    """The paper's Table 4, with the half that each cell belongs to."""
    with TABLE.open(encoding="utf-8") as lines:
        return [
            Cell(
                job=row["job"],
                mappers=int(row["mappers"]),
                reducers=int(row["reducers"]),
                shuffle_s=int(row["shuffle_ms"]) / 1000.0,
                poll_s=int(row["poll_ms"]) / 1000.0,
                mean_s=float(row["mean_s"]) if row["mean_s"] else None,
                is_fitted=row["half"] == "fitted",
            )
            for row in csv.DictReader(lines)
        ]


def declared(job: str) -> MicroBatchPipeline:
    """A job as declared in its example, with the chosen costs."""
    return load_spec_of(EXAMPLES / f"{job}.yaml", MicroBatchPipeline)


def chosen_costs() -> dict[str, float]:
    """The costs of the examples, by name."""
    clicks, tweets = (declared(job) for job in JOBS[:2])
    windows = declared(JOBS[2]).rounds[0].windows
    assert windows is not None
    found = {name: float(getattr(tweets.rounds[0], name)) for name in _OF_ENGINE}
    found["write_s"] = tweets.node.write_s
    for name, spec in (("click", clicks), ("tweet", tweets)):
        found |= {f"{name}.{one}": getattr(spec.rounds[0], one) for one in ("map_s", "reduce_s")}
    return found | {"finalize_s": windows.finalize_s}


def fitted_costs() -> dict[str, float]:
    """The fitted costs, by the same names."""
    found: dict[str, float] = json.loads(FITTED.read_text(encoding="utf-8"))["costs"]
    return found


def with_costs(job: str, costs: Mapping[str, float]) -> MicroBatchPipeline:
    """A job with other costs."""
    spec = declared(job)
    row = "click" if job == JOBS[0] else "tweet"
    one = replace(
        spec.rounds[0],
        packing_s=costs["packing_s"],
        per_poll_s=costs["per_poll_s"],
        per_batch_s=costs["per_batch_s"],
        map_s=costs[f"{row}.map_s"],
        reduce_s=costs[f"{row}.reduce_s"],
    )
    if one.windows is not None:
        one = replace(one, windows=replace(one.windows, finalize_s=costs["finalize_s"]))
    return replace(spec, rounds=(one,), node=replace(spec.node, write_s=costs["write_s"]))


def settings_of(cells: Sequence[Cell]) -> PipelineSetting:
    """Settings of cells as arrays; as numbers for a single cell."""

    def values(name: str) -> Array | float | int:
        found = [getattr(one, name) for one in cells]
        return found[0] if len(found) == 1 else np.array(found)

    return PipelineSetting(
        num_nodes=NUM_NODES,
        mappers_per_node=values("mappers"),
        reducers_per_node=values("reducers"),
        num_distributors=10,
        input_period_s=0.005,
        shuffle_period_s=values("shuffle_s"),
        poll_period_s=values("poll_s"),
    )


def predicted_s(cells: Sequence[Cell], costs: Mapping[str, float]) -> Array:
    """The corrected model's mean for each cell, infinite if saturated."""
    found = np.full(len(cells), np.inf)
    for _, places, pipeline in pipelines_of(cells, costs):
        found[places] = np.broadcast_to(latency_of(pipeline).mean_s, len(places))
    return found


def pipelines_of(
    cells: Sequence[Cell], costs: Mapping[str, float]
) -> list[tuple[str, list[int], Pipeline]]:
    """Each job with the indices of its cells and the pipeline at their settings."""
    found = []
    for job in JOBS:
        places = [at for at, cell in enumerate(cells) if cell.job == job]
        if places:
            spec = with_costs(job, costs)
            settings = settings_of([cells[at] for at in places])
            found.append((job, places, rounds_of(spec)[0].at(settings, spec.rate_per_s)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many cells are reproduced: whether latency is bounded, and values within the band."""

    verdicts: int
    cells: int
    within: int
    values: int

    def __str__(self) -> str:
        return f"{self.verdicts}/{self.cells}, {self.within}/{self.values}"


def score(cells: Sequence[Cell], found_s: Array) -> Score:
    """Score of a model's values; a value counts if it is bounded in the paper and in the model."""
    both = [
        (cell.mean_s, float(mean_s))
        for cell, mean_s in zip(cells, found_s, strict=True)
        if cell.mean_s is not None and np.isfinite(mean_s)
    ]
    return Score(
        verdicts=sum(
            (cell.mean_s is None) == bool(np.isinf(mean_s))
            for cell, mean_s in zip(cells, found_s, strict=True)
        ),
        cells=len(cells),
        within=sum(abs(mean_s / true_s - 1.0) < BAND for true_s, mean_s in both),
        values=len(both),
    )
