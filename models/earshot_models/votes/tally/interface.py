"""What a tally is to the labelling loop: it is asked about queries, and says what that cost."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_models.votes.rules.mechanisms import Mechanism
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit

Whole = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody is told of."""


class Kind(enum.StrEnum):
    """What teachers' votes are spent on."""

    VOTES = "votes"
    """The counts of all classes, or of all labels."""
    CHECK = "check"
    """Whether enough teachers agree."""


@dataclass(frozen=True)
class Purchase:
    """One thing that was paid for.

    Attributes:
        kind: of it.
        queries: how many were asked at once.
    """

    kind: Kind
    queries: int


Bought = Sequence[Purchase]


@dataclass(frozen=True)
class Sight:
    """What the server of a secure sum saw.

    Attributes:
        kind: of the sum.
        queries: numbers of the queries that it was about.
        total: the noisy sum, int64 (queries, entries).
        voters: n, the weight of all teachers whose ballots are in it.
    """

    kind: Kind
    queries: tuple[int, ...]
    total: Whole
    voters: int


@dataclass(frozen=True)
class Answers:
    """What became of some queries.

    Attributes:
        outcomes: winners (queries,), or labels (queries, k): 1, 0, or `NONE` for no answer.
        bought: what was paid for.
        sights: what a server saw on the way; none of a curator, who holds the votes.
    """

    outcomes: Whole
    bought: tuple[Purchase, ...]
    sights: tuple[Sight, ...] = ()


class Tally(Protocol):
    """Counts the votes of teachers, with noise."""

    @property
    def mechanism(self) -> Mechanism:
        """How answers come from votes; noise and thresholds are in votes of weight 1."""

    @property
    def queries(self) -> int:
        """How many there are votes for."""

    @property
    def at_once(self) -> int:
        """The most queries that are asked about together."""

    @property
    def adaptive(self) -> bool:
        """Whether what is bought depends on outcomes."""

    @property
    def pays_for_answers(self) -> bool:
        """Whether votes are paid for only where a check passes, which then costs by itself."""

    def worst(self, queries: int) -> Bought:
        """What so many queries cost if each is asked all there is to ask."""

    def events(self, bought: Bought, unit: Unit, weight: int | None = None) -> tuple[Event, ...]:
        """What was released against neighbours that differ in a teacher.

        Args:
            bought: what was paid for.
            unit: whether the teacher is left out, or replaced.
            weight: ψ of that teacher; the largest there is by default.
        """

    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        """Ask about some queries, by their numbers."""
