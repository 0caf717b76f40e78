"""The terms of the gate: what was locked, what was found, and how severe it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headway.digits import format_money
from headway.domain.result import Result
from headway.errors import ExitCode
from headway.formats.lock_file import AnyLocked
from headway.redaction import one_line, printable
from headway.units import HOURS_PER_MONTH, counted


class Level(StrEnum):
    """Severity of a finding; only errors fail a build."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(StrEnum):
    """What a finding is about; names that do not change, since tools remember them."""

    LOCKED = "locked-setting-misses"
    TARGET = "latency-target"
    COST = "cost-regression"
    LATENCY = "latency-regression"
    DRIFT = "profile-drift"
    RATE = "rate-changed"
    SETTINGS = "settings-changed"
    CALIBRATION = "outside-calibration"
    UNLOCKED = "not-in-lock"
    GONE = "only-in-lock"
    CAUTION = "plan-caution"
    INVALID = "invalid-spec"


#: One sentence for each rule.
ABOUT: Mapping[Rule, str] = {
    Rule.LOCKED: "The locked setting does not meet the current targets at the current rate.",
    Rule.TARGET: "No configuration is certain enough to meet a target within the limits.",
    Rule.COST: "The cost of the plan, or its number of nodes if they have no price, differs from "
    "the locked one; an error if it is higher by more than --max-cost.",
    Rule.LATENCY: "The target, or the planned latency or run time, differs from the locked one; an "
    "error if the planned time is higher by more than --max-latency.",
    Rule.DRIFT: "For the locked configuration the current profile predicts another duration than "
    "the locked one; an error if it is longer by more than --max-drift.",
    Rule.RATE: "The rate, or the backlog, differs from the locked one.",
    Rule.SETTINGS: "The planned settings differ from the locked ones.",
    Rule.CALIBRATION: "The plan is outside the calibrated range.",
    Rule.UNLOCKED: "The job is not in the lock file, or there as another kind of job.",
    Rule.GONE: "A locked job is not in the checked files.",
    Rule.CAUTION: "What a reader of the plan must know: batches or state grow, so that a target is "
    "met only for a time, or an outage loses rows.",
    Rule.INVALID: "A spec file, the lock, or a file that a spec file names is invalid.",
}
_LONGEST_NAME = 4096
_REGRESSIONS = (Rule.LOCKED, Rule.COST, Rule.LATENCY, Rule.DRIFT, Rule.UNLOCKED)
_EXIT_CODES = {
    **dict.fromkeys(_REGRESSIONS, ExitCode.REGRESSION),
    Rule.TARGET: ExitCode.INFEASIBLE,
    Rule.CALIBRATION: ExitCode.OUTSIDE,
    Rule.INVALID: ExitCode.INVALID,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that the gate found, at a place in a file."""

    rule: Rule
    level: Level
    job: str
    message: str
    file: str
    line: int = 1
    column: int = 1

    def __post_init__(self) -> None:
        _show_names(self, "job", "file")

    @property
    def text(self) -> str:
        """A line with its position."""
        position = f"{self.file}:{self.line}:{self.column}"
        return f"{position}: {self.level}: {printable(self.message)} ({self.rule})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedToday:
    """The locked setting under the current rate and targets, with the current profile.

    ``planned_s`` is the value of the first target at the planned confidence; None if no latency can
    be quoted.
    """

    met: bool
    probability: float
    planned_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One job compared with its lock: locked and current figures, and what was found.

    ``locked_today`` is None if the job is not locked, or was locked as another kind of job. It
    ``is_new`` if there is a lock that does not contain it. ``cautions`` restrict that its targets
    are met, e.g. "meets its target only for 40 s".
    """

    name: str
    file: str
    line: int
    now: AnyLocked
    then: AnyLocked | None
    locked_today: LockedToday | None = None
    feasible: bool
    calibrated: bool
    cautions: tuple[str, ...] = ()
    is_new: bool = False
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        _show_names(self, "name", "file")

    @property
    def failed(self) -> bool:
        """Whether it fails the build."""
        return any(finding.level is Level.ERROR for finding in self.findings)

    @property
    def change_per_month(self) -> float:
        """Additional cost per month compared with the lock: all of it if the job is new.

        0 if it is unknown: of costs per run, in two currencies, and without a feasible plan.
        """
        after = self.cost_per_month
        if after is None or self.is_new:
            return after or 0.0
        then = self.then
        if then is None or then.ends or then.cost is None:
            return 0.0
        # Locks of earlier versions do not say their currency.
        if then.currency not in (None, self.now.currency):
            return 0.0
        return after - then.cost * HOURS_PER_MONTH

    @property
    def cost_per_month(self) -> float | None:
        """Cost per month; None for a job that ends, without a price, or without a feasible plan."""
        cost_per_hour = self.now.cost if self.feasible and not self.now.ends else None
        return None if cost_per_hour is None else cost_per_hour * HOURS_PER_MONTH

    @property
    def currency(self) -> str:
        """The currency of its prices; empty if unknown."""
        return self.now.currency or ""

    @property
    def change_ratio(self) -> float:
        """The largest change of its cost, nodes or planned time; infinite if it is new."""
        now, then = self.now, self.then
        if then is None:
            return math.inf
        pairs = ((now.cost, then.cost), (now.nodes, then.nodes), (now.planned_s, then.planned_s))
        return max(_change_ratio(after, before) for after, before in pairs)


def _show_names(noun: Any, *names: str) -> None:
    """Names of jobs and files as any format may show them, on one line."""
    for name in names:
        object.__setattr__(noun, name, one_line(getattr(noun, name), longest=_LONGEST_NAME))


def _change_ratio(after: float | None, before: float | None) -> float:
    if after == before:
        return 0.0
    return math.inf if after is None or not before else abs(after / before - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Result):
    """Everything that was checked."""

    result_kind = "check"
    baseline: str | None
    jobs: tuple[Held, ...]
    others: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if self.baseline is not None:
            _show_names(self, "baseline")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, job by job."""
        return (*(finding for job in self.jobs for finding in job.findings), *self.others)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.ERROR)

    @property
    def exit_code(self) -> int:
        """0, or that of the worst error: invalid, infeasible, regression, outside the range.

        >>> Report(baseline=None, jobs=()).exit_code
        0
        """
        return min((_EXIT_CODES[error.rule] for error in self.errors), default=0)

    def is_quiet(self, below_ratio: float) -> bool:
        """Whether all passed, and nothing changed by more than a ratio.

        >>> Report(baseline=None, jobs=()).is_quiet(0.02)
        True
        """
        return all(finding.level is Level.NOTE for finding in self.findings) and all(
            job.change_ratio <= below_ratio for job in self.jobs
        )

    @property
    def headline(self) -> str:
        """The outcome in one sentence.

        Locked settings that miss their target come first, then the additional cost per month.
        """
        added_costs = (
            f"{format_money(change, currency=currency, sign=True)} per month"
            for currency, (_, change) in self.costs_per_month.items()
            if change
        )
        return "; ".join(filter(None, (self.missing_today, *added_costs, self.outcome)))

    @property
    def costs_per_month(self) -> dict[str, tuple[float, float]]:
        """Cost of all jobs per month and its change, by currency; empty text if that is unknown.

        A change of less than a hundredth is 0.
        """
        costs: dict[str, tuple[float, float]] = {}
        for job in self.jobs:
            if job.cost_per_month is not None:
                cost, change = costs.get(job.currency, (0.0, 0.0))
                costs[job.currency] = cost + job.cost_per_month, change + job.change_per_month
        return {
            currency: (cost, change if abs(change) >= 0.005 else 0.0)
            for currency, (cost, change) in costs.items()
        }

    @property
    def missing_today(self) -> str:
        """The jobs whose locked setting misses its target; empty if none does."""
        missing = [job.name for job in self.jobs if job.locked_today and not job.locked_today.met]
        settings = "setting misses its" if len(missing) == 1 else "settings miss their"
        return f"the locked {settings} target today: {', '.join(missing)}" if missing else ""

    @property
    def outcome(self) -> str:
        """How many jobs failed, or that every target is met, and which are so for a time only.

        If files are invalid, how many faults they have.
        """
        num_faults = sum(finding.rule is Rule.INVALID for finding in self.findings)
        if num_faults:
            return f"nothing was checked: {counted(num_faults, 'fault')} in the files"
        num_jobs, num_failed = len(self.jobs), sum(job.failed for job in self.jobs)
        jobs = counted(num_jobs, "job")
        if num_failed:
            return f"{num_failed} of {jobs} failed"
        cautions = [f"{job.name} {' and '.join(job.cautions)}" for job in self.jobs if job.cautions]
        restricted = f" today, but {', '.join(cautions)}" if cautions else ""
        num_warnings = sum(finding.level is Level.WARNING for finding in self.findings)
        warnings = f", {counted(num_warnings, 'warning')}" if num_warnings else ""
        return f"{jobs}: every target is met{restricted}{warnings}"
