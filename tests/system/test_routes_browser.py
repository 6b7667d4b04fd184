"""The page of both routes in headless Chromium: whole, accessible, at any width, dark and light."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import dashboard_browser
from support.accessibility import check_accessible

from earshot_simulations.phases.routes_page import write_both
from earshot_simulations.phases.settings import PolicyChoice, Routes, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate_routes


@pytest.fixture(scope="module")
def page_of_both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    asked = {
        route: Settings(
            phones=60,
            recordings=20,
            scenes=4,
            dropout=0.1,
            epsilon=29.0,
            policy=PolicyChoice.ANYTHING,
            summation=SummationChoice.IDEAL,
            discovery=route,
            jobs=1,
        )
        for route in Routes.BOTH.each
    }
    write_both(simulate_routes(asked), folder)
    return folder / "report.html"


def test_the_page_is_accessible_and_complete_in_itself(page_of_both: Path) -> None:
    with dashboard_browser.browser() as running:
        page = running.new_page()
        complaints, requested = dashboard_browser.overheard(page)
        page.goto(page_of_both.as_uri())
        check_accessible(page, "both routes")
        drawn = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
        assert drawn == [True] * 9
        assert complaints == []
        assert [url for url in requested if not url.startswith("data:")] == [page_of_both.as_uri()]
        # In a narrow window a figure's two columns stand below each other, and no table is cut.
        page.set_viewport_size({"width": 390, "height": 844})
        cut = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
        assert max(page.evaluate(cut)) <= 0
        page.get_by_role("link", name="Learning phase").click()
        assert page.url == (page_of_both.parent / "local" / "report.html").as_uri()
