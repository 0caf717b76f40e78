"""Every benchmark that the Makefile names is one that `benchmarks/run.py` knows."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.sources import ROOT

NAMED = sorted(set(re.findall(r"benchmarks/run\.py (\w+)", (ROOT / "Makefile").read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_what_the_makefile_runs_is_there(name: str) -> None:
    spec = importlib.util.spec_from_file_location("run", ROOT / "benchmarks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    assert name in run.benchmarks()
