"""What corrupted phones do in place of what the protocol says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.phases.plan import Plan, SecureSum
from earshot_protocol.secure_sum.interface import Participant, Summation
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES, AdvertiseKeys, Unmasked
from earshot_protocol.wire import Answer, Matrix, encode
from earshot_simulations.populations import Population, Recordings

TARGET_LABEL = 0
"""Under which the adversary wants its place to be published."""
_CANDIDATES = 1000
_GARBAGE_BYTES = 200


@dataclass(frozen=True)
class Attack:
    """The corrupted phones of one simulation, and the place that they want to be published.

    Attributes:
        members: the phones that make each attack, by its name in `Adversary`.
        target: float32 (dimensions,), a place that nobody heard.
        recordings: how many of its recordings a poisoning phone pretends to be there.
        vote: what the largest honest input adds to an entry of a secure sum.
    """

    members: Mapping[str, frozenset[int]] = field(default_factory=dict)
    target: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    recordings: int = 0
    vote: int = 1

    @property
    def corrupted(self) -> frozenset[int]:
        """The phones that make any attack."""
        return frozenset().union(*self.members.values())

    def makes(self, attack: str, phone: int) -> bool:
        """Whether a phone makes this attack."""
        return phone in self.members.get(attack, ())

    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        """What a phone's store holds, given what it heard."""
        if not self.makes("poisoning", phone):
            return recordings
        label = np.full(self.recordings, TARGET_LABEL, np.int16)
        return Recordings(np.tile(self.target, (self.recordings, 1)), label, label)

    def summation(self, phone: int, summation: Summation) -> Summation:
        """How a phone takes part in a secure sum."""
        if not self.makes("ballot_stuffing", phone):
            return summation
        together = len(self.members["ballot_stuffing"])
        stuffing = _Stuffing(summation.participant, together, self.vote)
        return replace(summation, participant=stuffing)  # type: ignore[arg-type]

    def sent(self, phone: int, answer: Answer) -> bytes:
        """What a phone sends, given the answer that the protocol asks for."""
        if self.makes("garbage", phone):
            return os.urandom(_GARBAGE_BYTES)
        if isinstance(answer, LocalCentroids) and self.makes("poisoning", phone):
            rows = np.tile(self.target, (answer.centroids.rows, 1))
            answer = msgspec.structs.replace(answer, centroids=Matrix.of(rows))
        if isinstance(answer, Unmasked) and self.makes("wrong_shares", phone):
            shares = bytearray(answer.shares)
            for last in range(REVEALED_SHARE_BYTES - 1, len(shares), REVEALED_SHARE_BYTES):
                shares[last] ^= 1
            answer = msgspec.structs.replace(answer, shares=bytes(shares))
        return encode(answer)

    def dropouts(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> dict[str, tuple[int, ...]]:
        """Who vanishes before each step, given who does so without ill intent.

        Of those, as many stay as leave with the adversary: ρ is for all dropouts together.
        """
        leaving = self.members.get("dropouts", frozenset())
        worst = [step.name for step in plan.steps if isinstance(plan.part(step.part), SecureSum)]
        if not leaving or not worst:
            return dict(others)
        room = max(0, sum(map(len, others.values())) - len(leaving))
        harmless = {phone for gone in others.values() for phone in gone} - leaving
        kept = set(sorted(harmless)[:room])
        leave = {step: tuple(sorted(kept & {*gone})) for step, gone in others.items()}
        leave[worst[-1]] = tuple(sorted({*leave[worst[-1]], *leaving}))
        return leave


class _Stuffing:
    """Makes participants who together cast as many votes as all phones could, each for one place.

    None exceeds the bound of an entry. More in all would be a total that no honest crowd can have,
    and end the phase (`voting.totals`).
    """

    def __init__(self, honest: type[Participant], together: int, vote: int) -> None:
        self._honest = honest
        self._together = together
        self._vote = vote

    def __call__(
        self, task: AdvertiseKeys, values: npt.NDArray[np.int64], told: bytes
    ) -> Participant:
        stuffed = np.zeros_like(values)
        stuffed.flat[int(np.argmax(values))] = min(
            self._vote * task.parameters.phones // self._together, task.parameters.bound
        )
        return self._honest(task, stuffed, told)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)


def far_place(population: Population, seed: int) -> npt.NDArray[np.float32]:
    """Of random places, the one farthest from all that is heard, float32 (dimensions,)."""
    from scipy.spatial.distance import cdist

    generator = np.random.default_rng([seed, 0xF])
    places = generator.uniform(-1, 1, (_CANDIDATES, population.dimensions))
    if population.geometry is Geometry.SPHERICAL:
        places = generator.standard_normal(places.shape)
        places /= np.linalg.norm(places, axis=1, keepdims=True)
    distances = cdist(places, population.held_out().points).min(axis=1)
    return np.asarray(places[distances.argmax()], dtype=np.float32)
