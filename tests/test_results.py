"""What every result does by itself: one line, one screen, data, a table, a file."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import headway
from headway.api.result_kinds import sheet_of
from headway.api.results import as_text
from headway.api.schedule import schedule_verdict
from headway.api.watch import watch
from headway.domain import Explored, Plan
from headway.domain.result import Result
from headway.errors import InputError
from headway.formats.from_json import load_any_plan, load_result
from headway.formats.profile_file import load_any_profile
from headway.report.columns import USUAL_WIDTH, set_width
from headway.report.frontier import frontier_rows
from headway.report.sheet_text import sheet_text
from tests.ci.conftest import SPEC
from tests.cli.test_options import FLEET, QUERIES
from tests.cli.test_pipelines import SESSIONS, WORDS
from tests.factories import a_profile
from tests.live_logs import a_log
from tests.planner.jobs import SLIDING, windowed
from tests.planner.test_dstreams import FITTED, profiled

pytestmark = pytest.mark.usefixtures("small_pages")

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "examples" / "word-count.profile.yaml"
TOTALS = ROOT / "examples" / "nightly-totals.profile.yaml"
HOSTILE = "<script>alert('x')</script>\n\x1b[31m"


def a_plan(rate: str = "24k/s", target: str = "p99 <= 2s") -> headway.Plan:
    plan = headway.plan(PROFILE, rate=rate, target=target)
    assert plan.feasible
    return plan


MADE: dict[str, Callable[[Path], Result]] = {
    "plan": lambda _: a_plan(),
    "infeasible plan": lambda _: headway.plan(PROFILE, rate="24k/s", target="p99 <= 1ms"),
    "batch plan": lambda _: headway.plan(TOTALS, target="deadline <= 5m"),
    "prediction": lambda _: headway.predict(PROFILE, rate="12k/s"),
    "profile": lambda _: headway.load_profile(PROFILE),
    "batch profile": lambda _: load_any_profile(TOTALS),
    "simulation": lambda _: headway.simulate(a_plan(), ROOT / "examples" / "burst.csv", runs=2),
    "difference": lambda _: headway.diff(a_plan(), a_plan(rate="12k/s")),
    "check": lambda _: headway.check([ROOT / "configs" / "orders.yaml"]),
    "capacity": lambda folder: headway.capacity(folder / "fleet.yaml"),
    "prediction of a pipeline": lambda _: headway.predict(WORDS),
    "prediction of operators": lambda _: headway.predict(SESSIONS),
    "plan of operators": lambda _: headway.plan(SESSIONS),
    "policies": lambda _: headway.simulate_policies(
        a_plan(), ROOT / "examples" / "burst.csv", profile=PROFILE, policies=["static"], runs=1
    ),
    "schedule": lambda folder: schedule_verdict(folder / "queries.yaml", policies=["fcfs"]),
    "windows": lambda _: headway.windows(windowed(windows=(SLIDING,))),
    "keys": lambda folder: headway.ordered_plan(a_profile(), folder / "keys.csv"),
    "exploration": lambda folder: Explored(
        folder=folder, profile=a_profile(), plan=a_plan(), num_runs=6, spent_s=180.0,
        width_ratio=0.2,
    ),
    "look": lambda folder: watch(
        folder / "orders.headway.jsonl", profile=a_profile(), target="p99 <= 3s"
    ).look(),
    "prediction of DStreams": lambda _: headway.predict(profiled(FITTED)),
    "plan of DStreams": lambda _: headway.plan(profiled(FITTED), rate=None, target="p99 <= 12s"),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("results")
    headway.save_profile(a_profile(), folder / "orders.profile.yaml")
    (folder / "orders.yaml").write_text(SPEC)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "queries.yaml").write_text(QUERIES)
    (folder / "keys.csv").write_text("key,count\na,70\nb,30\n")
    (folder / "orders.headway.jsonl").write_text(a_log())
    return {name: make(folder) for name, make in MADE.items()}


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_one_line_and_one_screen(name: str, results: dict[str, Result]) -> None:
    result = results[name]
    assert repr(result).startswith(f"<{type(result).__name__}: ")
    assert len(repr(result)) < 200
    assert "\n" not in repr(result)
    screen = result._repr_html_()
    assert screen.startswith('<div class="headway"><p><strong>')
    assert len(screen) < 20_000


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_data_and_a_table(name: str, results: dict[str, Result]) -> None:
    data = results[name].to_dict()
    assert json.loads(json.dumps(data)) == data
    if name != "check":
        assert len(results[name].to_pandas()) > 0
    assert str(data["schema"]).startswith("headway.")


def test_a_plan_says_what_was_asked(results: dict[str, Result]) -> None:
    plan = results["plan"]
    assert isinstance(plan, headway.Plan)
    assert (plan.rate_per_s, str(plan.target)) == (24_000, "p99 <= 2.00 s")
    assert repr(plan) == "<Plan: 1 node meets p99 <= 2.00 s at 24k/s>"
    frontier = plan.to_pandas()
    assert set(frontier["nodes"]) == {point.nodes for point in plan.frontier}
    assert "configuration.shuffle_partitions" in frontier


def test_the_table_of_a_plan_has_its_own_row_as_its_text_and_page_do(
    results: dict[str, Result],
) -> None:
    plan = results["plan"]
    assert isinstance(plan, headway.Plan)
    assert plan.chosen is not None
    frontier = plan.to_pandas()
    (own,) = frontier[frontier["is_plan"]].to_dict("records")
    assert own["nodes"] == plan.nodes
    assert own["sustainable_rate_per_s"] == pytest.approx(plan.max_rate_per_s, rel=1e-5)
    assert own["configuration.trigger_s"] == plan.configuration.trigger_s
    assert own["configuration.max_offsets_per_trigger"] == (
        plan.configuration.max_offsets_per_trigger
    )
    assert len(frontier) == len(list(frontier_rows(plan)))


def test_a_plan_and_a_prediction_have_a_chart(results: dict[str, Result]) -> None:
    for name in ("plan", "infeasible plan", "prediction", "simulation"):
        screen = results[name]._repr_html_()
        assert screen.count("<figure") == 1, name
        # The rules hold within the result: a notebook has tables and charts of others.
        assert screen.partition("<style>")[2].strip().startswith(".headway {"), name
    nodes = {f">{point.nodes}</text>" for point in cast(Plan, results["plan"]).frontier}
    assert all(text in results["plan"]._repr_html_() for text in nodes)


def test_other_tables_have_names(results: dict[str, Result]) -> None:
    plan, profile = results["plan"], results["profile"]
    assert plan.to_pandas("frontier").equals(plan.to_pandas())
    sensitivities = plan.to_pandas("sensitivities")
    assert list(sensitivities["change"]) == [
        sensitivity.change for sensitivity in cast(Plan, plan).sensitivities
    ]
    phases = plan.to_pandas("prediction.phases_s").set_index("name")["value"]
    expected_s = cast(Plan, plan).prediction.phases_s
    assert phases.to_dict() == pytest.approx(dict(expected_s), rel=1e-4)
    assert list(profile.to_pandas("settings")["query_name"]) == ["word-count-1", "word-count-2"]
    with pytest.raises(InputError, match=r"table: 'colours'; expected one of frontier, what_if, "):
        plan.to_pandas("colours")
    with pytest.raises(InputError, match="profile: only the table 'what_if'"):
        plan.to_pandas("sensitivities", profile=PROFILE)
    with pytest.raises(InputError, match="profile: missing; what_if predicts the job again"):
        plan.to_pandas("what_if")


def test_the_table_of_a_prediction_has_its_columns_where_nothing_may_be_quoted() -> None:
    stable, overloaded = (headway.predict(PROFILE, rate=rate) for rate in ("10k/s", "900k/s"))
    assert not overloaded.stable
    table = overloaded.to_pandas()
    assert list(table) == list(stable.to_pandas())
    assert list(table["statistic"]) == ["mean", "p50", "p95", "p99"]
    assert table.drop(columns="statistic").isna().all(axis=None)
    assert stable.to_pandas().notna().all(axis=None)


def test_the_what_if_has_the_plan_and_what_is_predicted_elsewhere(
    results: dict[str, Result],
) -> None:
    plan = cast(Plan, results["plan"])
    grid = plan.to_pandas("what_if", profile=PROFILE)
    (own,) = grid[grid["is_plan"]].to_dict("records")
    assert (own["nodes"], own["rate_per_s"]) == (plan.nodes, plan.rate_per_s)
    assert own["met"]
    row = grid[~grid["is_plan"] & grid["p99_s"].notna()].iloc[-1]
    again = headway.predict(
        PROFILE,
        rate=row["rate_per_s"],
        trigger=row["trigger_s"],
        executors=int(row["executors"]),
        cores=plan.cores_per_executor,
        partitions=plan.configuration.shuffle_partitions,
    )
    assert again.tuple_latency is not None
    assert again.tuple_latency.interval90_p99_s is not None
    assert row["p99_s"] == pytest.approx(again.tuple_latency.p99_s, rel=1e-3)
    assert row["p99_high_s"] == pytest.approx(again.tuple_latency.interval90_p99_s.high, rel=1e-3)
    assert row["met"] == (row["p99_high_s"] <= 2.0)
    # Where the backlog grows there is no latency, and no target is met.
    assert not grid[grid["p99_s"].isna()]["met"].any()


def test_what_is_text_shows_itself(results: dict[str, Result]) -> None:
    plan = cast(Plan, results["plan"])
    explanation = headway.explain(plan)
    assert repr(explanation) == str(explanation)
    assert "p99 &lt;= 2.00 s" in explanation._repr_html_()
    emitted = headway.emit(plan, format="spark-submit")
    assert str(emitted) == emitted.text
    assert repr(emitted) == f"<Emitted: {len(emitted.text.splitlines())} lines>"


WHOLE = ("plan", "batch plan", "plan of DStreams")


def words_of(text: str) -> set[str]:
    return {word.strip(":;,.").casefold() for word in text.split()}


@pytest.mark.parametrize("name", [name for name in MADE if "profile" not in name])
def test_what_the_text_says_the_page_says(
    name: str, results: dict[str, Result], tmp_path: Path
) -> None:
    result = results[name]
    set_width(100_000)
    try:
        # The short form of a plan says some things in other words than the page.
        text = sheet_text(sheet_of(result)) if name in WHOLE else as_text(result)
    finally:
        set_width(USUAL_WIDTH)
    text = re.sub("[█▏▎▍▌▋▊▉]|^note:|^ +>|^--verbose.*", "", text, flags=re.MULTILINE)
    saved = result.save(tmp_path / "result.json")
    for page in (headway.page(result), headway.page(saved)):
        body = re.sub('<span class="tip".*?</span></span>', "", page.partition("<body")[2])
        body = re.sub('<span class="term"[^>]*>', "", body)
        body = re.sub("<script.*?</script>|<[^>]+>", " ", body, flags=re.DOTALL)
        assert words_of(text) - words_of(html.unescape(body)) == set()


def test_names_of_others_stay_text() -> None:
    profile = headway.load_profile(PROFILE)
    application = replace(profile.application, name=HOSTILE)
    hostile = replace(profile, applications=(application,))
    assert "\x1b" not in repr(hostile)
    assert "<script>" not in hostile._repr_html_()


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_saved_and_read_back(
    name: str, results: dict[str, Result], tmp_path: Path
) -> None:
    result = results[name]
    is_profile = "profile" in name
    path = result.save(tmp_path / ("job.yaml" if is_profile else "a.json"))
    if is_profile:
        assert load_any_profile(path).to_dict() == result.to_dict()
    elif name in ("plan", "infeasible plan", "batch plan"):
        assert load_any_plan(path).to_dict() == result.to_dict()
    else:
        load_result(path)
    assert "<html" in result.save(str(tmp_path / "a.html")).read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"the name ends in \.txt; expected"):
        result.save(tmp_path / "a.txt")
