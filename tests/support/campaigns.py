"""Campaigns for tests: files with what is needed, and what a test changes in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.wire import Ending, encode
from earshot_server.campaigns.campaign import (
    Campaign,
    CampaignBudget,
    ExpectedContacts,
    RepeatedDiscovery,
    SumOptions,
)
from earshot_server.store.database import Database

BEGINS = datetime(2027, 1, 4, tzinfo=UTC)
PLACES = tuple("abcdefghijkl")
MINIMAL = """\
name = "Contacts in the north, 2027"
from = 2027-01-04
weeks = 52

[expected]
phones = 5000
"""


def campaign(**changes: Any) -> Campaign:
    """A year over twelve places, with four discoveries and one in reserve."""
    usual: dict[str, Any] = {
        "name": "Contacts in the north, 2027",
        "begins": BEGINS.date(),
        "weeks": 52,
        "labels": PLACES,
        "expected": ExpectedContacts(phones=5000),
        "discovery": RepeatedDiscovery(),
    }
    return Campaign(**(usual | changes))


def lean(phones: int, summation: SummationName, **changes: Any) -> Campaign:
    """The same with nothing in reserve: 52 weeks and 4 discoveries at ε = 1.5 for ε = 8."""
    return campaign(
        expected=ExpectedContacts(phones=phones),
        budget=CampaignBudget(continues=False),
        discovery=RepeatedDiscovery(retries=0),
        sum=SumOptions(summation=summation),
        **changes,
    )


def changed(whole: Campaign, table: str, **values: Any) -> Campaign:
    """A campaign with some values of one table changed."""
    part = msgspec.structs.replace(getattr(whole, table), **values)
    return msgspec.structs.replace(whole, **{table: part})


def publish(database: Database, ending: Ending) -> None:
    """Let a phase be published."""
    database.query(
        "INSERT INTO phases (phase, number, step, deadline, expected, common, sum, over, wait,"
        " finished) VALUES (%s, 9, 'published', 0, 0, %s, '', true, 0, seconds_now())",
        (ending.phase, encode(ending)),
    )
