"""Whole sums in one process: their totals, who is in them, and what an observer hears."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from support.operators import WINDOW, Operators, terms

from earshot_protocol.errors import TooManyDropoutsError, WrongStateError
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.sum_in_process import Observer, Summed, run_sum
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.messages import AddUp
from earshot_protocol.two_operators.rounds import OFFER, REPORT, TOTAL
from earshot_protocol.wire import Answer, Task

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


# ------------------------------------------------------------------------------- two operators


def by_two_operators(
    reporting: list[int],
    helper: Callable[[Operators, Task], Answer],
    observer: Observer | None = None,
) -> Summed:
    operators = Operators()
    return run_sum(
        terms(bound=500, shape=(2, 3)),
        vector,
        lambda name: reporting,
        observer,
        dataclasses.replace(TWO_OPERATORS, aggregator=operators.keys),
        lambda task: helper(operators, task),
    )


def answered_after_the_window(operators: Operators, task: Task) -> Answer:
    operators.now += WINDOW + 1 if isinstance(task, AddUp) else 0
    return operators.helper.answer(task)


def test_two_operators_add_up_what_was_reported_and_the_helper_is_asked_twice() -> None:
    heard, reporting = Heard(), [phone for phone in range(20) if phone not in (3, 11)]
    found = by_two_operators(reporting, answered_after_the_window, heard)
    assert (found.total == sum(vector(phone) for phone in reporting)).all()
    assert found.survivors == tuple(reporting)
    assert heard.answers == [
        (OFFER, HELPER),
        *((REPORT, phone) for phone in reporting),
        (TOTAL, HELPER),
    ]
    assert heard.told[0] == (OFFER, 1, 1)
    assert heard.told[-1] == (TOTAL, 1, 1)


def test_too_few_reports_are_not_listed() -> None:
    with pytest.raises(TooManyDropoutsError, match="9 of 20"):
        by_two_operators(list(range(9)), answered_after_the_window)


def test_a_sum_that_needs_a_helper_says_so() -> None:
    operators = dataclasses.replace(TWO_OPERATORS, aggregator=Operators().keys)
    with pytest.raises(WrongStateError, match="no helper to answer MakeOffer"):
        run_sum(terms(), vector, summation=operators)
