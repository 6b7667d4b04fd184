"""The server's side of one secure sum: collects a round's answers, closes it, opens the next.

    advertise keys ──▸ share keys ──▸ masked input ──▸ unmask ──▸ done
          └──────────────┴────────────────┴──────────────┴──▸ failed

`accept` takes one answer and changes nothing if it raises; `advance` closes the round. No I/O and
no clock: the caller decides when a round has waited long enough.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.errors import (
    EarshotError,
    InvalidInputError,
    MalformedMessageError,
    RepeatedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.messages import (
    REVEALED_SHARE_BYTES,
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
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import answers, encoding, masks
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError, recover_checked
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.parameters import SumParameters


class Round(enum.StrEnum):
    """Where a sum stands."""

    ADVERTISE_KEYS = "advertise keys"
    SHARE_KEYS = "share keys"
    MASKED_INPUT = "masked input"
    UNMASK = "unmask"
    DONE = "done"
    FAILED = "failed"


_NEXT = dict(zip(tuple(Round)[:4], tuple(Round)[1:5], strict=True))


class _State(msgspec.Struct):
    """All that an aggregator remembers between rounds."""

    round: Round
    sum_id: bytes
    parameters: SumParameters
    graph: bytes
    total: bytes
    keys: dict[int, tuple[bytes, bytes]]
    """Phone → cipher key, mask key: who advertised."""
    shared: dict[int, tuple[tuple[bytes, ...], bytes]]
    """Phone → its ciphertexts, until they are delivered, and its commitment: A1."""
    masked: set[int]
    """Phones whose input arrived: A2."""
    revealed: dict[int, bytes]
    """Phone → the shares that it revealed."""


class Aggregator:
    """One secure sum of `parameters.phones` phones (Bell et al. 2020, Algorithm 2).

    Args:
        sum_id: 16 bytes that no other sum has.
        parameters: of the sum.
        random: draws the graph; not a secret from the server.

    Raises:
        InvalidParametersError: parameters that no sum should run under.
    """

    def __init__(
        self, sum_id: bytes, parameters: SumParameters, random: RandomBytes = os.urandom
    ) -> None:
        parameters.check()
        self._graph = Graph.draw(parameters, random)
        self._present: dict[int, tuple[int, ...]] = {}
        self._mailboxes: dict[int, tuple[list[int], list[bytes]]] = {}
        self._total = np.zeros(parameters.length, dtype=masks.word_type(parameters.modulus_bits))
        self._seen: set[bytes] = set()
        self._state = _State(
            Round.ADVERTISE_KEYS, sum_id, parameters, self._graph.to_bytes(), b"", {}, {}, set(), {}
        )

    # ------------------------------------------------------------------------------ state

    @property
    def round(self) -> Round:
        """Where the sum stands."""
        return self._state.round

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
        aggregator._seen = {key for pair in state.keys.values() for key in pair}
        aggregator._index()
        return aggregator

    def expected(self) -> set[int]:
        """The phones that have a task in the present round."""
        state = self._state
        if state.round is Round.ADVERTISE_KEYS:
            return set(range(state.parameters.phones))
        if state.round is Round.SHARE_KEYS:
            return set(state.keys)
        if state.round is Round.MASKED_INPUT:
            return set(state.shared)
        return set(state.masked) if state.round is Round.UNMASK else set()

    def answered(self) -> set[int]:
        """The phones whose answer of the present round is in."""
        state = self._state
        if state.round is Round.ADVERTISE_KEYS:
            return set(state.keys)
        if state.round is Round.SHARE_KEYS:
            return set(state.shared)
        if state.round is Round.MASKED_INPUT:
            return set(state.masked)
        return set(state.revealed) if state.round is Round.UNMASK else set()

    # ------------------------------------------------------------------------------ tasks

    def task_for(self, phone: int) -> SumTask | None:
        """What the phone is to do in the present round; None if nothing, or if it is out."""
        state = self._state
        if state.round is Round.ADVERTISE_KEYS:
            if phone in state.keys or not 0 <= phone < state.parameters.phones:
                return None
            return AdvertiseKeys(sum_id=state.sum_id, index=phone, parameters=state.parameters)
        if state.round is Round.SHARE_KEYS and phone in state.keys and phone not in state.shared:
            neighbours = self._present[phone]
            return ShareKeys(
                sum_id=state.sum_id,
                neighbours=neighbours,
                cipher_keys=b"".join(state.keys[them][0] for them in neighbours),
                mask_keys=b"".join(state.keys[them][1] for them in neighbours),
            )
        if state.round is Round.MASKED_INPUT and phone in state.shared:
            if phone in state.masked:
                return None
            senders, ciphertexts = self._mailboxes[phone]
            return MaskInput(
                sum_id=state.sum_id, senders=tuple(senders), ciphertexts=tuple(ciphertexts)
            )
        if state.round is Round.UNMASK and phone in state.masked and phone not in state.revealed:
            survivors, dropped = self._survivors_and_dropped(phone)
            return Unmask(sum_id=state.sum_id, survivors=survivors, dropped=dropped)
        return None

    def _survivors_and_dropped(self, phone: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        alive, masked = self._mailboxes[phone][0], self._state.masked
        return (
            tuple(them for them in alive if them in masked),
            tuple(them for them in alive if them not in masked),
        )

    def _index(self) -> None:
        """Rebuild what follows from the state: present neighbours, and mail for each phone."""
        state = self._state
        self._present, self._mailboxes = {}, {}
        if state.round is Round.ADVERTISE_KEYS:
            return
        for phone in sorted(state.keys):
            neighbours = self._graph.neighbours(phone)
            self._present[phone] = tuple(them for them in neighbours if them in state.keys)
        if state.round is Round.SHARE_KEYS:
            return
        self._mailboxes = {phone: ([], []) for phone in state.shared}
        if state.round is Round.UNMASK:  # the ciphertexts are delivered, only who sent them counts
            for phone, (senders, _) in self._mailboxes.items():
                senders.extend(them for them in self._present[phone] if them in state.shared)
            return
        for sender in sorted(state.shared):  # so that every mailbox is in ascending order
            ciphertexts = state.shared[sender][0]
            for recipient, ciphertext in zip(self._present[sender], ciphertexts, strict=True):
                mailbox = self._mailboxes.get(recipient)
                if mailbox is not None:
                    mailbox[0].append(sender)
                    mailbox[1].append(ciphertext)

    # ---------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: SumAnswer) -> None:
        """Take one phone's answer.

        Args:
            phone: who sent it, as authenticated by the caller.
            answer: the answer.

        Raises:
            UnexpectedMessageError: of another sum, round or sender, or from a phone that is out.
            RepeatedMessageError: the phone has answered this round.
            MalformedMessageError: sizes or fields that contradict the sum.
        """
        state = self._state
        answers.check_address(phone, answer, state.sum_id)
        expected_round, take = _ANSWERS[type(answer)]
        if state.round is not expected_round:
            raise UnexpectedMessageError(
                f"phone {phone}: {type(answer).__name__} belongs to the round "
                f"'{expected_round}', the sum is at '{state.round}'"
            )
        take(self, phone, answer)

    def _take_keys(self, phone: int, answer: AdvertisedKeys) -> None:
        state = self._state
        if phone >= state.parameters.phones:
            raise UnexpectedMessageError(f"phone {phone} is not in this sum")
        self._once(phone, state.keys)
        answers.check_keys(phone, answer)
        # A key that stands twice would make honest phones refuse their neighbourhood.
        if answer.cipher_key in self._seen or answer.mask_key in self._seen:
            raise MalformedMessageError(f"phone {phone}: another phone has advertised this key")
        state.keys[phone] = (answer.cipher_key, answer.mask_key)
        self._seen |= {answer.cipher_key, answer.mask_key}

    def _take_shares(self, phone: int, answer: SharedKeys) -> None:
        state = self._state
        self._invited(phone, state.keys)
        self._once(phone, state.shared)
        answers.check_ciphertexts(phone, answer, len(self._present[phone]))
        state.shared[phone] = (answer.ciphertexts, answer.commitment)

    def _take_input(self, phone: int, answer: MaskedInput) -> None:
        state = self._state
        self._invited(phone, state.shared)
        self._once(phone, state.masked)
        words = encoding.unpack(answer.vector, state.parameters)
        self._total += words
        state.masked.add(phone)

    def _take_revealed(self, phone: int, answer: Unmasked) -> None:
        state = self._state
        self._invited(phone, state.masked)
        self._once(phone, state.revealed)
        answers.check_shares(phone, answer, len(self._mailboxes[phone][0]))
        state.revealed[phone] = answer.shares

    @staticmethod
    def _invited(phone: int, invited: Any) -> None:
        if phone not in invited:
            raise UnexpectedMessageError(f"phone {phone} is no longer in this sum")

    @staticmethod
    def _once(phone: int, answered: Any) -> None:
        if phone in answered:
            raise RepeatedMessageError(f"phone {phone} has answered this round")

    # ----------------------------------------------------------------------------- rounds

    def advance(self) -> Round:
        """Close the present round and open the next.

        Returns:
            The round that the sum is in now.

        Raises:
            TooManyDropoutsError: fewer than (1 − ρ)n phones answered; the sum has failed and
                nothing was opened.
            UnrecoverableSecretError: the revealed shares do not determine a mask that must be
                removed; the sum has failed and nothing was opened.
            WrongStateError: the sum is over.
        """
        state = self._state
        if state.round not in _NEXT:
            raise WrongStateError(f"this sum is {state.round}")
        try:
            present = len(self.answered())
            least = state.parameters.least_survivors
            if present < least:
                raise TooManyDropoutsError(
                    f"{present} of {state.parameters.phones} phones answered the round "
                    f"'{state.round}'; at least {least} are needed"
                )
            if state.round is Round.UNMASK:
                self._total -= self._masks()
        except EarshotError:
            state.round = Round.FAILED
            self._forget()
            raise
        state.round = _NEXT[state.round]
        if state.round is Round.UNMASK:
            state.shared = {phone: ((), sealed[1]) for phone, sealed in state.shared.items()}
        if state.round is Round.DONE:
            self._forget()
        else:
            self._index()
        return state.round

    def _forget(self) -> None:
        """Drop what could open more than the sum."""
        state = self._state
        state.shared, state.revealed, self._mailboxes, self._present = {}, {}, {}, {}
        if state.round is Round.FAILED:
            self._total[:] = 0

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """The sum of the inputs of A2, in the sum's shape.

        Raises:
            WrongStateError: the sum is not done.
        """
        if self._state.round is not Round.DONE:
            raise WrongStateError(f"no result: this sum is at '{self._state.round}'")
        return encoding.decode(self._total, self._state.parameters)

    def survivors(self) -> set[int]:
        """A2: the phones whose input is in the sum."""
        return set(self._state.masked)

    # -------------------------------------------------------------------------- unmasking

    def _masks(self) -> masks.Words:
        """All masks that the total still carries; every secret is rebuilt before any is used."""
        state = self._state
        parameters = state.parameters
        word = masks.word_type(parameters.modulus_bits)
        shares = self._collect_shares()
        added = [self._seed(phone, shares.get(phone, {})) for phone in sorted(state.masked)]
        removed: list[bytes] = []
        for phone in sorted(state.shared.keys() - state.masked):
            neighbours = [them for them in self._mailboxes[phone][0] if them in state.masked]
            if not neighbours:
                continue
            private = self._mask_key(phone, shares.get(phone, {}))
            for them in neighbours:
                key = state.keys[them][1]
                seed = masks.agree(private, key, masks.MASK, state.sum_id, phone, them)
                (added if phone > them else removed).append(seed)
        total = masks.expand_sum(added, parameters.length, word)
        total -= masks.expand_sum(removed, parameters.length, word)
        return total

    def _collect_shares(self) -> dict[int, dict[int, int]]:
        """Owner → share index → share, from what was revealed.

        A share whose index is not its holder's place among the owner's neighbours is left out.
        """
        size = REVEALED_SHARE_BYTES
        places = {
            owner: {holder: i for i, holder in enumerate(self._present[owner], 1)}
            for owner in self._state.shared
        }
        collected: dict[int, dict[int, int]] = {owner: {} for owner in self._state.shared}
        for holder, revealed in self._state.revealed.items():
            survivors, dropped = self._survivors_and_dropped(holder)
            for at, owner in zip(range(0, len(revealed), size), survivors + dropped, strict=True):
                index = revealed[at]
                if index == places[owner][holder]:
                    collected[owner][index] = int.from_bytes(revealed[at + 1 : at + size])
        return collected

    def _seed(self, phone: int, shares: dict[int, int]) -> bytes:
        sum_id, committed = self._state.sum_id, self._state.shared[phone][1]

        def matches(seed: bytes) -> bool:
            return masks.commitment(seed, sum_id, phone) == committed

        return self._rebuild("seed", phone, shares, matches)

    def _mask_key(self, phone: int, shares: dict[int, int]) -> X25519PrivateKey:
        advertised = self._state.keys[phone][1]

        def matches(private: bytes) -> bool:
            public = X25519PrivateKey.from_private_bytes(private).public_key()
            return public.public_bytes_raw() == advertised

        return X25519PrivateKey.from_private_bytes(
            self._rebuild("mask key", phone, shares, matches)
        )

    def _rebuild(
        self, what: str, phone: int, shares: dict[int, int], is_right: Callable[[bytes], bool]
    ) -> bytes:
        count = len(self._present[phone])
        try:
            return recover_checked(shares, self._state.parameters.threshold, count, is_right)
        except UnrecoverableSecretError as error:
            raise UnrecoverableSecretError(f"{what} of phone {phone}: {error}") from error


_ANSWERS: dict[type, tuple[Round, Callable[[Aggregator, int, Any], None]]] = {
    AdvertisedKeys: (Round.ADVERTISE_KEYS, Aggregator._take_keys),
    SharedKeys: (Round.SHARE_KEYS, Aggregator._take_shares),
    MaskedInput: (Round.MASKED_INPUT, Aggregator._take_input),
    Unmasked: (Round.UNMASK, Aggregator._take_revealed),
}
"""Answer → the round that takes it, and how."""
