"""What every page must pass in a browser, at any width and in both colour schemes."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

WIDTHS = {"desktop": (1400, 900), "phone": (360, 740)}
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
