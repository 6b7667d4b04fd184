"""What every page must pass in a browser, at any width and in both colour schemes."""

from __future__ import annotations

import base64

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

WIDTHS = {"desktop": (1280, 900), "phone": (360, 740)}
SCHEMES = ("light", "dark")


def check_accessible(page: Page, name: str) -> None:
    """At both widths, in both colour schemes: no violation, no scrolling to the side."""
    for width, size in WIDTHS.items():
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            where = f"{name}, {width}, {scheme}"
            found = Axe().run(page)
            assert found.violations_count == 0, f"{where}: {found.generate_report()}"
            overhang = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overhang <= 0, f"{where}: {overhang} pixels too wide"
            expect(page.get_by_role("heading", level=1)).to_be_visible()


_CUT = """[...document.querySelectorAll('body *')].filter(each =>
  getComputedStyle(each).overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1
).map(each => each.textContent.trim().slice(0, 80))"""
"""Texts of boxes that hold more than they show."""
_CLIPPED = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const room = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const used = text.getBoundingClientRect();
    return used.left < room.left - 1 || used.right > room.right + 1
      || used.top < room.top - 1 || used.bottom > room.bottom + 1;
  }).map(text => text.textContent);
})"""
"""Texts of pictures that reach beyond their picture."""
_SHORT = """[...document.querySelectorAll('.figures')].flatMap(list => {
  const right = list.getBoundingClientRect().right, rows = new Map();
  for (const each of list.children) {
    const { bottom, right: end } = each.getBoundingClientRect();
    rows.set(Math.round(bottom), Math.max(end, rows.get(Math.round(bottom)) ?? 0));
  }
  return [...rows.values()].filter(end => right - end > 3);
})"""
"""Right ends of rows of figures that leave a tile empty."""


def check_whole(page: Page, name: str) -> None:
    """Check at both widths that nothing is cut, no text of a picture clipped, no tile empty."""
    for width, (across, down) in WIDTHS.items():
        page.set_viewport_size({"width": across, "height": down})
        assert page.evaluate(_CUT) == [], f"{name}, {width}: cut"
        assert page.evaluate(_SHORT) == [], f"{name}, {width}: an empty tile"
    sources = page.evaluate("[...document.images].map(each => each.src)")
    drawn = [base64.b64decode(each.partition(",")[2]).decode() for each in sources if "svg" in each]
    # Pictures have their own document in the page, in which nobody can look.
    beside = page.context.new_page()
    beside.set_content("".join(f"<div style='width: 600px'>{each}</div>" for each in drawn))
    assert beside.evaluate(_CLIPPED) == [], f"{name}: clipped"
    beside.close()
