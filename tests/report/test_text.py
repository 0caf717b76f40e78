from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import headway
from headway.api.results import as_text
from headway.domain import (
    CatchUp,
    Change,
    Configuration,
    Finding,
    FindingCode,
    FrontierPoint,
    InfeasiblePlan,
    Interval,
    NodeType,
    Plan,
    Prediction,
    PromiseNeed,
    Sensitivity,
    StreamAnswer,
    Target,
)
from headway.report.columns import aligned
from headway.report.explanation import sensitivity_section
from headway.report.page import sheet_page
from headway.report.sheet_text import sheet_text
from headway.report.stream import stream_sheet
from headway.report.stream_page import stream_page_sheet
from tests.factories import a_configuration, a_plan, a_prediction, a_profile, about_stage
from tests.factories import an_infeasible_plan as nearest_plan

LONG = "a very long name " * 12
HOSTILE = "\x1b[2Jred\nalert"


def unstable(**changes: Any) -> Prediction:
    changes = {"batch_duration": None, "tuple_latency": None, "phases_s": {}} | changes
    return a_prediction(stable=False, calibrated=False, **changes)


def an_infeasible_plan(**changes: Any) -> InfeasiblePlan:
    return nearest_plan(**({"floor_s": 3.4, "planned_latency_s": 3.4} | changes))


def a_long_plan() -> Plan:
    plan = a_plan(binding=(LONG,), findings=(about_stage(LONG),))
    setting = Configuration(
        executors=99_999,
        cores_per_executor=128,
        shuffle_partitions=98_765,
        trigger_s=86399.999,
        max_offsets_per_trigger=10**15,
    )
    return replace(
        plan,
        configuration=setting,
        frontier=(
            FrontierPoint(
                nodes=10**6, sustainable_rate_per_s=1e12, configuration=setting, calibrated=False
            ),
        ),
        rejected=(
            replace(plan.rejected[0], change=LONG, reason=LONG, configuration=setting),
            replace(plan.rejected[0], change=LONG, reason="x" * 300),
        ),
        changes=(Change(setting=LONG, before=LONG, after=LONG, applies=plan.changes[0].applies),),
    )


