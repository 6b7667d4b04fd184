"""Error and coverage of a simulated campaign, by hand; and phones that live on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from support.campaigns import campaign
from support.parameters import statistics_parameters
from support.published_statistics import published
from support.slots import COMPUTED, MAP, plan, slot, weekly

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Matrix
from earshot_server.campaigns.campaign import ExpectedContacts
from earshot_server.campaigns.series import series_of
from earshot_server.discovery.optics import Optics
from earshot_simulations.campaigns.findings import (
    Accuracy,
    WeekFound,
    accuracy,
    entries_of,
    fullest,
)
from earshot_simulations.campaigns.life import Life, PresentPhones
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.campaigns.simulation import simulate_campaign
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.populations import LiftedBlobs, Recordings

FIRST = date(2027, 1, 4)
CROWD = CampaignSettings(data="blobs", pool=20, phones=200, jobs=1)


def week(**changes: Any) -> WeekFound:
    """A week of three places under a map, the last of which has less than 5 % of the contacts."""
    usual: dict[str, Any] = {
        "number": 1,
        "phones": 50,
        "true": (100, 60, 4),
        "everybody": (110, 70, 5),
        "exact": (30.0, 20.0, 1.0, 60.0, 30.0, 2.0, 7.0),
        "published": (35.0, 20.0, 90.0, 60.0, 20.0, 2.0, 0.0),
        "deviation": 4.0,
        "named": 90,
        "named_right": 81,
        "has_map": True,
    }
    return WeekFound(**(usual | changes))


def judged(*weeks: WeekFound) -> Accuracy:
    """Accuracy of weeks, published by a series as they are."""
    of = plan(labels=("a", "b", "c"))
    slots = [
        slot(
            phase,
            map=MAP if week.has_map else "",
            mapped=None,
            result=published(
                of.campaign.labels,
                labelled=week.published[:3],
                named=week.published[3:6],
                unknown=week.published[6],
                deviation=week.deviation,
                phones=week.phones,
            ),
        )
        for phase, week in zip(weekly(of), weeks, strict=False)
        if week.published
    ]
    return accuracy(weeks, series_of(of, slots, COMPUTED))


def test_errors_and_coverage_are_those_of_larger_places() -> None:
    found = judged(week())
    # 95 and 40 were published, of 100 and 60, and of 90 and 50 without noise; ±11 is the interval.
    assert found.error == pytest.approx((5 / 100 + 20 / 60) / 2)
    assert found.smoothed_error == pytest.approx(found.error), "one week has no others"
    assert found.noise_error == pytest.approx((5 / 90 + 10 / 50) / 2)
    assert found.coverage == 1.0
    # Noise and chance together explain 95 beside 100, and 40 beside 60 hardly.
    assert found.truth_coverage == 0.5
    # The third place, which is published with 92 of 227, takes from the others' shares.
    wrong = np.abs(np.array([95, 40]) / 227 * 164 / np.array([100, 60]) - 1)
    assert found.share_error == pytest.approx(np.median(wrong))
    assert found.share_coverage == 0.0
    assert found.corrected == 0.0
    assert found.kept == pytest.approx(150 / 164)
    assert found.unknown == pytest.approx(7 / 150)
    assert found.right_names == pytest.approx(0.9)


def test_without_a_map_named_entries_are_noise_alone() -> None:
    found = judged(week(has_map=False, named=0, named_right=0))
    assert found.error == pytest.approx((65 / 100 + 40 / 60) / 2)
    assert found.noise_error == pytest.approx((5 / 30 + 0 / 20) / 2)
    assert found.right_names is None


def test_weeks_without_a_result_do_not_count() -> None:
    failed = week(number=2, published=(), deviation=0.0)
    assert judged(week(), failed) == judged(week())
    assert judged(failed).weeks == 0
    assert judged(failed).error is None


def test_a_run_is_judged_by_its_series() -> None:
    run = simulate_campaign(campaign(weeks=3, labels=("a", "b"), discovery=None), CROWD)
    by_hand, held = [], []
    for found, published_week in zip(run.weeks, run.series.weeks, strict=True):
        for place, true in enumerate(found.true):
            figure = published_week.places[place].smoothed
            assert figure is not None
            by_hand.append(abs(figure.value * found.phones - true) / true)
            held.append(figure.least <= true / found.phones <= figure.most)
    assert run.accuracy.smoothed_error == pytest.approx(np.median(by_hand))
    assert run.accuracy.smoothed_coverage == np.mean(held)
    assert run.newest == accuracy(run.weeks[2:], run.series)
    assert run.newest.smoothed_error == pytest.approx(np.median(by_hand[4:]))
    frame = run.to_frame()
    assert len(frame) == 3 * (2 + 2)
    assert frame["phones"].max() == run.weeks[0].phones


def test_a_year_is_full_before_a_release_drops_out_of_it() -> None:
    days = [FIRST, FIRST + timedelta(10), FIRST + timedelta(365)]
    assert fullest(days) == [days[-1]]
    later = [*days, FIRST + timedelta(366), FIRST + timedelta(400)]
    assert fullest(later) == [later[2], later[3], later[4]]
    assert fullest([]) == []


def test_a_contact_counts_under_its_label_else_its_place_s_else_as_unknown() -> None:
    places = AgreedPlaces(
        encoder="points",
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.eye(3, dtype=np.float32)),
        labels=(1, -1, 0),
        radius=0.25,
    )
    between = np.array([[0.6, 0.0, 0.8], [0.7, 0.1, 0.70]])
    points = np.concatenate([np.eye(3), between]).astype(np.float32)
    unlabelled = np.full(5, -1, dtype=np.int16)
    heard = Recordings(points, unlabelled, unlabelled)
    assert entries_of(heard, places, ("a", "b")).tolist() == [3, 4, 2, 2, 4]
    assert entries_of(heard, None, ("a", "b")).tolist() == [4] * 5
    labelled = heard._replace(labels=np.array([0, 1, 1, -1, 0], dtype=np.int16))
    assert entries_of(labelled, places, ("a", "b")).tolist() == [0, 1, 1, 2, 0]
    none = heard.rows(slice(0, 0))
    assert entries_of(none, places, ("a", "b")).tolist() == []


SOURCE = LiftedBlobs(10, 30, 3, 0.0, 1)


def crowd(weeks: int) -> tuple[PresentPhones, int]:
    """Forty phones after some weeks, with the number of contacts in the newest one."""
    heard = [SOURCE.recordings(phone) for phone in range(SOURCE.phones)]
    pool = Recordings(*(np.concatenate([each[column] for each in heard]) for column in range(3)))
    whole = campaign(
        weeks=8, labels=("a", "b", "c"), expected=ExpectedContacts(phones=40), discovery=None
    )
    life = Life(whole, CampaignSettings(turnover=0.0), pool, np.arange(3))
    while life.week < weeks:
        life.live()
    return life.present(SOURCE), len(life.newest().phones)


def counted(engine: LocalEngine, phones: PresentPhones, weeks: tuple[int, int]) -> float:
    """Contacts that phones count in a phase after the last of these weeks, noise aside."""
    since, until = (FIRST + timedelta(7 * each) for each in (weeks[0] - 1, weeks[1]))
    moment = datetime.combine(until, datetime.min.time(), UTC).timestamp()
    engine.begin(Scenario(phones, 1, IDEAL, AGREES, moment=moment, lasting=True))
    parameters = statistics_parameters(
        phones=40,
        labels=("a", "b", "c"),
        contacts=100,
        noise=1e-6,
        dropout=0.0,
        corrupted=0.0,
        since=since,
        until=until,
    )
    course = Course(parameters, engine, IDEAL, Optics(), 1, began=moment)
    course.run()
    found = course.coordinator.result()
    assert isinstance(found, Statistics)
    return sum(found.labelled) + sum(found.named) + found.unknown


def test_phones_that_live_on_count_no_contact_twice() -> None:
    (first, contacts), (second, more) = crowd(1), crowd(2)
    with LocalEngine(Scenario(first, 1, IDEAL, AGREES, lasting=True), 1) as engine:
        assert counted(engine, first, (1, 1)) == pytest.approx(contacts, abs=0.5)
        assert counted(engine, first, (1, 1)) == pytest.approx(0, abs=0.5)
        assert counted(engine, second, (1, 2)) == pytest.approx(more, abs=0.5)
        states = engine.states()
        assert len(states) == 40
        engine.restore({phone: states[phone] for phone in range(20)})
        days = np.concatenate([second.recordings(phone).days for phone in range(20, 40)])
        new = int((days >= np.datetime64(FIRST)).sum())
        assert counted(engine, second, (1, 2)) == pytest.approx(new, abs=0.5)


def test_phones_that_live_on_forget_after_four_weeks() -> None:
    phones, newest = crowd(4)
    with LocalEngine(Scenario(phones, 1, IDEAL, AGREES, lasting=True), 1) as engine:
        everything = sum(len(phones.recordings(phone).points) for phone in range(40))
        days = [phones.recordings(phone).days for phone in range(40)]
        oldest = sum(int((each == np.datetime64(FIRST)).sum()) for each in days if each is not None)
        assert oldest > 0
        found = counted(engine, phones, (1, 4))
        assert found == pytest.approx(everything - oldest, abs=1)
        assert newest < found
