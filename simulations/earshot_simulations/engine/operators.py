"""Sums by two operators of a simulated phase: keys, a helper in this process, and phones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.overriding import override
from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.secure_sum.interface import Summation, SummationName
from earshot_protocol.summations import SUMMATIONS, TWO_OPERATORS
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.two_operators.messages import OfferMade
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_server.proofs.engine import fastest


class CompiledParticipant(ReportingParticipant):
    """A phone's side that proves by compiled arithmetic, in a fifth of the time.

    Its time may depend on the input, which nobody else observes here. A proof has the same bytes.
    """

    @staticmethod
    @override
    def arithmetic() -> Arithmetic:
        return fastest()


SIMULATED: Mapping[SummationName, Summation] = {
    **SUMMATIONS,
    SummationName.TWO_OPERATORS: replace(TWO_OPERATORS, participant=CompiledParticipant),
}
"""All summations by name, as simulated phones take part in them."""


class SimulatedOperators:
    """A leader's keys, and its helper.

    Keys come from the operating system; the noise of both follows from the seed.

    Args:
        seed: Seed of the noise.
        moment: Time of the phones' clocks, at which offers are made.
    """

    def __init__(self, seed: int, moment: float = 0.0) -> None:
        leader, helper = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        noises = [np.random.default_rng([seed, 0x8, operator]).bytes for operator in (0, 1)]
        identity = helper.public_key().public_bytes_raw()
        self.keys = LeaderKeys(leader, identity, noises[0], fastest)
        self._now = self._moment = moment
        anything = HelperPolicy(
            leaders=frozenset({self.keys.identity}),
            least_reports=2,
            least_noise=0.0,
            largest_window=math.inf,
            largest_patience=math.inf,
            largest_crowd=2**31,
            offers_a_day=2**31,
            largest_length=2**24,
        )
        self._helper = Helper(helper, MemoryBook(), anything, lambda: self._now, noises[1])

    def answer(self, task: Task) -> Answer:
        """Let the helper answer; offers are made at the fixed time of simulated phones."""
        answer = self._helper.answer(task)
        # The list comes next, after the window has closed.
        self._now = answer.offer.closes if isinstance(answer, OfferMade) else self._moment
        return answer
