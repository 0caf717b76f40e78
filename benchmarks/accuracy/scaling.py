"""How errors grow outside the profiled range: evidence, fitted spread, and how well it holds.

    python benchmarks/run.py scaling --collect ../shared/data
    python benchmarks/run.py scaling --output docs/scaling-accuracy.md

The first makes `results/scaling.jsonl` from all available runs; the second, the page from that.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pages import headed
from scale.evidence import Error, all_errors, read_errors, write_errors
from scale.split import COVERED_SHARE, LEAST_COVERED_SHARE, LEAST_ERRORS, is_fitted

from headway.assumptions.predictions import (
    CALIBRATED_DOUBLINGS,
    SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO,
    SPREAD_PER_DOUBLING_RATIO,
)
from headway.domain import Z90

RESULTS = Path(__file__).parent / "results"
KINDS = ("slots", "partitions", "rows")

PREFACE = """\
How large errors are when a prediction is outside the profiled range of slots, shuffle partitions
or rows per batch. An error is the logarithm of the factor on all durations with which the
measured mean duration would have been predicted. Distances are doublings outside the profiled
range. Intervals multiply all durations by $e^{\\pm1.645s}$, so an interval holds if the error is
at most $1.645\\,s$, with

$$s=\\sqrt{s_r^2(1+k/m)+\\sigma^2(d_C^2+d_n^2)+\\sigma_P^2d_P^2}$$

of theory.md (P2): $s_r$ is the spread between runs of one setting, $k$ is the number of
parameters that are fitted to $m$ runs, and $d$ are the doublings of slots, rows and shuffle
partitions. Three numbers are determined here: $\\sigma$, $\\sigma_P$, and the number of doublings
up to which a prediction is called calibrated.

Sources: *recorded*, one run of a streaming query fitted and its other runs predicted, on one
core, on two cores and from one to the other (docs/recorded-accuracy.md); *campaign*, fitted on
three settings (docs/accuracy.md); *tasks*, one job with 1 to 28 concurrent tasks; *hosts*, graph
jobs fitted on two numbers of hosts; *clusters*, one streaming query on clusters of 24 and 36
cores, predicted from clusters of up to 12 cores by five numbers, without a profile (the last
three: docs/cluster-accuracy.md). `benchmarks/accuracy/scale/split.py` says which part is fitted
and which is judged, by which rules, and what was changed after looking at errors. Errors of one
source are far from independent: the counts are errors, not runs.
"""

AFTERWORD = """\
The intervals of *clusters* hold half of the time: their calibration has no term for the driver,
which launches as many tasks as there are cores, and no cluster of less than 24 cores shows what
that costs (docs/cluster-accuracy.md). It is the only streaming query on more than one machine for
which figures are available. If you plan for several times the nodes of a profile, profile once at
the new size: distances are counted from the nearest profiled value.
"""

MADE = (
    "Made by `make scaling-accuracy` (`python benchmarks/run.py scaling`) from the committed "
    "results."
)


class Rule(NamedTuple):
    """The spread per doubling, and how doublings of several kinds are combined."""

    name: str
    distance: Callable[[Error], float]
    per_doubling: float
    per_doubling_of_partitions: float = 0.0

    def holds(self, error: Error) -> bool:
        """Whether the 90% interval of an error's prediction holds."""
        return abs(error.log_factor) <= Z90 * self.spread(error)

    def spread(self, error: Error) -> float:
        """Standard deviation of the logarithm of the durations."""
        of_partitions = self.per_doubling_of_partitions * error.partitions
        return math.hypot(error.own_spread, self.per_doubling * self.distance(error), of_partitions)


def as_sum(error: Error) -> float:
    """Doublings of all kinds, one after the other."""
    return error.slots + error.partitions + error.rows


def as_independent(error: Error) -> float:
    """Doublings of all kinds, whose errors are independent."""
    return math.hypot(error.slots, error.partitions, error.rows)


def without_partitions(error: Error) -> float:
    """Doublings of slots and rows, whose errors are independent."""
    return math.hypot(error.slots, error.rows)


