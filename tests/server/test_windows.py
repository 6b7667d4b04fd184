"""The days and places by which a statistics phase counts are in all that is said of it."""

from __future__ import annotations

from datetime import date

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.dashboard_server import words
from support.published_statistics import published

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.wire import Matrix
from earshot_server.dashboard import histograms, outcomes, wording


def test_a_window_is_in_every_title_of_its_histogram() -> None:
    since, until = date(2025, 12, 29), date(2026, 1, 5)
    record = made.published_statistics(30, made.NOW)
    parameters = msgspec.structs.replace(record.parameters, since=since, until=until)
    ending = msgspec.structs.replace(record.ending, since=since, until=until)
    week = msgspec.structs.replace(record, parameters=parameters, ending=ending)
    shown = words(f"/phases/{week.phase.hex()}", week)
    assert "Contacts by environment, 29 Dec 2025 to 4 Jan 2026" in shown
    assert "ontacts counted, 29 Dec 2025 to 4 Jan 2026" in shown
    assert "Contacts that count 29 Dec 2025 to 4 Jan 2026" in shown
    assert "Contacts that count of every day" in words(f"/phases/{record.phase.hex()}", record)
    assert "contacts of 29 Dec 2025 to 4 Jan 2026" in words("/statistics", week)
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
    alone = "Places that name contacts without a label none: they count as unknown"
    assert alone in words(path, record)
    centroids = Matrix.of(np.eye(3, 5))
    agreed = AgreedPlaces(
        encoder="contrast-3", geometry=Geometry.SPHERICAL, centroids=centroids, labels=(0, -1, 1)
    )
    parameters = msgspec.structs.replace(record.parameters, places=agreed)
    shown = words(path, msgspec.structs.replace(record, parameters=parameters))
    assert "3, of which 2 have a name, in embeddings of contrast-3" in shown


def test_nothing_stands_clear_unless_a_label_or_what_is_unknown_does() -> None:
    said = "nothing stands clear of the noise: no count means anything"
    assert outcomes.nothing_clear(published(("bus", "park"))).startswith(said)
    for field, value in (
        ("unknown_p_value", 0.05),
        ("labelled_p_values", (1.0, 0.05)),
        ("named_p_values", (0.05, 1.0)),
    ):
        assert outcomes.nothing_clear(published(("bus", "park"), **{field: value})) == ""


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
