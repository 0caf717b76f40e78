"""A question about a query, and the code that starts the query at any setting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headway.domain import Promise
from headway.spec.forms import entry
from headway.spec.forms.quantities import CODE_FILE, DURATION, MASTER, NAME, RATE, TARGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Runs of a query that narrow the answer to a question most."""

    code: Path = entry(CODE_FILE, "Python file with the function that starts the query.")
    function: str = entry(NAME, "Name of that function. Default `build`.", default="build")
    rate_per_s: float = entry(RATE, "Input rate of the question.")
    target: Promise = entry(TARGET, "Target of the question: `p99 <= 2s`.")
    budget_s: float = entry(DURATION, "How long all runs may take. Default 10m.", default=600.0)
    run_s: float | None = entry(
        DURATION,
        "How long one run takes. Default: an eighth of the budget, 20s to 2m.",
        default=None,
    )
    master: str = entry(MASTER, "Default `local[*]`.", default="local[*]")
