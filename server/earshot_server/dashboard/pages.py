"""The dashboard's pages: what is asked of the archive, and which template shows it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Protocol

from flask import Blueprint, Response, make_response, render_template

from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.dashboard import charts, histograms, outcomes, sentences, tables, wording
from earshot_server.records import GATHERING, PUBLISHED, RUNNING, PhaseRecord
from earshot_server.store.archive import Counts
from earshot_server.store.database import DatabaseUnavailableError

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing inline, nothing from elsewhere."""
MOST_PHASES = 100
"""In a list."""
SECONDS_UNTIL_DATABASE = 5

_NAME = re.compile(r"[0-9a-f]{32}")


class Archive(Protocol):
    """What the dashboard reads."""

    def phases(self, limit: int = MOST_PHASES) -> tuple[PhaseRecord, ...]:
        """The newest phases, the newest first."""
        ...

    def phase(self, phase: bytes) -> PhaseRecord | None:
        """One phase; None if it does not exist."""
        ...

    def counts(self) -> Counts:
        """How much there is."""
        ...


def blueprint(archive: Archive, clock: Callable[[], float] = time.time) -> Blueprint:
    """The pages `/`, `/phases/<hex>` and `/statistics`, and `/static/…`.

    Who may see them is for the caller to check.

    Args:
        archive: what is shown.
        clock: seconds since 1970.
    """
    pages = _Pages(archive, clock)
    made = Blueprint(
        "dashboard",
        __name__,
        static_folder="static",
        static_url_path="/static",
        template_folder="templates",
    )
    made.add_url_rule("/", "overview", pages.overview)
    made.add_url_rule("/phases/<name>", "phase", pages.phase)
    made.add_url_rule("/statistics", "statistics", pages.statistics)
    made.register_error_handler(DatabaseUnavailableError, pages.without_database)
    made.after_request(_secure)
    return made


class _Pages:
    def __init__(self, archive: Archive, clock: Callable[[], float]) -> None:
        self._archive = archive
        self._clock = clock

    def overview(self) -> str:
        records = self._archive.phases(MOST_PHASES)
        return self._render(
            "overview.html",
            records=records,
            under_way=[record for record in records if _is_under_way(record)],
            published=sum(record.status == PUBLISHED for record in records),
            counts=self._archive.counts(),
            live=any(map(_is_under_way, records)),
            most=MOST_PHASES,
        )

    def phase(self, name: str) -> str | Response:
        record = self._archive.phase(bytes.fromhex(name)) if _NAME.fullmatch(name) else None
        if record is None:
            return self._message("No such phase", "unknown-phase", 404)
        return self._render(
            "phase.html",
            record=record,
            steps=tables.participation(record),
            privacy=tables.privacy(record),
            vacuous_epsilon=tables.VACUOUS_EPSILON,
            live=_is_under_way(record),
            **_published(record),
        )

    def statistics(self) -> str:
        records = self._archive.phases(MOST_PHASES)
        return self._render(
            "statistics.html",
            found=tables.over_time(histograms.global_histograms(records)),
            counted=tables.over_time(histograms.private_histograms(records)),
            most=MOST_PHASES,
        )

    def without_database(self, error: DatabaseUnavailableError) -> Response:
        response = self._message("The database is not available", "database", 503)
        response.headers["Retry-After"] = str(SECONDS_UNTIL_DATABASE)
        return response

    def _message(self, title: str, kind: str, status: int) -> Response:
        return make_response(self._render("message.html", title=title, kind=kind), status)

    def _render(self, template: str, **shown: Any) -> str:
        return render_template(
            f"dashboard/{template}",
            now=self._clock(),
            say=sentences,
            word=wording,
            charts=charts,
            units=tuple(Unit),
            **shown,
        )


def _published(record: PhaseRecord) -> dict[str, object]:
    """The template of what a phase published, and what is shown in it; nothing before the end."""
    shown: dict[str, object]
    match record.ending:
        case Result() as result:
            shown = {"environments": tables.environments(record, result)}
        case Statistics() as statistics:
            shown = {"histogram": tables.histogram(record, statistics)}
        case Outcome() as outcome:
            shown = {"outcome": outcomes.plain_rows(outcome)}
        case _:
            return {"page": None}
    figure = outcomes.words_for(record.parameters).figure(record.ending)
    return {"page": f"dashboard/{next(iter(shown))}.html", "figure": figure, **shown}


def _is_under_way(record: PhaseRecord) -> bool:
    return record.status in (GATHERING, RUNNING)


def _secure(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    return response
