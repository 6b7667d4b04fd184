"""Every kind of page that is written as a file, in Chromium: accessible, and nothing cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support import dashboard_browser
from support.accessibility import check_accessible, check_whole
from support.campaigns import campaign
from support.simulated import KINDS

from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns.campaign import ExpectedContacts, Publication
from earshot_server.campaigns.plan import planned
from earshot_server.commands.campaign.public_text import public_text
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.auditing import page as audit_page
from earshot_simulations.auditing.findings import EXACT, Bracket, Check, Finding, Technique
from earshot_simulations.campaigns.report import write
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.campaigns.simulation import simulate_campaign
from earshot_simulations.phases.routes_page import write_both
from earshot_simulations.phases.settings import Discovery, Settings
from earshot_simulations.phases.simulation import simulate, simulate_routes
from earshot_simulations.sweeps.results import sweep

NAMES = ("shopping centre, indoor", "café or restaurant", "public transport", "office")
"""Names of environments as long as real ones."""


def _settings(kind: str) -> Settings:
    """Settings of a small phase with everything that a report can tell of."""
    settings = KINDS[kind]
    assert isinstance(settings, Settings)
    return replace(settings, dropout=0.1, adversary=Adversary(poisoning=0.1))


def _phase(kind: str, folder: Path) -> Path:
    run = simulate(_settings(kind))
    replace(run, found=replace(run.found, label_names=NAMES)).write(folder)
    return folder / "report.html"


def _labelling(folder: Path) -> Path:
    simulate(KINDS["labelling"]).write(folder)
    return folder / "report.html"


def _both(folder: Path) -> Path:
    write_both(simulate_routes({route: _settings(route) for route in Discovery}), folder)
    return folder / "report.html"


def _sweep(folder: Path) -> Path:
    sweep(_settings("secure-sum"), {"epsilon": [2.0, 12.0], "dropout": [0.0, 0.1]}, folder, seeds=2)
    return folder / "sweep.html"


def _audit(folder: Path) -> Path:
    method = Technique(EXACT, "every outcome is counted")
    case = "centroid vote, ε = 0.5, v = 3, 1000 shares"
    found = Finding(
        case, Unit.REPLACED_PHONE, 1e-6, 1.0, 1.0, Bracket(0.9, 0.91), method, subject="ballot-sum"
    )
    words = "the largest distance of their distributions"
    check = Check(case, words, "0.0012", True, "an error of 0.02", "exact", subject="samplers")
    path = folder / "audit.html"
    path.write_text(audit_page.render([found, check]), encoding="utf-8")
    return path


def _campaign(folder: Path) -> Path:
    public = Publication(authority="Health office of the north", results="https://health.example/")
    path = folder / "campaign.html"
    path.write_text(public_text(planned(campaign(labels=NAMES, public=public))).page(), "utf-8")
    return path


def _simulated_campaign(folder: Path) -> Path:
    expected = ExpectedContacts(phones=120)
    whole = campaign(weeks=3, labels=NAMES, expected=expected, discovery=None)
    write(simulate_campaign(whole, CampaignSettings(data="blobs", pool=20, jobs=1)), folder)
    return folder / "report.html"


KINDS_OF_PAGE: dict[str, Callable[[Path], Path]] = {
    "discovery phase": lambda folder: _phase("secure-sum", folder),
    "learning phase": lambda folder: _phase("local", folder),
    "labelling phase": _labelling,
    "both routes": _both,
    "sweep": _sweep,
    "audit": _audit,
    "campaign": _campaign,
    "simulated campaign": _simulated_campaign,
}


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind == "both routes" else pytest.mark.slow)
        for kind in KINDS_OF_PAGE
    ],
)
def test_a_page_is_accessible_and_whole_at_any_width(kind: str, page: Page, tmp_path: Path) -> None:
    path = KINDS_OF_PAGE[kind](tmp_path)
    complaints, requested = dashboard_browser.overheard(page)
    page.goto(path.as_uri())
    check_accessible(page, kind)
    check_whole(page, kind)
    assert complaints == []
    assert [url for url in requested if not url.startswith("data:")] == [path.as_uri()]


def test_on_a_phone_each_number_of_a_wide_table_stands_beside_its_column(
    page: Page, tmp_path: Path
) -> None:
    page.goto(_audit(tmp_path).as_uri())
    page.set_viewport_size({"width": 390, "height": 844})
    named = "getComputedStyle(document.querySelectorAll('tbody td')[3], '::before').content"
    assert page.evaluate(named) == '"Proven"'
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate(named) == "none"
