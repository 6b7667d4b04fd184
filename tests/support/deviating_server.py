"""A server that draws the graph as it likes, lies in the last round, and opens what it can."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from earshot_protocol.errors import RemoteError
from earshot_protocol.secure_sum import encoding, masks, shamir
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.messages import (
    REVEALED_SHARE_BYTES,
    AdvertiseKeys,
    MaskInput,
    ShareKeys,
    SumAnswer,
    SumTask,
    Unmask,
)
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round

Story = Callable[[int], Iterable[int] | None]
"""Phone → those of its neighbours that it is told are gone; None: it is asked nothing."""
Drawn = Mapping[int, Sequence[int]]
"""Phone → its neighbours, ascending; each is its neighbours' neighbour."""

SUM_ID = bytes(16)


def drawn(ring: Graph) -> Drawn:
    """The neighbours of all phones on a ring, which need not have been drawn at random."""
    return dict(enumerate(ring.table().tolist()))


def joined(edges: Iterable[tuple[int, int]]) -> Drawn:
    """The graph that has these edges."""
    around: dict[int, set[int]] = {}
    for one, other in edges:
        around.setdefault(one, set()).add(other)
        around.setdefault(other, set()).add(one)
    return {phone: sorted(around[phone]) for phone in sorted(around)}


@dataclass
class DeviatingServer:
    """Runs three rounds over a graph of its choice, where each phone plays its real part.

    Attributes:
        parameters: of the sum.
        inputs: of the phones.
        corrupted: phones that tell the server everything they know.
        graph: by default the ring that an honest server might have drawn, the same in every run:
            how much opens depends on who lies next to whom.
    """

    parameters: SumParameters
    inputs: np.ndarray
    corrupted: Collection[int] = frozenset()
    graph: Drawn = field(default_factory=dict)
    phones: dict[int, Participant] = field(default_factory=dict)
    answers: dict[int, dict[Round, SumAnswer]] = field(default_factory=dict)
    common: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """Phone → neighbour → seed of the mask in common; the server hears it of corrupted ones."""
    seeds: dict[int, dict[int, int]] = field(default_factory=dict)
    """Owner → point → share; of the locks likewise."""
    locks: dict[int, dict[int, int]] = field(default_factory=dict)
    refusals: int = 0

    def __post_init__(self) -> None:
        if not self.graph:
            self.graph = drawn(Graph.draw(self.parameters, random.Random(2).randbytes))
        for phone in self.graph:
            opening = AdvertiseKeys(sum_id=SUM_ID, index=phone, parameters=self.parameters)
            self.phones[phone] = self.join(opening)
            self.answers[phone] = {Round.ADVERTISE_KEYS: self.phones[phone].answer(opening)}
        self.salt = masks.salt(opening, b"")
        for current in (Round.SHARE_KEYS, Round.MASKED_INPUT):
            tasks = {phone: self._task(phone, current) for phone in self.graph}
            for phone, task in tasks.items():
                self.answers[phone][current] = self.phones[phone].answer(task)
            if current is Round.SHARE_KEYS:
                self.common = {phone: self._common(phone) for phone in self.graph}

    def join(self, opening: AdvertiseKeys) -> Participant:
        """The phone that this task is for."""
        return Participant(opening, self.inputs[opening.index])

    def _common(self, phone: int) -> dict[int, bytes]:
        return dict(zip(self.graph[phone], self.phones[phone]._state.masks, strict=True))

    def _task(self, phone: int, current: Round, gone: Collection[int] = ()) -> SumTask:
        """What the phone is asked in a round; all that is known here of the fields of tasks."""
        around = tuple(self.graph[phone])
        if current is Round.SHARE_KEYS:
            keys = (self._said(other, Round.ADVERTISE_KEYS).public_key for other in around)
            return ShareKeys(sum_id=SUM_ID, neighbours=around, public_keys=b"".join(keys))
        if current is Round.MASKED_INPUT:
            sealed = tuple(
                self._said(other, Round.SHARE_KEYS).ciphertexts[self.graph[other].index(phone)]
                for other in around
            )
            return MaskInput(sum_id=SUM_ID, senders=around, ciphertexts=sealed)
        stayed = tuple(other for other in around if other not in gone)
        dropped = tuple(other for other in around if other in gone)
        return Unmask(sum_id=SUM_ID, survivors=stayed, dropped=dropped)

    def _said(self, phone: int, current: Round) -> Any:
        """What the phone answered in a round, of that round's type."""
        return self.answers[phone][current]

    def copy(self) -> DeviatingServer:
        """Another that goes on from here."""
        copied = copy.copy(self)
        copied.seeds, copied.locks = {}, {}
        copied.phones = {
            phone: Participant.restore(participant.save())
            for phone, participant in self.phones.items()
        }
        return copied

    def tell(self, gone: Story) -> None:
        """End the sum with a story for every honest phone, one for all or one for each."""
        for phone, participant in self.phones.items():
            if phone in self.corrupted:
                for owner, shares in participant._state.shares.items():
                    self._hold(self.seeds, owner, shares[:33])
                    self._hold(self.locks, owner, shares[:1] + shares[33:])
                continue
            story = gone(phone)
            if story is None:
                continue
            task = self._task(phone, Round.UNMASK, {*story})
            assert isinstance(task, Unmask)
            try:
                shares = participant.answer(task).shares
            except RemoteError:
                self.refusals += 1
                continue
            for place, owner in enumerate(task.survivors + task.dropped):
                at = REVEALED_SHARE_BYTES * place
                self._hold(
                    self.seeds if place < len(task.survivors) else self.locks,
                    owner,
                    shares[at : at + REVEALED_SHARE_BYTES],
                )

    @staticmethod
    def _hold(kind: dict[int, dict[int, int]], owner: int, share: bytes) -> None:
        kind.setdefault(owner, {})[share[0]] = int.from_bytes(share[1:])

    def opened(self) -> dict[frozenset[int], np.ndarray]:
        """Every sum of honest phones' inputs that what was told gives away, by its phones.

        Phones whose common mask is unknown are opened together, or not at all: in their sum it
        cancels.
        """
        seeds = self._recovered(self.seeds)
        known = {phone: self.common[phone] for phone in self.corrupted}
        for phone, lock in self._recovered(self.locks).items():
            known[phone] = self._listed(phone, lock)
        honest = sorted(self.graph.keys() - {*self.corrupted})
        unknown = np.zeros((len(self.graph), len(self.graph)), dtype=np.bool_)
        for phone in honest:
            unknown[phone, [o for o in self.graph[phone] if not {phone, o} & known.keys()]] = True
        _, group = connected_components(csr_matrix(unknown), directed=False)
        groups: dict[int, list[int]] = {}
        for phone in honest:
            groups.setdefault(int(group[phone]), []).append(phone)
        return {
            frozenset(phones): self._unmasked(phones, seeds, known)
            for phones in groups.values()
            if seeds.keys() >= {*phones}
        }

    def _listed(self, phone: int, lock: bytes) -> dict[int, bytes]:
        sealed = self._said(phone, Round.SHARE_KEYS).masks
        seeds = masks.open_list(lock, sealed, self.salt, phone)
        assert seeds is not None
        return dict(zip(self.graph[phone], seeds, strict=True))

    def _recovered(self, kind: Mapping[int, dict[int, int]]) -> dict[int, bytes]:
        return {
            owner: shamir.recover(shares, len(self.graph[owner])).to_bytes(32)
            for owner, shares in kind.items()
            if len(shares) >= self.parameters.threshold
        }

    def _unmasked(
        self,
        phones: Iterable[int],
        seeds: Mapping[int, bytes],
        known: Mapping[int, Mapping[int, bytes]],
    ) -> np.ndarray:
        word, length = masks.word_type(self.parameters.modulus_bits), self.parameters.length
        total = np.zeros(length, dtype=word)
        for phone in phones:
            added, removed = [seeds[phone]], []
            for other in self.graph[phone]:
                pair = known.get(phone, {}).get(other) or known.get(other, {}).get(phone)
                if pair:
                    (added if other > phone else removed).append(pair)
            vector = self._said(phone, Round.MASKED_INPUT).vector
            total += encoding.unpack(vector, self.parameters)
            total -= masks.expand_sum(added, length, word)
            total += masks.expand_sum(removed, length, word)
        return encoding.decode(total, self.parameters)
