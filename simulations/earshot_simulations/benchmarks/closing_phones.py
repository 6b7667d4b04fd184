"""The phones of one sum, whose answers are as good as real ones at a fraction of their cost.

No phone agrees on keys or opens what others sealed: seeds and locks are derived from one secret,
and what phones seal for each other is noise, which the server cannot tell apart. Everything that
the server does look into is real: distinct keys, commitments, lists of masks under their locks,
masked vectors, and shares that determine their secrets. The masks of a pair in which both phones
stay would cancel, so neither is added.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol.messages import decode_task
from earshot_protocol.phases.labelling import LabelSamples
from earshot_protocol.secure_sum import encoding, masks, messages, shamir
from earshot_protocol.wire import Answer, encode

_DEALT_TOGETHER = 512
_WAYS = 64
"""Number of ways to vote: phones whose numbers differ by a multiple of it vote alike."""


class CheapPhones:
    """All phones of a labelling phase, through the sum of its votes.

    Args:
        opening: First task of the phase.
        dropped: Phones that vanish after sharing their keys.
    """

    def __init__(self, opening: LabelSamples, dropped: Iterable[int]) -> None:
        parameters = opening.parameters
        begun: Any = opening.opening  # Bell et al.'s is the only one whose closing takes a while
        self._sum_id, self._parameters = begun.sum_id, begun.parameters
        self._salt = masks.salt(begun, opening.told(parameters))
        self._secret = os.urandom(32)
        self._word = masks.word_type(self._parameters.modulus_bits)
        self._dropped = np.zeros(parameters.phones, dtype=np.bool_)
        self._dropped[list(dropped)] = True
        self._neighbours: dict[int, tuple[int, ...]] = {}
        self._shares = np.zeros((0, 0, shamir.SECRET_BYTES), dtype=np.uint8)
        self._votes = np.zeros((_WAYS, *self._parameters.shape), dtype=np.int64)
        samples, labels = self._parameters.shape
        for way in range(_WAYS):
            self._votes[way, np.arange(samples), (np.arange(samples) + way) % labels] = 1

    def total(self) -> npt.NDArray[np.int64]:
        """Return the sum of the votes of the remaining phones."""
        ways = np.flatnonzero(~self._dropped) % _WAYS
        return np.tensordot(np.bincount(ways, minlength=_WAYS), self._votes, 1)

    def advertised(self) -> Iterator[tuple[int, bytes]]:
        """Yield the encoded answers of all phones in round 0."""
        for phone in range(len(self._dropped)):
            yield (
                phone,
                self._encoded(phone, messages.AdvertisedKeys, public_key=self._of("key", phone)),
            )

    def answers(self, tasks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Yield the remaining phones' encoded answers to the encoded tasks of a later round."""
        for phone, encoded in tasks:
            match decode_task(encoded):
                case messages.ShareKeys(neighbours=neighbours):
                    yield phone, self._shared(phone, neighbours)
                case messages.MaskInput(senders=senders) if not self._dropped[phone]:
                    yield phone, self._masked(phone, senders)
                case messages.Unmask(survivors=survivors, dropped=dropped):
                    yield phone, self._unmasked(phone, survivors, dropped)

    def _encoded(self, phone: int, kind: type[messages.SumAnswer], **content: object) -> bytes:
        answer: Answer = kind(sum_id=self._sum_id, sender=phone, **content)
        return encode(answer)

    def _of(self, what: str, *phones: int) -> bytes:
        """Return a secret of one phone, or of a pair."""
        name = f"{what} {sorted(phones)}".encode()
        return hashlib.blake2b(name, digest_size=32, key=self._secret).digest()

    def _shared(self, phone: int, neighbours: tuple[int, ...]) -> bytes:
        self._neighbours[phone] = neighbours
        size = messages.SEALED_SHARES_BYTES
        noise = os.urandom(size * len(neighbours))
        pairs = [self._of("pair", phone, other) for other in neighbours]
        return self._encoded(
            phone,
            messages.SharedKeys,
            ciphertexts=tuple(noise[at : at + size] for at in range(0, len(noise), size)),
            masks=masks.seal_list(self._of("lock", phone), pairs, self._salt, phone),
            commitment=masks.commitment(self._of("seed", phone), self._salt, phone),
        )

    def _masked(self, phone: int, senders: tuple[int, ...]) -> bytes:
        gone = [other for other in senders if self._dropped[other]]
        added = [self._of("pair", phone, other) for other in gone if other > phone]
        removed = [self._of("pair", phone, other) for other in gone if other < phone]
        length, word = self._parameters.length, self._word
        words = encoding.encode(self._votes[phone % _WAYS], self._parameters)
        words += masks.expand_sum([self._of("seed", phone), *added], length, word)
        words -= masks.expand_sum(removed, length, word)
        vector = encoding.pack(words, self._parameters.modulus_bits)
        return self._encoded(phone, messages.MaskedInput, vector=vector)

    def _unmasked(self, phone: int, survivors: tuple[int, ...], dropped: tuple[int, ...]) -> bytes:
        if not len(self._shares):
            self._deal()
        revealed = bytearray()
        for owner in survivors + dropped:
            place = bisect_left(self._neighbours[owner], phone)
            revealed.append(place + 1)
            revealed += self._shares[owner, place].tobytes()
        traces = b"".join(masks.trace(self._of("pair", phone, other)) for other in dropped)
        return self._encoded(phone, messages.Unmasked, shares=bytes(revealed), traces=traces)

    def _deal(self) -> None:
        """Split, for each phone, the secret that the server rebuilds into shares."""
        count, threshold = self._parameters.degree, self._parameters.threshold
        phones = range(len(self._dropped))
        self._shares = np.zeros((len(phones), count, shamir.SECRET_BYTES), dtype=np.uint8)
        for first in range(0, len(phones), _DEALT_TOGETHER):
            some = phones[first : first + _DEALT_TOGETHER]
            secrets = [self._of("lock" if self._dropped[each] else "seed", each) for each in some]
            self._shares[first : first + len(some)] = shamir.split(secrets, threshold, count)
