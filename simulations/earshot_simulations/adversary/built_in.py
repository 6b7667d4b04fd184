"""The attacks that `Adversary` names."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.labels import UNLABELLED
from earshot_protocol.overriding import override
from earshot_protocol.phases.plan import Plan, SecureSum
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES, Unmasked
from earshot_protocol.voting.vectors import COUNTS, quantized
from earshot_protocol.wire import Answer
from earshot_simulations.adversary.attack import Attack, Attacks, Corruption
from earshot_simulations.populations import Recordings

TARGET_LABEL = 0
"""Label under which the adversary wants its place to be published."""
SWAPPED = (0, 1)
"""Scenes whose labels an adversary swaps."""
_GARBAGE_BYTES = 200


@dataclass(frozen=True, eq=False)
class _OfPhones(Attack):
    """An attack of some phones that are drawn already.

    Attributes:
        members: Phones that make it.
    """

    members: frozenset[int]

    @override
    def phones(self, count: int, seed: int) -> Collection[int]:
        return self.members


@dataclass(frozen=True, eq=False)
class SwappedLabels(_OfPhones):
    """Label what is heard of two scenes, each with the other's label, and nothing else.

    Attributes:
        labels: Number of labels.
    """

    name: ClassVar[str] = "swapped_labels"

    labels: int

    @override
    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        if self.labels <= max(SWAPPED):
            return recordings
        one, other = SWAPPED
        of_one, of_other = recordings.scenes == one, recordings.scenes == other
        labels = np.select([of_one, of_other], [other, one], UNLABELLED).astype(np.int16)
        return recordings._replace(labels=labels)


@dataclass(frozen=True, eq=False)
class OneLabel(_OfPhones):
    """Label everything with the last label.

    Attributes:
        labels: Number of labels.
    """

    name: ClassVar[str] = "one_label"

    labels: int

    @override
    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        labels = np.full(len(recordings.labels), self.labels - 1, np.int16)
        return recordings._replace(labels=labels)


@dataclass(frozen=True, eq=False)
class Poisoning(_OfPhones):
    """Claim to hear nothing but one place, with the first label, and publish it without noise.

    Attributes:
        place: Place that nobody heard, float32 (dimensions,).
        recordings: Recordings that a phone claims to have there.
    """

    name: ClassVar[str] = "poisoning"

    place: npt.NDArray[np.float32]
    recordings: int

    @override
    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        label = np.full(self.recordings, TARGET_LABEL, np.int16)
        return Recordings(np.tile(self.place, (self.recordings, 1)), label, label)

    @override
    def published(
        self, phone: int, centroids: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.floating[Any]]:
        return np.tile(self.place, (len(centroids), 1))


@dataclass(frozen=True, eq=False)
class PushedLabel(Poisoning):
    """Claim to hear nothing but the opposite of the first label's sound, under that label."""

    name: ClassVar[str] = "pushed_label"


@dataclass(frozen=True, eq=False)
class NegativeCounts(_OfPhones):
    """Count backwards in a sum of labels, with the whole length that a vector may have.

    Attributes:
        entries: Entries of a row of a sum of labels; other sums have fewer.
    """

    name: ClassVar[str] = "negative_counts"

    entries: int

    @override
    def added(
        self, phone: int, values: npt.NDArray[np.int64], parameters: Any
    ) -> npt.NDArray[np.int64]:
        rows, entries = values.shape
        if entries != self.entries:
            return values
        vector = np.zeros(values.shape)
        vector[:, -1] = -1 / math.sqrt(rows)
        return quantized(vector)


@dataclass(frozen=True, eq=False)
class FalseVectors(_OfPhones):
    """Add, together, as much to every row as half of all phones could, and count nothing.

    Half of the rows point to a place, and half away from it. So the total is one that honest phones
    could have (`voting.totals`), and no row is left in the direction of its sound.

    Attributes:
        place: Place that no phone heard, float32 (dimensions,).
    """

    name: ClassVar[str] = "false_vectors"

    place: npt.NDArray[np.float32]

    @override
    def added(
        self, phone: int, values: npt.NDArray[np.int64], parameters: Any
    ) -> npt.NDArray[np.int64]:
        length = GRID * parameters.phones / (2 * len(self.members))
        signs = np.where(np.arange(len(values)) % 2, -1.0, 1.0)
        vector = np.zeros(values.shape)
        vector[:, : len(self.place)] = length * signs[:, None] * self.place
        return np.rint(vector).astype(np.int64)


