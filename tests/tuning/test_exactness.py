"""Numbered rows through changes and kill -9: a small part of the matrix of `make exactness`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def exactness() -> ModuleType:
    path = ROOT / "benchmarks" / "tuning" / "exactness.py"
    spec = importlib.util.spec_from_file_location("exactness", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exactness"] = module
    if str(path.parents[1]) not in sys.path:
        sys.path.append(str(path.parents[1]))  # as benchmarks/run.py has it
    spec.loader.exec_module(module)
    return module


@pytest.mark.jvm
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("stopped", marks=pytest.mark.statistical),
        pytest.param("rows written", marks=pytest.mark.robustness),
    ],
)
def test_no_row_is_lost_and_none_doubled_by_an_idempotent_sink(
    exactness: ModuleType, tmp_path: Path, point: str
) -> None:
    sinks = ("file", "stateful") if point == "stopped" else exactness.ALL_SINKS
    cell = exactness.Cell(point=point, seed=1, sinks=sinks, changes=8, kills=1)
    found = exactness.run_cell(cell, tmp_path)
    assert exactness.faults_of(found) == []
    assert found["num_killed"] == 1
    assert found["num_changes"] >= 4
    assert all(counted["rows"] > 1000 for counted in found["rows"].values())
    if point == "rows written":
        # Spark runs a batch again that was cut: an append has its rows twice, and is warned of.
        assert found["rows"]["plain"]["lost"] == 0


def test_what_is_lost_or_doubled_is_found(exactness: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "idempotent.out" / "batch=0"
    out.mkdir(parents=True)
    (out / "part-0.json").write_text('{"value":0}\n{"value":1}\n{"value":1}\n{"value":3}\n')
    found = exactness.counted_rows(tmp_path, "idempotent")
    assert found == {"rows": 4, "lost": 1, "doubled": 1}
    faults = exactness.faults_of({"cell": "x", "rows": {"idempotent": found}})
    assert faults == ["x: idempotent lost 1 of 4", "x: idempotent doubled 1"]
    assert exactness.faults_of({"cell": "x", "rows": {"plain": {**found, "lost": 0}}}) == []


def test_the_matrix_has_a_thousand_changes_and_each_cell_its_own_name(
    exactness: ModuleType,
) -> None:
    cells = list(exactness.cells())
    assert sum(cell.changes for cell in cells) >= 1000
    assert len({cell.name for cell in cells}) == len(cells)
    assert {cell.point for cell in cells} >= {None, *exactness.POINTS}
