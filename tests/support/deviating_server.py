"""A server that lies in the last round, and opens whatever its lies let it open."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from earshot_protocol.errors import RemoteError
from earshot_protocol.secure_sum import encoding, masks, shamir
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.messages import (
    REVEALED_SHARE_BYTES,
    AdvertiseKeys,
    MaskedInput,
    SharedKeys,
)
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round

Story = Callable[[int], Iterable[int]]
"""Phone → those of its neighbours that it is told are gone."""


@dataclass
class DeviatingServer:
    """Runs the first three rounds as it should, and keeps all that it sees.

    Attributes:
        parameters: of the sum.
        inputs: of the phones.
        corrupted: phones that tell the server everything they know.

    The graph is the same in every run: how much opens depends on who lies next to whom.
    """

    parameters: SumParameters
    inputs: np.ndarray
    corrupted: frozenset[int] = frozenset()
    vectors: dict[int, bytes] = field(default_factory=dict)
    seeds: dict[int, dict[int, int]] = field(default_factory=dict)
    """Owner → point → share; of the locks likewise."""
    locks: dict[int, dict[int, int]] = field(default_factory=dict)
    lists: dict[int, bytes] = field(default_factory=dict)
    """Owner → the seeds of its masks, sealed."""
    refusals: int = 0

    def __post_init__(self) -> None:
        self.aggregator = Aggregator(bytes(16), self.parameters, random=random.Random(2).randbytes)
        self.phones: dict[int, Participant] = {}
        for current in (Round.ADVERTISE_KEYS, Round.SHARE_KEYS, Round.MASKED_INPUT):
            for phone in range(self.parameters.phones):
                task = self.aggregator.task_for(phone)
                if isinstance(task, AdvertiseKeys):
                    self.phones[phone] = Participant(task, self.inputs[phone])
                assert task is not None
                answer = self.phones[phone].answer(task)
                if isinstance(answer, MaskedInput):
                    self.vectors[phone] = answer.vector
                if isinstance(answer, SharedKeys):
                    self.lists[phone] = answer.masks
                self.aggregator.accept(phone, answer)
            self.aggregator.advance()
            assert self.aggregator.round is not current

    def copy(self) -> DeviatingServer:
        """Another that goes on from here."""
        copied = copy.copy(self)
        copied.seeds, copied.locks = {}, {}
        copied.phones = {
            phone: Participant.restore(participant.save())
            for phone, participant in self.phones.items()
        }
        return copied

    @property
    def ring(self) -> list[int]:
        """The phones in the order in which the graph lays them."""
        return self.aggregator._graph._ring.tolist()

    def neighbours(self, phone: int) -> tuple[int, ...]:
        return self.aggregator._graph.neighbours(phone)

    def tell(self, gone: Story) -> None:
        """End the sum with a story of its own for every honest phone."""
        for phone, participant in self.phones.items():
            if phone in self.corrupted:
                for owner, shares in participant._state.shares.items():
                    self._hold(self.seeds, owner, shares[:33])
                    self._hold(self.locks, owner, shares[:1] + shares[33:])
                continue
            task = self.aggregator.task_for(phone)
            dropped = tuple(sorted(gone(phone)))
            stayed = tuple(sorted({*task.survivors} - {*dropped}))  # type: ignore[union-attr]
            told = msgspec.structs.replace(task, survivors=stayed, dropped=dropped)  # type: ignore[type-var]
            try:
                shares = participant.answer(told).shares  # type: ignore[union-attr]
            except RemoteError:
                self.refusals += 1
                continue
            for place, owner in enumerate(stayed + dropped):
                at = REVEALED_SHARE_BYTES * place
                self._hold(
                    self.seeds if place < len(stayed) else self.locks,
                    owner,
                    shares[at : at + REVEALED_SHARE_BYTES],
                )

    @staticmethod
    def _hold(kind: dict[int, dict[int, int]], owner: int, share: bytes) -> None:
        kind.setdefault(owner, {})[share[0]] = int.from_bytes(share[1:])

    def opened(self) -> dict[int, np.ndarray]:
        """Every honest phone's input that what was told gives away, by phone."""
        seeds, locks = self._recovered(self.seeds), self._recovered(self.locks)
        lists = {phone: self._listed(phone, lock) for phone, lock in locks.items()}
        found = {}
        for phone in sorted(seeds.keys() - self.corrupted):
            pairs = []
            for other in self.neighbours(phone):
                known = next((each for each in (phone, other) if each in lists), None)
                if known is None:
                    break
                pair = lists[known][other if known == phone else phone]
                pairs.append((other > phone, pair))
            else:
                found[phone] = self._unmasked(phone, seeds[phone], pairs)
        return found

    def _listed(self, phone: int, lock: bytes) -> dict[int, bytes]:
        salt = self.aggregator._state.salt
        seeds = masks.open_list(lock, self.lists[phone], salt, phone)
        assert seeds is not None
        return dict(zip(self.neighbours(phone), seeds, strict=True))

    def _recovered(self, kind: Mapping[int, dict[int, int]]) -> dict[int, bytes]:
        return {
            owner: shamir.recover(shares, len(self.neighbours(owner))).to_bytes(32)
            for owner, shares in kind.items()
            if len(shares) >= self.parameters.threshold
        }

    def _unmasked(self, phone: int, seed: bytes, pairs: list[tuple[bool, bytes]]) -> np.ndarray:
        word = masks.word_type(self.parameters.modulus_bits)
        length = self.parameters.length
        words = encoding.unpack(self.vectors[phone], self.parameters)
        words = words - masks.expand_sum([seed, *(k for up, k in pairs if up)], length, word)
        words += masks.expand_sum([k for up, k in pairs if not up], length, word)
        return encoding.decode(words, self.parameters)
