"""The messages of one secure sum: four tasks to a phone and the answer to each."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol.secure_sum.parameters import LARGEST_DEGREE, SumParameters
from earshot_protocol.wire import (
    LARGEST_ANSWER_BYTES,
    Answer,
    Identifier,
    PhoneIndex,
    PublicKey,
    Task,
)

TAG_BYTES = 16
"""Bytes of the authentication tag of a sealed message."""
SEALED_SHARES_BYTES = 12 + 1 + 32 + 32 + TAG_BYTES
"""Bytes of sealed shares: nonce, share index, two shares, authentication tag."""
REVEALED_SHARE_BYTES = 1 + 32
"""Bytes of a share index (0: this phone holds no share of that neighbour) and a share."""
TRACE_BYTES = 8
"""Bytes of the hash of the mask shared with a neighbour that dropped."""

Neighbours = Annotated[tuple[PhoneIndex, ...], Meta(max_length=LARGEST_DEGREE)]
KeyList = Annotated[bytes, Meta(max_length=32 * LARGEST_DEGREE)]
SealedMasks = Annotated[bytes, Meta(max_length=32 * LARGEST_DEGREE + TAG_BYTES)]
Ciphertext = Annotated[bytes, Meta(min_length=SEALED_SHARES_BYTES, max_length=SEALED_SHARES_BYTES)]
Ciphertexts = Annotated[tuple[Ciphertext, ...], Meta(max_length=LARGEST_DEGREE)]


class SumTask(Task, frozen=True, kw_only=True):
    """Task of one round of one sum."""

    sum_id: Identifier


class SumAnswer(Answer, frozen=True, kw_only=True):
    """Answer of one phone in one round of one sum."""

    sum_id: Identifier
    sender: PhoneIndex


class AdvertiseKeys(SumTask, frozen=True, kw_only=True, tag="advertise-keys"):
    """Round 0: make a key pair for this sum and send its public half."""

    index: PhoneIndex
    parameters: SumParameters

    @property
    def told_alike(self) -> AdvertiseKeys:
        """The task as all phones receive it, without the phone's own number."""
        return self.for_phone(0)

    def for_phone(self, phone: int) -> AdvertiseKeys:
        """Return the same task for the phone of that number."""
        return msgspec.structs.replace(self, index=phone)


class ShareKeys(SumTask, frozen=True, kw_only=True, tag="share-keys"):
    """Round 1: the phone's neighbours (ascending) and their public keys, 32 bytes each."""

    neighbours: Neighbours
    public_keys: KeyList


class MaskInput(SumTask, frozen=True, kw_only=True, tag="mask-input"):
    """Round 2: neighbours that shared their keys (A1), and what they sealed for the phone."""

    senders: Neighbours
    ciphertexts: Ciphertexts


class Unmask(SumTask, frozen=True, kw_only=True, tag="unmask"):
    """Round 3: the phone's neighbours in A1 that sent their input (A2), and those that did not."""

    survivors: Neighbours
    dropped: Neighbours


class AdvertisedKeys(SumAnswer, frozen=True, kw_only=True, tag="advertised-keys"):
    """Round 0: the public half of the key pair."""

    public_key: PublicKey


class SharedKeys(SumAnswer, frozen=True, kw_only=True, tag="shared-keys"):
    """Round 1: what is sealed for neighbours and server, and a commitment to the seed.

    Attributes:
        ciphertexts: One ciphertext per neighbour, in their order: shares of the seed and of the
            lock.
        masks: Seeds of the pairwise masks, in that order, sealed under the lock: for the server,
            once it has the lock from shares.
        commitment: Commitment to the seed.
    """

    ciphertexts: Ciphertexts
    masks: SealedMasks
    commitment: Annotated[bytes, Meta(min_length=32, max_length=32)]


class MaskedInput(SumAnswer, frozen=True, kw_only=True, tag="masked-input"):
    """Round 2: the masked vector, `modulus_bits` bits an entry."""

    vector: Annotated[bytes, Meta(max_length=LARGEST_ANSWER_BYTES)]


class Unmasked(SumAnswer, frozen=True, kw_only=True, tag="unmasked"):
    """Round 3: shares from which masks left in the total are rebuilt, and traces to check them.

    Attributes:
        shares: One share per survivor, then one per dropped neighbour, in their order.
        traces: Hash of the mask in common with each dropped neighbour, by which the list that the
            neighbour sealed is checked.
    """

    shares: Annotated[bytes, Meta(max_length=REVEALED_SHARE_BYTES * LARGEST_DEGREE)]
    traces: Annotated[bytes, Meta(max_length=TRACE_BYTES * LARGEST_DEGREE)]


LATER_TASKS = (ShareKeys, MaskInput, Unmask)
"""Tasks that travel alone; `AdvertiseKeys` travels in the task that begins a part of a phase."""
ANSWERS = (AdvertisedKeys, SharedKeys, MaskedInput, Unmasked)
