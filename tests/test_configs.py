"""Every sample is loaded, and planned as its kind is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.api.capacity import capacity
from headway.api.check import check
from headway.api.specs import plan_file, validate
from headway.formats.lock_file import load_lock
from headway.spec.kinds.capacity import CapacityPlan
from headway.spec.kinds.catalog import Cluster
from headway.spec.kinds.jobs import BatchJob, StreamingJob
from headway.spec.spec_file import load_spec

ROOT = Path(__file__).parents[1]
SAMPLES = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_right_and_names_its_schema(path: Path) -> None:
    validate(path)
    assert path.read_text().startswith("# yaml-language-server: $schema=schema/v1.json\n")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_planned_as_its_kind_is(path: Path) -> None:
    file = validate(path)
    if isinstance(file.spec, StreamingJob | BatchJob):
        assert plan_file(file).plan.feasible
    elif isinstance(file.spec, CapacityPlan):
        assert capacity(path).feasible
    elif isinstance(file.spec, Cluster):
        orders = load_spec(ROOT / "configs" / "orders.yaml")
        assert plan_file(replace(orders, spec=replace(orders.spec, cluster=path))).plan.feasible
    else:
        # A catalogue is planned with through the fleet that names it.
        assert "catalog: nodes.yaml" in (ROOT / "configs" / "fleet.yaml").read_text()


def test_the_committed_lock_is_of_today() -> None:
    jobs = [path for path in SAMPLES if isinstance(validate(path).spec, StreamingJob | BatchJob)]
    locked = load_lock(ROOT / "configs" / "headway.lock")
    assert {job.name for job in locked.all_jobs} <= {validate(path).metadata.name for path in jobs}
    assert check(jobs, baseline=locked).exit_code == 0
