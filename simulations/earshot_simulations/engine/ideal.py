"""A summation without cryptography: same rounds, same messages, same result, no privacy.

`--summation ideal` uses it instead of that of Bell et al. Inputs are sent in the clear; dropouts
and sums are exactly as in the real protocol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RepeatedMessageError, UnexpectedMessageError
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import answers, encoding, masks, messages
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Saved
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.rounds import NEXT, Round
from earshot_protocol.wire import Answer


@dataclass(init=False)
class IdealParticipant:
    """A `Participant` that sends its input in the clear."""

    index: int
    vector: bytes
    round: Round

    def __init__(
        self, task: messages.AdvertiseKeys, values: npt.ArrayLike, told: bytes = b""
    ) -> None:
        words = encoding.encode(values, task.parameters)
        self.index, self.round = task.index, Round.ADVERTISE_KEYS
        self.vector = encoding.pack(words, task.parameters.modulus_bits)

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """Return the participant that `save` wrote."""
        return msgspec.msgpack.decode(saved, type=cls)

    def save(self) -> bytes:
        """Return the state."""
        return msgspec.msgpack.encode(self)

    @property
    def done(self) -> bool:
        """Whether it has answered its last task."""
        return self.round is Round.DONE

    def answer(self, task: messages.SumTask) -> messages.SumAnswer:
        """Answer in the form of the real protocol, without keys, shares or masks."""
        kind = answers.ANSWERS[type(task)]
        self.round = NEXT[self.round]
        content: dict[type[messages.SumAnswer], dict[str, Any]] = {
            messages.AdvertisedKeys: {"public_key": self._key()},
            messages.SharedKeys: {
                "ciphertexts": (),
                "masks": bytes(messages.TAG_BYTES),
                "commitment": bytes(32),
            },
            messages.MaskedInput: {"vector": self.vector},
            messages.Unmasked: {"shares": b"", "traces": b""},
        }
        return kind(sum_id=task.sum_id, sender=self.index, **content[kind])

    def _key(self) -> bytes:
        """Return 32 bytes that differ between phones.

        The server checks that keys are valid and distinct; nearly any 32 bytes are valid.
        """
        return hashlib.sha256(self.index.to_bytes(4)).digest()


@dataclass(init=False)
class IdealAggregator:
    """An `Aggregator` of unmasked inputs: phones have no neighbours, and no masks are removed."""

    sum_id: bytes
    parameters: SumParameters
    round: Round
    remaining: set[int]
    answered: set[int]
    total: bytes

    def __init__(
        self, sum_id: bytes, parameters: SumParameters, random: RandomBytes, told: bytes = b""
    ) -> None:
        self.sum_id, self.parameters, self.round = sum_id, parameters, Round.ADVERTISE_KEYS
        self.remaining, self.answered = set(range(parameters.phones)), set()
        self.total = np.zeros(parameters.length, masks.word_type(parameters.modulus_bits)).tobytes()

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """Return the aggregator that `save` wrote."""
        return msgspec.msgpack.decode(saved, type=cls)

    def save(self, behind: bytes = b"") -> bytes:
        """Return the state as one MessagePack object, appended to the given bytes."""
        return behind + msgspec.msgpack.encode(self)

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""
        return self.round is Round.DONE

    def deadline(self, now: float, step_seconds: float) -> float:
        """Return the end of the present round."""
        return now + step_seconds

    def expected(self) -> Collection[int]:
        """Return the phones that have a task in the present round."""
        return self.remaining

    def tasks(self) -> Iterator[tuple[int, messages.SumTask]]:
        """Yield all unanswered tasks of the present round, by ascending number of the phone."""
        for phone in sorted(self.remaining - self.answered):
            task = self.task_for(phone)
            if task is not None:
                yield phone, task

    def task_for(self, phone: int) -> messages.SumTask | None:
        """Return a phone's task in the present round, or None if it has none."""
        if phone not in self.remaining or phone in self.answered:
            return None
        own = self.sum_id
        tasks: dict[Round, messages.SumTask] = {
            Round.ADVERTISE_KEYS: messages.AdvertiseKeys(
                sum_id=own, index=phone, parameters=self.parameters
            ),
            Round.SHARE_KEYS: messages.ShareKeys(sum_id=own, neighbours=(), public_keys=b""),
            Round.MASKED_INPUT: messages.MaskInput(sum_id=own, senders=(), ciphertexts=()),
            Round.UNMASK: messages.Unmask(sum_id=own, survivors=(), dropped=()),
        }
        return tasks.get(self.round)

    def recall(self, task: messages.SumTask) -> None:
        """Do nothing: this sum has no helper."""

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer.

        Raises:
            RemoteError: The answer does not fit; nothing has changed.
        """
        answers.check_address(phone, answer, self.sum_id)
        if phone not in self.remaining:
            raise UnexpectedMessageError(f"phone {phone} is not in this sum, or no longer")
        if phone in self.answered:
            raise RepeatedMessageError(f"phone {phone} has already answered this round")
        if isinstance(answer, messages.MaskedInput):
            words = encoding.unpack(answer.vector, self.parameters)
            self.total = (self._words() + words).tobytes()
        self.answered.add(phone)

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            RemoteError: Too few phones have answered.
        """
        answers.check_attendance(len(self.answered), self.round, self.parameters)
        self.round = NEXT[self.round]
        self.remaining, self.answered = self.answered, set()

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """Return the sum of the inputs that arrived, in the sum's shape."""
        return encoding.decode(self._words(), self.parameters)

    def _words(self) -> npt.NDArray[Any]:
        return np.frombuffer(self.total, masks.word_type(self.parameters.modulus_bits))


IDEAL = replace(BELL, participant=IdealParticipant, aggregator=IdealAggregator)
