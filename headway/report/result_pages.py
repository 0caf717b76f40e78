"""Backtests, capacity plans, checks and plans of batch jobs as pages."""

from __future__ import annotations

from collections.abc import Sequence

from headway.assumptions.advice import SAVING_SHOWN_PER_DAY
from headway.digits import format_money
from headway.domain import Backtest, BatchAnswer, HeldOut
from headway.formats.results_file import (
    CapacityRead,
    CheckRead,
    JobOfCapacity,
    JobOfCheck,
    MonthOfGrowth,
)
from headway.report.backtest import backtest_headline
from headway.report.charts import DotChart, dot_charts
from headway.report.comparison import ComparisonRow
from headway.report.deadline import all_points, backlog_facts, deadline_headline
from headway.report.page import Origin, page_text, shortened
from headway.report.wording import APPLIES, cost_per_month_text, per_task_text
from headway.units import DAYS_PER_MONTH, counted, format_duration, format_rate
from headway.words import all_words

_MOST_CHARTS = 12
Rows = Sequence[tuple[str, ...]]


def backtest_page(backtest: Backtest, *, origin: Origin | None = None) -> str:
    """Predicted and measured, run by run."""
    mean, p99 = backtest.median_mean_error_ratio, backtest.median_p99_error_ratio
    held, intervals = backtest.intervals_held
    headline = backtest_headline(backtest)
    headline = headline[:1].upper() + headline[1:]
    keys = [
        (f"median error of the {name}", f"{value:.1%}", "")
        for name, value in (("mean", mean), ("p99", p99))
        if value is not None
    ]
    keys.append(("intervals that hold", f"{held} of {intervals}", "90% is expected"))
    rows: list[tuple[str, ...]] = [
        ("run", "rate", "mean", "measured", "error", "p99", "measured", "error")
    ]
    rows += [_run_row(run) for run in backtest.runs]
    return tables_page(
        kind="Headway backtest",
        headline=headline,
        facts=(("rule", backtest.rule),),
        key_figures=keys,
        notes=backtest.notes,
        tables=(("Predicted and measured tuple latency", rows, range(1, 8)),),
        dots=dot_charts(
            [
                ComparisonRow(
                    label=shortened(run.label),
                    predicted=run.prediction.tuple_latency,
                    measured=run.observed_latency,
                )
                for run in backtest.runs[:_MOST_CHARTS]
                if run.prediction.tuple_latency is not None
            ]
        ),
        origin=origin,
    )


def _run_row(run: HeldOut) -> tuple[str, ...]:
    found, seen = run.prediction.tuple_latency, run.observed_latency

    def beside(value_s: float | None, seen_s: float, error: float | None) -> tuple[str, ...]:
        if value_s is None or error is None:
            return "none", format_duration(seen_s), "-"
        return format_duration(value_s), format_duration(seen_s), f"{error:+.1%}"

    return (
        shortened(run.label),
        format_rate(run.prediction.arrivals.rate_per_s),
        *beside(None if found is None else found.mean_s, seen.mean_s, run.mean_error_ratio),
        *beside(None if found is None else found.p99_s, seen.p99_s, run.p99_error_ratio),
    )


