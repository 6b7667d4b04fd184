"""The secure sum without its cryptography: same rounds, same messages, same result, no privacy.

`--summation ideal` puts these in the place of `Participant` and `Aggregator`. Inputs travel in the
clear; who may drop when, and what is summed, stays exactly as it is in the real protocol.
"""

from __future__ import annotations

import hashlib

import numpy as np

from earshot_protocol.messages import (
    AdvertisedKeys,
    AdvertiseKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    SumAnswer,
    SumTask,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum import encoding, masks
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.participant import Participant

_NOTHING = bytes(32)


class IdealParticipant(Participant):
    """A participant that sends its input as it is."""

    def answer(self, task: SumTask) -> SumAnswer:
        """Answer in the form of the real protocol, without keys, shares or masks."""
        state = self._state
        sum_id, sender = state.sum_id, state.index
        match task:
            case AdvertiseKeys():
                # The aggregator checks that keys are usable and differ; any 32 bytes nearly are.
                return AdvertisedKeys(
                    sum_id=sum_id,
                    sender=sender,
                    cipher_key=hashlib.sha256(b"cipher" + sender.to_bytes(4)).digest(),
                    mask_key=hashlib.sha256(b"mask" + sender.to_bytes(4)).digest(),
                )
            case ShareKeys():
                return SharedKeys(sum_id=sum_id, sender=sender, ciphertexts=(), commitment=_NOTHING)
            case MaskInput():
                bits = state.parameters.modulus_bits
                words = np.frombuffer(state.words, dtype=masks.word_type(bits))
                vector = encoding.pack(words, bits)
                return MaskedInput(sum_id=sum_id, sender=sender, vector=vector)
            case Unmask():
                return Unmasked(sum_id=sum_id, sender=sender, shares=b"")


class IdealAggregator(Aggregator):
    """An aggregator of inputs that are not masked: nobody has neighbours, nothing is removed."""

    def _index(self) -> None:
        self._present = dict.fromkeys(self._state.keys, ())
        self._mailboxes = {phone: ([], []) for phone in self._state.shared}

    def _masks(self) -> masks.Words:
        return np.zeros_like(self._total)
