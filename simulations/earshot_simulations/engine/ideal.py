"""A summation without cryptography: same rounds, same messages, same result, no privacy.

`--summation ideal` puts it in the place of the one of Bell et al. Inputs travel in the clear; who
may drop when, and what is summed, stays exactly as it is in the real protocol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RepeatedMessageError, UnexpectedMessageError
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import answers, encoding, masks, messages
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.rounds import NEXT, Round
from earshot_protocol.wire import Answer

_NOTHING = bytes(32)


class _Phone(msgspec.Struct):
    index: int
    parameters: SumParameters
    words: bytes
    round: Round = Round.ADVERTISE_KEYS


class IdealParticipant:
    """A `Participant` that sends its input as it is."""

    def __init__(self, task: messages.AdvertiseKeys, values: npt.ArrayLike) -> None:
        words = encoding.encode(values, task.parameters)
        self._state = _Phone(task.index, task.parameters, words.tobytes())

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """The participant that `save` wrote."""
        participant = cls.__new__(cls)
        participant._state = msgspec.msgpack.decode(saved, type=_Phone)
        return participant

    def save(self) -> bytes:
        """The state."""
        return msgspec.msgpack.encode(self._state)

    @property
    def round(self) -> Round:
        """The round whose task it answers next."""
        return self._state.round

    @property
    def done(self) -> bool:
        """Whether it has answered its last task."""
        return self.round is Round.DONE

    def answer(self, task: messages.SumTask) -> messages.SumAnswer:
        """Answer in the form of the real protocol, without keys, shares or masks."""
        state = self._state
        kind = answers.ANSWERS[type(task)]
        state.round = NEXT[state.round]
        return kind(sum_id=task.sum_id, sender=state.index, **self._content(kind))

    def _content(self, kind: type[messages.SumAnswer]) -> dict[str, Any]:
        state = self._state
        if kind is messages.AdvertisedKeys:
            # The server checks that keys are usable and differ; nearly any 32 bytes are.
            return {
                f"{name}_key": hashlib.sha256(name.encode() + state.index.to_bytes(4)).digest()
                for name in ("cipher", "mask")
            }
        if kind is messages.SharedKeys:
            return {"ciphertexts": (), "commitment": _NOTHING}
        if kind is messages.MaskedInput:
            bits = state.parameters.modulus_bits
            words = np.frombuffer(state.words, dtype=masks.word_type(bits))
            return {"vector": encoding.pack(words, bits)}
        return {"shares": b""}


class _Server(msgspec.Struct):
    round: Round
    sum_id: bytes
    parameters: SumParameters
    expected: set[int]
    answered: set[int]
    total: bytes


class IdealAggregator:
    """An `Aggregator` of inputs that are not masked: nobody has neighbours, nothing is removed."""

    def __init__(self, sum_id: bytes, parameters: SumParameters, random: RandomBytes) -> None:
        word = masks.word_type(parameters.modulus_bits)
        self._total = np.zeros(parameters.length, dtype=word)
        phones = set(range(parameters.phones))
        self._state = _Server(Round.ADVERTISE_KEYS, sum_id, parameters, phones, set(), b"")

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """The aggregator that `save` wrote."""
        aggregator = cls.__new__(cls)
        aggregator._state = state = msgspec.msgpack.decode(saved, type=_Server)
        word = masks.word_type(state.parameters.modulus_bits)
        aggregator._total = np.frombuffer(state.total, dtype=word).copy()
        return aggregator

    def save(self) -> bytes:
        """The state as bytes."""
        self._state.total = self._total.tobytes()
        return msgspec.msgpack.encode(self._state)

    @property
    def parameters(self) -> SumParameters:
        """Of the sum."""
        return self._state.parameters

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""
        return self._state.round is Round.DONE

    def expected(self) -> Collection[int]:
        """The phones that have a task in the present round."""
        return self._state.expected

    def task_for(self, phone: int) -> messages.SumTask | None:
        """What the phone is to do in the present round; None if nothing, or if it is out."""
        state = self._state
        if phone not in state.expected - state.answered:
            return None
        tasks: dict[Round, messages.SumTask] = {
            Round.ADVERTISE_KEYS: messages.AdvertiseKeys(
                sum_id=state.sum_id, index=phone, parameters=state.parameters
            ),
            Round.SHARE_KEYS: messages.ShareKeys(
                sum_id=state.sum_id, neighbours=(), cipher_keys=b"", mask_keys=b""
            ),
            Round.MASKED_INPUT: messages.MaskInput(sum_id=state.sum_id, senders=(), ciphertexts=()),
            Round.UNMASK: messages.Unmask(sum_id=state.sum_id, survivors=(), dropped=()),
        }
        return tasks.get(state.round)

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer."""
        state = self._state
        answers.check_address(phone, answer, state.sum_id)
        if phone not in state.expected:
            raise UnexpectedMessageError(f"phone {phone} is not in this sum, or no longer")
        if phone in state.answered:
            raise RepeatedMessageError(f"phone {phone} has answered this round")
        if isinstance(answer, messages.MaskedInput):
            self._total += encoding.unpack(answer.vector, state.parameters)
        state.answered.add(phone)

    def advance(self) -> None:
        """Close the present round and begin the next."""
        state = self._state
        answers.check_attendance(len(state.answered), state.round, state.parameters)
        state.round = NEXT[state.round]
        state.expected, state.answered = state.answered, set()

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """The sum of the inputs that arrived, in the sum's shape."""
        return encoding.decode(self._total, self._state.parameters)


IDEAL = Summation(BELL.rounds, IdealParticipant, IdealAggregator, BELL.check)
