"""A family of formulas: cells over its stated range, each compared with a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pages import headed

LARGEST_CHANCE_RATIO = 0.1
"""Relative standard error beyond which a simulation cannot judge a formula."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One quantity in one cell; `chance_ratio` is the relative standard error of the simulation."""

    formula: float
    simulated: float
    chance_ratio: float = 0.0

    @property
    def error_ratio(self) -> float:
        """Formula over simulation, minus one; 0 if both are equal, also if both are infinite."""
        if self.formula == self.simulated:
            return 0.0
        return self.formula / self.simulated - 1.0


Cell = Mapping[str, Judged]
"""Name of each quantity to its formula and simulated value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Formulas of one kind.

    Parameters
    ----------
    title, equations, over, judge : str
        Heading, equation numbers in theory.md, the range, and the simulation of the rules.
    cells : mapping of str to tuple
        Name of each cell to the arguments of `simulate`.
    simulate : callable
        Compares one cell; a module-level function, since it runs in other processes.
    """

    title: str
    equations: str
    over: str
    judge: str
    cells: Mapping[str, tuple[object, ...]]
    simulate: Callable[..., Cell]


def simulated(values: Sequence[float]) -> tuple[float, float]:
    """Mean of independent replications, and its relative standard error."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    return mean, float(array.std(ddof=1)) / np.sqrt(len(array)) / abs(mean)


def judged(formula: float, values: Sequence[float]) -> Judged:
    """A formula with replications of its simulation."""
    mean, chance_ratio = simulated(values)
    return Judged(formula=formula, simulated=mean, chance_ratio=chance_ratio)


def section(family: Family, found: Mapping[str, Cell]) -> Iterator[str]:
    """The family's part of the page."""
    yield f"## {family.title}"
    yield ""
    yield (f"{family.equations}. {len(found)} cells: {family.over}. Simulation: {family.judge}.")
    yield ""
    yield from headed(
        "| quantity | cells | median error | 90% of cells within | largest error | cell "
        "| standard error |"
    )
    for quantity in dict.fromkeys(name for cell in found.values() for name in cell):
        errors = {
            name: cell[quantity].error_ratio
            for name, cell in found.items()
            if quantity in cell and cell[quantity].chance_ratio <= LARGEST_CHANCE_RATIO
        }
        if not errors:
            yield f"| {quantity} | 0 of {len(found)} | - | - | - | - | - |"
            continue
        sizes = np.abs(list(errors.values()))
        worst = max(errors, key=lambda name: abs(errors[name]))
        yield (
            f"| {quantity} | {len(errors)} of {len(found)} "
            f"| {np.median(sizes):.2%} | {np.quantile(sizes, 0.9):.1%} "
            f"| {errors[worst]:+.1%} | {worst} "
            f"| {found[worst][quantity].chance_ratio:.1%} |"
        )
    yield ""
