"""Labels that win a vote of teachers with several winners, by noise that a curator adds.

The curator holds the votes, and nothing but winners is published. Every rule has the noise on the
votes that a label gets and compares them with half of the teachers, whose number is public. The
published rule (Dziedzic et al., PoPETs 2023, Definitions 4 and 7 and Algorithm 1) compares noisy
votes for a label with the votes that are not for it, which are exactly the number of teachers less
the former: that doubles the distance and halves the noise. The cost of the rules here is computed
in `earshot_models.votes.costs.multi_winner`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import Check
from earshot_models.votes.label_ballots import Approval, Clipped
from earshot_models.votes.subsets import SubsetVotes, checked_predictions, subset_votes
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE

_CERTAIN = math.log(89.0)
MOST_SET_LABELS = 512
"""Most labels of sets of which one is drawn: there are 2^512 sets then."""

Votes = npt.NDArray[np.float64]
Outcomes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BinaryVoting:
    """Voting in which every label found by more than half of the teachers wins: V + N(0, s²) > n/2.

    Each label is decided by itself (Dziedzic et al., PoPETs 2023, Definition 4), with the noise on
    the positive votes.

    Attributes:
        teachers: Number of teachers, n, public.
        deviation: Standard deviation of the noise, s, in votes.
        check: Check of every label by itself, on max{V, n − V} (their Algorithm 1); None for none.

    Raises:
        InvalidParametersError: There are no teachers, or s is not positive and finite.
    """

    teachers: int
    deviation: float
    check: Check | None = None

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers)
        checks.positive("deviation", self.deviation)

    def ballot(self, labels: int) -> Approval:
        """Return the ballot that one teacher casts on one query."""
        return Approval(labels)

    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        """Return the votes that each label gets.

        Args:
            predictions: Zeros and ones, (teachers, queries, labels).

        Returns:
            float64 (queries, labels).

        Raises:
            InvalidInputError: There are other numbers, another shape, or not all teachers.
        """
        table = _of_all(predictions, self.teachers)
        return np.asarray(table.sum(axis=0), dtype=np.float64)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which labels win.

        Args:
            votes: Votes of the labels, (queries, labels), each from 0 to the number of teachers.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a label that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        return _majorities(self, votes, random)


@dataclass(frozen=True)
class ClippedVoting:
    """Voting with ballots clipped to length τ before they count, else as `BinaryVoting` (τ voting).

    v = b · min(1, τ/‖b‖), in L2 (Dziedzic et al., PoPETs 2023, Definition 7) or, for comparison, in
    L1 (Zhu et al., CVPR 2020). Votes are multiples of 2^-10, see `label_ballots.Clipped`. A label
    must still have half of all teachers: of unanimous ballots of 4τ² ones none wins.

    Attributes:
        teachers: Number of teachers, n, public.
        tau: Length to which ballots are clipped, τ; from √k on in L2, k in L1, nothing is clipped,
            which is `BinaryVoting`.
        norm: Norm used to clip ballots: 1 or 2.
        deviation: Standard deviation of the noise, s, in votes.
        check: Check of every label by itself, on max{V, n − V}; None for none.

    Raises:
        InvalidParametersError: There are no teachers, τ is not positive, the norm is another, or s
            is not positive and finite.
    """

    teachers: int
    tau: float
    norm: int
    deviation: float
    check: Check | None = None

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers)
        checks.positive("tau", self.tau)
        checks.positive("deviation", self.deviation)
        if self.norm not in (1, 2):
            raise InvalidParametersError(f"norm={self.norm}: must be 1 or 2")

    def ballot(self, labels: int) -> Clipped:
        """Return the ballot that one teacher casts on one query.

        Raises:
            InvalidParametersError: τ clips nothing with this many labels; the message says what
                does.
        """
        free = labels if self.norm == 1 else math.sqrt(labels)
        if self.tau >= free:
            raise InvalidParametersError(
                f"tau={self.tau}: with {labels} labels this clips nothing, which is BinaryVoting; "
                f"must be below {free:.6g}"
            )
        return Clipped(labels, self.tau, self.norm)

    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        """Return the clipped votes that each label gets, as `BinaryVoting.votes` does."""
        table = _of_all(predictions, self.teachers)
        ballot = self.ballot(table.shape[2])
        # Teacher by teacher, so that ballots of 64 bits are never held all at once.
        total = sum(ballot.cast(each) for each in table)
        return np.asarray(total / ballot.vote)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which labels win, as `BinaryVoting.winners` does; `votes` are those of `votes`."""
        return _majorities(self, votes, random)


