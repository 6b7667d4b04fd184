"""Interface of tallies to the labelling loop: answers to queries, and their cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.rules.rule import Times, VoteKind, VotingRule
from earshot_protocol.arrays import Whole
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.progress import Progress, silent


@dataclass(frozen=True)
class Purchase:
    """Votes of one kind that were paid for.

    Attributes:
        kind: Kind of votes.
        queries: Number of queries asked together.
    """

    kind: VoteKind
    queries: int


Bought = Sequence[Purchase]


@dataclass(frozen=True)
class Sight:
    """Result of one secure sum, as seen by the server.

    Attributes:
        kind: Kind of the sum.
        queries: Numbers of its queries.
        total: Noisy sum, int64 (queries, entries).
        voters: Weight of all teachers whose ballots are in it (n).
    """

    kind: VoteKind
    queries: tuple[int, ...]
    total: Whole
    voters: int


@dataclass(frozen=True)
class Answers:
    """Outcomes of some queries.

    Attributes:
        outcomes: Winners (queries,), or labels (queries, k): 1, 0, or `NONE` for no answer.
        bought: Votes that were paid for.
        sights: Sums that a server saw; none with a curator, who holds the votes.
    """

    outcomes: Whole
    bought: tuple[Purchase, ...]
    sights: tuple[Sight, ...] = ()


def times(bought: Bought) -> Times:
    """Return the number of charged queries by kind."""
    return {kind: sum(each.queries for each in bought if each.kind is kind) for kind in VoteKind}


@dataclass(frozen=True)
class Tally(ABC):
    """A count of the votes of teachers, with noise.

    Attributes:
        rule: Rule by which answers come from votes; noise and thresholds are in votes of weight 1.
        voters: Teachers and their answers.
        weights: Weight ψ of each teacher, int64 (teachers,).
        at_once: Most queries asked together.
    """

    rule: VotingRule
    voters: Electorate
    weights: Whole
    at_once: int = field(default=256, kw_only=True)

    @property
    def poll(self) -> PollForm:
        """Form of the queries and of their answers."""
        return self.voters.poll

    @property
    def heaviest(self) -> int:
        """Weight ψ of the teacher that weighs most."""
        return int(self.weights.max())

    @property
    def queries(self) -> int:
        """Number of queries with votes."""
        return self.voters.queries

    @property
    @abstractmethod
    def adaptive(self) -> bool:
        """Whether purchases depend on outcomes."""

    @property
    @abstractmethod
    def pays_for_answers(self) -> bool:
        """Whether a query pays for its check, and for votes only if it passes."""

    @abstractmethod
    def worst(self, queries: int) -> Bought:
        """Return the largest possible purchases of this many queries."""

    def events(self, bought: Bought, unit: Unit, weight: int | None = None) -> tuple[Event, ...]:
        """Return the releases, for neighbours that differ in one teacher.

        Args:
            bought: Votes that were paid for.
            unit: Unit in which neighbours differ: the teacher left out, or replaced.
            weight: Weight ψ of that teacher; the largest by default.
        """
        heaviest = self.heaviest if weight is None else weight
        return self._events(bought, unit, heaviest) if heaviest else ()

    @abstractmethod
    def _events(self, bought: Bought, unit: Unit, weight: int) -> tuple[Event, ...]:
        """Return the releases, for a teacher of weight 1 or more."""

    @abstractmethod
    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        """Answer some queries, by their numbers."""
