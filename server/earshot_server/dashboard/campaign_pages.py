"""Pages of campaigns: all of them, each with its series, and its files to download."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from flask import Blueprint, Response, abort, request

from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_server.campaigns.conduct import CampaignConductor, StartedCampaign
from earshot_server.campaigns.series import Series, series_of
from earshot_server.campaigns.series_table import files
from earshot_server.campaigns.slots import Slot, next_opening
from earshot_server.dashboard import campaigns, series
from earshot_server.store.archive import Archive
from earshot_server.store.campaigns import UnknownCampaignError

_TYPES = {"csv": "text/csv", "json": "application/json", "zip": "application/zip"}
"""Media types of downloads, by the end of their names."""


def add(
    pages: Blueprint,
    archive: Archive,
    conductor: CampaignConductor,
    render: Callable[..., str],
    clock: Callable[[], float],
) -> None:
    """Add `/campaigns`, `/campaigns/<digest>` and its `series.csv`, `series.json`, `series.zip`.

    Args:
        pages: The dashboard's pages.
        archive: Archive of phases.
        conductor: Conductor of the campaigns.
        render: Renders a template.
        clock: Clock in seconds since 1970.
    """

    def computed(started: StartedCampaign, slots: Sequence[Slot]) -> Series:
        return series_of(started.plan, slots, datetime.fromtimestamp(clock(), UTC))

    @pages.get("/campaigns", endpoint="campaigns")
    def show_all() -> str:
        shown = []
        for started in conductor.all():
            slots = conductor.slots(started)
            opens, status = next_opening(slots), started.status(slots)
            shown.append(
                {
                    "started": started,
                    "status": status,
                    "counted": campaigns.counted(slots),
                    "opens": opens.timestamp() if opens and status == "running" else None,
                    "headline": campaigns.headline(computed(started, slots), status),
                }
            )
        return render("campaigns.html", campaigns=shown, damaged=conductor.damaged())

    @pages.get("/campaigns/<digest>", endpoint="campaign")
    def show(digest: str) -> str | tuple[str, int]:
        started = _named(conductor, digest)
        if started is None:
            return render(
                "message.html", title="There is no such campaign", kind="unknown-campaign"
            ), 404
        slots = conductor.slots(started)
        found = computed(started, slots)
        place = request.args.get("place", type=int)
        place = place if place in range(len(found.places)) else None
        status = started.status(slots)
        return render(
            "campaign.html",
            started=started,
            status=status,
            series=found,
            headline=campaigns.headline(found, status),
            newest=series.newest(found),
            place=place,
            chart=series.chart(found, place) if found.weeks else None,
            weeks=series.table(found, place),
            legend=series.legend(),
            explanation=series.explanation(found),
            coming=campaigns.coming(slots, status),
            counted=campaigns.counted(slots),
            slots=campaigns.rows(slots),
            map=campaigns.newest_map(started.plan, slots),
            spent=campaigns.spent(archive.phases_of(started.row.campaign), clock()),
            planned=campaigns.planned(started.plan),
            delta=TOLD_DELTA,
        )

    @pages.get("/campaigns/<digest>/series.<kind>", endpoint="campaign_file")
    def download(digest: str, kind: str) -> Response:
        started = _named(conductor, digest)
        if started is None or kind not in _TYPES:
            abort(404)
        made = files(computed(started, conductor.slots(started)))
        name = f"earshot-campaign-{digest[:12]}.{kind}"
        return Response(
            _zipped(made, clock()) if kind == "zip" else made[f"series.{kind}"],
            mimetype=_TYPES[kind],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _named(conductor: CampaignConductor, digest: str) -> StartedCampaign | None:
    try:
        return conductor.one(bytes.fromhex(digest) if len(digest) == 64 else b"")
    except (ValueError, UnknownCampaignError):
        return None


def _zipped(made: dict[str, bytes], now: float) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in made.items():
            archive.writestr(zipfile.ZipInfo(name, time.gmtime(now)[:6]), content)
    return written.getvalue()
