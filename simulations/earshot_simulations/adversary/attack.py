"""The behaviour of corrupted phones, in place of the protocol's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.labels import UNLABELLED
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.phases.plan import Plan, SecureSum
from earshot_protocol.secure_sum.interface import Participant, Summation
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES, Unmasked
from earshot_protocol.summations import Opening
from earshot_protocol.wire import Answer, Matrix, encode
from earshot_simulations.populations import Recordings, SimulatedPopulation

TARGET_LABEL = 0
"""Label under which the adversary wants its place to be published."""
SWAPPED = (0, 1)
"""Scenes whose labels an adversary swaps."""
_CANDIDATES = 1000
_GARBAGE_BYTES = 200


@dataclass(frozen=True)
class Attack:
    """The corrupted phones of one simulation, and the place that they want to be published.

    Attributes:
        members: Phones that make each attack, by its name in `Adversary`.
        target: Place that nobody heard, float32 (dimensions,).
        recordings: Recordings that a poisoning phone claims to have at the target.
        vote: Largest amount that an honest input adds to an entry of a secure sum.
        labels: Number of labels.
    """

    members: Mapping[str, frozenset[int]] = field(default_factory=dict)
    target: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    recordings: int = 0
    vote: int = 1
    labels: int = 1

    @property
    def corrupted(self) -> frozenset[int]:
        """Phones that make any attack."""
        return frozenset().union(*self.members.values())

    def makes(self, attack: str, phone: int) -> bool:
        """Return whether a phone makes this attack."""
        return phone in self.members.get(attack, ())

    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        """Return the recordings in a phone's store, given those it heard."""
        if self.makes("poisoning", phone):
            label = np.full(self.recordings, TARGET_LABEL, np.int16)
            return Recordings(np.tile(self.target, (self.recordings, 1)), label, label)
        labels = recordings.labels
        if self.makes("swapped_labels", phone) and self.labels > max(SWAPPED):
            one, other = SWAPPED
            of_one, of_other = recordings.scenes == one, recordings.scenes == other
            labels = np.select([of_one, of_other], [other, one], UNLABELLED).astype(np.int16)
        if self.makes("one_label", phone):
            labels = np.full(len(labels), self.labels - 1, np.int16)
        return recordings._replace(labels=labels)

    def summation(self, phone: int, summation: Summation) -> Summation:
        """Return the summation in which a phone takes part: its own if it stuffs ballots."""
        if not self.makes("ballot_stuffing", phone):
            return summation
        together = len(self.members["ballot_stuffing"])
        stuffing = _Stuffing(summation.participant, together, self.vote)
        return replace(summation, participant=stuffing)  # type: ignore[arg-type]

    def sent(self, phone: int, answer: Answer) -> bytes:
        """Return the bytes that a phone sends, given the answer that the protocol asks for."""
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
        """Return the phones that vanish before each step, given those that vanish by themselves.

        As many of the latter stay as leave with the adversary, because ρ bounds all dropouts
        together.
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
    """Maker of participants that cast, together, as many votes as all phones could, for one place.

    No participant exceeds the bound of an entry. More votes in all would be a total that no honest
    crowd can have, and would end the phase (`voting.totals`).
    """

    def __init__(self, honest: type[Participant], together: int, vote: int) -> None:
        self._honest = honest
        self._together = together
        self._vote = vote

    def __call__(self, task: Opening, values: npt.NDArray[np.int64], told: bytes) -> Participant:
        agreed = task.parameters
        stuffed = np.zeros_like(values)
        stuffed.flat[int(np.argmax(values))] = min(
            self._vote * agreed.phones // self._together, agreed.bound
        )
        return self._honest(task, stuffed, told)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)


def far_place(population: SimulatedPopulation, seed: int) -> npt.NDArray[np.float32]:
    """Return the random place farthest from everything that is heard, float32 (dimensions,)."""
    from scipy.spatial.distance import cdist

    generator = np.random.default_rng([seed, 0xF])
    places = generator.uniform(-1, 1, (_CANDIDATES, population.dimensions))
    if population.geometry is Geometry.SPHERICAL:
        places = generator.standard_normal(places.shape)
        places /= np.linalg.norm(places, axis=1, keepdims=True)
    distances = cdist(places, population.held_out().points).min(axis=1)
    return np.asarray(places[distances.argmax()], dtype=np.float32)
