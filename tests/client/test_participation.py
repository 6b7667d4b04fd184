"""What comes of visits, and when the next one is due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from support.endings import result
from support.line import Line
from support.parameters import learning_parameters
from support.phase_tasks import numbered
from support.published_statistics import published

from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import ServerProblemError, UnavailableError
from earshot_client.visits.conditions import Hours
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import Event, Visit
from earshot_client.visits.participation import Participation
from earshot_protocol.api import Refuse
from earshot_protocol.errors import (
    LocalError,
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Cluster, Result
from earshot_protocol.rules import Rule
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.signatures import SignatureError, StaleSignatureError

NOON = datetime(2026, 3, 1, 12)


def cluster(number: int = 0, phones: int = 100) -> Cluster:
    return Cluster(
        phase=numbered(number),
        index=3,
        parameters=learning_parameters(
            phones=phones, geometry=Geometry.SPHERICAL, encoder=DEFAULT_ENCODER
        ),
    )


def found(number: int, **changes: Any) -> Result:
    return result(**{"phase": numbered(number), "encoder": DEFAULT_ENCODER} | changes)


def failed(number: int) -> Failed:
    return Failed(phase=numbered(number), reason="too few phones")


def participation(
    script: Line, store: MemoryStore | None = None, poll: float = 600.0
) -> Callable[[], Visit]:
    store = store or MemoryStore()
    phone = Phone(store, default_encoder(), Policy.per_recording())
    part = Participation(phone, store, script, poll=poll)
    return lambda: part.visit(NOON)


def test_it_waits_as_long_as_it_is_told_but_not_longer_than_it_may() -> None:
    visit = participation(Line(Wait(seconds=20.0), Wait(seconds=1e6)))
    assert visit() == Visit(
        Event.WAITING, "nothing to do now; no phase has begun for this phone", 20.0
    )
    assert visit().seconds == 600.0


def test_after_an_answer_it_asks_again_at_once() -> None:
    script = Line(cluster())
    said = "local centroids; this phone takes part without recordings"
    assert participation(script)() == Visit(Event.ANSWERED, said, 0.0)
    assert len(script.sent) == 1


def test_it_says_which_phase_it_is_in_and_whether_it_had_a_part_in_what_is_over() -> None:
    visit = participation(Line(cluster(1), Wait(seconds=9.0), found(1), found(2)))
    assert visit().event is Event.ANSWERED
    assert visit().detail == f"nothing to do now; in phase {numbered(1).hex()}"
    assert [visit().detail for _ in range(2)] == ["result", "result; this phone had no part in it"]


def test_at_a_bad_time_the_server_hears_nothing() -> None:
    store = MemoryStore()
    phone = Phone(store, default_encoder())
    part = Participation(phone, store, Line(LocalError("asked")), condition=Hours(22, 6), poll=60.0)
    assert part.visit(NOON) == Visit(Event.POSTPONED, "outside 22-6 h", 36_000.0)


def test_a_refusal_names_the_rule_and_is_not_repeated_soon() -> None:
    script = Line(cluster(phones=99))
    visit = participation(script, poll=1e5)()
    assert (visit.event, visit.seconds) == (Event.REFUSED, 3600.0)
    assert "least_phones: phones=99; at least 100" in visit.detail
    assert script.refused == [Refuse(phase=numbered(0), rule=Rule.LEAST_PHONES)]
    assert participation(script, poll=30.0)().seconds == 30.0
    assert script.sent == []


@pytest.mark.parametrize(
    "error", [UnexpectedMessageError("x"), RepeatedMessageError("x"), MalformedMessageError("x")]
)
def test_an_answer_that_comes_too_late_is_no_trouble(error: RemoteError) -> None:
    script = Line(cluster(), cluster(1), Wait(seconds=50.0), to_answers=error)
    visit = participation(script)
    assert [visit().event for _ in range(3)] == [Event.LATE, Event.LATE, Event.WAITING]


def test_trouble_is_met_with_ever_longer_pauses_until_it_is_over() -> None:
    errors = [
        UnavailableError("gone"),
        ServerProblemError("odd"),
        SignatureError("unknown"),
        MalformedMessageError("garbage"),
    ]
    script = Line(*errors, Wait(seconds=5.0), *errors[:2])
    visit = participation(script)
    visits = [visit() for _ in range(7)]
    assert [each.event for each in visits] == [Event.TROUBLE] * 4 + [Event.WAITING] + [
        Event.TROUBLE
    ] * 2
    assert [each.seconds for each in visits] == [1.0, 2.0, 4.0, 8.0, 5.0, 1.0, 2.0]
    visit = participation(Line(UnavailableError("gone")), poll=7.0)
    assert [visit().seconds for _ in range(20)] == [1.0, 2.0, 4.0] + [7.0] * 17


def test_a_server_that_is_busy_is_left_alone_as_long_as_it_asks() -> None:
    visit = participation(Line(UnavailableError("busy", 1000.0)), poll=7.0)
    assert visit().seconds == 1000.0


def test_late_over_and_over_it_asks_more_and_more_rarely() -> None:
    visit = participation(Line(cluster(), to_answers=UnexpectedMessageError("no")))
    assert [visit().seconds for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("error", [SignatureError("x"), StaleSignatureError("x")])
def test_a_signature_that_is_refused_is_trouble_and_not_late(error: RemoteError) -> None:
    assert participation(Line(cluster(), to_answers=error))().event is Event.TROUBLE


def test_what_is_wrong_on_this_phone_is_not_hidden() -> None:
    with pytest.raises(LocalError, match="disk"):
        participation(Line(LocalError("disk")))()


# ----------------------------------------------------------------------------------------- endings


def test_every_ending_is_told_once_and_the_server_hears_which_are_known() -> None:
    store = MemoryStore()
    endings = Endings(store)
    statistics = published(("bus",), phase=numbered(3))
    script = Line(Wait(seconds=1.0), found(1), failed(2), statistics, found(4))
    visit = participation(script, store)
    visit()
    assert endings.known() == ()
    told = []
    for _ in range(4):
        assert visit().event is Event.ENDED
        told.append(endings.untold())
        endings.told()
        assert endings.untold() is None
    assert told == [found(1), failed(2), statistics, found(4)]
    assert endings.known() == tuple(map(numbered, (4, 3, 2, 1)))
    assert Phone(store, default_encoder()).result == found(4)


def test_what_was_published_before_this_phone_came_is_kept_but_is_no_news() -> None:
    store = MemoryStore()
    visit = participation(Line(found(1), failed(2)), store)
    assert visit() == Visit(Event.ENDED, "result; this phone had no part in it", 0.0)
    assert Endings(store).untold() is None
    assert Endings(store).known() == (numbered(1),)
    visit()
    assert Endings(store).untold() == failed(2)


def test_centroids_of_another_encoder_name_nothing_here_but_their_phase_is_over() -> None:
    store = MemoryStore()
    own = found(1, encoder=default_encoder().name)
    foreign = found(2, encoder="another-1")
    visit = participation(Line(Wait(seconds=1.0), own, foreign), store)
    assert [visit().event for _ in range(3)] == [Event.WAITING, Event.ENDED, Event.ENDED]
    assert Endings(store).untold() == foreign
    assert Phone(store, default_encoder()).result == own


def test_a_server_that_repeats_itself_is_trouble() -> None:
    visit = participation(Line(failed(1)))
    events = [visit() for _ in range(3)]
    assert [each.event for each in events] == [Event.ENDED, Event.TROUBLE, Event.TROUBLE]
    assert [each.seconds for each in events] == [0.0, 1.0, 2.0]


def test_a_result_that_does_not_fit_is_not_kept_and_not_asked_for_again() -> None:
    store = MemoryStore()
    bad = found(1, labels=(0,))
    assert participation(Line(bad), store)().event is Event.TROUBLE
    assert Endings(store).known() == (bad.phase,)
    assert Phone(store, default_encoder()).result is None


def test_no_more_endings_are_named_than_the_server_takes() -> None:
    store = MemoryStore()
    script = Line(Wait(seconds=1.0), *(failed(number) for number in range(20)))
    visit = participation(script, store)
    for _ in range(21):
        visit()
    assert Endings(store).known() == tuple(numbered(number) for number in range(19, 11, -1))