def applied_rule(errors: Sequence[Error]) -> Rule:
    """The best rule, with a spread of its own for partitions: the likeliest, to the hundredth."""
    fitted = [error for error in errors if is_fitted(error.kind) and as_sum(error) > 0]
    apart = fitted_rules(errors)[0]._replace(name="partitions apart", distance=without_partitions)
    rules = [apart._replace(per_doubling_of_partitions=hundredth / 100) for hundredth in range(100)]
    return max(rules, key=lambda rule: mean_log_likelihood(rule, fitted))


def mean_log_likelihood(rule: Rule, errors: Sequence[Error]) -> float:
    """Of normal errors, less a constant, with equal weight for every source."""
    return _by_source(
        errors,
        lambda error: (
            -math.log(rule.spread(error)) - 0.5 * (error.log_factor / rule.spread(error)) ** 2
        ),
    )


def fitted_rules(errors: Sequence[Error]) -> list[Rule]:
    """For both ways to combine doublings, the minimum spread that covers enough; best first."""
    fitted = [error for error in errors if is_fitted(error.kind) and as_sum(error) > 0]
    rules = []
    for name, distance in (("sum", as_sum), ("independent", as_independent)):
        rule = next(
            rule
            for rule in (Rule(name, distance, hundredth / 100) for hundredth in range(1, 100))
            if mean_covered(rule, fitted) >= COVERED_SHARE
        )
        rules.append(rule)
    return sorted(rules, key=lambda rule: sum(rule.spread(error) for error in fitted))


def mean_covered(rule: Rule, errors: Sequence[Error]) -> float:
    """Share of intervals that hold, with equal weight for every source."""
    return _by_source(errors, rule.holds)


def _by_source(errors: Sequence[Error], figure: Callable[[Error], float]) -> float:
    """Mean of a figure over errors, with equal weight for every source."""
    by_source = [
        np.mean([figure(error) for error in errors if error.source == source])
        for source in dict.fromkeys(error.source for error in errors)
    ]
    return float(np.mean(by_source))


def calibrated_doublings(rule: Rule, errors: Sequence[Error]) -> dict[str, int]:
    """How far the judged evidence reaches, by kind."""
    judged = [error for error in errors if not is_fitted(error.kind)]
    reach = {}
    for kind in KINDS:
        doubling = 0
        while _is_enough(rule, of_band(judged, kind, doubling + 1)):
            doubling += 1
        reach[kind] = doubling
    return reach


def _is_enough(rule: Rule, errors: Sequence[Error]) -> bool:
    held = sum(rule.holds(error) for error in errors)
    return len(errors) >= LEAST_ERRORS and held >= LEAST_COVERED_SHARE * len(errors)


def of_band(errors: Sequence[Error], kind: str, doubling: int) -> list[Error]:
    """Errors up to this many doublings away, and more than one fewer."""
    return [error for error in errors if math.ceil(getattr(error, kind) - 1e-9) == doubling]


def page(results: Path) -> str:
    """The whole page."""
    errors = read_errors(results / "scaling.jsonl")
    lines = [
        "# How far a profile reaches",
        "",
        PREFACE,
        MADE,
        "",
        *_fit_section(errors),
        *_band_section(errors),
        *_part_section(errors),
        AFTERWORD,
    ]
    return "\n".join(lines).rstrip() + "\n"


def _fit_section(errors: Sequence[Error]) -> Iterator[str]:
    rules = [*fitted_rules(errors), applied_rule(errors)]
    fitted, judged = (
        [error for error in errors if is_fitted(error.kind) is wanted and as_sum(error) > 0]
        for wanted in (True, False)
    )
    yield "## Spread per doubling"
    yield ""
    yield (
        "The smallest spread, in hundredths, with which nine in ten intervals of the fitted errors "
        "hold, with equal weight for every source. Of the two ways to combine doublings, the one "
        "with less spread in total is used. The last row has a spread of its own for shuffle "
        "partitions, the one of greatest likelihood for the fitted errors: their cost is part of "
        "every fit, (T2), so that they add less error than slots and rows do."
    )
    yield ""
    yield from headed(
        "| doublings of several kinds | spread per doubling | of partitions | fitted: held "
        "| spread, mean | judged: held | of which partitions outside |"
    )
    for rule in rules:
        mean = np.mean([rule.spread(error) for error in fitted])
        of_partitions = rule.per_doubling_of_partitions or rule.per_doubling
        outside = [error for error in judged if error.partitions > 0]
        yield (
            f"| {rule.name} | {rule.per_doubling:.2f} | {of_partitions:.2f} "
            f"| {_share(rule, fitted)} | {mean:.3f} | {_share(rule, judged)} "
            f"| {_percent(rule, outside)} |"
        )
    yield ""
    yield (
        f"Headway uses {SPREAD_PER_DOUBLING_RATIO.value:g} (`SPREAD_PER_DOUBLING_RATIO`, standard "
        "deviation of the logarithm per doubling), "
        f"{SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO.value:g} for partitions "
        "(`SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO`) and independent errors."
    )
    yield ""


