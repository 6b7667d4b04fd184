"""Tables of the dashboard as files to download."""

from __future__ import annotations

from flask import Blueprint, Response, abort

from earshot_server.dashboard import histograms, sheets
from earshot_server.dashboard.sheets import Sheet
from earshot_server.records import PhaseRecord
from earshot_server.store.archive import Archive

_HISTOGRAMS = {
    "contacts": histograms.private_histograms,
    "labels": histograms.global_histograms,
}


def register(pages: Blueprint, archive: Archive, most: int) -> None:
    """Add `/phases.csv`, `/spent.csv`, `/phases/<hex>/….csv` and `/statistics/<which>/….csv`.

    Args:
        pages: Blueprint of the dashboard.
        archive: Archive whose content is shown.
        most: Most phases in tables over phases.
    """

    @pages.get("/phases.csv")
    def phases_csv() -> Response:
        return _file("phases", sheets.phases(archive.phases(most)))

    @pages.get("/spent.csv")
    def spent_csv() -> Response:
        return _file("spent", sheets.spent(archive.phases(most)))

    @pages.get("/phases/<name>/<table>.csv")
    def phase_csv(name: str, table: str) -> Response:
        record = named(archive, name)
        if record is None or table not in (found := sheets.of_phase(record)):
            abort(404)
        return _file(f"{record.phase.hex()[:8]}-{table}", found[table])

    @pages.get("/statistics/<which>/<table>.csv")
    def statistics_csv(which: str, table: str) -> Response:
        if which not in _HISTOGRAMS:
            abort(404)
        found = sheets.over_time(_HISTOGRAMS[which](archive.phases(most)))
        if table not in found:
            abort(404)
        return _file(f"{which}-{table}", found[table])


def named(archive: Archive, name: str) -> PhaseRecord | None:
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
