"""One whole secure sum in one process: all its parties, round by round.

It serves tallies of local teachers, benchmarks and audits. The parties, with a helper where the sum
has one, only see each other's encoded messages, as over a network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import (
    decode_answer,
    decode_helper_answer,
    decode_helper_task,
    decode_task,
)
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import HELPER, Asks, Participant, Summation
from earshot_protocol.summations import AnySumParameters, Opening
from earshot_protocol.wire import Answer, Task, encode

Vector = npt.NDArray[np.int64]


class Summed(NamedTuple):
    """Result of a sum.

    Attributes:
        total: Sum of the inputs, in the sum's shape.
        survivors: Phones whose inputs are in it, ascending.
    """

    total: Vector
    survivors: tuple[int, ...]


class Observer:
    """Listener to the progress of a sum; a subclass overrides what it needs."""

    def answered(self, name: str, phone: int, seconds: float, down: int, up: int) -> None:
        """Called after each answer of a phone or of the helper.

        Args:
            name: Name of the round.
            phone: Number of the phone, or `HELPER`.
            seconds: CPU time that it took.
            down: Bytes of its task.
            up: Bytes of its answer.
        """

    def served(self, seconds: float) -> None:
        """Called after the server's work for a phone or for the end of a round, in CPU seconds."""

    def went_on(self, name: str, done: int, total: int) -> None:
        """Called after a round, with the number of parties that answered."""


def no_helper(task: Task) -> Answer:
    """Refuse a helper's task, in sums that need none.

    Raises:
        WrongStateError: Always.
    """
    raise WrongStateError(f"there is no helper to answer {type(task).__name__}: give one")


def run_sum(
    parameters: AnySumParameters,
    vector: Callable[[int], Vector],
    present: Callable[[str], Collection[int]] | None = None,
    observer: Observer | None = None,
    summation: Summation = BELL,
    helper: Callable[[Task], Answer] = no_helper,
) -> Summed:
    """Add up the inputs of phones.

    Args:
        parameters: Parameters of the sum.
        vector: Function that returns a phone's input by its number, called once a phone.
        present: Function that returns the phones of a round by its name, in the order in which they
            answer; all by default.
        observer: Observer of the progress of the sum.
        summation: Secure summation.
        helper: Function that answers the helper's tasks.

    Raises:
        TooManyDropoutsError: Fewer phones stayed than the parameters allow.
        WrongStateError: The sum needs a helper, and there is none.
    """
    heard = observer or Observer()
    aggregator = summation.aggregator(os.urandom(16), parameters, os.urandom)
    phones: dict[int, Participant] = {}
    survivors: tuple[int, ...] = ()
    before: list[tuple[int, bytes]] = []
    for current in summation.rounds:
        there: Collection[int] = (HELPER,)
        if current.asks is not Asks.HELPER:
            there = range(parameters.phones) if present is None else present(current.name)
        kept: list[tuple[int, bytes]] = []
        for done, phone in enumerate(there, start=1):
            started = time.process_time()
            task = aggregator.task_for(phone)
            if task is None:  # enough others have answered
                continue
            sent = encode(task)
            heard.served(time.process_time() - started)
            started = time.process_time()
            if phone == HELPER:
                answer = encode(helper(decode_helper_task(sent)))
            elif isinstance(task, Opening):  # never sent alone, so it has no decoder
                phones[phone] = summation.participant(task, vector(phone))
                answer = encode(phones[phone].answer(task))
            else:
                answer = encode(phones[phone].answer(decode_task(sent)))  # type: ignore[arg-type]
            seconds = time.process_time() - started
            heard.answered(current.name, phone, seconds, len(sent), len(answer))
            started = time.process_time()
            decode = decode_helper_answer if phone == HELPER else decode_answer
            aggregator.accept(phone, decode(answer))
            heard.served(time.process_time() - started)
            heard.went_on(current.name, done, len(there))
            if current.keeps_answers:
                kept.append((phone, answer))
        if current.carries_input:
            survivors = tuple(sorted(there))
        started = time.process_time()
        for phone, answer in before:
            aggregator.accept(phone, decode_answer(answer))
        before = kept
        aggregator.advance()
        heard.served(time.process_time() - started)
    return Summed(np.asarray(aggregator.result(), dtype=np.int64), survivors)
