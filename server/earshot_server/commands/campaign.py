"""`earshot campaign`: plan weekly counts of contacts over a year."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from earshot_server.campaigns.campaign_file import read_campaign
from earshot_server.campaigns.plan import planned
from earshot_server.commands.options import AsJson
from earshot_server.dashboard import campaigns

app = App(name="campaign", help="Plan a campaign: a year of weekly counts of contacts.")

File = Annotated[Path, Parameter(help="TOML file of the campaign; docs/campaigns.md explains it.")]


@app.command
def plan(file: File, /, *, as_json: AsJson = False) -> None:
    """Show a campaign's phases, what they cost a phone, and what they can tell; needs no server.

    The last line is the verdict. The exit status is 1 if phases do not fit one after another, or
    default phones refuse some.
    """
    made = planned(read_campaign(file))
    if as_json:
        said = {"plan": made, "verdict": campaigns.verdict(made)}
        print(msgspec.json.encode(said).decode())
    else:
        print("\n".join(campaigns.lines(made, datetime.now(UTC).date())))
    if made.missed or made.refusals:
        sys.exit(1)
