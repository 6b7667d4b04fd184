"""`earshot campaign start`, `list`, `show`, `stop`, `resume` and `export`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_server.api.views import CampaignExport, CampaignView, StartCampaign
from earshot_server.campaigns.campaign_file import read_campaign
from earshot_server.campaigns.holidays import read_holidays
from earshot_server.campaigns.plan import planned
from earshot_server.campaigns.schedule import PhaseKind
from earshot_server.campaigns.series import series_of
from earshot_server.campaigns.series_table import CSV, JSON, PACKAGE, write_series
from earshot_server.campaigns.slots import Slot, SlotState
from earshot_server.commands.campaign.forecast import sent_lines, verdict
from earshot_server.commands.campaign.planning import File
from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection, refuse_existing
from earshot_server.dashboard.series import headline
from earshot_server.dashboard.wording import counted, printable, window

_SHOWN = 12
"""Digits of a digest that are shown."""

Name = Annotated[
    str,
    Parameter(help="Name of the campaign, or the first digits of its plan's digest."),
]


def start(
    file: File,
    /,
    *,
    anyway: bool = False,
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Start a campaign, whose phases then open by themselves, and print its plan's digest.

    The plan's verdict is printed on standard error.

    Args:
        anyway: Start it even if default phones refuse it, a cohort has no phones, phases may open
            too late, or another campaign costs the same phones.
    """
    campaign = read_campaign(file)
    print(verdict(planned(campaign)), file=sys.stderr)
    started = connection.operator().start_campaign(StartCampaign(campaign=campaign, anyway=anyway))
    print(msgspec.json.encode(started).decode() if as_json else started.campaign)


def list_campaigns(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """List all campaigns, newest first."""
    found = connection.operator().campaigns()
    if as_json:
        print(msgspec.json.encode(found).decode())
        return
    for campaign in found.campaigns:
        print(_line(campaign))
    for damaged in found.damaged:
        print(
            f"{damaged.campaign[:_SHOWN]}  damaged  cannot be read from the database, and opens no "
            f"phase; started on {datetime.fromtimestamp(damaged.started, UTC):%Y-%m-%d} by "
            f"{damaged.operator}"
        )


def show(
    name: Name, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Show a campaign, what became of each phase, and the newest week's figures."""
    client = connection.operator()
    found = client.campaign(client.find_campaign(name))
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(_lines(found)))


def stop(
    name: Name, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Stop a campaign for good, and its phase under way; weeks that were counted stay."""
    client = connection.operator()
    _told(client.stop_campaign(client.find_campaign(name)), as_json)


def resume(
    name: Name, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Let a campaign go on that was paused when its server was restored."""
    client = connection.operator()
    _told(client.resume_campaign(client.find_campaign(name)), as_json)


def export(
    name: Name,
    /,
    *,
    out: Path,
    holidays: Path | None = None,
    overwrite: bool = False,
    connection: OperatorConnection = DEFAULT,
) -> None:
    """Write a campaign's series as series.csv, datapackage.json and series.json.

    Args:
        out: Folder of the files.
        holidays: CSV file of holidays, with the columns date and name.
        overwrite: Replace these files if they exist.
    """
    noted = () if holidays is None else read_holidays(holidays)
    for each in (CSV, JSON, PACKAGE):
        refuse_existing(out / each, overwrite)
    client = connection.operator()
    found = client.campaign(client.find_campaign(name))
    series = series_of(found.plan, found.slots, datetime.now(UTC), noted)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_series(series, out)
    except OSError as error:
        raise InvalidInputError(
            f"--out {out}: cannot be written ({error.strerror}); name a folder that can"
        ) from error
    for each in (CSV, JSON, PACKAGE):
        print(out / each)


def _told(campaign: CampaignView, as_json: bool) -> None:
    print(msgspec.json.encode(campaign).decode() if as_json else _line(campaign))


def _line(campaign: CampaignView) -> str:
    states = [f"{number} {state}" for state, number in campaign.states.items()]
    return (
        f"{campaign.campaign[:_SHOWN]}  {campaign.status:<7}  {campaign.begins} to "
        f"{campaign.ends}  {', '.join(states)}  “{printable(campaign.name)}”"
    )


def _lines(found: CampaignExport) -> list[str]:
    campaign = found.campaign
    series = series_of(found.plan, found.slots, datetime.now(UTC))
    lines = [_line(campaign), f"  plan: {campaign.campaign}"]
    if campaign.cohorts:
        lines.append(f"  cohorts: {', '.join(campaign.cohorts)}")
    if campaign.reason:
        lines.append(f"  {campaign.status}: {campaign.reason}")
    if campaign.status == "paused":
        lines.append("  `earshot campaign resume` lets it go on")
    if campaign.next is not None:
        lines.append(f"  the next phase may open from {campaign.next:%Y-%m-%d}")
    lines += [f"  {each}" for each in sent_lines(found.plan)]
    lines += [_slot_line(slot) for slot in found.slots if slot.state is not SlotState.PLANNED]
    return lines + ([f"  {each}" for each in headline(series)] if series.counted else [])


def _slot_line(slot: Slot) -> str:
    phase = slot.planned
    if phase.kind is PhaseKind.STATISTICS and phase.since and phase.until:
        what = f"week {phase.number}, {window(phase.since, phase.until)}"
    else:
        what = f"map {phase.number}"
    told = [slot.state.value]
    if slot.late:
        told.append("late")
    if slot.attempts > 1:
        told.append(f"{slot.attempts} attempts")
    if slot.result is not None:
        told.append(counted(slot.result.phones, "phone"))
    if slot.reason:
        told.append(slot.reason)
    return f"  {what}: {', '.join(told)}  {slot.phase}".rstrip()
