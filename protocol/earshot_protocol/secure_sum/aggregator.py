"""The server's side of one secure sum: collects a round's answers, closes it, begins the next.

    advertise keys ──▸ share keys ──▸ masked input ──▸ unmask ──▸ done
          └──────────────┴────────────────┴──────────────┴──▸ failed

`_ROUNDS` says of each round whom it asks, for what, and what becomes of the answers. `accept` takes
one answer and changes nothing if it raises; `advance` closes the round. No I/O and no clock: the
caller decides when a round has waited long enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import (
    EarshotError,
    InvalidInputError,
    MalformedMessageError,
    RepeatedMessageError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import answers, encoding, masks, messages
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import points
from earshot_protocol.secure_sum.rounds import FORMER_SUM, NEXT, VERSION, Round
from earshot_protocol.secure_sum.unmasking import Unmasking, split
from earshot_protocol.wire import Answer


class Shared(msgspec.Struct, array_like=True, frozen=True):
    """What a phone sent in round 1, see `messages.SharedKeys`."""

    ciphertexts: tuple[bytes, ...]
    masks: bytes
    commitment: bytes


class _State(msgspec.Struct):
    """All that an aggregator remembers between rounds."""

    round: Round
    sum_id: bytes
    parameters: SumParameters
    graph: bytes
    total: bytes
    public_keys: dict[int, bytes] = msgspec.field(default_factory=dict)
    """Phone → its key: who advertised."""
    shares: dict[int, Shared] = msgspec.field(default_factory=dict)
    """Phone → what it sealed, and its commitment: A1."""
    masked: set[int] = msgspec.field(default_factory=set)
    """Phones whose input arrived: A2."""
    revealed: dict[int, bytes] = msgspec.field(default_factory=dict)
    """Phone → the shares that it revealed."""
    salt: bytes = b""
    """Of the sum's keys."""
    version: int = 0
    """Of the protocol; none where a former one began the sum."""


