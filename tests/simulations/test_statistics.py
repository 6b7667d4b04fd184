"""A simulated statistics phase: scored against the truth, written down, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import earshot
from support.own_things import Crowd

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations import Recordings, Settings
from earshot_simulations.phases.run import Run, headline, render
from earshot_simulations.phases.settings import PolicyChoice, SummationChoice
from earshot_simulations.phases.simulation import open_population, simulate
from earshot_simulations.phases.statistics import StatisticsFindings, StatisticsSettings

SMALL = StatisticsSettings(
    phones=200,
    recordings=6,
    scenes=4,
    contacts=18,
    epsilon=12.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=5,
)
MAP = Settings(
    phones=200,
    recordings=6,
    scenes=4,
    epsilon=25.0,
    cells=12,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=5,
)
DAYS = np.datetime64("2027-01-04") + np.arange(20)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("map")
    simulate(MAP).write(folder)
    return str(folder)


@pytest.fixture(scope="module")
def run(places: str) -> Run[StatisticsFindings]:
    return simulate(replace(SMALL, places=places))


def test_counts_are_the_contacts_of_the_phones_that_came(run: Run[StatisticsFindings]) -> None:
    published, held, scores = run.found.published, run.found.contacts, run.found.scores
    assert published is not None
    assert held is not None
    assert scores is not None
    # Nobody's counts are longer than B.
    numbers = [*published.labelled, *published.named, published.unknown]
    assert numbers == pytest.approx(held.counts, abs=6 * published.deviation)
    assert published.deviation < 12
    assert held.projected == pytest.approx(held.counts)
    assert published.phones < run.phones == 200
    assert (scores.lost, scores.clear) == (pytest.approx(0), 1.0)
    assert scores.error is not None
    assert scores.error < 0.1
    assert scores.unknown_truth < 0.1


def test_contacts_of_phones_that_vanished_are_not_in_the_truth(
    run: Run[StatisticsFindings],
) -> None:
    held, published = run.found.contacts, run.found.published
    assert held is not None
    assert published is not None
    with open_population(SMALL) as population:
        everybody = sum(len(population.recordings(phone).points) for phone in range(200))
    assert sum(held.truth) == sum(held.counts) < everybody
    gone = {phone for step in run.steps[:3] for phone in step.dropped}
    assert published.phones == 200 - len(gone)


def test_without_places_unlabelled_contacts_are_unknown_and_it_says_so() -> None:
    run = simulate(SMALL)
    held, scores = run.found.contacts, run.found.scores
    assert held is not None
    assert scores is not None
    assert held.counts[4:8] == (0, 0, 0, 0)
    assert 0.5 < scores.unknown_truth < 0.9
    assert scores.unknown == pytest.approx(scores.unknown_truth, abs=0.1)
    assert any("No places name unlabelled contacts" in note for note in run.notes)
    assert scores.misnamed == 0


def test_projection_loses_the_contacts_of_long_counts() -> None:
    run = simulate(replace(SMALL, contacts=2))
    held, scores = run.found.contacts, run.found.scores
    assert held is not None
    assert scores is not None
    assert scores.lost > 0.3
    assert sum(held.projected) == pytest.approx((1 - scores.lost) * sum(held.counts))


def test_wrong_labels_are_counted_as_misnamed() -> None:
    wrong = replace(SMALL, labelled=1.0, heterogeneity={"mislabelled": 0.5})  # type: ignore[arg-type]
    scores = simulate(wrong).found.scores
    assert scores is not None
    assert scores.misnamed == pytest.approx(0.5, abs=0.1)
    assert scores.unknown_truth == 0


def test_noise_that_drowns_the_counts_says_so() -> None:
    run = simulate(replace(SMALL, epsilon=0.5, phones=60))
    found, scores = run.found, run.found.scores
    assert found.published is not None
    assert scores is not None
    assert scores.clear < 1
    assert "clear of the noise; " not in headline(run)
    assert "may be noise" in render(run)
    assert any("may be noise alone" in note for note in run.notes)


def test_95_of_100_intervals_contain_what_phones_sent() -> None:
    inside = []
    for seed in range(12):
        scores = simulate(replace(SMALL, phones=12, epsilon=5.0, dropout=0.0, seed=seed))
        assert scores.found.scores is not None
        inside.append(scores.found.scores.inside)
    # 108 numbers: fewer than 94 or more than 108 are inside less than once in a thousand times.
    assert 94 <= round(sum(inside) * 9) <= 108


class Dated(Crowd):
    def recordings(self, phone: int) -> Recordings:
        return super().recordings(phone)._replace(days=DAYS)


def test_a_window_counts_the_days_of_a_population_of_ones_own() -> None:
    week = replace(
        StatisticsSettings(**{**vars(SMALL), "phones": 1000, "scenes": 10, "contacts": 40}),
        since=date(2027, 1, 6),
        until=date(2027, 1, 11),
    )
    run = simulate(week, population=Dated())
    assert run.found.contacts is not None
    assert run.found.published is not None
    assert sum(run.found.contacts.counts) == 5 * run.found.published.phones


def test_a_phase_without_any_contact_has_no_scores() -> None:
    early = replace(
        StatisticsSettings(**{**vars(SMALL), "phones": 1000, "scenes": 10}),
        since=date(2026, 1, 6),
        until=date(2026, 1, 11),
    )
    run = simulate(early, population=Dated())
    assert run.found.scores is None
    assert "none had a contact" in headline(run)
    render(run)


def test_two_operators_give_the_same_truth() -> None:
    both = simulate(replace(SMALL, phones=30, summation=SummationChoice.TWO_OPERATORS))
    assert both.interrupted is None
    assert both.found.scores is not None
    assert both.found.contacts is not None
    assert both.found.published is not None
    assert both.found.scores.inside >= 0.7


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    given = [
        *("statistics", "--phones", "60", "--scenes", "3", "--epsilon", "12", "--seed", "2"),
        *("--policy", "anything", "--summation", "ideal", "--jobs", "1"),
    ]
    return earshot("simulate", *given, *words)


def test_the_command_writes_a_report_and_its_numbers(tmp_path: Path) -> None:
    run = asked("--out", str(tmp_path / "out"))
    assert run.returncode == 0, run.stderr
    assert "of 60 phones were counted in 3 kinds of place" in run.stdout
    kept: dict[str, Any] = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [place["label"] for place in kept["places"]] == ["scene 1", "scene 2", "scene 3"]
    assert kept["configuration"]["contacts"] == 8
    page = (tmp_path / "out" / "report.html").read_text()
    for word in ("simulated statistics phase", "earshot simulate statistics", "Unknown", "± "):
        assert word in page
    assert json.loads(asked("--json").stdout)["places"] == kept["places"], "the seed decides"


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--contacts", "0"), "contacts=0"),
        (("--places", "nowhere"), "there is no such file"),
        (("--policy", "default"), "no phone would take part"),
        (("--epsilon", "0"), "epsilon"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(words: tuple[str, ...], match: str) -> None:
    refused = asked(*words)
    assert refused.returncode == 2
    assert match in refused.stderr


def test_places_of_other_phones_are_refused(places: str) -> None:
    with pytest.raises(InvalidParametersError, match="none has the name of a label"):
        simulate(replace(SMALL, phones=1000, scenes=10, places=places), population=Three())
    with pytest.raises(InvalidParametersError, match="are of 3 dimensions, and what these phones"):
        simulate(replace(SMALL, phones=1000, scenes=10, places=places), population=Crowd())


class Three(Crowd):
    """Other scenes, in as many dimensions as blobs that were lifted to the sphere."""

    dimensions = 3

    def heard(self, random: np.random.Generator, count: int, labelled: float) -> Recordings:
        found = super().heard(random, count, labelled)
        points = found.points[:, :3] / np.linalg.norm(found.points[:, :3], axis=1, keepdims=True)
        return found._replace(points=points)


def test_a_result_of_counts_is_no_place_to_name_by(
    run: Run[StatisticsFindings], tmp_path: Path
) -> None:
    run.write(tmp_path)
    with pytest.raises(InvalidInputError, match="is of a statistics phase; name the result"):
        simulate(replace(SMALL, places=str(tmp_path)))


def test_a_window_needs_a_population_that_knows_days() -> None:
    with pytest.raises(InvalidParametersError, match="only a population of one's own knows"):
        simulate(replace(SMALL, since=date(2027, 1, 4), until=date(2027, 1, 11)))
