"""A whole secure sum, driven round by round, for tests to disturb."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.messages import AdvertiseKeys, SumAnswer, SumTask, Unmasked
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.wire import encode

ROUNDS = (Round.ADVERTISE_KEYS, Round.SHARE_KEYS, Round.MASKED_INPUT, Round.UNMASK)
COMPLETE = choose(12, (5,), 100, 0.25, 0.1)
PHONES = 16
EVERYONE = range(PHONES)
PARAMETERS = choose(PHONES, (6,), 1000, 0.375, 0.2)
"""Room for six dropouts; where fewer phones drop, that room is for wrong shares."""

_P = 2**255 - 19
_ORDER_EIGHT = (
    0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
    0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
)
LOW_ORDER_KEYS = [u.to_bytes(32, "little") for u in (0, 1, _P - 1, *_ORDER_EIGHT, _P, _P + 1)]
"""The X25519 keys with which everybody agrees on zero: u of order 1, 2, 4 and 8, and u + p."""


def unchecked(**changes: Any) -> SumParameters:
    """Return parameters that may be unsafe: of one entry, of which nothing is checked."""
    usual: dict[str, Any] = {
        "phones": 3,
        "length": 1,
        "bound": 1,
        "dropout": 0.0,
        "corrupted": 0.0,
        "neighbours": 2,
        "threshold": 1,
        "shape": (1,),
    }
    return SumParameters(**usual | changes)


@dataclass
class Sum:
    """Phones and server of one sum; `inputs` holds one array per phone."""

    parameters: SumParameters
    inputs: Sequence[np.ndarray]
    restart: bool = False
    """Save and restore both sides between any two rounds."""
    aggregator: Aggregator = field(init=False)
    participants: dict[int, Participant] = field(default_factory=dict)
    answers: dict[Round, dict[int, SumAnswer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.aggregator = Aggregator(os.urandom(16), self.parameters)

    def answer(self, phone: int) -> SumAnswer:
        """The phone's answer to its present task, both as they travel."""
        task = self.aggregator.task_for(phone)
        assert task is not None
        if isinstance(task, AdvertiseKeys):
            self.participants[phone] = Participant(task, self.inputs[phone])
        else:
            task = self.travelled(task)
        answer = self.participants[phone].answer(task)
        received = decode_answer(encode(answer))
        assert received == answer
        self.answers.setdefault(self.aggregator.round, {})[phone] = answer
        return answer

    @staticmethod
    def travelled(task: SumTask) -> SumTask:
        received = decode_task(encode(task))  # type: ignore[arg-type]
        assert received == task
        return received  # type: ignore[return-value]

    def collect(self, phones: Iterable[int]) -> None:
        """Let these phones answer the present round."""
        for phone in phones:
            self.aggregator.accept(phone, self.answer(phone))

    def close(self) -> None:
        """Close the present round."""
        self.aggregator.advance()
        if self.restart:
            self.aggregator = Aggregator.restore(self.aggregator.save())
            self.participants = {
                phone: Participant.restore(participant.save())
                for phone, participant in self.participants.items()
            }

    def unmask(self, spoil: Callable[[int, Unmasked], Unmasked]) -> None:
        """The last round, in which phones may send something else than they should."""
        for phone in sorted(self.aggregator.expected()):
            self.aggregator.accept(phone, spoil(phone, self.answer(phone)))  # type: ignore[arg-type]
        self.close()

    def go_on(self, phones: Iterable[int]) -> None:
        """Let these phones answer the present round, and close it."""
        self.collect(phones)
        self.close()

    def run(self, gone: Sequence[Iterable[int]] = ((), (), (), ())) -> set[int]:
        """All four rounds; phones in `gone[r]` vanish for good before they answer round r.

        Returns:
            The phones whose input arrived.
        """
        present = set(range(self.parameters.phones))
        arrived: set[int] = set()
        for current, vanished in zip(ROUNDS, gone, strict=True):
            present -= set(vanished)
            self.collect(sorted(present))
            if current is Round.MASKED_INPUT:
                arrived = set(present)
            self.close()
        return arrived

    def until(self, current: Round) -> None:
        """Run all rounds before this one, with all phones."""
        for earlier in ROUNDS[: ROUNDS.index(current)]:
            assert self.aggregator.round is earlier
            self.go_on(range(self.parameters.phones))

    def expected(self, phones: Iterable[int]) -> np.ndarray:
        """The plain sum of these phones' inputs."""
        return np.sum([self.inputs[phone] for phone in phones], axis=0)


def make_sum(
    parameters: SumParameters,
    inputs: Sequence[np.ndarray] | None = None,
    restart: bool = False,
    seed: int = 0,
) -> Sum:
    """Begin a sum; its inputs are random within the bound unless given."""
    if inputs is None:
        generator = np.random.default_rng(seed)
        inputs = generator.integers(
            -parameters.bound, parameters.bound + 1, (parameters.phones, *parameters.shape)
        )
    return Sum(parameters, inputs, restart)
