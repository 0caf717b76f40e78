"""Pages in a browser: nothing loaded, no error, sliders that agree with the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from headway.api.backtest import backtest
from headway.api.page import page as report
from headway.api.plan import plan
from headway.api.results import figures_of
from headway.api.seen_runs import seen_runs
from headway.api.simulate import simulate
from headway.api.specs import plan_spec
from headway.cli.main import cli
from headway.domain import CatchUp, JobProfile, StreamAnswer, Target
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.profile_file import load_profile, save_profile
from headway.report.glossary import DEFINITIONS, explained
from headway.units import format_duration
from tests.ci.conftest import SPEC
from tests.cli.test_options import FLEET
from tests.factories import a_profile, an_infeasible_plan
from tests.report.test_html import a_large_plan
from tests.seeds import few_settings, first_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from headway.domain.sheet import Section

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "examples/word-count.profile.yaml"
LOG = ROOT / "tests/data/recorded/eventlog_v2_local-1795286612384"
MOST_BYTES = 250_000
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> \"'& "
    "\u202ercs\u202c مرحبا 🚀 " + "x" * 10_000
)


@cache
def planned() -> StreamAnswer:
    return plan(PROFILE, rate="24k/s", target="p99 <= 2s")


@cache
def plan_text() -> str:
    return report(planned(), profile=PROFILE)


def of_cli(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert done.exception is None, done.output
    return done.output


def a_hostile_profile(folder: Path) -> Path:
    job = load_profile(PROFILE)
    application = replace(job.application, name=HOSTILE, id=HOSTILE)
    stages = tuple(replace(one, name=HOSTILE[:60] + one.name) for one in job.stages)
    settings = tuple(replace(one, query_name=HOSTILE) for one in job.settings)
    hostile = replace(
        job, applications=(application,), stages=stages, settings=settings, notes=(HOSTILE,)
    )
    save_profile(hostile, folder / "hostile.profile.yaml")
    return folder / "hostile.profile.yaml"


def a_profile_file(folder: Path) -> Path:
    save_profile(a_profile(), folder / "orders.profile.yaml")
    return folder / "orders.profile.yaml"


def a_small_fleet(folder: Path) -> Path:
    """One job, at one rate."""
    save_profile(a_profile(), folder / "orders.profile.yaml")
    (folder / "orders.yaml").write_text(SPEC)
    (folder / "fleet.yaml").write_text(FLEET)
    return folder / "fleet.yaml"


PAGES: dict[str, Callable[[Path], str]] = {
    "plan": lambda _: plan_text(),
    # Of the whole what-ifs one is enough to be looked at: that of the plan is.
    "profile": lambda _: small_report(LOG_PROFILE(), runs=seen_runs([LOG])),
    "backtest": lambda folder: report(
        saved(folder, json_text(figures_of(backtest(LOG, engine="in-process"))))
    ),
    "simulation": lambda folder: report(
        saved(
            folder,
            json_text(figures_of(simulate(planned(), ROOT / "examples/burst.csv", runs=2))),
        )
    ),
    "capacity": lambda folder: report(
        saved(folder, of_cli("capacity", str(a_small_fleet(folder)), "--json"))
    ),
    "capacity by the hour": lambda folder: report(
        saved(folder, of_cli("capacity", str(ROOT / "configs/fleet.yaml"), "--json"))
    ),
    "check": lambda folder: report(
        saved(
            folder,
            of_cli(
                *("check", str(ROOT / "configs/orders.yaml")),
                *("--baseline", str(ROOT / "configs/headway.lock"), "--json"),
            ),
        )
    ),
    "batch application": lambda _: report(ROOT / "examples/nightly-totals.profile.yaml"),
    "deadline": lambda folder: report(
        saved(
            folder,
            of_cli(
                *("plan", str(ROOT / "examples/nightly-totals.profile.yaml")),
                *("--target", "deadline <= 10m", "--json"),
            ),
        )
    ),
    "hostile": lambda folder: small_report(
        plan(a_hostile_profile(folder), rate="24k/s", target="p99 <= 2s"),
        profile=a_hostile_profile(folder),
    ),
    "hostile profile": lambda folder: small_report(a_hostile_profile(folder)),
    "pipeline": lambda folder: report(
        saved(
            folder,
            of_cli(
                *("plan", str(ROOT / "examples/pipelines/word-count.yaml"), "--json"),
                *("--rate", "200k/s", "--max-nodes", "3", "--target", "p99 <= 5s"),
            ),
        )
    ),
    "hostile figures": lambda folder: report(
        saved(
            folder,
            json_text(
                {
                    "schema": "headway.schedule/v1",
                    "sheet": {
                        "about": "Headway verdict on a schedule",
                        "headline": HOSTILE,
                        "facts": [[HOSTILE, HOSTILE]],
                        "sections": [
                            {"title": HOSTILE, "texts": [HOSTILE], "rows": [[HOSTILE, HOSTILE]]}
                        ],
                    },
                }
            ),
        )
    ),
}


@cache
def text_of_page(name: str) -> str:
    """One of `PAGES`, made once for all tests that look at it."""
    with TemporaryDirectory() as folder:
        return PAGES[name](Path(folder))


def small_report(
    what: Path | JobProfile | StreamAnswer,
    profile: Path | None = None,
    runs: Sequence[Section] = (),
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        few_settings(patch)
        return report(what, profile=profile, runs=runs)


def LOG_PROFILE() -> JobProfile:  # noqa: N802
    from headway.api.profile import profile

    return profile(LOG, engine="in-process")


def saved(folder: Path, text: str) -> Path:
    (folder / "result.json").write_text(text)
    return folder / "result.json"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test if it loads anything, or has an error to report."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    logged: list[str] = []
    page.on("console", lambda message: logged.append(message.text))
    page.on("pageerror", lambda error: logged.append(str(error)))
    page.on("dialog", lambda dialog: logged.append(dialog.message))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    yield page
    page.close()
    assert logged == []
    assert len(requests) <= 1, requests


def shown(page: Page, folder: Path, text: str) -> None:
    (folder / "page.html").write_text(text)
    page.goto((folder / "page.html").as_uri())


@pytest.mark.parametrize(
    "name",
    [
        # That of the sample takes ten seconds.
        pytest.param(name, marks=pytest.mark.statistical if "hour" in name else ())
        for name in PAGES
    ],
)
def test_a_page_is_small_loads_nothing_and_fits(name: str, page: Page, tmp_path: Path) -> None:
    text = text_of_page(name)
    assert len(text.encode()) < MOST_BYTES
    shown(page, tmp_path, text)
    for width in (1440, 1280, 768, 375):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").inner_text().strip()
    assert page.locator("img, iframe, link").count() == 0
    assert page.locator("footer").inner_text().count("Headway") >= 1


def moved(page: Page, name: str, stop: int) -> None:
    page.locator(f"#w-{name}").evaluate(
        "(slider, stop) => { slider.value = stop; slider.dispatchEvent(new Event('input')); }", stop
    )


@pytest.mark.parametrize(
    "stops", first_of([(9, 2, 0), (20, 3, 5), (2, 1, 2), (14, 1, 3), (18, 4, 1)], 2), ids=str
)
def test_the_sliders_agree_with_predict(
    stops: tuple[int, int, int], page: Page, tmp_path: Path
) -> None:
    shown(page, tmp_path, plan_text())
    for name, stop in zip(("rate", "nodes", "trigger"), stops, strict=True):
        moved(page, name, stop)
    command = page.locator("#w-command").inner_text().split()
    said = json.loads(of_cli(*command[1:], "--json"))
    expected_s = said["tuple_latency_s"]
    for statistic in ("mean", "p50", "p95", "p99"):
        figure = page.locator(f"#w-{statistic}")
        if expected_s is None:
            assert figure.inner_text() == "-"
            continue
        value_s = float(figure.get_attribute("value") or "nan")
        assert value_s == pytest.approx(expected_s[statistic], rel=0.01)
        assert figure.inner_text() == format_duration(value_s)
    if expected_s is not None:
        high_s = float(page.locator("#w-high").get_attribute("value") or "inf")
        assert high_s == pytest.approx(expected_s["interval90"]["p99"][1] or float("inf"), rel=0.01)
        verdict = page.locator("#w-verdict").inner_text()
        assert verdict.startswith("✓ met" if high_s <= 2.0 else "✗ missed")


def test_what_lies_outside_is_not_computed(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    last = int(page.locator("#w-rate").get_attribute("max") or 0)
    for name, stop in (("rate", 0), ("rate", last), ("nodes", 0)):
        moved(page, name, stop)
        assert page.locator("#w-verdict").inner_text().startswith("not computed")
        assert page.locator("#w-p99").inner_text() == "-"


def drawn(page: Page) -> tuple[str, list[str], list[str], str]:
    """Of the chart over the rates: caption, legend, vertical ticks, and the points of its line."""
    figure = page.locator("figure", has=page.locator("#rate-chart"))
    return (
        page.locator("#rate-chart-caption").text_content() or "",
        [text.strip() for text in figure.locator(".legend li").all_text_contents()],
        page.locator("#rate-chart-labels text").all_text_contents(),
        page.locator("#rate-chart polyline").first.get_attribute("points") or "",
    )


def test_the_chart_is_drawn_by_the_script_as_by_the_page(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    shown(page, tmp_path, plan_text())
    without_script = browser.new_page(java_script_enabled=False)
    without_script.set_content(plan_text())
    caption, legend, ticks, points = drawn(without_script)
    without_script.close()
    assert drawn(page)[:3] == (caption, legend, ticks)
    assert drawn(page)[3].count(",") == points.count(",")
    assert caption.startswith("1 executor x 2 cores, 8 shuffle partitions, trigger every 1 s")
    assert legend[-2:] == ["target, p99 <= 2.00 s", "24k/s"]


def test_the_chart_says_what_it_shows_of_the_sliders(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    moved(page, "nodes", 3)
    moved(page, "trigger", 5)
    moved(page, "rate", 4)
    caption, legend, ticks, points = drawn(page)
    assert caption.startswith("3 executors x 2 cores, 8 shuffle partitions, trigger every 10 s, ")
    assert legend[-1] == page.locator("#w-rate-text").inner_text() != "24k/s"
    assert points.count(",") > 5
    assert ticks[-1] == "15 s"
    moved(page, "target", 0)
    assert drawn(page)[1][-2] == "target, p99 <= 200 ms"
    moved(page, "trigger", 2)
    moved(page, "nodes", 1)
    assert drawn(page)[2][-1].endswith(" s")
    row_end = drawn(page)[0].rpartition("; ")[2]
    assert row_end in (
        "the line goes on above the chart.",
        "the line ends where no latency can be quoted.",
    )


def test_the_box_of_the_command_is_hidden_where_nothing_is_computed(
    page: Page, tmp_path: Path
) -> None:
    shown(page, tmp_path, plan_text())
    assert page.locator("#w-same").is_visible()
    moved(page, "rate", 0)
    assert not page.locator("#w-same").is_visible()
    moved(page, "rate", 5)
    assert page.locator("#w-same").is_visible()


def test_without_a_profile_no_command_is_advised(page: Page, tmp_path: Path) -> None:
    declared = plan_spec("configs/clicks-declared.yaml")
    shown(page, tmp_path, report(declared.plan, profile=declared.profile))
    moved(page, "rate", 0)
    assert page.locator("#w-verdict").inner_text() == "not computed"


def test_the_figures_of_the_what_if_are_those_of_its_command(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    for nodes in (1, 2, 3, 4):
        moved(page, "nodes", nodes)
        command = page.locator("#w-command").inner_text().split()
        said = " ".join(of_cli(*command[1:]).split())
        assert f"stable up to {page.locator('#w-stable').inner_text()}" in said


def test_labels_of_the_frontier_do_not_overlap_on_a_phone(page: Page, tmp_path: Path) -> None:
    plan = a_large_plan()
    points = (replace(point, cost_per_hour=8.0 * point.nodes) for point in plan.frontier)
    shown(page, tmp_path, report(replace(plan, frontier=tuple(points))))
    page.set_viewport_size({"width": 375, "height": 900})
    labels = page.locator("figure .plot").first.locator("svg text:visible").all()
    boxes = [box for label in labels if (box := label.bounding_box())]
    assert len(boxes) > 12
    for first, second in combinations(boxes, 2):
        apart_x = max(first["x"], second["x"]) - min(
            first["x"] + first["width"], second["x"] + second["width"]
        )
        apart_y = max(first["y"], second["y"]) - min(
            first["y"] + first["height"], second["y"] + second["height"]
        )
        assert max(apart_x, apart_y) > -2.0, (first, second)
    assert page.locator(".x-title").inner_text() == "nodes (in steps, not to scale)"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert "cost per month" in page.locator(".x-title").inner_text()


def test_a_latency_without_upper_end_is_named_in_words(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    page.set_viewport_size({"width": 375, "height": 900})
    for stop in range(int(page.locator("#w-rate").get_attribute("max") or 0)):
        moved(page, "rate", stop)
        if "upper bound" in page.locator("#w-verdict").inner_text():
            break
    verdict = page.locator("#w-verdict").inner_text()
    assert verdict.startswith("✗ missed: p99 without an upper bound, limit 2.00 s")
    assert page.locator("#w-high").inner_text() == "no upper bound"


def test_a_plan_with_several_targets_says_which_of_them_it_looks_at(
    page: Page, tmp_path: Path
) -> None:
    plan = replace(
        an_infeasible_plan(),
        target=Target.parse("p99 <= 3s"),
        also=(CatchUp.parse("catch_up <= 15m after 30m"),),
    )
    shown(page, tmp_path, small_report(plan, profile=a_profile_file(tmp_path)))
    only = "Only p99 <= 3.00 s is looked at here; catch_up <= 15 min after 30 min is not."
    assert page.get_by_text(only).count() == 2
    assert page.locator("#w-verdict").inner_text().endswith("the other targets are not looked at")
    assert page.locator("td.is-here.yes").count() == 0
    assert page.locator("td.yes").count() > 0


def test_a_looser_target_is_met_and_a_tighter_one_missed(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    moved(page, "target", 0)
    assert page.locator("#w-verdict").inner_text().startswith("✗ missed: p99 up to 1.53 s")
    moved(page, "target", int(page.locator("#w-target").get_attribute("max") or 0))
    assert page.locator("#w-verdict").inner_text().startswith("✓ met")


def test_the_keyboard_moves_sliders_and_opens_explanations(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    page.locator("#w-rate").focus()
    before = page.locator("#w-rate-text").inner_text()
    page.keyboard.press("ArrowRight")
    after = page.locator("#w-rate-text").inner_text()
    assert after != before
    assert page.locator("#w-rate").get_attribute("aria-valuetext") == after
    term = page.locator(".term").first
    tip = term.locator(".tip")
    assert not tip.is_visible()
    term.focus()
    assert tip.is_visible()
    assert page.locator(f"#{term.get_attribute('aria-describedby')}").count() == 1


def test_dark_and_print(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, plan_text())
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) == "rgb(20, 23, 27)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert not page.locator("#what-if").is_visible()
    assert page.locator("#rate-chart polyline").count() == 1
    assert page.pdf().startswith(b"%PDF")


def test_the_copy_button_copies_what_stands_beside_it(page: Page, tmp_path: Path) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown(page, tmp_path, plan_text())
    page.locator("button[data-copy^=code-]").first.click()
    page.wait_for_function("document.querySelector('[data-copy^=code-]').textContent != 'Copy'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.search("spark.executor.instances +1\n", copied)


def test_without_a_script_the_page_still_shows_everything_else(browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.set_content(plan_text())
    assert page.locator("table").count() >= 6
    assert not page.locator("#w-rate").is_visible()
    page.close()


def test_hostile_names_stay_text(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, text_of_page("hostile profile"))
    assert page.locator("script").count() == 2
    assert page.locator("h1").inner_text().count("<img src=x") == 1


def test_only_what_the_page_holds_may_run() -> None:
    page = small_report(planned(), profile=PROFILE)
    policy = re.search(r"Content-Security-Policy\" content=\"([^\"]+)\"", page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", policy[1])


def test_explanations_are_those_of_the_glossary() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.M)
    written = {one.strip(): text.strip() for names, text in rows for one in names.split(",")}
    for term, definition in DEFINITIONS.items():
        assert written[term] == definition, term


def test_a_term_is_explained_once_where_it_stands() -> None:
    used_terms: list[str] = []
    text = str(explained(used_terms, "the Tuple latency of <rows>"))
    assert text.startswith('the <span class="term" tabindex="0"')
    assert "of &lt;rows&gt;" in text
    assert used_terms == ["tuple latency"]
    assert '>Targets<span class="tip"' in str(explained(used_terms, "Targets met"))


def test_what_has_no_page_is_refused(tmp_path: Path) -> None:
    spec = ROOT / "configs/orders.yaml"
    with pytest.raises(InputError, match=r"plan it first: headway plan .* -o plan\.html"):
        report(spec)
    with pytest.raises(InputError, match="a command such as 'headway plan'"):
        report(saved(tmp_path, "{}"))
    with pytest.raises(InputError, match="only the page of a streaming job's plan"):
        report(PROFILE, profile=PROFILE)
    with pytest.raises(InputError, match="has a time line"):
        report(planned(), runs=seen_runs([LOG]))


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_settings(monkeypatch)
    plan_file = saved(tmp_path, json_text(plan_json(planned())))
    page = tmp_path / "plan.html"
    of_cli("report", str(plan_file), "--profile", str(PROFILE), "-o", str(page))
    assert 'id="what-if"' in page.read_text()
    of_cli(
        *("plan", str(PROFILE), "--rate", "24k/s", "--target", "p99 <= 2s"),
        *("-o", str(tmp_path / "two.html")),
    )
    assert 'id="what-if"' in (tmp_path / "two.html").read_text()
