"""The three chains of the design, which tests share."""

from __future__ import annotations

from headway.domain.ordered import Operator, OrderedPipeline

COSTS = {"A": (10, 20, 30, 4), "B": (10, 30, 20), "C": (10, 10, 10, 20)}
SELECTIVITIES = {"A": (1.0, 0.5, 2.0, 1.0), "B": (1.0, 1.0, 1.0), "C": (4.0, 0.25, 1.0, 0.1)}
STATEFUL = {"A": None, "B": 1, "C": 3}


def pipeline(name: str, *, rate_per_s: float | None = None) -> OrderedPipeline:
    """Case A, B or C on eight workers."""
    operators = tuple(
        Operator(
            name=f"o{at}",
            type="stateful" if at == STATEFUL[name] else "stateless",
            cost_s=cost * 1e-6,
            selectivity_ratio=selectivity,
        )
        for at, (cost, selectivity) in enumerate(zip(COSTS[name], SELECTIVITIES[name], strict=True))
    )
    return OrderedPipeline(num_workers=8, operators=operators, rate_per_s=rate_per_s)


def most(name: str) -> list[float]:
    """Workers that each operator can use."""
    limits = [float("inf")] * len(COSTS[name])
    if (place := STATEFUL[name]) is not None:
        limits[place] = 1.0
    return limits
