"""Two operators and a sum of theirs, in this process: what each says can be bent in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators import messages
from earshot_protocol.two_operators.leader import Leader, LeaderKeys
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    MakeOffer,
    PhoneReport,
    SendReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.wire import Answer
from earshot_server.helper.book import Book, MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy

NO_NOISE = WholeLaplace(1)
"""Noise of scale 2^-16, which is 0 but for a chance below 2^-128."""
WINDOW = 1000.0
NOW = 1.8e9
TOLD = b"what all phones are told alike"


def terms(**changes: Any) -> TwoOperatorParameters:
    """Return the parameters of a small sum."""
    usual = TwoOperatorParameters(
        phones=20, shape=(3, 2), bound=7, noise=NO_NOISE, least=10, window=WINDOW
    )
    return msgspec.structs.replace(usual, **changes)


@dataclass
class Operators:
    """A leader's keys and its helper, with a clock that stands still until it is set."""

    leader: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    identity: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    book: Book = field(default_factory=MemoryBook)
    now: float = NOW
    policy: Mapping[str, Any] = field(default_factory=dict)
    arithmetic: Callable[[], Arithmetic] = LimbArithmetic
    elsewhere: bytes | None = None
    """Identity of a helper in another process."""

    @property
    def keys(self) -> LeaderKeys:
        here = self.identity.public_key().public_bytes_raw()
        return LeaderKeys(self.leader, self.elsewhere or here, os.urandom, self.arithmetic)

    @property
    def helper(self) -> Helper:
        usual: dict[str, Any] = {"least_reports": 2, "least_noise": 0.0}
        policy = HelperPolicy(
            **(usual | {"leaders": frozenset({self.keys.identity})} | dict(self.policy))
        )
        return Helper(self.identity, self.book, policy, lambda: self.now)

    def signed(self, asked: MakeOffer) -> MakeOffer:
        """Return a request with the leader's signature of what it says now."""
        body = msgspec.structs.replace(asked, signature=bytes(64)).body()
        signature = messages.sign(self.leader, messages.LEADERS_REQUEST, body)
        return msgspec.structs.replace(asked, signature=signature)

    def begin(self, parameters: TwoOperatorParameters | None = None) -> Leader:
        """Return a sum that was begun and not yet offered."""
        return self.keys(os.urandom(16), parameters or terms(), os.urandom, TOLD)

    def offered(self, parameters: TwoOperatorParameters | None = None) -> Leader:
        """Return a sum that phones may report to."""
        leader = self.begin(parameters)
        leader.accept(HELPER, self.helper.answer(request(leader)))
        leader.advance()
        return leader

    def collected(
        self,
        inputs: Mapping[int, npt.NDArray[np.int64]],
        noise: NoiseOfOperators = NO_NOISE,
        parameters: TwoOperatorParameters | None = None,
        bend: Callable[[int, PhoneReport], PhoneReport] = lambda phone, report: report,
    ) -> tuple[Leader, dict[int, PhoneReport]]:
        """Return a sum after its window, with what each phone reported, in their order."""
        leader = self.offered(parameters or terms(noise=noise))
        reports = {
            phone: bend(phone, reported(leader, phone, vector)) for phone, vector in inputs.items()
        }
        for phone, report in reports.items():
            leader.accept(phone, report)
        leader.advance()
        self.now += WINDOW + 1
        return leader, reports


def another_list(operators: Operators, task: AddUp, reports: bytes) -> AddUp:
    """Return the list that a leader that does not follow the protocol signs as well."""
    body = messages.list_body(task.offer, reports)
    signature = messages.sign(operators.leader, messages.LEADERS_LIST, body)
    return msgspec.structs.replace(task, reports=reports, signature=signature)


def entries(task: AddUp) -> list[bytes]:
    return [task.reports[at : at + 96] for at in range(0, len(task.reports), 96)]


def request(leader: Leader) -> MakeOffer:
    task = leader.task_for(HELPER)
    assert isinstance(task, MakeOffer)
    return task


def opening(leader: Leader, phone: int = 0) -> SendReport:
    task = leader.task_for(phone)
    assert isinstance(task, SendReport)
    return task


def listed(leader: Leader) -> AddUp:
    task = leader.task_for(HELPER)
    assert isinstance(task, AddUp)
    return task


def reported(leader: Leader, phone: int, vector: npt.NDArray[np.int64]) -> PhoneReport:
    task = opening(leader, phone)
    return ReportingParticipant(task, vector, TOLD).answer(task)


def total_of(answer: Answer) -> HelperTotal:
    assert isinstance(answer, HelperTotal)
    return answer


def closed(
    leader: Leader, total: Answer, reports: Iterable[tuple[int, PhoneReport]]
) -> npt.NDArray[np.int64]:
    """Close the last round with the helper's total, and return the result."""
    leader.accept(HELPER, total)
    for phone, report in reports:
        leader.accept(phone, report)
    leader.advance()
    return np.asarray(leader.result(), dtype=np.int64)


def inputs_of(
    phones: Iterable[int], shape: tuple[int, ...] = (3, 2), bound: int = 7
) -> dict[int, npt.NDArray[np.int64]]:
    generator = np.random.default_rng(1)
    return {phone: generator.integers(-bound, bound + 1, shape) for phone in phones}
