"""The interface between a simulation and the engine that runs its phones.

An engine keeps the phones' states on the disk where they run, sends tasks there and receives
answers.
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
from earshot_simulations.adversary.attack import Attacks
from earshot_simulations.populations import SimulatedPopulation

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
"""Policy that accepts any phase, for those that the default policy refuses; reports mention it."""


@dataclass(frozen=True)
class HeardPoints:
    """A stand-in encoder: simulated phones hold points instead of sound."""

    name: str
    dimensions: int

    def embed(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Refuse, because there is no sound to embed.

        Raises:
            WrongStateError: There is no sound.
        """
        raise WrongStateError("a simulated phone holds points, not sound")

    def project(
        self, embeddings: npt.NDArray[np.float32], dimensions: int
    ) -> npt.NDArray[np.float32]:
        """Return the points unchanged."""
        return embeddings


@dataclass(frozen=True)
class Scenario:
    """Everything that an engine needs to run any phone of a simulation.

    Attributes:
        population: Recordings of the phones.
        seed: Seed of the phones' noise; keys come from the operating system.
        summation: Summation that adds up ballots.
        policy: Policy of the phones; by default that of every phone.
        attack: Attacks of corrupted phones; by default none.
        moment: Time of the phones' clocks, in seconds since 1970.
        lasting: Whether phones live on after the phase: their recordings keep the marks of those
            that were counted, and expire.
    """

    population: SimulatedPopulation
    seed: int
    summation: Summation
    policy: Policy = field(default_factory=Policy)
    attack: Attacks = field(default_factory=Attacks)
    moment: float = 0.0
    lasting: bool = False


class PhoneOutcome(NamedTuple):
    """The answer of one phone to one task, or the reason for its refusal in `refusal`."""

    phone: int
    answer: bytes
    cpu_seconds: float
    refusal: str = ""


Outcomes = tuple[PhoneOutcome, ...]


class EngineError(LocalError):
    """The engine cannot continue; finished steps are not affected."""


class LostWorkersError(EngineError):
    """Processes died repeatedly under the same work."""


class Engine(Protocol):
    """A runner of the phones of one simulation that keeps their states between the steps.

    A process that dies is replaced, and its phones answer again from the previous step's states. As
    a context manager, the engine is closed at the end.
    """

    @property
    def present(self) -> Set[int]:
        """Phones that have not vanished."""

    def drop(self, phones: Iterable[int]) -> None:
        """Let phones vanish for good."""

    def answer(self, step: int, tasks: Iterable[tuple[int, bytes]]) -> Iterator[Outcomes]:
        """Let phones answer their tasks.

        Args:
            step: Number of the step, from 0.
            tasks: Numbers of present phones, ascending, each with its encoded task. They are
                consumed on demand.

        Yields:
            Outcomes, in batches, as they arrive.

        Raises:
            EngineError: The phones cannot continue, for example on a full disk.
        """

    def peak_memory(self) -> int:
        """Return the sum of the largest resident sizes of all processes that ran phones, in bytes.

        This process is included, with the memory of anything else that it has done.
        """

    def close(self) -> None:
        """End the work under way, and remove the states; closing twice is harmless."""

    def __enter__(self) -> Self:
        """Return the engine itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the engine."""
