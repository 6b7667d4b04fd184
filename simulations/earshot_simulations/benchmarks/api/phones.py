"""The phones of one process: many at a time, each with real cryptography and its own key."""

from __future__ import annotations

import heapq
import resource
import threading
import time
from collections import Counter
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import NEW_PHONE
from earshot_protocol.errors import EarshotError
from earshot_protocol.messages import Wait
from earshot_protocol.wire import Ending, encode
from earshot_simulations.benchmarks.api.timed import Timed
from earshot_simulations.engine.interface import HeardPoints
from earshot_simulations.populations import Blobs, SimulatedPopulation

RECORDINGS = 20
ENROL, TASK, ANSWER = "enrol", "task", "answer"
_SCENES = 6
_PAUSE = 0.5
"""Seconds from an answer to a phone's next request."""
_IDLE = 5.0
"""Seconds to a phone's next request after a refusal, or if it has no answer to its task."""
_HELD = 1.0
"""Longest pause in seconds during which a phone keeps its connection, as a real one does."""
_THREADS = 8


class Member(NamedTuple):
    """Description of one phone for another process.

    Attributes:
        number: Number of the phone in the population whose recordings it has.
        answers: Answers that the phone gives before it vanishes.
        key: Private key of the phone, 32 bytes.
        name: Name of that key at the server; empty if the phone has to enrol.
    """

    number: int
    answers: int
    key: bytes
    name: str


class Figures(NamedTuple):
    """The measurements of one process of phones.

    Attributes:
        seconds: Seconds from request to response, one entry each, by kind of request.
        late: Delay of each turn in seconds, because this process was busy or the server held all
            of its threads.
        errors: Number of occurrences of each error.
        bytes_up: Bytes of answers, without the overhead of HTTP.
        bytes_down: Bytes of answered tasks, without the overhead of HTTP.
        cpu_seconds: CPU seconds of this process.
        peak_memory: Peak memory of this process, in bytes.
    """

    seconds: dict[str, list[float]]
    late: list[float]
    errors: Counter[str]
    bytes_up: int
    bytes_down: int
    cpu_seconds: float
    peak_memory: int


def population(phones: int, seed: int) -> SimulatedPopulation:
    """Return the recordings that the phones have heard."""
    return Blobs(phones, RECORDINGS, _SCENES, 0.5, seed)


def run_phones(address: str, code: str, phones: int, members: list[Member], seed: int) -> Figures:
    """Run phones, several at a time, until each has the result or is gone.

    Args:
        address: Address of the server.
        code: Code of an invitation.
        phones: Phones of the whole phase.
        members: Phones of this process.
        seed: Seed of the recordings that the phones have heard.
    """
    return _Process(address, code, phones, members, seed).run()


class _Phone:
    """One phone, its connection to the server, and the answers left before it vanishes."""

    def __init__(self, address: str, member: Member, crowd: SimulatedPopulation) -> None:
        recordings = crowd.recordings(member.number)
        choices = [crowd.labels[label] if label >= 0 else None for label in recordings.labels]
        key = Ed25519PrivateKey.from_private_bytes(member.key)
        self.transport = HttpTransport(address, key, member.name or NEW_PHONE, tries=8)
        # A benchmark may have a smaller crowd than phones accept by default.
        least = min(crowd.phones, Policy.least_phones)
        self.phone = Phone(
            MemoryStore(recordings.points, choices),
            HeardPoints(crowd.encoder, crowd.dimensions),
            Policy.per_recording(least_phones=least),
            hierarchy=LabelHierarchy.flat(crowd.labels),
        )
        self.answers = member.answers
        self.known = bool(member.name)


class _Process:
    def __init__(
        self, address: str, code: str, phones: int, members: list[Member], seed: int
    ) -> None:
        crowd = population(phones, seed)
        self._code = code
        self._phones = [_Phone(address, member, crowd) for member in members]
        now = time.monotonic()
        self._waiting = [(now, place) for place in range(len(members))]
        """Heap of the times of phones' next turns, with their places."""
        self._changed = threading.Condition()
        self._finished = 0
        self._timed = Timed()
        self._late: list[float] = []
        self._errors: Counter[str] = Counter()
        self._bytes_up = self._bytes_down = 0
        self._broken: Exception | None = None

    def run(self) -> Figures:
        threads = [threading.Thread(target=self._work) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._broken is not None:
            raise self._broken
        spent = resource.getrusage(resource.RUSAGE_SELF)
        return Figures(
            dict(self._timed.seconds),
            self._late,
            self._errors,
            self._bytes_up,
            self._bytes_down,
            spent.ru_utime + spent.ru_stime,
            spent.ru_maxrss * 1024,
        )

    def _work(self) -> None:
        try:
            self._take_turns()
        except Exception as error:  # our own bug: other threads would wait forever
            with self._changed:
                self._broken = error
                self._finished = len(self._phones)
                self._changed.notify_all()

    def _take_turns(self) -> None:
        while (place := self._next()) is not None:
            pause: float | None = _IDLE
            try:
                pause = self._turn(self._phones[place])
            except EarshotError as error:
                with self._changed:
                    self._errors[f"{type(error).__name__}: {error}"[:100]] += 1
            with self._changed:
                if pause is None:
                    self._finished += 1
                    self._phones[place].transport.close()
                else:
                    heapq.heappush(self._waiting, (time.monotonic() + pause, place))
                self._changed.notify()

    def _next(self) -> int | None:
        """Wait for the next phone that is due and return its place, or None once all are done."""
        with self._changed:
            while self._finished < len(self._phones):
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    due, place = heapq.heappop(self._waiting)
                    self._late.append(now - due)
                    return place
                self._changed.wait(self._waiting[0][0] - now if self._waiting else None)
            self._changed.notify_all()
            return None

    def _turn(self, one: _Phone) -> float | None:
        """Make one request and act on it; return seconds until the next, or None to end."""
        if not one.known:
            self._timed(ENROL, lambda: one.transport.enrol(self._code))
            one.known = True
        task = self._timed(TASK, one.transport.task)
        if isinstance(task, Ending):
            return None
        answer = one.phone.answer(task)
        if answer is None:
            pause = task.seconds if isinstance(task, Wait) else _IDLE
            if pause > _HELD:
                one.transport.close()
            return pause
        if not one.answers:
            return None
        one.answers -= 1
        self._timed(ANSWER, lambda: one.transport.send(answer))
        with self._changed:
            self._bytes_up += len(encode(answer))
            self._bytes_down += len(encode(task))
        return _PAUSE
