"""One secure sum of ballots with real cryptography: all teachers and the server in one process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.progress import Progress, silent
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.sum_in_process import Observer, run_sum
from earshot_protocol.voting.sums import sum_parameters, with_noise
from earshot_protocol.voting.totals import check_total


@dataclass(frozen=True)
class TeacherCrowd:
    """Teachers of a secure sum.

    Attributes:
        teachers: Number of teachers (n), from 3.
        dropout: Largest share of the teachers that may vanish (ρ).
        corrupted: Largest share of the teachers that an adversary may control (γ).

    Raises:
        InvalidParametersError: There are too few teachers, or none would remain.
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
        """Number n' = ⌈(1 − ρ − γ) n⌉ of teachers that stay and add their noise."""
        # Rounded first, so that 0.9 · 500 does not become 451.
        return math.ceil(round((1 - self.dropout - self.corrupted) * self.teachers, 6))


@dataclass
class SumEffort:
    """Computation and traffic of some sums.

    Attributes:
        sums: Number of sums.
        seconds: Seconds on the clock.
        teacher_seconds: CPU time of all teachers together.
        server_seconds: CPU time of the server.
        bytes_up: Bytes from all teachers to the server.
        bytes_down: Bytes from the server to all teachers.
        answering: Teachers that began, summed over sums.
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
    """Result of one sum, as seen by the server.

    Attributes:
        total: Noisy sum, in the sum's shape.
        survivors: Teachers whose inputs are included.
        parameters: Parameters of the sum.
    """

    total: Whole
    survivors: tuple[int, ...]
    parameters: SumParameters


@dataclass
class SecureSums:
    """Runner of successive secure sums among the same teachers.

    Attributes:
        crowd: Teachers.
        effort: Effort of all sums so far.
    """

    crowd: TeacherCrowd
    effort: SumEffort = field(default_factory=SumEffort)

    def run(
        self,
        mechanism: SumMechanism,
        inputs: Whole,
        noise: Callable[[int], RandomBytes],
        vanishing: Mapping[str, frozenset[int]] | None = None,
        progress: Progress = silent,
    ) -> Opened:
        """Add up the inputs of teachers.

        Args:
            mechanism: Mechanism whose noise the teachers share.
            inputs: Inputs before noise, int64 (teachers, …).
            noise: Function that returns each teacher's source of random bytes.
            vanishing: Teachers that vanish before a round, by its name.
            progress: Callback for the progress of rounds.

        Raises:
            InvalidParametersError: No sum is safe among this few teachers.
            TooManyDropoutsError: Fewer teachers stayed than the crowd allows.
        """
        parameters = sum_parameters(
            mechanism,
            inputs.shape[1:],
            self.crowd.teachers,
            self.crowd.dropout,
            self.crowd.corrupted,
        )
        present = set(range(self.crowd.teachers))

        def staying(name: str) -> list[int]:
            present.difference_update((vanishing or {}).get(name, ()))
            return sorted(present)

        def ballot(index: int) -> Whole:
            return with_noise(inputs[index], mechanism, parameters.bound, noise(index))

        began = time.perf_counter()
        found = run_sum(parameters, ballot, staying, _Watch(self.effort, progress))
        check_total(found.total, mechanism, self.crowd.teachers)
        self.effort.sums += 1
        self.effort.seconds += time.perf_counter() - began
        return Opened(found.total, found.survivors, parameters)


@dataclass
class _Watch(Observer):
    """Observer that adds up computation and traffic."""

    effort: SumEffort
    progress: Progress

    @override
    def answered(self, name: str, phone: int, seconds: float, down: int, up: int) -> None:
        self.effort.answering += name == BELL.rounds[0].name
        self.effort.teacher_seconds += seconds
        self.effort.bytes_up += up
        self.effort.bytes_down += down

    @override
    def served(self, seconds: float) -> None:
        self.effort.server_seconds += seconds

    @override
    def went_on(self, name: str, done: int, total: int) -> None:
        self.progress(name, done, total)


def draw_vanishing(
    crowd: TeacherCrowd, share: float, random: RandomBytes
) -> dict[str, frozenset[int]]:
    """Draw teachers that vanish during a sum, each before a random round.

    Args:
        crowd: Teachers of the sum.
        share: Share of the teachers, at most ρ.
        random: Source of bytes.

    Raises:
        InvalidParametersError: The share exceeds the dropout that the sum tolerates.
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
