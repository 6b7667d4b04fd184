"""What phones of a simulated campaign hear, week after week."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.campaigns import campaign

from earshot_protocol.errors import InvalidInputError
from earshot_server.campaigns.campaign import Campaign, ExpectedContacts
from earshot_simulations.campaigns.factors import read_factors
from earshot_simulations.campaigns.life import FIRST_WEEK, Life
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.populations import LiftedBlobs, Recordings

PHONES, LABELS = 400, ("a", "b", "c")
SOURCE = LiftedBlobs(10, 30, 3, 0.0, 1)
CAMPAIGN = campaign(
    weeks=8, labels=LABELS, expected=ExpectedContacts(phones=PHONES), discovery=None
)
HEARD = [SOURCE.recordings(phone) for phone in range(SOURCE.phones)]
POOL = Recordings(*(np.concatenate([each[column] for each in HEARD]) for column in range(3)))


def life(whole: Campaign = CAMPAIGN, **settings: Any) -> Life:
    """A life that has not begun."""
    return Life(whole, CampaignSettings(**settings), POOL, np.arange(3))


def lived(weeks: int, **settings: Any) -> Life:
    """A life up to a week."""
    found = life(**settings)
    while found.week < weeks:
        found.live()
    return found


def test_phones_have_as_many_contacts_as_expected() -> None:
    found = lived(0, wave=0.0, season=0.0, turnover=0.0, labelled=0.25)
    total = labelled = 0
    for number in range(FIRST_WEEK, 1):
        week = found.of_week(number).recordings
        total, labelled = total + len(week.points), labelled + int((week.labels >= 0).sum())
    assert total == pytest.approx(4 * PHONES * 3.0, rel=0.1)
    assert labelled == pytest.approx(0.25 * total, rel=0.1)


def test_contacts_are_made_in_their_week() -> None:
    week = lived(2).of_week(2).recordings
    assert week.days is not None
    first = CAMPAIGN.begins + timedelta(days=7)
    assert set(week.days.tolist()) <= {first + timedelta(days=day) for day in range(7)}
    assert len(set(week.days.tolist())) == 7


def test_a_phone_numbers_its_recordings_as_long_as_it_lives() -> None:
    seen: dict[tuple[int, int], Any] = {}
    found = life(turnover=0.05)
    for _ in range(9):
        gone = found.live()
        crowd = found.present(SOURCE)
        for phone in gone.tolist():
            assert crowd.first_number(phone) == 1
            seen = {each: day for each, day in seen.items() if each[0] != phone}
        for phone in range(0, PHONES, 20):
            held = crowd.recordings(phone)
            assert held.days is not None
            for place, day in enumerate(held.days.tolist()):
                number = phone, crowd.first_number(phone) + place
                assert seen.setdefault(number, day) == day
    assert max(number for _, number in seen) > 15


def test_a_new_phone_has_nothing_of_the_one_before() -> None:
    found = lived(1, turnover=0.2)
    gone = found.live()
    crowd = found.present(SOURCE)
    assert len(gone) > PHONES / 10
    newest = found.newest()
    for phone in gone.tolist():
        assert len(crowd.recordings(phone).points) == int((newest.phones == phone).sum())


def test_drift_moves_places_and_keeps_to_the_sphere() -> None:
    still, moved = (lived(8, drift=drift, turnover=0.0).newest() for drift in (0.0, 0.5))
    assert np.array_equal(still.recordings.scenes, moved.recordings.scenes)
    assert np.linalg.norm(moved.recordings.points, axis=1) == pytest.approx(1.0, abs=1e-5)
    apart = np.linalg.norm(still.recordings.points - moved.recordings.points, axis=1)
    assert 0.02 < float(apart.mean()) < 0.5 * 12 / 52 + 0.05
    # Every place comes nearer to another one.
    places = still.recordings.scenes
    means = np.array([still.recordings.points[places == each].mean(axis=0) for each in range(3)])
    nearer = [
        [
            np.linalg.norm(now.recordings.points[places == each].mean(axis=0) - mean)
            for mean in means
        ]
        for now in (still, moved)
        for each in range(3)
    ]
    closer = np.array(nearer[:3]) - np.array(nearer[3:])
    np.fill_diagonal(closer, -1.0)
    assert (closer.max(axis=1) > 0.02).all()


def test_a_place_closes_where_the_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "contacts.csv"
    file.write_text("week,place,factor\n2,a,0\n2,,0.5\n", "utf-8")
    found, plain = (lived(2, turnover=0.0, **each) for each in ({"contacts": file}, {}))
    assert not (found.newest().recordings.scenes == 0).any()
    assert len(found.newest().phones) < 0.8 * len(plain.newest().phones)
    assert (found.of_week(1).recordings.scenes == 0).any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("woche,ort,faktor\n", "line 1: 'woche,ort,faktor'; the columns are week,place,factor"),
        ("week;place;factor\n1;a;2\n", "line 1"),
        ("week,place,factor\n1,a\n", "line 2: has 2 values"),
        ("week,place,factor\n1,a,1\n0,a,2\n", "line 3: week='0': must be 1 to 8"),
        ("week,place,factor\n9,a,2\n", "line 2: week='9'"),
        ("week,place,factor\n1,d,2\n", "line 2: place='d': must be empty, for every place, or one"),
        ("week,place,factor\n1,a,-1\n", "line 2: factor='-1'"),
        ('week,place,factor\n1,a,"1,5"\n', "factor='1,5': must be a number"),
        ("week,place,factor\n1,a,nan\n", "factor='nan'"),
        ("week,place,factor\n1,a,2\n1,a,3\n", "line 3: week 1 of a a second time"),
        ('week,place,factor\n1,"a,2\n', "is not CSV"),
        ("", "line 1: ''"),
    ],
)
def test_a_wrong_file_of_factors_is_refused_by_its_line(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "contacts.csv"
    file.write_text(content, "utf-8")
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        read_factors(file, 8, LABELS)


def test_weeks_before_the_campaign_are_lived_as_well() -> None:
    week = lived(0).of_week(FIRST_WEEK).recordings
    assert week.days is not None
    assert min(week.days.tolist()) >= date(2026, 12, 7)


@pytest.mark.parametrize("weeks", [2, 6, 53])
def test_a_campaign_sees_the_waves_of_its_part_of_a_year(weeks: int) -> None:
    """Both waves at once would triple the contacts of a short campaign."""
    for seed in range(20):
        of = life(campaign(weeks=weeks, labels=LABELS), wave=1.0, season=0.0, seed=seed)
        factors = of.factors[-FIRST_WEEK + 1 :]
        assert factors.max() < 2.9
        assert weeks < 53 or factors.max() > 1.9
