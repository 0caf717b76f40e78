"""Functions of these modules reach Spark's Python workers with their code, not by name."""

from __future__ import annotations

import sys


def sent_with_its_code(module: str) -> None:
    """Pickle what a module defines by value: workers do not have the folders of benchmarks."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[module])  # type: ignore[no-untyped-call]
