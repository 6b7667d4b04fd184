"""One secure sum of ballots with real cryptography: all teachers and the server in one process."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Participant
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.voting.sums import sum_parameters, with_noise
from earshot_protocol.voting.totals import check_total
from earshot_protocol.wire import encode

Whole = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Crowd:
    """The teachers of a secure sum.

    Attributes:
        teachers: n, from 3.
        dropout: ρ, the largest share that may vanish.
        corrupted: γ, the largest share that an adversary may control.

    Raises:
        InvalidParametersError: too few teachers, or nobody would be left.
    """

    teachers: int
    dropout: float = 0.05
    corrupted: float = 0.05

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers, 3, 10**8)
        checks.fraction("dropout", self.dropout)
        checks.fraction("corrupted", self.corrupted)
        if self.honest_survivors < 1:
            raise InvalidParametersError(
                f"dropout={self.dropout} and corrupted={self.corrupted}: together they must stay "
                "below 1"
            )

    @property
    def honest_survivors(self) -> int:
        """The count n' = ⌈(1 − ρ − γ) n⌉ of teachers that stay and add their noise."""
        # The product is rounded first so that 0.9 · 500 does not become 451.
        return math.ceil(round((1 - self.dropout - self.corrupted) * self.teachers, 6))


@dataclass
class Effort:
    """What sums took.

    Attributes:
        sums: how many there were.
        seconds: on the clock.
        teacher_seconds: CPU time of all teachers together.
        server_seconds: CPU time of the server.
        bytes_up: from teachers to the server, of all of them together.
        bytes_down: from the server to teachers.
        answering: teachers, added up over sums, that began.
    """

    sums: int = 0
    seconds: float = 0.0
    teacher_seconds: float = 0.0
    server_seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    answering: int = 0


@dataclass(frozen=True)
class Opened:
    """What the server of one sum sees.

    Attributes:
        total: the noisy sum, in the sum's shape.
        survivors: the teachers whose inputs are in it.
        parameters: of the sum.
    """

    total: Whole
    survivors: tuple[int, ...]
    parameters: SumParameters


@dataclass
class SecureSums:
    """Runs one secure sum after the other for the same crowd.

    Attributes:
        crowd: the teachers.
        effort: what all sums took so far.
    """

    crowd: Crowd
    effort: Effort = field(default_factory=Effort)

    def run(
        self,
        mechanism: SumMechanism,
        inputs: Whole,
        noise: Callable[[int], RandomBytes],
        vanishing: Mapping[str, frozenset[int]] | None = None,
        progress: Progress = lambda what, done, total: None,
    ) -> Opened:
        """Add up what teachers put in.

        Args:
            mechanism: whose noise the teachers share.
            inputs: int64 (teachers, …): before noise.
            noise: each teacher's source of random bytes.
            vanishing: by the name of a round, the teachers that are gone from it on.
            progress: called as rounds go on.

        Raises:
            InvalidParametersError: no sum is safe among so few teachers.
            TooManyDropoutsError: fewer teachers stayed than the crowd allows.
        """
        parameters = sum_parameters(
            mechanism,
            inputs.shape[1:],
            self.crowd.teachers,
            self.crowd.dropout,
            self.crowd.corrupted,
        )
        began = time.perf_counter()
        aggregator = BELL.aggregator(os.urandom(16), parameters, os.urandom)
        teachers: dict[int, Participant] = {}
        present = set(range(self.crowd.teachers))
        for current in BELL.rounds:
            present -= (vanishing or {}).get(current.name, frozenset())
            for done, index in enumerate(sorted(present), start=1):
                started = time.process_time()
                task = aggregator.task_for(index)
                if task is None:
                    continue
                sent = encode(task)
                self.effort.server_seconds += time.process_time() - started
                started = time.process_time()
                if isinstance(task, AdvertiseKeys):  # travels in what begins a part of a phase
                    ballot = with_noise(inputs[index], mechanism, parameters.bound, noise(index))
                    teachers[index] = BELL.participant(task, ballot)
                    answer = encode(teachers[index].answer(task))
                    self.effort.answering += 1
                else:
                    answer = encode(teachers[index].answer(decode_task(sent)))  # type: ignore[arg-type]
                self.effort.teacher_seconds += time.process_time() - started
                self.effort.bytes_up += len(answer)
                self.effort.bytes_down += len(sent)
                started = time.process_time()
                aggregator.accept(index, decode_answer(answer))
                self.effort.server_seconds += time.process_time() - started
                progress(current.name, done, len(present))
            if current.carries_input:
                survivors = tuple(sorted(present))
            started = time.process_time()
            aggregator.advance()
            self.effort.server_seconds += time.process_time() - started
        total = np.asarray(aggregator.result(), dtype=np.int64)
        check_total(total, mechanism, self.crowd.teachers)
        self.effort.sums += 1
        self.effort.seconds += time.perf_counter() - began
        return Opened(total, survivors, parameters)


def draw_vanishing(crowd: Crowd, share: float, random: RandomBytes) -> dict[str, frozenset[int]]:
    """Teachers that vanish in the midst of a sum, each before a round drawn at random.

    Args:
        crowd: of the sum.
        share: of the teachers, at most ρ.
        random: decides who, and when.

    Raises:
        InvalidParametersError: more than the sum can do without.
    """
    if checks.fraction("vanishing", share) > crowd.dropout:
        raise InvalidParametersError(
            f"vanishing={share}: must be at most the dropout of {crowd.dropout} that sums allow for"
        )
    generator = np.random.default_rng(int.from_bytes(random(16)))
    count = math.floor(round(share * crowd.teachers, 6))
    gone = generator.choice(crowd.teachers, count, replace=False)
    rounds = generator.integers(len(BELL.rounds), size=count)
    return {
        each.name: frozenset(gone[rounds == place].tolist())
        for place, each in enumerate(BELL.rounds)
    }