def capacity_page(plan: CapacityRead, *, origin: Origin | None = None) -> str:
    """Which job runs where, what to buy, and the cost per month."""
    name = shortened(plan.name)
    if not plan.feasible:
        reasons = [("job", "why"), *((one.job, one.why) for one in plan.impossible)]
        reasons += [(job, "to leave out") for job in plan.unserved]
        return tables_page(
            kind="Headway capacity plan",
            verdict=False,
            headline=f"{name}: infeasible",
            tables=(
                ("Jobs in the way", reasons, ()),
                ("Alternatives", [("change",), *((text,) for text in plan.relaxations)], ()),
            ),
            origin=origin,
        )
    cost = plan.cost_per_day or 0.0
    served = sum(one.served for one in plan.jobs)
    hours = zip(*(one.nodes for one in plan.purchases), strict=False)
    most = max(map(sum, hours), default=0)
    known = any(one.kept_probability is not None for one in plan.jobs)
    probability = ("probability",) if known else ()
    jobs: list[tuple[str, ...]] = [
        ("job", "pool", "node type", "needs", f"{plan.currency} per month", *probability)
    ]
    jobs += [(*_job_row(one), *_probability_cell(one)[: len(probability)]) for one in plan.jobs]
    bought = [("node type", "nodes", "spot", "committed", f"{plan.currency} per month")]
    bought += [
        (
            one.node_type,
            _span(one.nodes),
            _span(one.spot),
            f"{one.committed:,}",
            f"{one.cost_per_day * DAYS_PER_MONTH:,.2f}",
        )
        for one in plan.purchases
    ]
    prices = [("job", "target", "looser target", f"saves {plan.currency} per month")]
    prices += [
        (one.job, one.promise, one.looser, f"{one.saves_per_day * DAYS_PER_MONTH:,.2f}")
        for one in plan.promise_prices
        if one.saves_per_day >= SAVING_SHOWN_PER_DAY.value
    ]
    limits = [("one more would save",), *((one.text,) for one in plan.shadow_prices if one.text)]
    growth: list[tuple[str, ...]] = [("month", "rates", "max nodes", f"{plan.currency} per month")]
    growth += [_growth_row(one) for one in plan.growth]
    return tables_page(
        kind="Headway capacity plan",
        verdict=served == len(plan.jobs),
        headline=f"{name}: {served} of {counted(len(plan.jobs), 'job')} on at most "
        f"{counted(most, 'node')}",
        facts=(
            *((("proven", plan.proof),) if plan.proof else ()),
            ("prices", plan.prices_of),
            ("rates", plan.scenarios),
        ),
        key_figures=[
            ("cost per month", f"{cost * DAYS_PER_MONTH:,.0f} {plan.currency}", "of 30 days"),
            ("cost per day", f"{cost:,.2f} {plan.currency}", ""),
            ("most nodes at a time", f"{most:,}", ""),
            *_budget_figure(plan),
        ],
        tables=(
            ("Jobs", jobs, (4, 5)),
            ("Nodes to buy", bought, (1, 2, 3, 4)),
            ("Nodes by hour", _by_hour(plan), range(1, 25)),
            ("What targets cost", prices, (3,)),
            ("What limits cost", limits, ()),
            ("Growth", growth, (1, 2, 3)),
        ),
        origin=origin,
    )


def _probability_cell(one: JobOfCapacity) -> tuple[str]:
    return ("" if one.kept_probability is None else f"{one.kept_probability:.1%}",)


def _budget_figure(plan: CapacityRead) -> list[tuple[str, str, str]]:
    """The budget, and how much of it the plan uses; nothing without one."""
    budget = plan.budget_per_day
    if budget is None:
        return []
    used = f"{(plan.cost_per_day or 0.0) / budget:.0%} used"
    return [("budget per month", f"{budget * DAYS_PER_MONTH:,.0f} {plan.currency}", used)]


def _growth_row(one: MonthOfGrowth) -> tuple[str, ...]:
    rates = f"{one.ratio:.2f}x"
    if one.cost_per_day is None:
        return one.month, rates, "no plan", one.why or "-"
    nodes = "-" if one.max_nodes is None else f"{one.max_nodes:,}"
    return one.month, rates, nodes, f"{one.cost_per_day * DAYS_PER_MONTH:,.2f}"


def _job_row(one: JobOfCapacity) -> tuple[str, ...]:
    if not one.served:
        return shortened(one.job), "✗ not served", "", shortened(one.why), "-"
    counts, thing = (one.nodes, "node") if one.nodes else (one.executors, "executor")
    needs = f"{_span(counts)} {thing}{'' if max(counts, default=0) == 1 else 's'}"
    cost = "-" if one.cost_per_day is None else f"{one.cost_per_day * DAYS_PER_MONTH:,.2f}"
    return shortened(one.job), one.pool, one.node_type, needs, cost


def _by_hour(plan: CapacityRead) -> Rows:
    num_hours = max((len(one.nodes) for one in plan.purchases), default=0)
    if num_hours <= 1:
        return []
    return [
        ("node type", *(f"{hour:02d}" for hour in range(num_hours))),
        *((one.node_type, *map(str, one.nodes)) for one in plan.purchases),
    ]


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def check_page(check: CheckRead, *, origin: Origin | None = None) -> str:
    """Each job, locked and current, and the findings."""
    rows: list[tuple[str, ...]] = [
        ("job", "verdict", "nodes", "locked", "planned", "locked", "cost per month", "locked")
    ]
    rows += [_checked_row(one) for one in check.jobs]
    found = [("level", "job", "finding", "where")]
    found += [
        (one.level, shortened(one.job), shortened(one.message), f"{shortened(one.file)}:{one.line}")
        for one in check.findings
    ]
    return tables_page(
        kind="Headway check",
        verdict=check.ok,
        headline=check.headline[:1].upper() + check.headline[1:],
        facts=(("baseline", check.baseline or "none"),),
        tables=(("Jobs", rows, range(2, 8)), ("Findings", found, ())),
        origin=origin,
    )