@dataclass(frozen=True, eq=False)
class BallotStuffing(_OfPhones):
    """Cast, together, as many votes as all phones could, for one place.

    No participant exceeds the bound of an entry. More votes in all would be a total that no honest
    crowd can have, and would end the phase (`voting.totals`).

    Attributes:
        vote: Largest amount that an honest input adds to an entry of a secure sum.
    """

    name: ClassVar[str] = "ballot_stuffing"

    vote: int

    @override
    def added(
        self, phone: int, values: npt.NDArray[np.int64], parameters: Any
    ) -> npt.NDArray[np.int64]:
        stuffed = np.zeros_like(values)
        together = self.vote * parameters.phones // len(self.members)
        stuffed.flat[int(np.argmax(values))] = min(together, parameters.bound)
        return stuffed


@dataclass(frozen=True, eq=False)
class WrongShares(_OfPhones):
    """Reveal wrong shares of neighbours' secrets."""

    name: ClassVar[str] = "wrong_shares"

    @override
    def sent(self, phone: int, answer: Answer) -> Answer | bytes:
        if not isinstance(answer, Unmasked):
            return answer
        shares = bytearray(answer.shares)
        for last in range(REVEALED_SHARE_BYTES - 1, len(shares), REVEALED_SHARE_BYTES):
            shares[last] ^= 1
        return msgspec.structs.replace(answer, shares=bytes(shares))


@dataclass(frozen=True, eq=False)
class Garbage(_OfPhones):
    """Answer every task with random bytes."""

    name: ClassVar[str] = "garbage"

    @override
    def sent(self, phone: int, answer: Answer) -> Answer | bytes:
        return os.urandom(_GARBAGE_BYTES)


@dataclass(frozen=True, eq=False)
class Dropouts(_OfPhones):
    """Vanish together before the last round of the last secure sum.

    As many others stay as leave with the adversary, because ρ bounds all dropouts together.
    """

    name: ClassVar[str] = "dropouts"

    @override
    def vanishing(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> Mapping[str, tuple[int, ...]]:
        leaving = self.members
        worst = [step.name for step in plan.steps if isinstance(plan.part(step.part), SecureSum)]
        if not leaving or not worst:
            return others
        room = max(0, sum(map(len, others.values())) - len(leaving))
        harmless = {phone for gone in others.values() for phone in gone} - leaving
        kept = set(sorted(harmless)[:room])
        leave = {step: tuple(sorted(kept & {*gone})) for step, gone in others.items()}
        leave[worst[-1]] = tuple(sorted({*leave[worst[-1]], *leaving}))
        return leave


def built_in(
    members: Mapping[str, frozenset[int]],
    target: npt.NDArray[np.float32],
    recordings: int = 0,
    vote: int = 1,
    labels: int = 1,
    opposite: npt.NDArray[np.float32] | None = None,
) -> Attacks:
    """Return the attacks of an adversary, in the order in which they change what a phone does.

    Args:
        members: Phones that make each attack, by its name in `Adversary`.
        target: Place that the adversary wants published, float32 (dimensions,).
        recordings: Recordings that a poisoning phone claims to have there.
        vote: Largest amount that an honest input adds to an entry of a secure sum.
        labels: Number of labels.
        opposite: Place opposite to the first label's sound, float32 (dimensions,); by default the
            target.
    """
    own = defaultdict(frozenset[int], members)
    made: tuple[_OfPhones, ...] = (
        SwappedLabels(own["swapped_labels"], labels),
        OneLabel(own["one_label"], labels),
        # Whoever poisons hears nothing else.
        PushedLabel(own["pushed_label"], target if opposite is None else opposite, recordings),
        Poisoning(own["poisoning"], target, recordings),
        NegativeCounts(own["negative_counts"], len(target) + COUNTS),
        FalseVectors(own["false_vectors"], target),
        BallotStuffing(own["ballot_stuffing"], vote),
        WrongShares(own["wrong_shares"]),
        Garbage(own["garbage"]),
        Dropouts(own["dropouts"]),
    )
    corruptions = tuple(Corruption(each.name, each, each.members) for each in made if each.members)
    return Attacks(corruptions, target)