def _share(rule: Rule, errors: Sequence[Error]) -> str:
    held = sum(rule.holds(error) for error in errors)
    return (
        f"{held} of {len(errors)} ({100 * held / len(errors):.0f}%; sources weighted "
        f"equally {100 * mean_covered(rule, errors):.0f}%)"
    )


def _band_section(errors: Sequence[Error]) -> Iterator[str]:
    rule = applied_rule(errors)
    reach = calibrated_doublings(rule, errors)
    sources = list(dict.fromkeys(error.source for error in errors))
    yield "## By distance"
    yield ""
    yield (
        "Judged errors by doublings of one kind outside the profiled range, whatever those of the "
        "others."
    )
    yield ""
    yield from headed(f"| | doublings | errors | root mean square | held |{'|'.join(sources)}|")
    judged = [error for error in errors if not is_fitted(error.kind)]
    for kind in KINDS:
        for doubling in range(9):
            band = of_band(judged, kind, doubling)
            if not band:
                continue
            held = sum(rule.holds(error) for error in band)
            cells = []
            for source in sources:
                own = [error for error in band if error.source == source]
                cells.append(f"{sum(map(rule.holds, own))} of {len(own)}" if own else "")
            size = np.sqrt(np.mean([error.log_factor**2 for error in band]))
            distance = "0" if doubling == 0 else f"{doubling - 1} to {doubling}"
            yield (
                f"| {kind} | {distance} | {len(band)} | {size:.2f} "
                f"| {100 * held / len(band):.0f}% | {' | '.join(cells)} |"
            )
    yield ""
    yield (
        f"With at least ten errors, of which at least 85% hold, the evidence reaches "
        f"{', '.join(f'{number} doublings of {kind}' for kind, number in reach.items())}. "
        f"The smallest of them is used for all: up to {CALIBRATED_DOUBLINGS.value:g} doublings, "
        f"{2**CALIBRATED_DOUBLINGS.value:g} times more or fewer of each than profiled, a "
        "prediction is called calibrated, and its interval applies. Beyond that, it is called "
        "extrapolated."
    )
    yield ""


def _part_section(errors: Sequence[Error]) -> Iterator[str]:
    rule = applied_rule(errors)
    yield "## By source"
    yield ""
    yield from headed(
        "| source | part | | errors inside | held | errors outside | root mean square | held "
        "| without the spread per doubling |"
    )
    alone = rule._replace(per_doubling=0.0, per_doubling_of_partitions=0.0)
    for kind in dict.fromkeys(error.kind for error in errors):
        own = [error for error in errors if error.kind == kind]
        inside = [error for error in own if as_sum(error) == 0]
        beyond = [error for error in own if as_sum(error) > 0]
        size = np.sqrt(np.mean([error.log_factor**2 for error in beyond]))
        yield (
            f"| {kind.source} | {kind.part} | {'fitted' if is_fitted(kind) else 'judged'} "
            f"| {len(inside) or ''} | {_percent(rule, inside)} | {len(beyond)} | {size:.2f} "
            f"| {_percent(rule, beyond)} | {_percent(alone, beyond)} |"
        )
    yield ""


def _percent(rule: Rule, errors: Sequence[Error]) -> str:
    if not errors:
        return ""
    return f"{100 * sum(map(rule.holds, errors)) / len(errors):.0f}%"


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--collect", type=Path, help="folder with all available runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results")


def text(given: argparse.Namespace) -> str | None:
    """Collect the evidence, or make the page."""
    if given.collect is None:
        return page(given.results)
    errors = all_errors(
        given.collect / "groundtruth", given.collect, given.results / "campaign.jsonl.gz"
    )
    write_errors(list(errors), given.results / "scaling.jsonl")
    print(given.results / "scaling.jsonl")
    return None
