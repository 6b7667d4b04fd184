"""The days and places by which a statistics phase counts are in all that is said of it."""

from __future__ import annotations

import html
import re
from datetime import date

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.dashboard_server import application

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.wire import Matrix
from earshot_server.dashboard import histograms, outcomes, wording
from earshot_server.records import PhaseRecord


def words_of(record: PhaseRecord, path: str) -> str:
    response = application(made.HandMadeArchive([record], 214)).test_client().get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", response.text)))


def test_a_window_is_in_every_title_of_its_histogram() -> None:
    since, until = date(2025, 12, 29), date(2026, 1, 5)
    record = made.published_statistics(30, made.NOW)
    parameters = msgspec.structs.replace(record.parameters, since=since, until=until)
    ending = msgspec.structs.replace(record.ending, since=since, until=until)
    week = msgspec.structs.replace(record, parameters=parameters, ending=ending)
    words = words_of(week, f"/phases/{week.phase.hex()}")
    assert "Contacts by environment, 29 Dec 2025 to 4 Jan 2026" in words
    assert "ontacts counted, 29 Dec 2025 to 4 Jan 2026" in words
    assert "Contacts that count 29 Dec 2025 to 4 Jan 2026" in words
    assert "Contacts that count of every day" in words_of(record, f"/phases/{record.phase.hex()}")
    assert "contacts of 29 Dec 2025 to 4 Jan 2026" in words_of(week, "/statistics")
    said = outcomes.words_for(parameters)
    assert said.lines(ending)[0] == "contacts of 29 Dec 2025 to 4 Jan 2026 (UTC)"
    assert said.short(ending).endswith("contacts, 29 Dec 2025 to 4 Jan 2026")
    assert "Dec" not in " ".join(outcomes.words_for(record.parameters).lines(record.ending))
    # A week does not compare with all days.
    both = histograms.private_histograms([week, record])
    assert both[0].asked != both[1].asked


def test_places_are_said_in_words() -> None:
    record = made.published_statistics(30, made.NOW)
    path = f"/phases/{record.phase.hex()}"
    assert "Places by which contacts without a label count none: labels alone count" in words_of(
        record, path
    )
    centroids = Matrix.of(np.eye(3, 5))
    agreed = AgreedPlaces(
        encoder="contrast-2", geometry=Geometry.SPHERICAL, centroids=centroids, labels=(0, -1, 1)
    )
    parameters = msgspec.structs.replace(record.parameters, places=agreed)
    words = words_of(msgspec.structs.replace(record, parameters=parameters), path)
    assert "3, of which 2 have a name, in embeddings of contrast-2" in words


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        (None, None, ""),
        (date(2026, 1, 1), date(2026, 1, 8), "1 Jan to 7 Jan 2026"),
        (date(2026, 1, 1), date(2026, 1, 2), "1 Jan 2026"),
    ],
)
def test_a_window_is_told_by_its_first_and_last_day(
    since: date | None, until: date | None, words: str
) -> None:
    assert wording.window(since, until) == words
