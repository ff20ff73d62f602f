"""Pages of reports in Chromium: no errors, every chart drawn, no request, nothing wider than a phone, two themes."""

from __future__ import annotations

import shutil

import pytest

from onlearn.report import write
from report_examples import HISTORY, HOSTILE, classified, every_kind, trained

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
if CHROMIUM is None:
    pytest.skip("no Chromium is installed, in which pages could be looked at", allow_module_level=True)

KINDS = every_kind()
DRAWN = """() => [...document.querySelectorAll('figure.chart canvas')].map(canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let seen = 0; for (let k = 3; k < pixels.length; k += 4) seen += pixels[k] > 0;
    return seen; })"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        try:
            made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture
def look(browser, tmp_path):
    """Open a report; the page, after which nothing may have gone wrong."""
    wrong, contexts = [], []

    def open_page(kind, facts, evidence, **how):
        path = tmp_path / "report.html"
        write(path, kind, facts, evidence, ["train", "data.csv"])
        context = browser.new_context(**how)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("name", KINDS)
def test_every_kind(look, name):
    page = look(*KINDS[name], viewport={"width": 1200, "height": 900})
    charts = page.locator("figure.chart").count()
    assert page.locator("figure.chart.live").count() == charts
    drawn = page.evaluate(DRAWN)
    assert len(drawn) == charts and all(seen > 500 for seen in drawn)
    assert page.evaluate(WIDER) == 0


@pytest.mark.parametrize("name", ["train, two classes", "evaluate, 100 classes", "train, tagger", "tune", "compare"])
def test_phone(look, name):
    page = look(*KINDS[name], viewport={"width": 360, "height": 740}, device_scale_factor=2, is_mobile=True)
    assert page.evaluate(WIDER) <= 0
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_hostile_names(look):
    figures, evidence = classified(HOSTILE, 600, texts=HOSTILE)
    evidence.note_progress(HISTORY)
    page = look(
        "train",
        trained(HOSTILE, figures, notes=HOSTILE, learner=HOSTILE[1]),
        evidence,
        viewport={"width": 360, "height": 700},
    )
    assert page.evaluate("() => document.scripts.length") == 3
    assert page.evaluate("() => document.images.length") == 0
    assert page.evaluate(WIDER) == 0


def test_dark_and_light(look):
    grounds = set()
    for scheme in ("light", "dark"):
        page = look(*KINDS["train, two classes"], color_scheme=scheme)
        grounds.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        # text and ground differ by enough to be read (WCAG AA)
        assert page.evaluate(CONTRAST) == []
        assert all(seen > 500 for seen in page.evaluate(DRAWN))
    assert len(grounds) == 2


CONTRAST = """() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = element => { for (; element; element = element.parentElement) {
    const found = parts(getComputedStyle(element).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found; }
    return [255, 255, 255]; };
  return [...document.querySelectorAll('p, dt, dd, th, td, h1, h2, a, li, figcaption, summary, code')]
    .filter(one => one.textContent.trim() && !one.classList.contains('skip'))
    .map(one => { const [a, b] = [light(parts(getComputedStyle(one).color)), light(ground(one))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.tagName + ' ' + one.textContent.slice(0, 30)]; })
    .filter(([ratio]) => ratio < 4.5); }"""


def test_without_scripts_and_on_paper(look):
    page = look(*KINDS["train, two classes"], java_script_enabled=False)
    assert page.locator("figure.chart svg.static").first.is_visible()
    assert page.locator("figure.chart svg.static").count() == page.locator("figure.chart").count()
    page = look(*KINDS["train, two classes"])
    page.emulate_media(media="print")
    assert page.locator("figure.chart svg.static").first.is_visible()
    assert not page.locator(".uplot").first.is_visible()


def test_hover_and_zoom(look):
    page = look(*KINDS["train, two classes"], viewport={"width": 1200, "height": 900})
    figure = page.locator("figure[data-chart=roc]")
    figure.scroll_into_view_if_needed()
    box = figure.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "false positive rate" in figure.locator(".readout").inner_text()
    page.mouse.move(0, 0)
    before = figure.screenshot()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.mouse.move(0, 0)
    page.wait_for_timeout(100)
    assert figure.screenshot() != before
