"""The day that budgets count to: no clock that is set, however often, frees what was spent."""

from __future__ import annotations

from datetime import UTC, date, datetime

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_client.calendar import LONGEST_OFF, Calendar, uptime
from earshot_client.store.memory import MemoryStore

DAY = 86_400.0
START = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()


class World:
    """Two clocks, and a phone that looks at them."""

    def __init__(self) -> None:
        self.store = MemoryStore(np.empty((0, 2), dtype=np.float32))
        self.clock, self.uptime = START, 0.0

    def today(self) -> date:
        # Opened anew each time, as after the app's end.
        return Calendar(self.store, lambda: self.clock, lambda: self.uptime).today()

    def passes(self, seconds: float) -> None:
        self.clock += seconds
        self.uptime += seconds

    @property
    def passed(self) -> int:
        """Days that count since the start."""
        return (self.today() - datetime.fromtimestamp(START, UTC).date()).days


@pytest.fixture
def world() -> World:
    made = World()
    made.store.append_ledger(b"something")
    assert made.passed == 0
    return made


def test_a_clock_that_is_right_is_believed(world: World) -> None:
    for day in range(1, 500):
        world.passes(DAY)
        assert world.passed == day


@pytest.mark.parametrize("days", [8, 366, 800, 36_500])
def test_a_clock_that_is_put_forward_counts_for_nothing(world: World, days: int) -> None:
    for _ in range(5):
        world.clock += days * DAY
        assert world.passed == 0
        world.clock -= days * DAY
        assert world.passed == 0
    world.passes(DAY)
    assert world.passed == 1


def test_after_a_restart_a_week_counts_at_most(world: World) -> None:
    world.passes(10 * DAY)
    assert world.passed == 10
    world.clock, world.uptime = world.clock + 800 * DAY, 60.0
    assert world.passed == 10 + LONGEST_OFF / DAY
    world.clock, world.uptime = world.clock + DAY, 10.0
    assert world.passed == 10 + LONGEST_OFF / DAY + 1


@pytest.mark.parametrize("days", [7, 60, 400])
def test_a_clock_swung_between_restarts_frees_one_week_in_all(world: World, days: int) -> None:
    world.passes(1000.0)
    assert world.passed == 0
    for seconds in range(120, 0, -2):  # less than before: the phone was started again
        world.clock, world.uptime = world.clock + days * DAY, seconds
        assert world.passed == LONGEST_OFF / DAY
        world.clock, world.uptime = world.clock - days * DAY, seconds - 1
        assert world.passed == LONGEST_OFF / DAY


def test_before_anything_is_released_the_clock_may_be_corrected() -> None:
    world = World()
    world.clock = 0.0  # as it is without a battery
    assert world.today() == date(1970, 1, 1)
    world.clock = START
    assert world.today() == date(2026, 3, 2)
    world.store.append_ledger(b"something")
    world.clock += 800 * DAY
    assert world.today() == date(2026, 3, 2)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 30 * DAY),  # that really pass
            st.floats(-4_000 * DAY, 4_000 * DAY),  # by which somebody sets the clock then
            st.booleans(),  # whether the phone is started again
        ),
        max_size=30,
    )
)
def test_no_more_counts_than_really_passed_and_a_week_for_each_restart(
    steps: list[tuple[float, float, bool]],
) -> None:
    world, really, restarts, latest, reached = World(), 0.0, 0, 0, START
    world.store.append_ledger(b"something")
    world.today()
    for passes, sets, restarted in steps:
        world.passes(passes)
        reached = max(reached, world.clock)
        world.clock = max(0.0, world.clock + sets)
        reached = max(reached, world.clock)
        really += passes
        if restarted:
            restarts, world.uptime = restarts + 1, 0.0
        passed = world.passed
        assert latest <= passed <= 1.001 * really / DAY + restarts * LONGEST_OFF / DAY + 1
        assert passed <= (reached - START + 1.001 * really) / DAY + 1
        latest = passed


def test_a_look_that_tells_nothing_new_is_not_written(world: World) -> None:
    before = world.store.get("calendar")
    world.today()
    assert world.store.get("calendar") is before
    world.passes(1.0)
    world.today()
    assert msgspec.msgpack.decode(world.store.get("calendar") or b"") != msgspec.msgpack.decode(
        before or b""
    )


def test_uptime_runs() -> None:
    first = uptime()
    assert 0 < first <= uptime() < first + 3600
