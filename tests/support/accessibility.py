"""What every page must pass in a browser, at any width and in both colour schemes."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")


def check_accessible(page: Page, name: str, pictures: Path | None = None) -> None:
    """At both widths, in both colour schemes: no violation, no scrolling to the side.

    Args:
        page: the page.
        name: what it is called.
        pictures: folder for pictures of all four; None to take none.
    """
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
            if pictures:
                file = f"{name} {size[0]} {scheme}.png".replace(" ", "-")
                page.screenshot(path=pictures / file, full_page=True)


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


TEXTS = r"""() => {
  const boxes = [], wrong = [];
  const hidden = (at) => {
    for (; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.clipPath !== "none" || style.visibility === "hidden") return true;
    }
    return false;
  };
  // A part of the page that scrolls by itself, or that cuts off what does not fit.
  const frame = (at, kinds) => {
    for (; at && at !== document.body; at = at.parentElement)
      if (kinds.includes(getComputedStyle(at).overflowX)) return at.getBoundingClientRect();
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement, text = node.data.trim();
    if (!text || parent.closest("script, style, svg, .skip, textarea") || hidden(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const scrolls = frame(parent, ["auto", "scroll"]), cuts = frame(parent, ["hidden", "clip"]);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      if (!scrolls && (box.right > innerWidth + 1 || box.left < -1)) wrong.push("outside: " + text);
      if (cuts && (box.right > cuts.right + 1 || box.bottom > cuts.bottom + 1))
        wrong.push("cut: " + text);
      if (scrolls && (box.left > scrolls.right || box.right < scrolls.left)) continue;
      boxes.push({text, node: parent.closest(".status") || node, box});
    }
  }
  for (const badge of document.querySelectorAll(".status"))
    boxes.push({text: badge.textContent.trim(), node: badge, box: badge.getBoundingClientRect()});
  boxes.forEach((one, place) => boxes.slice(place + 1).forEach((other) => {
    if (one.node === other.node) return;
    const [a, b] = [one.box, other.box];
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width > 2 && height > 0.4 * Math.min(a.height, b.height))
      wrong.push(`covered: ${one.text} | ${other.text}`);
  }));
  return wrong;
}"""
"""Texts of a page that are outside the screen, cut off, or covered by others."""

BROKEN = r"""() => [...document.querySelectorAll(
  ".figures dd, .figures dd span, td.number, .bar-value"
)].flatMap((at) => [...at.childNodes]).filter((node) => {
  if (node.nodeType !== 3 || !node.data.trim()) return false;
  const range = document.createRange();
  range.selectNodeContents(node);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
}).map((node) => node.data.trim())"""
"""Numbers of a page that are broken over two lines."""


def check_readable(page: Page, name: str) -> None:
    """No text is cut, covered or off the screen, and no number broken, at widths in between too."""
    for width in (1280, 1000, 720, 390):
        page.set_viewport_size({"width": width, "height": 844})
        where = f"{name}, {width} pixels wide"
        for wrong in (page.evaluate(TEXTS), page.evaluate(BROKEN)):
            assert wrong == [], f"{where}: {wrong}"


BEHIND = """() => {
  const status = document.querySelector("#status"), said = status.textContent, behind = new Set();
  status.textContent ||= "A message";
  const { left, right, top, bottom } = status.getBoundingClientRect();
  for (let x = left + 1; x < right; x += 4)
    for (let y = top + 1; y < bottom; y += 4)
      for (const each of document.elementsFromPoint(x, y))
        if (!each.contains(status)) behind.add(each.outerHTML);
  status.textContent = said;
  return [...behind];
}"""
"""What the status of a phone's page covers, wherever the page is scrolled to."""
_WHOLE = """["#page", "#status"].reduce(
  (sum, each) => sum + document.querySelector(each).scrollHeight, 0)"""
"""Height in pixels in which a phone's page need not scroll."""


def check_phone_page(page: Page, name: str) -> None:
    """No violation, nothing cut or covered, at both widths and in both schemes; keep pictures."""
    folder = os.environ.get("EARSHOT_PICTURES")
    for width in (1280, 390, 320):
        page.set_viewport_size({"width": width, "height": 500})
        assert page.evaluate(BEHIND) == [], f"{name}, {width}: covered by the status"
        page.set_viewport_size({"width": width, "height": page.evaluate(_WHOLE)})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            where = f"{name}, {width}, {scheme}"
            found = Axe().run(page)
            assert found.violations_count == 0, f"{where}: {found.generate_report()}"
            overhang = page.evaluate("document.querySelector('#page').scrollWidth - innerWidth")
            assert overhang <= 0, f"{where}: {overhang} pixels too wide"
            assert page.evaluate(TEXTS) == [], where
            if folder:
                page.screenshot(path=Path(folder, f"phone-{name}-{width}-{scheme}.png"))
    page.set_viewport_size({"width": 1280, "height": 800})
