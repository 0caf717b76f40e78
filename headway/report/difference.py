"""Two results compared, in words and as data."""

from __future__ import annotations

from headway.digits import format_max_rate, format_money, format_rate_down, signed_percent
from headway.domain.sheet import Kind, Section, Sheet
from headway.formats.codec import data_of
from headway.planner.explain.difference import Difference, Figure
from headway.report.wording import APPLIES, percent
from headway.units import counted, format_duration, format_rate

_MOST_PARTS = 8
#: Rates up to which something holds are rounded down, as in plans.
_RATE_FORMS = {"stable up to": format_rate_down, "max rate within target": format_max_rate}


def difference_json(difference: Difference) -> dict[str, object]:
    """A difference as data for :func:`headway.formats.as_json.json_text`."""
    before, after = difference.names
    feasible = difference.feasible or (None, None)
    return {
        "kind": difference.kind,
        "same": difference.is_none,
        "before": {"name": before, "feasible": feasible[0]},
        "after": {"name": after, "feasible": feasible[1]},
        "figures": data_of(difference.figures),
        "values": data_of(difference.values),
        "causes": data_of(difference.causes),
        "compared_at": difference.compared_at,
        "parts_of": difference.parts_of,
        "parts_s": data_of(difference.parts),
    }


def difference_sheet(difference: Difference) -> Sheet:
    """What changed, why, and where the time goes; unchanged values are left out."""
    before, after = difference.names
    num_hidden = len(difference.parts) - _MOST_PARTS
    hidden = (f"{num_hidden} more with smaller changes",) if num_hidden > 0 else ()
    rows = []
    for figure in difference.figures:
        ends = (_figure(difference, figure, value) for value in (figure.before, figure.after))
        rows.append((figure.name, *ends, _change(figure)))
    facts: list[tuple[str, str]] = []
    if (before, after) != ("A", "B"):
        facts += [("A:", before), ("B:", after)]
    if difference.compared_at:
        facts.append(("compared:", difference.compared_at))
    return Sheet(
        about="Headway comparison",
        headline=headline(difference),
        facts=tuple(facts),
        sections=(
            Section(head=("", "A", "B", "change"), rows=tuple(rows), right=(1, 2, 3)),
            Section(title="why", texts=tuple(cause.in_words for cause in difference.causes)),
            Section(title="changed", rows=_value_rows(difference)),
            Section(title=difference.parts_of, rows=_part_rows(difference), right=(1, 2, 3)),
            Section(texts=hidden, indent=2, close=True),
        ),
    )


def headline(difference: Difference) -> str:
    """The result in one sentence: money first, then nodes, else the time."""
    if difference.is_none:
        return "no difference"
    if difference.feasible is not None and not all(difference.feasible):
        before, after = difference.feasible
        if before:
            return "B is infeasible, A is feasible"
        return "B is feasible, A is infeasible" if after else "both are infeasible"
    changes = [_money(difference), _nodes(difference.figure("nodes"))]
    return ": ".join(filter(None, changes)) or _time(difference)


def _money(difference: Difference) -> str:
    cost = difference.figure("cost")
    if cost is None or cost.before is None or cost.after is None:
        return ""
    if cost.is_same:
        return f"same cost, {_figure(difference, cost, cost.after)}"
    added = format_money(cost.after - cost.before, currency=difference.currency, sign=True)
    return f"{added} {cost.unit} ({_change(cost)})"


def _nodes(nodes: Figure | None) -> str:
    if nodes is None or nodes.before is None or nodes.after is None:
        return ""
    now = counted(round(nodes.after), "node")
    return f"{now}, as before" if nodes.is_same else f"{now} instead of {nodes.before:,.0f}"


def _time(difference: Difference) -> str:
    """For profiles: the time of a batch or a run in the same configuration."""
    figure, subject = difference.figure("mean batch duration"), "a batch"
    if figure is None:
        figure, subject = difference.figure("run time on the slots of B"), "a run"
    if figure is None:
        return "they differ"
    if figure.before is None or figure.after is None:
        return f"{subject} has no time to quote: {difference.no_time}"
    if figure.is_same:
        return f"{subject} takes as long as before"
    then, now = format_duration(figure.before), format_duration(figure.after)
    return f"{subject} takes {now} instead of {then} ({_change(figure)})"


def _figure(difference: Difference, figure: Figure, value: float | None) -> str:
    if value is None:
        return "-"
    if figure.unit == "s":
        return format_duration(value)
    if figure.unit == "rows/s":
        return _RATE_FORMS.get(figure.name, format_rate)(value) if value > 0 else "none"
    if figure.unit == "share":
        return percent(value)
    if figure.unit == "count":
        return f"{value:,.0f}"
    if figure.unit == "per hour":
        return f"{value:,.0f} {figure.unit}"
    return f"{format_money(value, currency=difference.currency)} {figure.unit}"


def _change(figure: Figure) -> str:
    if figure.is_same:
        return "same"
    ratio = figure.change_ratio
    if ratio is None:
        return "-"
    return signed_percent(ratio)


def _value_rows(difference: Difference) -> tuple[tuple[str, ...], ...]:
    rows = []
    for change in difference.values:
        applies = change.applies and APPLIES.get(change.applies, str(change.applies))
        rows.append((change.name, f"{change.before} -> {change.after}", applies or ""))
    width = 3 if any(applies for _, _, applies in rows) else 2
    return tuple(row[:width] for row in rows)


def _part_rows(difference: Difference) -> tuple[tuple[str, ...], ...]:
    rows = []
    for part in difference.parts[:_MOST_PARTS]:
        times_s = (part.before_s, part.after_s)
        times = ("-" if time_s is None else format_duration(time_s) for time_s in times_s)
        change = f"{'+' if part.change_s > 0 else '-'}{format_duration(abs(part.change_s))}"
        rows.append((part.name, *times, change))
    return tuple(rows)


KINDS = {"diff": Kind(sheet=difference_sheet, data=difference_json, main="figures")}
