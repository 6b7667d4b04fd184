"""The secure sum of teachers' ballots on queries, with noise on every entry.

The result is a noisy histogram for each query, which the server sees in full: anything computed
from it (winners, thresholds, a stop) costs nothing more, and its cost does not depend on the votes.
Bounds that depend on votes hold only for curators who publish winners alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from earshot_protocol import checks
from earshot_protocol.overriding import override
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Cost, SumMechanism, Unit, check_survivors
from earshot_protocol.privacy.sum_noise import GaussianSumNoise, gaussian
from earshot_protocol.voting.teacher_ballots import Ballot

MOST_QUERIES = 2**16
"""Most queries of one sum."""


@dataclass(frozen=True)
class VoteSum(SumMechanism):
    """Ballots of one kind on several queries, added up in one secure sum.

    Attributes:
        ballot: Ballot of one query; weighted by the largest weight of any teacher.
        queries: Number of queries, B.
        deviation: Standard deviation of the noise on every entry, σ, in votes of weight 1.
        delta: Value of δ for which costs are stated.
        honest_survivors: Least number of teachers that stay and add their share honestly, n'; None
            where each of two operators adds the whole noise.

    Raises:
        InvalidParametersError: A value is out of range, or a count is not whole.
    """

    ballot: Ballot
    queries: int
    deviation: float
    delta: float
    honest_survivors: int | None
    summed: ClassVar[str] = "sum of votes"
    least_entry: ClassVar[int] = 0

    def __post_init__(self) -> None:
        checks.whole("queries", self.queries, 1, MOST_QUERIES)
        checks.positive("deviation", self.deviation)
        checks.probability("delta", self.delta)
        check_survivors(self.honest_survivors)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an input: (queries, entries of a ballot)."""
        return self.queries, self.ballot.length

    @property
    def variance(self) -> float:
        """Variance of the noise that protects every entry: of n' shares, or of one whole."""
        votes = self.deviation * self.ballot.vote
        return votes * votes

    @property
    def largest_entry(self) -> int:
        """Most that one teacher's input adds to an entry of the sum."""
        return self.ballot.largest_entry

    @property
    def largest_sum(self) -> int:
        """Most that one teacher's input adds to all entries together: its distance from zeros."""
        return math.ceil(self.queries * self.ballot.l1(Unit.PHONE))

    @override
    def proof(self, shape: tuple[int, ...]) -> Counts | None:
        """Return that the votes on each query add up to what a ballot may have, or less.

        Votes are proved one by one, so ballots that count parts of votes have no proof.
        """
        votes = self.ballot.largest_entry
        if self.ballot.l1(Unit.PHONE) != votes:
            return None
        return Counts(votes.bit_length(), votes, shape[-1])

    @property
    def entry_noise(self) -> GaussianSumNoise:
        """Noise on every entry of the sum."""
        return gaussian(self.variance, self.honest_survivors)

    def event(self, unit: Unit) -> Event:
        """Return the event of a teacher's answers to all queries: noise on the sum."""
        return self.entry_noise.event(*self.distances(unit))

    def distances(self, unit: Unit) -> tuple[float, float]:
        """Return the L1 and the L2 distance between sums of neighbours, in entries."""
        return self.queries * self.ballot.l1(unit), math.sqrt(self.queries) * self.ballot.l2(unit)

    def cost(self, unit: Unit) -> Cost:
        """Return the ε of the event at `delta`, which includes the secure sum's share of δ."""
        return Cost(composed_epsilon((self.event(unit),), self.delta), self.delta)
