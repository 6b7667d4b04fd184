"""The two operators of a simulated phase: keys, and a helper in this process."""

from __future__ import annotations

import math

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.two_operators.messages import OfferMade
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_server.proofs.engine import fastest


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
