"""When to start a process again is in vain; the clock is the test's."""

from __future__ import annotations

from earshot_server.processes.quick_deaths import CALM, MOST_QUICK_DEATHS, QuickDeaths


class Lives:
    """Processes that live and die one after the other, at times of our own."""

    def __init__(self, most: int = MOST_QUICK_DEATHS) -> None:
        self.now = 1e6
        self._deaths = QuickDeaths(most, lambda: self.now)

    def one(self, seconds: float, pause: float = 1.0) -> bool:
        """Whether there is no other behind one that lives for as long."""
        began = self.now
        self.now += seconds
        in_vain = self._deaths.are_too_many(began)
        self.now += pause
        return in_vain


def test_a_process_that_dies_every_two_seconds_is_given_up() -> None:
    lives = Lives()
    assert [lives.one(2.0) for _ in range(MOST_QUICK_DEATHS)] == [
        *([False] * (MOST_QUICK_DEATHS - 1)),
        True,
    ]
    assert any(Lives(3).one(0.0) for _ in range(3)) is False  # each alone
    slow = Lives()
    assert any(slow.one(CALM - 0.1) for _ in range(MOST_QUICK_DEATHS))


def test_a_process_that_ran_well_is_started_again_for_ever() -> None:
    lives = Lives()
    assert not any(lives.one(CALM, 0.0) for _ in range(1000))
    assert not any(lives.one(seconds, 0.0) for _ in range(100) for seconds in (1.0, 1.0, 3600.0))


def test_quick_deaths_count_for_a_minute() -> None:
    lives = Lives()
    assert not any(lives.one(1.0, pause=14.1) for _ in range(1000))
    assert any(lives.one(1.0, pause=13.9) for _ in range(MOST_QUICK_DEATHS))
