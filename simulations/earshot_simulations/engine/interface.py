"""What a simulation asks of whatever runs its phones.

An engine keeps the phones' states where they run, on the disk. Tasks go there, answers come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from earshot_client.policy import Policy
from earshot_protocol.errors import LocalError, WrongStateError
from earshot_protocol.phases.parameters import LARGEST_CROWD
from earshot_protocol.secure_sum.interface import Summation
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.populations import Population

AGREES = Policy.per_recording(
    least_phones=1,
    largest_phones=LARGEST_CROWD,
    largest_noise_crowd=LARGEST_CROWD,
    largest_epsilon=float("inf"),
    largest_delta=1.0,
    largest_yearly_epsilon=float("inf"),
    largest_yearly_delta=1.0,
    largest_lifetime_epsilon=float("inf"),
    largest_lifetime_delta=1.0,
    largest_dropout=1.0,
    least_corrupted=0.0,
    least_threshold=1,
    any_delta=True,
)
"""For phases that no phone as it comes would take part in; a report says so."""


@dataclass(frozen=True)
class HeardPoints:
    """An encoder in name: what simulated phones heard is points already."""

    name: str
    dimensions: int

    def embed(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Refused: there is no sound to embed.

        Raises:
            WrongStateError: always.
        """
        raise WrongStateError("a simulated phone holds points, not sound")

    def project(
        self, embeddings: npt.NDArray[np.float32], dimensions: int
    ) -> npt.NDArray[np.float32]:
        """The points as they are."""
        return embeddings


@dataclass(frozen=True)
class Scenario:
    """What it takes to bring any phone of a simulation to life.

    Attributes:
        population: what each phone has heard.
        seed: of the phones' noise; keys come from the operating system all the same.
        summation: how ballots are added up.
        policy: what phones agree to; by default that of every phone.
        attack: the corrupted ones among them; by default none.
    """

    population: Population
    seed: int
    summation: Summation
    policy: Policy = field(default_factory=Policy)
    attack: Attack = field(default_factory=Attack)


class Outcome(NamedTuple):
    """What one phone made of one task; `refusal` says why where there is no answer."""

    phone: int
    answer: bytes
    cpu_seconds: float
    refusal: str = ""


Outcomes = tuple[Outcome, ...]


class EngineError(LocalError):
    """What runs the phones cannot go on; the steps that are finished are not touched by it."""


class LostWorkersError(EngineError):
    """Processes die again and again under the same work."""


class Engine(Protocol):
    """Runs the phones of one simulation, and keeps their states between the steps.

    A process that dies is replaced, and its phones answer again from the states of the step before.
    As a context manager it is closed at the end.
    """

    @property
    def present(self) -> Set[int]:
        """The phones that have not vanished."""

    def drop(self, phones: Iterable[int]) -> None:
        """Let phones vanish for good."""

    def answer(self, step: int, tasks: Iterable[tuple[int, bytes]]) -> Iterator[Outcomes]:
        """Let phones answer their tasks.

        Args:
            step: its number, from 0.
            tasks: phones that are present, ascending, each with its encoded task. They are taken
                as there is room for them.

        Yields:
            Outcomes, in batches, as they come.

        Raises:
            EngineError: the phones cannot go on, as on a disk that is full.
        """

    def peak_memory(self) -> int:
        """The largest resident size of all processes that ran phones, added up, in bytes.

        Of this one too. A process that has done other things before counts with what they took.
        """

    def close(self) -> None:
        """End what is under way, and remove the states; closing twice is harmless."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
