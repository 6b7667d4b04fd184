"""Whole sums in one process: their totals, who is in them, and what an observer hears."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from earshot_protocol.errors import TooManyDropoutsError
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.sum_in_process import Observer, run_sum

ADVERTISE, SHARE, INPUT, UNMASK = (each.name for each in BELL.rounds)


def parameters(phones: int = 10) -> SumParameters:
    return choose(phones, (2, 3), 100, 0.3, 0.05)


def vector(phone: int) -> np.ndarray:
    return np.arange(6, dtype=np.int64).reshape(2, 3) - 7 * phone


class Heard(Observer):
    def __init__(self) -> None:
        self.answers: list[tuple[str, int]] = []
        self.bytes: Counter[str] = Counter()
        self.served_times = 0
        self.told: list[tuple[str, int, int]] = []

    def answered(self, name: str, phone: int, seconds: float, down: int, up: int) -> None:
        assert seconds >= 0
        self.answers.append((name, phone))
        self.bytes += Counter(down=down, up=up)

    def served(self, seconds: float) -> None:
        assert seconds >= 0
        self.served_times += 1

    def went_on(self, name: str, done: int, total: int) -> None:
        self.told.append((name, done, total))


def test_all_inputs_are_added_up_and_an_observer_hears_every_answer() -> None:
    heard = Heard()
    found = run_sum(parameters(), vector, observer=heard)
    assert (found.total == sum(vector(phone) for phone in range(10))).all()
    assert found.survivors == tuple(range(10))
    assert found.total.dtype == np.int64
    first = [(name, phone) for name in (ADVERTISE, SHARE, INPUT) for phone in range(10)]
    assert heard.answers[:30] == first
    assert {name for name, _ in heard.answers[30:]} == {UNMASK}
    # Before and behind every answer, and at the end of each round.
    assert heard.served_times == 2 * len(heard.answers) + len(BELL.rounds)
    assert heard.bytes["up"] > 0 < heard.bytes["down"]
    assert heard.told[:10] == [(ADVERTISE, done, 10) for done in range(1, 11)]


def test_only_inputs_of_phones_that_stay_until_then_count() -> None:
    gone = {SHARE: {4}, INPUT: {4, 7}, UNMASK: {4, 7, 1}}
    found = run_sum(
        parameters(),
        vector,
        lambda name: [phone for phone in range(10) if phone not in gone.get(name, ())],
    )
    survivors = [phone for phone in range(10) if phone not in (4, 7)]
    assert found.survivors == tuple(survivors)
    assert (found.total == sum(vector(phone) for phone in survivors)).all()


def test_a_sum_of_too_few_is_not_opened() -> None:
    with pytest.raises(TooManyDropoutsError):
        run_sum(parameters(), vector, lambda name: range(10 if name == ADVERTISE else 5))
