"""Pages of campaigns in headless Chromium: accessible and readable, at any width.

With EARSHOT_PICTURES=FOLDER, pictures of them are written there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser
from support import dashboard_browser
from support.accessibility import check_accessible, check_readable
from support.dashboard_records import HandMadeArchive
from support.dashboard_server import application, served
from support.hand_made_campaigns import HandMadeCampaigns, started
from support.slots import counts, plan, slot, weekly

from earshot_protocol.phases.statistics import Statistics
from earshot_server.campaigns.conduct import StartedCampaign
from earshot_server.campaigns.slots import Slot, SlotState
from earshot_server.records import RESTORED_REASON, STOPPED_REASON, CampaignState

NOW = 1_830_000_000.0
NEWER = 31
"""First week under the second map."""
LABELS = ("shopping centre, indoor", "café or restaurant", "public transport", "office")
LONG = tuple(f"{label} {'abcdefghij' * 6}"[:64] for label in LABELS)
WAITING: dict[str, Any] = {"phase": "", "map": "", "mapped": None, "opened": None, "ended": None}


def _result(labels: Sequence[str], number: int) -> Statistics:
    """Counts of a week that rise for a quarter of a year and fall again."""
    swing = 1.0 + 0.03 * (number % 13)
    contacts = (4000 * swing, 1500, 900 * swing, 300)
    # The second map is corrected, and its page says so; weeks under the first are not.
    matrix = (900.0, 80, 10, 10, 20, 500, 0, 10, 30, 10, 400, 0, 0, 5, 0, 190)
    found = counts(
        contacts,
        contacts,
        1000,
        deviation=60.0,
        phones=4000 + 10 * number,
        confusion=matrix if number == NEWER else (),
    )
    return msgspec.structs.replace(found, label_names=tuple(labels))


def _campaign(
    labels: Sequence[str], weeks: int, state: SlotState, reached: int, /, **changes: Any
) -> tuple[StartedCampaign, list[Slot]]:
    """A campaign of which some weeks are counted, missed or failed, and all others in one state."""
    name = changes.pop("name", "Contacts in the north, 2027")
    of = plan(weeks, labels=tuple(labels), name=name, cohorts=("north", "north-west"))
    slots = []
    for phase in weekly(of):
        number = phase.number
        if number > reached:
            found = slot(phase, state)
            slots.append(msgspec.structs.replace(found, attempts=0, **WAITING))
        elif number == 7:
            found = slot(phase, SlotState.MISSED)
            slots.append(msgspec.structs.replace(found, attempts=0, **WAITING))
        elif number == 8:
            reason = "23 phones joined; the phase begins with 50 or more"
            found = slot(phase, SlotState.FAILED, attempts=2, reason=reason)
            slots.append(found)
        else:
            newer = {"map": "cd" * 16} if number >= NEWER else {}
            result = _result(labels, number)
            slots.append(slot(phase, result=result, late=number == 9, **newer))
    return started(of, **changes), slots


PAUSED = {"state": CampaignState.PAUSED, "reason": f"{RESTORED_REASON}: see whether it may go on"}
STOPPED = {"state": CampaignState.STOPPED, "reason": STOPPED_REASON}
CAMPAIGNS = {
    "year": _campaign(LABELS, 53, SlotState.PLANNED, 53),
    "one week": _campaign(LABELS, 52, SlotState.PLANNED, 1, name="one week"),
    "none yet": _campaign(LABELS, 51, SlotState.PLANNED, 0, name="none yet"),
    "all missed": _campaign(LABELS, 26, SlotState.MISSED, 0, name="all missed"),
    "long words": _campaign(LONG, 20, SlotState.PLANNED, 12, name="n" * 100),
    "paused": _campaign(LABELS, 19, SlotState.DUE, 6, name="paused", **PAUSED),
    "stopped": _campaign(LABELS, 18, SlotState.STOPPED, 9, name="stopped", **STOPPED),
}
PATHS = {"list": "/campaigns"}
PATHS |= {name: f"/campaigns/{each.plan.digest}" for name, (each, _) in CAMPAIGNS.items()}
PATHS |= {"place": f"{PATHS['year']}?place=1", "german": f"{PATHS['year']}?place=1&language=de"}
USUAL = ("list", "one week")
"""Pages that are looked at in every run; the others take seconds."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    campaigns = HandMadeCampaigns(*CAMPAIGNS.values())
    with served(application(HandMadeArchive(()), campaigns, NOW)) as address:
        yield address


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each not in USUAL)) for each in PATHS]
)
def test_a_page_of_a_campaign_is_accessible_and_readable(
    name: str, chromium: Browser, address: str
) -> None:
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    complaints, requested = dashboard_browser.overheard(page)
    response = page.goto(address + PATHS[name])
    assert response is not None
    assert response.status == 200
    folder = os.environ.get("EARSHOT_PICTURES")
    check_accessible(page, f"campaign {name}", Path(folder) if folder else None)
    check_readable(page, name)
    assert complaints == []
    assert [url for url in requested if not url.startswith(f"{address}/")] == []
    context.close()
