"""Pages and downloads of the dashboard: their content from the archive, and their templates."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, Response, abort
from flask.blueprints import BlueprintSetupState

from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics
from earshot_server.campaigns.conduct import CampaignConductor
from earshot_server.dashboard import (
    campaign_pages,
    changes,
    histograms,
    language_choice,
    outcomes,
    prototypes,
    rendering,
    samples,
    sheets,
    spending,
    tables,
    wall,
    wording,
)
from earshot_server.dashboard.rendering import secure
from earshot_server.records import GATHERING, PUBLISHED, RUNNING, PhaseRecord
from earshot_server.sheet import Sheet
from earshot_server.store.archive import Archive
from earshot_server.store.database import SECONDS_UNTIL_DATABASE, DatabaseUnavailableError

MOST_PHASES = 100
"""Most phases in a list."""

_HISTOGRAMS = {
    "contacts": histograms.private_histograms,
    "labels": histograms.global_histograms,
}


def blueprint(
    archive: Archive,
    conductor: CampaignConductor,
    clock: Callable[[], float] = time.time,
    operators: tuple[str, str] = ("", ""),
    helper: str = "",
) -> Blueprint:
    """Return `/`, `/phases/<hex>` and its `wall`, `/campaigns`, `/statistics` and `/static/…`.

    Tables are also there as CSV.

    The caller must authenticate requests.

    Args:
        archive: Archive whose content is shown.
        conductor: Conductor of campaigns.
        clock: Clock in seconds since 1970.
        operators: Public keys of leader and helper of sums by two operators, in hexadecimal; empty
            without a helper.
        helper: URL of the helper; empty without one.
    """
    pages = Blueprint("dashboard", __name__, static_folder="static", template_folder="templates")
    pages.before_request(language_choice.choose)
    pages.after_request(secure)
    pages.record(_printable)
    _add_downloads(pages, archive)

    render = partial(rendering.render, now=clock)

    campaign_pages.add(pages, archive, conductor, render, clock)

    def unknown() -> tuple[str, int]:
        return render("message.html", title="No such phase", kind="unknown-phase"), 404

    @pages.get("/")
    def overview() -> str:
        records = archive.phases(MOST_PHASES)
        under_way = [record for record in records if _is_under_way(record)]
        return render(
            "overview.html",
            records=records,
            under_way=under_way,
            published=sum(record.status == PUBLISHED for record in records),
            counts=archive.counts(),
            spent=spending.of_all(records),
            live=bool(under_way),
            most=MOST_PHASES,
            operators=operators,
            helper=helper,
        )

    @pages.get("/phases/<name>")
    def phase(name: str) -> str | tuple[str, int]:
        record = _named(archive, name)
        if record is None:
            return unknown()
        return render(
            "phase.html",
            record=record,
            campaign=conductor.of(record.phase),
            steps=tables.participation(record),
            privacy=spending.of_phase(record),
            vacuous_epsilon=spending.VACUOUS_EPSILON,
            live=_is_under_way(record),
            comparison=_compared(archive, record),
            **_published(record),
        )

    @pages.get("/phases/<name>/wall", endpoint="wall")
    def show_wall(name: str) -> str | tuple[str, int]:
        record = _named(archive, name)
        return unknown() if record is None else render("wall.html", **wall.shown(record))

    @pages.get("/statistics")
    def statistics() -> str:
        records = archive.phases(MOST_PHASES)
        return render(
            "statistics.html",
            labelled=tables.over_time(histograms.global_histograms(records)),
            counted=tables.over_time(histograms.private_histograms(records)),
            most=MOST_PHASES,
        )

    @pages.errorhandler(DatabaseUnavailableError)
    def without_database(error: DatabaseUnavailableError) -> tuple[str, int, dict[str, str]]:
        said = render("message.html", title="The database is not available", kind="database")
        return said, 503, {"Retry-After": str(SECONDS_UNTIL_DATABASE)}

    return pages


def _add_downloads(pages: Blueprint, archive: Archive) -> None:
    """Add `/phases.csv`, `/spent.csv`, `/phases/<hex>/….csv` and `/statistics/<which>/….csv`."""

    @pages.get("/phases.csv")
    def phases_csv() -> Response:
        return _file("phases", sheets.phases(archive.phases(MOST_PHASES)))

    @pages.get("/spent.csv")
    def spent_csv() -> Response:
        return _file("spent", sheets.spent(archive.phases(MOST_PHASES)))

    @pages.get("/phases/<name>/<table>.csv")
    def phase_csv(name: str, table: str) -> Response:
        record = _named(archive, name)
        if record is None or table not in (found := sheets.of_phase(record)):
            abort(404)
        return _file(f"{record.phase.hex()[:8]}-{table}", found[table])

    @pages.get("/statistics/<which>/<table>.csv")
    def statistics_csv(which: str, table: str) -> Response:
        if which not in _HISTOGRAMS:
            abort(404)
        found = sheets.over_time(_HISTOGRAMS[which](archive.phases(MOST_PHASES)))
        if table not in found:
            abort(404)
        return _file(f"{which}-{table}", found[table])


def _named(archive: Archive, name: str) -> PhaseRecord | None:
    """Return the phase with this identifier in hexadecimal digits; None if there is none."""
    try:
        phase = bytes.fromhex(name) if len(name) == 32 else b""
    except ValueError:
        return None
    return archive.phase(phase) if len(phase) == 16 else None


def _file(name: str, sheet: Sheet) -> Response:
    return Response(
        sheet.csv(),
        mimetype="text/csv",
        headers={"Content-Disposition": f'attachment; filename="earshot-{name}.csv"'},
    )


def _published(record: PhaseRecord) -> dict[str, Any]:
    """Return the template for a phase's result, and its content; `page` is None without one."""
    shown: dict[str, Any]
    match record.ending:
        case Result() as result:
            shown = {"environments": tables.environments(record, result)}
        case Discovered() as found:
            shown = {"prototypes": prototypes.prototypes(record, found)}
        case Labelled() as labelled:
            shown = {"samples": samples.samples(record, labelled)}
        case Statistics() as statistics:
            shown = {"histogram": tables.histogram(record, statistics)}
        case Outcome() as outcome:
            shown = {"outcome": outcomes.plain_rows(outcome)}
        case _:
            return {"page": None}
    figure = outcomes.words_for(record.parameters).figure(record.ending)
    return {"page": f"dashboard/{next(iter(shown))}.html", "figure": figure, **shown}


def _compared(archive: Archive, record: PhaseRecord) -> changes.Comparison | None:
    """Compare a published phase with the previous comparable one; None if there is none."""
    if record.status != PUBLISHED:
        return None
    records = archive.phases(MOST_PHASES)
    for of_kind in (histograms.private_histograms, histograms.global_histograms):
        if of_kind([record]):
            until = record.finished or 0.0
            known = [each for each in of_kind(records) if each.finished < until]
            return changes.since_before([*known, *of_kind([record])])
    return None


def _is_under_way(record: PhaseRecord) -> bool:
    return record.status in (GATHERING, RUNNING)


def _printable(state: BlueprintSetupState) -> None:
    """Escape template values with `wording.printable` throughout the application."""
    state.app.jinja_env.finalize = wording.as_text
