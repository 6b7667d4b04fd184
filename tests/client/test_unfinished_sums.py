"""A phone that hears no more of a sum erases its secrets, whatever its clock says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.line import Line
from support.parameters import learning_parameters, statistics_parameters
from support.phase_tasks import first_task, rounds
from support.points import HeardPoints

from earshot_client.phases.sums import KEEP_DAYS
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.http import UnavailableError
from earshot_client.visits.conditions import Hours
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.messages import Wait
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.wire import Task
from earshot_simulations.engine.ideal import IDEAL

DAY = 86_400.0
NOON = datetime(2026, 3, 1, 12)


BEGINNING = first_task(statistics_parameters())
SHARE, MASK, UNMASK = rounds()


class Life:
    """A phone in a file, and the clocks that it looks at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock, self.uptime = NOON.replace(tzinfo=UTC).timestamp(), 0.0
        self.open()

    def open(self) -> None:
        self.store = EncryptedStore(self.path, bytes(32), dimensions=2)
        self.phone = Phone(
            self.store,
            HeardPoints("points", 2),
            Policy.per_recording(),
            summation=IDEAL,
            clock=lambda: self.clock,
            uptime=lambda: self.uptime,
        )

    def passes(self, days: float) -> None:
        self.clock += days * DAY
        self.uptime += days * DAY

    @property
    def secret(self) -> bool:
        """Whether anything of the sum is left; what is left of it is left whole."""
        there = [self.store.get(name) for name in ("sum", "sum since", "answered", "membership")]
        assert all(there) or not any(there)
        return all(there)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path / "phone.db")
    made.phone.answer(BEGINNING)
    assert made.secret
    yield made
    made.store.close()


def opening(life: Life) -> None:
    life.store.close()
    life.open()


def asking(life: Life) -> None:
    assert life.phone.answer(Wait(seconds=1.0)) is None


def visited(life: Life, **options: Any) -> Event:
    away = Line(UnavailableError("away"))
    return Participation(life.phone, life.store, away, **options).visit(NOON).event


def visiting_in_vain(life: Life) -> None:
    assert visited(life) is Event.TROUBLE


def waiting_for_the_night(life: Life) -> None:
    assert visited(life, condition=Hours(22, 6)) is Event.POSTPONED


def hearing(life: Life) -> None:
    life.phone.recordings()


LOOKS = [opening, asking, visiting_in_vain, waiting_for_the_night, hearing]


@pytest.mark.parametrize("look", LOOKS)
def test_after_so_many_days_nothing_of_the_sum_is_left(
    life: Life, look: Callable[[Life], None]
) -> None:
    life.passes(KEEP_DAYS - 1)
    look(life)
    assert life.secret
    life.passes(1)
    look(life)
    assert not life.secret


@pytest.mark.parametrize("late", [SHARE, MASK, UNMASK])
def test_a_task_that_comes_later_is_refused_by_name(life: Life, late: Task) -> None:
    life.passes(KEEP_DAYS)
    with pytest.raises(UnexpectedMessageError, match="a secure sum that this phone is not in"):
        life.phone.answer(late)
    assert not life.secret
    # Neither does it begin anew, or the sum would have two sets of keys.
    with pytest.raises(RefusedError, match="begins only once"):
        life.phone.answer(BEGINNING)


def test_joining_another_phase_leaves_nothing_of_the_sum(life: Life) -> None:
    parameters = learning_parameters()
    life.phone.answer(Cluster(phase=b"another phase...", index=0, parameters=parameters))
    assert life.store.get("sum") is life.store.get("sum since") is None


def test_each_round_lets_it_wait_as_long_again(life: Life) -> None:
    for task in (SHARE, MASK, UNMASK):
        life.passes(KEEP_DAYS - 1)
        assert life.phone.answer(task) is not None
    assert life.store.get("sum") is life.store.get("sum since") is None


def test_a_clock_that_is_put_forward_ends_no_sum_whose_input_has_left(life: Life) -> None:
    life.phone.answer(SHARE)
    life.phone.answer(MASK)
    assert life.phone.ledger.releases
    life.clock += 800 * DAY
    opening(life)
    assert life.phone.answer(UNMASK) is not None


def test_a_clock_that_was_wrong_when_it_began_keeps_it_no_longer(tmp_path: Path) -> None:
    life = Life(tmp_path / "phone.db")
    right, life.clock = life.clock, life.clock + 20_000 * DAY
    life.phone.answer(BEGINNING)
    life.clock = right
    for _ in range(KEEP_DAYS):
        opening(life)
        assert life.secret
        life.passes(1)
    opening(life)
    assert not life.secret
    life.store.close()


def test_a_sum_of_an_older_version_has_no_day_and_waits_from_the_first_look_on(life: Life) -> None:
    life.store.delete("sum since")
    life.passes(100)
    opening(life)
    assert life.secret
    life.passes(KEEP_DAYS)
    opening(life)
    assert not life.secret


def test_recordings_and_ledger_stay(life: Life) -> None:
    life.store.add(np.array([0.5, 0.5]))
    life.phone.answer(SHARE)
    life.phone.answer(MASK)
    spent = life.phone.ledger.export()
    life.passes(KEEP_DAYS)
    opening(life)
    assert not life.secret
    assert life.phone.ledger.export() == spent
    assert life.store.count() == 1
