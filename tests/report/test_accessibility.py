"""Pages for everybody: axe-core finds nothing serious, light, dark and on paper; `make browser`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from headway.api.page import page as report
from headway.api.results import as_data
from headway.domain import Explored
from headway.formats.as_json import json_text
from headway.formats.profile_file import load_profile
from tests.report.test_pages import PAGES, PROFILE, planned, saved, text_of_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build/browser/node_modules/axe-core/axe.min.js"
SITE = ROOT / "build/site"
WIDTHS = (375, 768, 1280)
#: Elements of a page that axe-core calls serious or critical, each with what is wrong.
_SERIOUS = """async () => (await axe.run()).violations
  .filter((fault) => ["serious", "critical"].includes(fault.impact))
  .flatMap((fault) => fault.nodes.map((node) => [fault.id, node.target, node.failureSummary]))
"""
by_axe = pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: make browser")
#: Blocks of code whose lines do not fit, by their beginning.
_CUT = """() => [...document.querySelectorAll("pre > code")]
  .filter((code) => code.scrollWidth > code.clientWidth)
  .map((code) => code.textContent.slice(0, 60))
"""


def explored() -> Explored:
    return Explored(
        plan=planned(), profile=load_profile(PROFILE), folder=Path("orders"), num_runs=6,
        spent_s=480.0, width_ratio=0.08,
    )  # fmt: skip


def text_of(name: str, folder: Path) -> str:
    if name in PAGES:
        return text_of_page(name)
    return report(saved(folder, json_text(as_data(explored()))))


def looked_at(browser: Browser, address: str, scheme: Literal["light", "dark"]) -> Page:
    """A page with axe-core in it, past the rule that only what the page holds may run."""
    page = browser.new_page(bypass_csp=True, color_scheme=scheme, reduced_motion="reduce")
    page.goto(address)
    page.add_script_tag(path=AXE)
    return page


@by_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, "exploration"])
def test_nothing_on_a_page_is_seriously_wrong(
    name: str, scheme: Literal["light", "dark"], browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(text_of(name, tmp_path))
    page = looked_at(browser, (tmp_path / "page.html").as_uri(), scheme)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        # A page hears of its new width before it draws the next frame.
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(_SERIOUS) == []
    page.emulate_media(media="print")
    assert page.evaluate(_SERIOUS) == []
    page.close()


def site_pages() -> list[Path]:
    pages = sorted(path for path in SITE.rglob("*.html") if path.name != "404.html")
    if not pages:
        pytest.skip("needs the documentation site: make site")
    return pages


def test_no_code_of_the_site_is_cut_and_no_page_is_wider_than_its_screen(browser: Browser) -> None:
    page, faults = browser.new_page(), []
    for path in site_pages():
        page.goto(path.as_uri())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide_px = page.evaluate("document.documentElement.scrollWidth")
            faults += [f"{path.name}: {wide_px} px of {width}"] if wide_px > width else []
        faults += [f"{path.name}: {code!r} is cut" for code in page.evaluate(_CUT)]
    page.close()
    assert faults == []


@by_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_on_the_site_is_seriously_wrong(
    scheme: Literal["light", "dark"], browser: Browser
) -> None:
    faults = []
    for path in site_pages():
        page = looked_at(browser, path.as_uri(), scheme)
        faults += [f"{path.name}: {fault}" for fault in page.evaluate(_SERIOUS)]
        page.close()
    assert faults == []


def test_the_site_is_searched_from_files(browser: Browser) -> None:
    site_pages()
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("outage of an hour")
    first = page.locator(".md-search-result__item a").first
    first.wait_for()
    assert "outage" in (first.get_attribute("href") or "")
    page.close()