def _checked_row(one: JobOfCheck) -> tuple[str, ...]:
    def figures(which: JobOfCheck, locked: bool) -> tuple[str, str, str]:
        found = which.locked if locked else which.now
        if found is None:
            return "-", "-", "-"
        planned_s = found.planned_latency_s or found.planned_run_time_s
        cost = cost_per_month_text(found.cost_per_hour)
        if found.cost_per_run is not None:
            cost = f"{format_money(found.cost_per_run)} per run"
        return (
            "-" if found.nodes is None else f"{found.nodes:,}",
            "-" if planned_s is None else format_duration(planned_s),
            cost,
        )

    now, then = figures(one, locked=False), figures(one, locked=True)
    pairs = [figure for pair in zip(now, then, strict=True) for figure in pair]
    return (shortened(one.name), "✓ met" if one.ok else "✗ failed", *pairs)


def deadline_page(plan: BatchAnswer, *, origin: Origin | None = None) -> str:
    """The plan of a job that ends: run time by nodes, and its configuration."""
    answer = deadline_headline(plan)
    headline = answer[:1].upper() + answer[1:]
    rows = [("nodes", "predicted run time", "up to", "deadline", "cost per run")]
    rows += [
        (
            f"{one.nodes:,}" + (", the plan" if plan.feasible and one.nodes == plan.nodes else ""),
            format_duration(one.mean_s),
            format_duration(one.planned_s),
            "✓ met" if one.planned_s <= plan.deadline.limit_s else "✗ missed",
            "-" if one.cost_per_run is None else format_money(one.cost_per_run),
        )
        for one in all_points(plan)
    ]
    changes = [("setting", "profiled", "planned", "applies")]
    changes += [(one.setting, one.before, one.after, APPLIES[one.applies]) for one in plan.changes]
    cores = f"{counted(plan.cores_per_executor, 'core')}{per_task_text(plan.task_cpus)}"
    return tables_page(
        kind=f"Headway plan of a {'batch job' if plan.backlog is None else 'backlog'}",
        verdict=plan.feasible,
        headline=headline,
        facts=(
            ("configuration", f"{counted(plan.executors, 'executor')} x {cores}"),
            *backlog_facts(plan),
        ),
        key_figures=[
            ("nodes", f"{plan.nodes:,}", "" if plan.node_type is None else plan.node_type.name),
            ("predicted run time", format_duration(plan.run.mean_s), ""),
            ("planned run time", format_duration(plan.run.planned_s), f"{plan.confidence:.0%}"),
            *_probability_figure(plan),
        ],
        notes=(
            *plan.binding,
            *(one.text for one in plan.advice),
            *all_words(plan.findings),
        ),
        tables=(
            ("Run time by nodes", rows, (1, 2, 4)),
            ("Changes against the profiled run", changes, ()),
        ),
        codes=(
            (
                "Spark configuration",
                "spark-conf",
                "\n".join(f"{key} {value}" for key, value in plan.spark_conf.items()),
            ),
        ),
        origin=origin or Origin.of(spark_version=plan.spark_version),
    )


def _probability_figure(plan: BatchAnswer) -> list[tuple[str, str, str]]:
    """Probability of meeting the deadline, beside the requested one; none in earlier versions."""
    if plan.kept_probability is None:
        return []
    asked = f"{plan.confidence:.0%} asked"
    return [("probability to meet it", f"{plan.kept_probability:.1%}", asked)]


def tables_page(
    *,
    kind: str,
    headline: str,
    verdict: bool | None = None,
    facts: Sequence[tuple[str, str]] = (),
    key_figures: Sequence[tuple[str, str, str]] = (),
    notes: Sequence[str] = (),
    tables: Sequence[tuple[str, Rows, Sequence[int]]] = (),
    dots: Sequence[DotChart] = (),
    codes: Sequence[tuple[str, str, str]] = (),
    origin: Origin | None = None,
) -> str:
    """A page of key figures, tables, and dots of predicted beside measured."""
    return page_text(
        "tables.html.jinja",
        origin=origin,
        kind=kind,
        title=headline,
        headline=headline,
        verdict=verdict,
        facts=facts,
        key_figures=key_figures,
        notes=tuple(map(shortened, notes)),
        tables=[one for one in tables if len(one[1]) > 1],
        dot_charts=dots,
        codes=codes,
    )