TEXTS = {
    "prediction": as_text(a_prediction()),
    "long prediction": as_text(a_prediction(findings=(about_stage(LONG),), phases_s={LONG: 1.0})),
    "unstable": as_text(unstable()),
    "plan": as_text(a_plan()),
    "long plan": as_text(a_long_plan()),
    "infeasible": as_text(an_infeasible_plan()),
    "over capacity": as_text(an_infeasible_plan(prediction=unstable(), floor_s=math.inf)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_lines_fit_a_terminal_and_end_where_their_text_ends(name: str) -> None:
    for line in TEXTS[name].split("\n"):
        assert len(line) <= 100
        assert line == line.rstrip()


def test_a_prediction_says_what_to_expect() -> None:
    lines = TEXTS["prediction"].split("\n")
    assert lines[0].startswith("Stable at 50k/s: utilisation 61%; stable up to 80k/s")
    assert [line.split() for line in lines if line.startswith("tuple latency")] == [
        ["tuple", "latency", "1.20", "s", "1.10", "s", "1.90", "s", "2.30", "s"]
    ]
    assert [line.split()[-2:] for line in lines if line.startswith("90%")] == [
        ["2.10", "s"],
        ["2.60", "s"],
    ]
    assert any(line.startswith("batch duration") and "600 ms" in line for line in lines)


def test_phases_have_a_share_and_a_bar_in_proportion() -> None:
    lines = TEXTS["prediction"].split("\n")
    bars = {line.split()[0]: line.count("█") for line in lines if "█" in line}
    assert bars == {"wait": 12, "plan": 2, "add_batch": 15}
    assert any("add_batch" in line and "50%" in line for line in lines)


def test_each_warning_is_a_note_and_said_once() -> None:
    findings = tuple(map(about_stage, ("first", "second", "first")))
    text = as_text(a_prediction(findings=findings, calibrated=False))
    noted = [line for line in text.split("\n") if line.startswith("note:")]
    assert [line.split(" has ")[0] for line in noted] == ["note: first", "note: second"]
    assert "Extrapolated" in text


def test_not_stable_the_rate_that_fits_is_named_and_no_latency() -> None:
    text = as_text(a_prediction(stable=False, sustainable_rate_per_s=31000.0))
    assert text.startswith("Not stable at 50k/s")
    assert "stable up to 31k/s" in " ".join(text.split())
    assert "p99" not in text
    assert "█" not in text
    text = as_text(unstable(sustainable_rate_per_s=0.0))
    assert "not stable at any rate" in " ".join(text.split())


def test_a_stable_setting_beyond_its_margin_does_not_claim_room() -> None:
    text = as_text(a_prediction(sustainable_rate_per_s=45000.0))
    assert text.startswith("Stable at 50k/s: utilisation 61%.")


def test_a_query_that_overruns_its_trigger_is_not_called_stable() -> None:
    overruns = Finding(code=FindingCode.MOSTLY_OVERRUNS, numbers={"overrun_probability": 0.87})
    text = as_text(a_prediction(overrun_probability=0.87, findings=(overruns,)))
    assert text.startswith("Keeps up with 50k/s, but 87% of the batches overrun")
    assert "note: 87% of the batches overrun the trigger interval" in text
    assert "Stable at" not in text
    some = as_text(a_prediction(overrun_probability=0.12))
    assert "utilisation 61%, 12% of the batches overrun the trigger interval; stable" in some


def test_too_close_to_saturation_is_said_once_and_no_latency() -> None:
    close = Finding(
        code=FindingCode.TOO_CLOSE_TO_SATURATION,
        numbers={
            "rate_per_s": 50000.0,
            "utilization_ratio": 0.99,
            "offered_load_ratio": 0.93,
            "told_up_to_per_s": 47000.0,
            "stable_up_to_per_s": 51000.0,
        },
    )
    text = as_text(
        a_prediction(tuple_latency=None, batch_duration=None, phases_s={}, findings=(close,))
    )
    said = " ".join(text.split())
    assert said.startswith(
        "Too close to saturation to predict a latency at 50k/s: at an offered load of 93%"
    )
    assert "predicted up to 47k/s; stable up to 51k/s." in said
    assert said.lower().count("too close") == 1
    assert "p99" not in text


def test_free_running_queries_have_a_utilisation_too() -> None:
    text = as_text(a_prediction(configuration=a_configuration(trigger_s=0.0)))
    assert "utilisation 61%" in text
    assert "as fast as possible" in text


def test_an_interval_without_upper_end() -> None:
    latency = a_prediction().tuple_latency
    assert latency is not None
    latency = replace(latency, interval90_p99_s=Interval(low=2.0, high=math.inf))
    assert "unbounded" in as_text(a_prediction(tuple_latency=latency))


def whole(plan: StreamAnswer) -> str:
    """What ``--verbose`` prints before the explanation."""
    return sheet_text(stream_sheet(plan))


def test_a_plan_starts_with_the_answer_and_ends_with_what_to_paste() -> None:
    text = whole(a_plan())
    lines = text.split("\n")
    assert lines[0] == "2 nodes meet p99 <= 3.00 s at 50k/s"
    assert "up to 2.60 s of 3.00 s" in lines[1]
    order = [
        "2 executors x 4 cores",
        "binding constraints",
        "frontier",
        "rejected neighbours",
        "changes",
        "spark.executor.instances",
        "maxOffsetsPerTrigger  100000",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "1 node less" in text
    assert "4.10 s" in text
    assert "1 -> 2" in text
    assert "when the application is submitted again" in text


@pytest.mark.parametrize(("currency", "head"), [("EUR", " EUR/h "), ("", " cost/h ")])
def test_prices_have_the_currency_of_the_node_type(currency: str, head: str) -> None:
    node = NodeType(name="a", cores=4, executors_per_node=1, price_per_hour=0.5, currency=currency)
    priced = (replace(point, cost_per_hour=0.5 * point.nodes) for point in a_plan().frontier)
    plan = replace(a_plan(), node_type=node, frontier=tuple(priced))
    assert head in whole(plan)
    page = sheet_page(stream_page_sheet(plan))
    assert ("cost per month in EUR" in page) == bool(currency)


def test_a_change_of_nothing_has_no_minus() -> None:
    plan = a_plan()
    changed = Sensitivity(
        kind="knob", change="2 nodes", latency_s=0.999 * plan.planned_latency_s, keeps_target=True
    )
    (row,) = sensitivity_section(replace(plan, sensitivities=(changed,))).rows
    assert row[-1] == "+0%"


def test_a_frontier_without_a_rate_is_left_out() -> None:
    plan = nearest_plan()
    points = (replace(point, sustainable_rate_per_s=0.0) for point in plan.frontier)
    assert "frontier" in whole(plan)
    assert "frontier" not in whole(replace(plan, frontier=tuple(points)))


def test_the_frontier_marks_the_plan_and_what_lies_outside_the_profile() -> None:
    plan = a_plan()
    outside = replace(plan.frontier[1], calibrated=False)
    nothing = replace(plan.frontier[0], sustainable_rate_per_s=0.0)
    text = whole(replace(plan, frontier=(nothing, outside), chosen=outside))
    (marked,) = [line for line in text.split("\n") if line.startswith("> ") and "k/s" in line]
    assert marked.split()[1:4] == ["2", "80k/s*", "met"]
    assert "* extrapolated" in text
    assert "no rate" in text


def a_plan_that_another_exceeds() -> Plan:
    """The plan's own setting carries 60k/s, another setting of two nodes 80k/s."""
    plan = a_plan()
    other = replace(plan.configuration, trigger_s=0.0, max_offsets_per_trigger=None)
    assert plan.chosen is not None
    return replace(
        plan,
        frontier=(plan.frontier[0], replace(plan.frontier[1], configuration=other)),
        chosen=replace(plan.chosen, sustainable_rate_per_s=60000.0),
    )


def test_the_marked_row_is_of_the_plan_itself_and_another_that_carries_more_is_reported() -> None:
    lines = whole(a_plan_that_another_exceeds()).split("\n")
    (marked,) = [line for line in lines if line.startswith("> ") and "every 2 s" in line]
    assert marked.split()[1:3] == ["2", "60k/s"]
    (other,) = [line for line in lines if "as fast as possible" in line]
    assert other.split()[:2] == ["2", "80k/s"]
    said = " ".join(" ".join(lines).split())
    assert "> the planned configuration; another with as many nodes sustains 80k/s" in said
    assert (
        "max rate within target 60k/s in this configuration; 80k/s in another with 2 nodes" in said
    )
    page = sheet_page(stream_page_sheet(a_plan_that_another_exceeds()))
    assert "the planned configuration" not in page
    assert "Another configuration with as many nodes sustains 80k/s." in page


def test_a_number_that_the_reason_holds_is_not_repeated() -> None:
    plan = a_plan()
    assert whole(plan).count("4.10 s") == 1
    vague = replace(plan.rejected[0], reason="too slow")
    assert "too slow (4.10 s)" in whole(replace(plan, rejected=(vague,)))


def test_an_infeasible_plan_says_so_and_how_near_one_comes() -> None:
    text = TEXTS["infeasible"]
    assert text.startswith("infeasible: no configuration meets p99 <= 3.00 s at 50k/s")
    assert "3.40 s at 50k/s" in text
    assert "2 nodes, p99 up to 3.40 s" in text
    assert "80k/s with 2 nodes" in text
    assert not any(line.startswith(">") for line in text.split("\n"))


def test_a_plan_that_may_meet_its_target_says_how_certain_that_is() -> None:
    plan = an_infeasible_plan(kept_probability=0.82)
    for shown in (as_text(plan), sheet_text(stream_sheet(plan))):
        assert shown.startswith("infeasible: p99 <= 3.00 s at 50k/s is 82% certain, 95% asked")
        assert "too close to tell" not in shown
    near = as_text(an_infeasible_plan(kept_probability=0.9497))
    assert near.startswith("infeasible: p99 <= 3.00 s at 50k/s is 94.97% certain, 95% asked")
    far = as_text(an_infeasible_plan(kept_probability=0.04))
    assert far.startswith("infeasible: no configuration meets p99 <= 3.00 s at 50k/s")


def test_the_promise_that_fails_is_named_with_what_each_takes_alone() -> None:
    needs = (
        PromiseNeed(promise="p99 <= 3.00 s", within=True, most_nodes=3, nodes=1, reached_s=1.53),
        PromiseNeed(
            promise="catch_up <= 1 min after 30 min",
            within=False,
            most_nodes=24,
            nodes=4,
            cost_per_hour=0.8,
            reached_s=55.0,
        ),
    )
    also = (CatchUp(limit_s=60.0, after=1800.0),)
    text = as_text(an_infeasible_plan(needs=needs, also=also, budget_per_hour=0.5))
    assert text.startswith(
        "infeasible: no configuration meets catch_up <= 1 min after 30 min at 50k/s"
    )
    start = text.index("nodes for each target")
    said = " ".join(text[start:].split())
    assert said.startswith(
        "nodes for each target p99 <= 3.00 s alone 1 node, up to 1.53 s catch_up <= 1 min after "
        "30 min alone 4 nodes, 0.8 per hour, up to 55.0 s, more than allowed all targets "
        "together not with up to 2 nodes budget of 0.5 per hour buys 2 nodes"
    )
    each = tuple(replace(need, within=True) for need in needs)
    together = as_text(an_infeasible_plan(needs=each, also=also))
    assert " ".join(together.split()).startswith(
        "infeasible: no configuration meets p99 <= 3.00 s and catch_up <= 1 min after 30 min "
        "together at 50k/s"
    )


def test_over_capacity_there_is_no_floor() -> None:
    text = TEXTS["over capacity"]
    assert "every configuration is over capacity" in text
    assert "2 nodes, over capacity" in text
    assert "unbounded" not in text


def test_one_node_keeps_and_other_metrics_are_named() -> None:
    text = as_text(a_plan(nodes=1, target=Target.parse("batch mean <= 2s")))
    assert text.startswith("1 node meets batch mean <= 2.00 s at 50k/s")


def test_names_from_logs_cannot_command_the_terminal() -> None:
    plan = a_plan(
        binding=(HOSTILE,),
        findings=(about_stage(HOSTILE),),
        spark_conf={HOSTILE: HOSTILE},
        prediction=a_prediction(phases_s={HOSTILE: 1.0}),
    )
    for text in (as_text(plan), as_text(plan.prediction)):
        assert "\x1b" not in text
        assert "red\n" not in text


def test_columns_of_one_and_of_none() -> None:
    assert aligned([]) == []
    assert aligned([("only",), ("these",)]) == ["  only", "  these"]


def test_what_is_not_known_to_keep_up_is_not_called_over_capacity() -> None:
    """Batches of one size do not show what a row costs, so they refute no higher rate."""
    question: dict[str, Any] = {"rate": "2M/s", "target": "p99 <= 3s", "max_nodes": 1}
    varied = replace(a_profile(), row_cost_half_range_ratio=None)
    text = as_text(headway.plan(varied, **question))
    assert "over capacity at 2M/s" in text
    assert "not known" not in text
    open_cost = replace(a_profile(), row_cost_half_range_ratio=1.0)
    text = " ".join(as_text(headway.plan(open_cost, **question)).split())
    assert "none: no configuration is known to keep up at 2M/s" in text
    assert "1 node, not known to keep up" in text
    assert "over capacity" not in text