class Aggregator:
    """One secure sum of `parameters.phones` phones (Bell et al. 2020, Algorithm 2).

    Args:
        sum_id: 16 bytes that no other sum has.
        parameters: of the sum.
        random: draws the graph; not a secret from the server.
        told: what all phones are told of what the sum is about, see `Participant`.

    Raises:
        InvalidParametersError: parameters that no sum should run under.
    """

    def __init__(
        self,
        sum_id: bytes,
        parameters: SumParameters,
        random: RandomBytes = os.urandom,
        told: bytes = b"",
    ) -> None:
        parameters.check()
        self._graph = Graph.draw(parameters, random)
        self._neighbours: dict[int, tuple[int, ...]] = {}
        self._senders: dict[int, tuple[int, ...]] = {}
        self._ciphertexts: dict[int, tuple[bytes, ...]] = {}
        self._total = np.zeros(parameters.length, dtype=masks.word_type(parameters.modulus_bits))
        self._advertised: set[int] = set()
        self._state = _State(
            round=Round.ADVERTISE_KEYS,
            sum_id=sum_id,
            parameters=parameters,
            graph=self._graph.to_bytes(),
            total=b"",
            version=VERSION,
        )
        self._state.salt = masks.salt(self._advertise_keys(0), told)

    # ------------------------------------------------------------------------------ state

    @property
    def round(self) -> Round:
        """Where the sum stands."""
        return self._state.round

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""
        return self._state.round is Round.DONE

    @property
    def sum_id(self) -> bytes:
        """Of this sum."""
        return self._state.sum_id

    @property
    def parameters(self) -> SumParameters:
        """Of this sum."""
        return self._state.parameters

    def save(self) -> bytes:
        """The state as bytes."""
        self._state.total = self._total.tobytes()
        return msgspec.msgpack.encode(self._state)

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """The aggregator that `save` wrote.

        Raises:
            InvalidInputError: the bytes are not a saved aggregator.
        """
        aggregator = cls.__new__(cls)
        try:
            state = msgspec.msgpack.decode(saved, type=_State)
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"not a saved aggregator: {error}") from error
        word = masks.word_type(state.parameters.modulus_bits)
        aggregator._state = state
        aggregator._graph = Graph.from_bytes(state.graph, state.parameters)
        aggregator._total = np.frombuffer(state.total, dtype=word).copy()
        aggregator._advertised = points(state.public_keys.values())
        aggregator._index()
        return aggregator

    def check_version(self) -> None:
        """Refuse to go on with a sum that a former version of the protocol began.

        Raises:
            UnexpectedMessageError: it did.
        """
        if self._state.version != VERSION:
            raise UnexpectedMessageError(FORMER_SUM)

    def expected(self) -> Collection[int]:
        """The phones that have a task in the present round."""
        row = _ROUNDS.get(self._state.round)
        return row.expected(self._state) if row else ()

    def answered(self) -> Collection[int]:
        """The phones whose answer of the present round is in."""
        row = _ROUNDS.get(self._state.round)
        return row.answered(self._state) if row else ()

    def survivors(self) -> set[int]:
        """A2: the phones whose input is in the sum."""
        return set(self._state.masked)

    def _index(self) -> None:
        """Rebuild what follows from the state: who has which neighbours, and whose mail."""
        state = self._state
        self._neighbours, self._senders, self._ciphertexts = {}, {}, {}
        if state.round is Round.ADVERTISE_KEYS:
            return
        for phone in sorted(state.public_keys):
            around = self._graph.neighbours(phone)
            present = tuple(other for other in around if other in state.public_keys)
            self._neighbours[phone] = present
        if state.round is Round.SHARE_KEYS:
            return
        self._senders = {
            phone: tuple(other for other in self._neighbours[phone] if other in state.shares)
            for phone in state.shares
        }
        if state.round is Round.MASKED_INPUT:  # after it, ciphertexts are delivered and gone
            mail: dict[int, list[bytes]] = {phone: [] for phone in state.shares}
            for sender in sorted(state.shares):  # so that mail is in the order of the senders
                for other, ciphertext in zip(
                    self._neighbours[sender], state.shares[sender].ciphertexts, strict=True
                ):
                    if other in mail:
                        mail[other].append(ciphertext)
            self._ciphertexts = {phone: tuple(sealed) for phone, sealed in mail.items()}

    # ------------------------------------------------------------------------------ tasks

    def task_for(self, phone: int) -> messages.SumTask | None:
        """What the phone is to do in the present round; None if nothing, or if it is out."""
        row = _ROUNDS.get(self._state.round)
        if row is None or phone not in self.expected() or phone in self.answered():
            return None
        return row.task(self, phone)

    def _advertise_keys(self, phone: int) -> messages.AdvertiseKeys:
        return messages.AdvertiseKeys(sum_id=self.sum_id, index=phone, parameters=self.parameters)

    def _share_keys(self, phone: int) -> messages.ShareKeys:
        neighbours, keys = self._neighbours[phone], self._state.public_keys
        return messages.ShareKeys(
            sum_id=self.sum_id,
            neighbours=neighbours,
            public_keys=b"".join(keys[other] for other in neighbours),
        )

    def _mask_input(self, phone: int) -> messages.MaskInput:
        return messages.MaskInput(
            sum_id=self.sum_id,
            senders=self._senders[phone],
            ciphertexts=self._ciphertexts[phone],
        )

    def _unmask(self, phone: int) -> messages.Unmask:
        survivors, dropped = split(self._senders[phone], self._state.masked)
        return messages.Unmask(sum_id=self.sum_id, survivors=survivors, dropped=dropped)

    # ---------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer.

        Args:
            phone: who sent it, as authenticated by the caller.
            answer: the answer.

        Raises:
            UnexpectedMessageError: of another sum, round or sender, or from a phone that is out.
            RepeatedMessageError: the phone has answered this round.
            MalformedMessageError: sizes or fields that contradict the sum.
        """
        answers.check_address(phone, answer, self.sum_id)
        row = _ROUNDS.get(self._state.round)
        if row is None or not isinstance(answer, row.answer):
            belongs = next(name for name, row in _ROUNDS.items() if isinstance(answer, row.answer))
            raise UnexpectedMessageError(
                f"phone {phone}: {type(answer).__name__} belongs to the round '{belongs}', the sum "
                f"is at '{self._state.round}'"
            )
        if phone not in self.expected():
            raise UnexpectedMessageError(f"phone {phone} is not in this sum, or no longer")
        if phone in self.answered():
            raise RepeatedMessageError(f"phone {phone} has answered this round")
        row.take(self, phone, answer)

    def _take_keys(self, phone: int, answer: messages.AdvertisedKeys) -> None:
        answers.check_keys(phone, answer)
        # A key that stands twice would make honest phones refuse their neighbourhood.
        advertised = points((answer.public_key,))
        if not self._advertised.isdisjoint(advertised):
            raise MalformedMessageError(f"phone {phone}: another phone has advertised this key")
        self._state.public_keys[phone] = answer.public_key
        self._advertised |= advertised

    def _take_shares(self, phone: int, answer: messages.SharedKeys) -> None:
        answers.check_ciphertexts(phone, answer, len(self._neighbours[phone]))
        self._state.shares[phone] = Shared(answer.ciphertexts, answer.masks, answer.commitment)

    def _take_input(self, phone: int, answer: messages.MaskedInput) -> None:
        self._total += encoding.unpack(answer.vector, self.parameters)
        self._state.masked.add(phone)

    def _take_revealed(self, phone: int, answer: messages.Unmasked) -> None:
        answers.check_shares(phone, answer, len(self._senders[phone]))
        self._state.revealed[phone] = answer.shares

    # ----------------------------------------------------------------------------- rounds

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            TooManyDropoutsError: fewer than (1 − ρ)n phones answered; the sum has failed and
                nothing was opened.
            UnrecoverableSecretError: the revealed shares do not determine a mask that must be
                removed; the sum has failed and nothing was opened.
            UnexpectedMessageError: a former version of the protocol began the sum; it has failed.
            WrongStateError: the sum is over.
        """
        state = self._state
        if state.round not in NEXT:
            raise WrongStateError(f"this sum is {state.round}")
        try:
            self.check_version()
            answers.check_attendance(len(self.answered()), state.round, state.parameters)
            if state.round is Round.UNMASK:
                self._total -= self._unmasking().masks()
        except EarshotError:
            state.round = Round.FAILED
            self._forget()
            raise
        state.round = NEXT[state.round]
        if state.round is Round.UNMASK:
            # Ciphertexts are delivered; of phones whose input is in, nobody opens the list.
            state.shares = {
                phone: Shared((), b"" if phone in state.masked else each.masks, each.commitment)
                for phone, each in state.shares.items()
            }
        if state.round is Round.DONE:
            self._forget()
        else:
            self._index()

    def _unmasking(self) -> Unmasking:
        state = self._state
        return Unmasking(
            salt=state.salt,
            parameters=state.parameters,
            lists={phone: each.masks for phone, each in state.shares.items()},
            commitments={phone: each.commitment for phone, each in state.shares.items()},
            neighbours=self._neighbours,
            senders=self._senders,
            survivors=state.masked,
            revealed=state.revealed,
        )

    def _forget(self) -> None:
        """Drop what could open more than the sum."""
        self._state.shares, self._state.revealed = {}, {}
        self._neighbours, self._senders, self._ciphertexts = {}, {}, {}
        if self._state.round is Round.FAILED:
            self._total[:] = 0

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """The sum of the inputs of A2, in the sum's shape.

        Raises:
            WrongStateError: the sum is not done.
        """
        if not self.done:
            raise WrongStateError(f"no result: this sum is at '{self._state.round}'")
        return encoding.decode(self._total, self._state.parameters)


