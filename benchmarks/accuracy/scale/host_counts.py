"""Graph jobs of Spark 1.4 on 3 to 10 hosts: does the makespan of their tasks scale as predicted?"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.models.arrays import Array
from headway.models.stages.makespan import makespan_moments

FILE = (
    "measured/GiovanniPaoloGibilisco+spark-log-processor/performance-estimator/src/main/resources/"
    "per-run-csv-PageRank-ConnectedComponents.tar.gz"
)
FITTED_HOSTS = (3, 5)
# Neither is on record.
CORES_PER_HOST = 16
_TASK_CV = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One application: its data and the time in its stages."""

    job: str
    hosts: int
    data_size: float
    num_stages: int
    num_tasks: int
    stages_s: float


def read_runs(root: Path) -> list[Run]:
    """All runs except those in folders that are called old."""
    texts: dict[str, dict[str, str]] = {}
    with tarfile.open(root / FILE) as archive:
        for member in archive:
            folder, _, name = member.name.rpartition("/")
            if name in ("StageDetails.csv", "application.info"):
                content = archive.extractfile(member)
                assert content is not None
                texts.setdefault(folder, {})[name] = content.read().decode()
    runs = []
    for folder, files in sorted(texts.items()):
        job, hosts = folder.split("/")[-3:-1]
        if hosts.endswith("-hosts"):
            runs.append(_run(job, int(hosts.removesuffix("-hosts")), files))
    return runs


def _run(job: str, hosts: int, files: dict[str, str]) -> Run:
    stages = [
        row
        for row in csv.DictReader(io.StringIO(files["StageDetails.csv"]))
        if row["Executed"] == "True"
    ]
    info = dict(
        line.split(";", 1) for line in files["application.info"].splitlines() if ";" in line
    )
    return Run(
        job=job,
        hosts=hosts,
        data_size=float(info["Data Size"]),
        num_stages=len(stages),
        num_tasks=int(stages[0]["Number of Tasks"]),
        stages_s=sum(float(stage["Duration"]) for stage in stages) / 1e3,
    )


def predicted_s(
    runs: Sequence[Run], fitted: Sequence[Run], cores_per_host: int = CORES_PER_HOST
) -> Array:
    """Time in stages by theory.md (M1)-(M5) and (T2).

    A stage takes a fixed time plus the makespan of its tasks, and the time of a task is linear in
    the size of the data. Relative errors are fitted: small runs count as much as large ones.
    """
    terms, seen = _terms(fitted, cores_per_host), np.array([run.stages_s for run in fitted])
    solution = np.linalg.lstsq(terms / seen[:, np.newaxis], np.ones(len(seen)), rcond=None)[0]
    return np.asarray(_terms(runs, cores_per_host) @ solution)


def _terms(runs: Sequence[Run], cores_per_host: int) -> Array:
    makespan = np.array(
        [makespan_moments(run.num_tasks, run.hosts * cores_per_host, _TASK_CV).mean for run in runs]
    )
    size = np.array([run.data_size for run in runs])
    return np.column_stack([np.ones(len(runs)), makespan, makespan * size])
