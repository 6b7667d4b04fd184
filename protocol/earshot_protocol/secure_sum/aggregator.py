"""The server's side of one secure sum: collects a round's answers, closes it, begins the next.

    advertise keys ──▸ share keys ──▸ masked input ──▸ unmask ──▸ done
          └──────────────┴────────────────┴──────────────┴──▸ failed

`_ROUNDS` states for each round the phones with a task, the task, and how answers are accepted.
`accept` takes one answer and changes nothing if it raises; `advance` closes the round. No I/O and
no clock: the caller decides when a round has waited long enough.

Only the parts of an answer that later rounds need are kept. Large parts, ciphertexts and masked
vectors, are processed by the mebibyte, and tasks are made for many phones at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
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
from earshot_protocol.secure_sum import answers, encoding, masks, messages, tasks
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.interface import Saved
from earshot_protocol.secure_sum.mail import Mail
from earshot_protocol.secure_sum.neighbourhoods import Neighbourhoods
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import points
from earshot_protocol.secure_sum.rounds import NEXT, Round
from earshot_protocol.secure_sum.state import Crowd, Revealed, Sealed, State, marked
from earshot_protocol.secure_sum.unmasking import Unmasking
from earshot_protocol.wire import Answer

_encoder = msgspec.msgpack.Encoder()
_BATCH_BYTES = 2**20
"""Bytes of queued answers that are processed together."""


class Aggregator:
    """One secure sum of `parameters.phones` phones (Bell et al. 2020, Algorithm 2).

    Args:
        sum_id: 16 bytes that no other sum has.
        parameters: Parameters of the sum.
        random: Source of bytes that draws the graph; not a secret from the server.
        told: Description of the sum that all phones receive, see `Participant`.

    Raises:
        InvalidParametersError: No sum should run under the parameters.
    """

    def __init__(
        self,
        sum_id: bytes,
        parameters: SumParameters,
        random: RandomBytes = os.urandom,
        told: bytes = b"",
    ) -> None:
        parameters.check()
        word = masks.word_type(parameters.modulus_bits)
        graph = Graph.draw(parameters, random)
        opening = messages.AdvertiseKeys(sum_id=sum_id, index=0, parameters=parameters)
        state = State(
            round=Round.ADVERTISE_KEYS,
            sum_id=sum_id,
            parameters=parameters,
            graph=graph.to_bytes(),
            total=bytes(parameters.length * word.itemsize),
            salt=masks.salt(opening, told),
        )
        self._begin(state, graph)

    def _begin(self, state: State, graph: Graph) -> None:
        word = masks.word_type(state.parameters.modulus_bits)
        self._state = state
        self._graph = graph
        self._neighbourhoods = Neighbourhoods(graph)
        self._total = np.frombuffer(state.total, dtype=word).copy()
        self._points: set[int] = set()
        if state.round is Round.ADVERTISE_KEYS:
            self._points = points(state.public_keys.values())
        self._mail: Mail | None = None
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._present_crowd: Crowd | None = None
        if state.mail:
            self._mail = Mail(self._neighbourhoods, state.mail)
            state.mail = []

    # ------------------------------------------------------------------------------ state

    @property
    def round(self) -> Round:
        """Present round of the sum."""
        return self._state.round

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""
        return self._state.round is Round.DONE

    @property
    def sum_id(self) -> bytes:
        """Identifier of the sum."""
        return self._state.sum_id

    @property
    def parameters(self) -> SumParameters:
        """Parameters of the sum."""
        return self._state.parameters

    def save(self, behind: bytes = b"") -> bytearray:
        """Append the state to `behind`, with ciphertexts unless `tasks` has handed them over."""
        self._work_in()
        state, mail = self._state, self._mail
        state.total = self._total.tobytes()
        state.mail = list(mail.save()) if mail else []
        saved = bytearray(behind)
        _encoder.encode_into(state, saved, len(behind))
        state.mail = []
        return saved

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """Return the aggregator that `save` wrote.

        Raises:
            InvalidInputError: The bytes are not a saved aggregator.
        """
        aggregator = cls.__new__(cls)
        try:
            state = msgspec.msgpack.decode(saved, type=State)
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"not a saved aggregator: {error}") from error
        aggregator._begin(state, Graph.from_bytes(state.graph, state.parameters))
        return aggregator

    def deadline(self, now: float, step_seconds: float) -> float:
        """Return the end of the present round: phones always have the same time."""
        return now + step_seconds

    def expected(self) -> Collection[int]:
        """Return the phones that have a task in the present round."""
        row = _ROUNDS.get(self._state.round)
        return row.expected(self._state) if row else ()

    def answered(self) -> Collection[int]:
        """Return the phones whose answer of the present round has arrived."""
        row = _ROUNDS.get(self._state.round)
        return row.answered(self._state) if row else ()

    def survivors(self) -> set[int]:
        """Return A2: the phones whose input is in the sum."""
        return set(self._state.masked)

    @property
    def _crowd(self) -> Crowd:
        if self._present_crowd is None:
            self._present_crowd = Crowd(self._state, self._neighbourhoods)
        return self._present_crowd

    # ------------------------------------------------------------------------------ tasks

    def tasks(self) -> Iterator[tuple[int, messages.SumTask]]:
        """Return all tasks of the present round, by ascending number of the phone.

        They are made on demand. Once this has been called, only the caller has the ciphertexts in
        them: `save` leaves them out, and `task_for` raises where it needs them.
        """
        row = _ROUNDS.get(self._state.round)
        if row is None:
            return iter(())
        asked = marked(self.expected(), self.parameters)
        asked &= ~marked(self.answered(), self.parameters)
        mail, self._mail = self._mail, None
        return tasks.in_blocks(row.tasks, self._crowd, asked, mail)

    def task_for(self, phone: int) -> messages.SumTask | None:
        """Return the phone's task in the present round; None if it has none or is out.

        Raises:
            WrongStateError: `tasks` has handed the task over, and it holds ciphertexts.
        """
        row = _ROUNDS.get(self._state.round)
        if row is None or phone not in self.expected() or phone in self.answered():
            return None
        return next(iter(row.tasks(self._crowd, np.array([phone]), self._mail)))

    # ---------------------------------------------------------------------------- answers

    def recall(self, task: messages.SumTask) -> None:
        """Do nothing: this sum has no helper."""

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer.

        Args:
            phone: Sender of the answer, as authenticated by the caller.
            answer: Answer of any type.

        Raises:
            UnexpectedMessageError: The answer is of another sum, round or sender, or the phone is
                out.
            RepeatedMessageError: The phone has answered this round.
            MalformedMessageError: Sizes or fields contradict the sum.
        """
        answers.check_address(phone, answer, self.sum_id)
        row = _ROUNDS.get(self._state.round)
        if row is None or not isinstance(answer, row.answer):
            belongs = next(name for name, row in _ROUNDS.items() if isinstance(answer, row.answer))
            raise UnexpectedMessageError(
                f"phone {phone}: {type(answer).__name__} belongs to the round '{belongs}', but the "
                f"sum is at '{self._state.round}'"
            )
        if phone not in self.expected():
            raise UnexpectedMessageError(f"phone {phone} is not in this sum, or no longer")
        if phone in self.answered():
            raise RepeatedMessageError(f"phone {phone} has answered this round")
        row.take(self, phone, answer)

    def _take_keys(self, phone: int, answer: messages.AdvertisedKeys) -> None:
        answers.check_keys(phone, answer)
        # A key that occurs twice would make honest phones refuse their neighbourhood.
        advertised = points((answer.public_key,))
        if not self._points.isdisjoint(advertised):
            raise MalformedMessageError(f"phone {phone}: another phone has advertised this key")
        self._state.public_keys[phone] = answer.public_key
        self._points |= advertised

    def _take_shares(self, phone: int, answer: messages.SharedKeys) -> None:
        answers.check_ciphertexts(phone, answer, int(self._crowd.counts[phone]))
        self._state.sealed[phone] = Sealed(answer.masks, answer.commitment)
        self._wait(phone, b"".join(answer.ciphertexts))

    def _take_input(self, phone: int, answer: messages.MaskedInput) -> None:
        encoding.check_packed(answer.vector, self.parameters)
        self._state.masked.add(phone)
        self._wait(phone, answer.vector)

    def _take_revealed(self, phone: int, answer: messages.Unmasked) -> None:
        gone = int(self._crowd.gone[phone])
        answers.check_shares(phone, answer, int(self._crowd.counts[phone]) - gone, gone)
        self._state.revealed[phone] = Revealed(answer.shares, answer.traces)

    def _wait(self, phone: int, content: bytes) -> None:
        """Queue checked content, to be processed together with that of other phones."""
        self._waiting.append((phone, content))
        self._waiting_bytes += len(content)
        if self._waiting_bytes >= _BATCH_BYTES:
            self._work_in()

    def _work_in(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        phones, contents = zip(*waiting, strict=True)
        if self._state.round is Round.MASKED_INPUT:
            encoding.add_packed(self._total, contents, self.parameters)
            return
        if self._mail is None:
            self._mail = Mail(self._neighbourhoods)
        self._mail.put(phones, contents, self._crowd.advertised)

    # ----------------------------------------------------------------------------- rounds

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            TooManyDropoutsError: Fewer than (1 − ρ)n phones answered; the sum has failed and
                nothing was revealed.
            UnrecoverableSecretError: The revealed shares do not determine a mask that must be
                removed; the sum has failed and its total was not revealed.
            FalseMasksError: A phone that dropped sealed other masks than those it shares with its
                neighbours; the sum has failed and its total was not revealed.
            WrongStateError: The sum is over.
        """
        state = self._state
        if state.round not in NEXT:
            raise WrongStateError(f"this sum is {state.round}")
        self._work_in()
        try:
            answers.check_attendance(len(self.answered()), state.round, state.parameters)
            if state.round is Round.UNMASK:
                self._total -= self._unmasking().masks()
        except EarshotError:
            state.round = Round.FAILED
            self._forget()
            raise
        state.round, self._points = NEXT[state.round], set()
        if state.round is Round.UNMASK:
            # Ciphertexts are delivered, and lists of phones whose input is in are not needed.
            self._mail = None
            state.sealed = {
                phone: Sealed(b"" if phone in state.masked else each.masks, each.commitment)
                for phone, each in state.sealed.items()
            }
        if state.round is Round.DONE:
            self._forget()
        self._present_crowd = None

    def _unmasking(self) -> Unmasking:
        state = self._state
        return Unmasking(
            salt=state.salt,
            parameters=state.parameters,
            lists={phone: each.masks for phone, each in state.sealed.items()},
            commitments={phone: each.commitment for phone, each in state.sealed.items()},
            crowd=self._crowd,
            revealed=state.revealed,
        )

    def _forget(self) -> None:
        """Delete everything that could reveal more than the sum."""
        self._state.sealed, self._state.revealed = {}, {}
        self._mail, self._waiting, self._waiting_bytes = None, [], 0
        if self._state.round is Round.FAILED:
            self._total[:] = 0

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """Return the sum of the inputs of A2, in the sum's shape.

        Raises:
            WrongStateError: The sum is not done.
        """
        if not self.done:
            raise WrongStateError(f"no result: this sum is at '{self._state.round}'")
        return encoding.decode(self._total, self._state.parameters)


@dataclass(frozen=True)
class _Row:
    """One round: phones that have a task, phones that have answered, the tasks, and the answer."""

    expected: Callable[[State], Collection[int]]
    answered: Callable[[State], Collection[int]]
    tasks: tasks.Maker
    answer: type[messages.SumAnswer]
    take: Callable[[Aggregator, int, Any], None]


_ROUNDS = {
    Round.ADVERTISE_KEYS: _Row(
        expected=lambda state: range(state.parameters.phones),
        answered=lambda state: state.public_keys.keys(),
        tasks=tasks.advertise_keys,
        answer=messages.AdvertisedKeys,
        take=Aggregator._take_keys,
    ),
    Round.SHARE_KEYS: _Row(
        expected=lambda state: state.public_keys.keys(),
        answered=lambda state: state.sealed.keys(),
        tasks=tasks.share_keys,
        answer=messages.SharedKeys,
        take=Aggregator._take_shares,
    ),
    Round.MASKED_INPUT: _Row(
        expected=lambda state: state.sealed.keys(),
        answered=lambda state: state.masked,
        tasks=tasks.mask_input,
        answer=messages.MaskedInput,
        take=Aggregator._take_input,
    ),
    Round.UNMASK: _Row(
        expected=lambda state: state.masked,
        answered=lambda state: state.revealed.keys(),
        tasks=tasks.unmask,
        answer=messages.Unmasked,
        take=Aggregator._take_revealed,
    ),
}
