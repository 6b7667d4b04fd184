"""`earshot campaign plan`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_server.campaigns.campaign_file import read_campaign
from earshot_server.campaigns.plan import CampaignPlan, planned
from earshot_server.commands.campaign.forecast import lines, verdict
from earshot_server.commands.campaign.public_text import public_text
from earshot_server.commands.options import AsJson, refuse_existing

File = Annotated[Path, Parameter(help="TOML file of the campaign; docs/campaigns.md explains it.")]


def plan(
    file: File,
    /,
    *,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: AsJson = False,
) -> None:
    """Show a campaign's phases, what they cost a phone, and what they can tell; needs no server.

    The last line is the verdict. The exit status is 1 if phases do not fit one after another, or
    default phones refuse some.

    Args:
        out: Folder to which the text for people is written: campaign.html, a page that is complete
            in itself, and campaign.md.
        overwrite: Replace these two files if they exist.
    """
    made = planned(read_campaign(file))
    if out is not None:
        _publish(made, out, overwrite)
    if as_json:
        said = {"plan": made, "verdict": verdict(made)}
        print(msgspec.json.encode(said).decode())
    else:
        print("\n".join(lines(made, datetime.now(UTC).date())))
    if made.missed or made.refusals:
        sys.exit(1)


def _publish(made: CampaignPlan, folder: Path, overwrite: bool) -> None:
    """Write what people read about a campaign."""
    text = public_text(made)
    files = {folder / "campaign.html": text.page(), folder / "campaign.md": text.markdown()}
    for file in files:
        refuse_existing(file, overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            replace_file(file, content)
    except OSError as error:
        raise InvalidInputError(
            f"--out {folder}: cannot be written ({error.strerror}); name a folder that can"
        ) from error
    for file in files:
        print(file, file=sys.stderr)