@dataclass(frozen=True)
class PowersetVoting:
    """Voting for the set of labels with the largest noisy count of teachers that find exactly it.

    argmax over all 2^k sets of count + N(0, σ²) (Dziedzic et al., PoPETs 2023, Definition 8). Their
    remark that only a set that was cast can win is not followed: that would publish who cast what.
    Noise of the sets that nobody casts is not drawn one by one: a coin says whether the largest of
    M draws is beyond all others, and all of these sets are equally likely to have it. The coin's
    odds are computed to a tenth of `noisy_counts.ODDS`.

    Attributes:
        labels: Number of labels, k.
        deviation: Standard deviation of the noise on each count, σ.
        check: Check of the query, on the largest count; None for none.

    Raises:
        InvalidParametersError: There are no labels or too many, or σ is not positive and finite.
    """

    labels: int
    deviation: float
    check: Check | None = None

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_SET_LABELS)
        checks.positive("deviation", self.deviation)

    def votes(self, predictions: npt.NDArray[np.integer]) -> SubsetVotes:
        """Count the teachers that find exactly the same labels.

        Args:
            predictions: Zeros and ones, (teachers, queries, labels).

        Raises:
            InvalidInputError: There are other numbers, another shape, or another number of labels.
        """
        return self._checked(subset_votes(predictions))

    def winners(self, votes: SubsetVotes, random: RandomBytes = os.urandom) -> Outcomes:
        """Return the labels of the sets that win.

        Args:
            votes: Votes for sets.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for all labels of a query that did not pass
            the check.

        Raises:
            InvalidInputError: The sets have another number of labels.
        """
        table = self._checked(votes)
        noisy = noisy_counts.with_normal(table.counts, self.deviation, random)
        best = np.maximum.reduceat(noisy, table.starts)
        # The first set of each query that has the largest noisy count.
        leading = np.flatnonzero(noisy == best[table.query])
        first = leading[np.unique(table.query[leading], return_index=True)[1]]
        found = table.sets[first].astype(np.int64)
        pairs = zip((best / self.deviation).tolist(), table.log_uncast.tolist(), strict=True)
        for query, (bar, log_count) in enumerate(pairs):
            if noisy_counts.coin(*_any_beyond(bar, log_count), random):
                found[query] = self._uncast(table, query, random)
        if self.check is not None:
            found[~self.check.passing(table.most, random)] = NONE
        return found

    def _uncast(self, table: SubsetVotes, query: int, random: RandomBytes) -> Outcomes:
        """Draw a set that nobody casts, each equally likely: there is at least one."""
        start = int(table.starts[query])
        cast = {each.tobytes() for each in table.sets[start : start + int(table.cast[query])]}
        size = -(-self.labels // 8)
        while True:  # there are no more cast sets than teachers, so this takes few draws
            drawn = np.frombuffer(random(size), dtype=np.uint8)
            members = np.unpackbits(drawn, count=self.labels).astype(np.int8)
            if members.tobytes() not in cast:
                return members.astype(np.int64)

    def _checked(self, votes: SubsetVotes) -> SubsetVotes:
        if votes.labels != self.labels:
            raise InvalidInputError(
                f"votes on {votes.labels} labels: must be on the {self.labels} of this vote"
            )
        return votes


def checked_label_votes(votes: npt.NDArray[np.number], teachers: int) -> Votes:
    """Return votes that labels get from an ensemble, as float64.

    Args:
        votes: Votes (queries, labels), each from 0 to the number of teachers.
        teachers: Number of teachers, n.

    Raises:
        InvalidInputError: Votes are out of range or not numbers, or not a table.
    """
    table = np.asarray(votes)
    if table.ndim != 2 or table.shape[1] < 1 or not np.can_cast(table.dtype, np.float64):
        raise InvalidInputError(
            f"votes of {table.dtype} and shape {table.shape}: must be numbers, queries × labels"
        )
    found = table.astype(np.float64)
    if not ((found >= 0) & (found <= teachers)).all():
        raise InvalidInputError(
            f"votes: must be numbers from 0 to {teachers}, the number of teachers"
        )
    return found


def label_agreement(votes: Votes, teachers: int) -> Votes:
    """Return max{V, n − V}, for a check of labels: one vote changes it by one at most."""
    return np.maximum(votes, teachers - votes)


def _any_beyond(bar: float, log_count: float) -> tuple[float, float]:
    """Return how likely the largest of M normal draws, ln M given, is beyond a bar, and not.

    1 − Φ(bar)^M and Φ(bar)^M, the bar in deviations. An error function is right to some units in
    the last place, ln M reaches to 355, and M·ln Φ to 89 before a coin cannot tell: so chance and
    counterchance are right to 10^-11.
    """
    beyond = math.erfc(abs(bar) / math.sqrt(2)) / 2
    missing = -math.log1p(-beyond) if bar > 0 else -math.log(beyond) if beyond else math.inf
    if not missing or log_count == -math.inf:
        return 0.0, 1.0
    exponent = log_count + math.log(missing)
    lacking = math.exp(exponent) if exponent < _CERTAIN else math.inf
    return -math.expm1(-lacking), math.exp(-lacking)


def _majorities(
    voting: BinaryVoting | ClippedVoting, votes: npt.NDArray[np.number], random: RandomBytes
) -> Outcomes:
    table = checked_label_votes(votes, voting.teachers)
    noisy = noisy_counts.with_normal(table, voting.deviation, random)
    found = (noisy > voting.teachers / 2).astype(np.int64)
    if voting.check is not None:
        found[~voting.check.passing(label_agreement(table, voting.teachers), random)] = NONE
    return found


def _of_all(predictions: npt.NDArray[np.integer], teachers: int) -> npt.NDArray[np.int8]:
    table = checked_predictions(predictions)
    if len(table) != teachers:
        raise InvalidInputError(
            f"predictions of {len(table)} teachers: must be those of all {teachers}, with zeros "
            "from one that abstains"
        )
    return table