@dataclass(frozen=True)
class _Row:
    """One round: which phones have a task and which have answered, the task, and the answer."""

    expected: Callable[[_State], Collection[int]]
    answered: Callable[[_State], Collection[int]]
    task: Callable[[Aggregator, int], messages.SumTask]
    answer: type[messages.SumAnswer]
    take: Callable[[Aggregator, int, Any], None]


_ROUNDS = {
    Round.ADVERTISE_KEYS: _Row(
        expected=lambda state: range(state.parameters.phones),
        answered=lambda state: state.public_keys.keys(),
        task=Aggregator._advertise_keys,
        answer=messages.AdvertisedKeys,
        take=Aggregator._take_keys,
    ),
    Round.SHARE_KEYS: _Row(
        expected=lambda state: state.public_keys.keys(),
        answered=lambda state: state.shares.keys(),
        task=Aggregator._share_keys,
        answer=messages.SharedKeys,
        take=Aggregator._take_shares,
    ),
    Round.MASKED_INPUT: _Row(
        expected=lambda state: state.shares.keys(),
        answered=lambda state: state.masked,
        task=Aggregator._mask_input,
        answer=messages.MaskedInput,
        take=Aggregator._take_input,
    ),
    Round.UNMASK: _Row(
        expected=lambda state: state.masked,
        answered=lambda state: state.revealed.keys(),
        task=Aggregator._unmask,
        answer=messages.Unmasked,
        take=Aggregator._take_revealed,
    ),
}
