"""Interface of rules that turn votes into answers, by a curator or from noisy sums.

A rule is a frozen dataclass: its fields are the options of `earshot pate label` and `budget`, and
other modules use only its methods, never its type. A new rule is a new file here, and a line in
`table`.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.releases import Costs, VotesCost
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.plain_values import hold_plain
from earshot_protocol.privacy.events import Event, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import Ballot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum

Passing = npt.NDArray[np.bool_]
Plain = dict[str, str | int | float | bool | None]

UNITS = (Unit.PHONE, Unit.REPLACED_PHONE)
"""A teacher left out, and a teacher with other data, or one other record."""


class TeacherUnit(enum.StrEnum):
    """Display names of the units where the voters are teachers."""

    LEFT_OUT = "teacher left out"
    REPLACED = "teacher replaced"

    @classmethod
    def of(cls, unit: Unit) -> TeacherUnit:
        """Return the name of one of `UNITS`."""
        return dict(zip(UNITS, cls, strict=True))[unit]

    @property
    def unit(self) -> Unit:
        """Unit of this name."""
        return dict(zip(TeacherUnit, UNITS, strict=True))[self]


class VoteKind(enum.StrEnum):
    """Kinds of queries on which votes are spent."""

    VOTES = "votes"
    """The counts of all classes, or of all labels."""
    CHECK = "check"
    """Whether enough teachers agree."""


Times = Mapping[VoteKind, int]
"""Numbers of queries, by kind."""


@dataclass(frozen=True, kw_only=True)
class VotingRule(ABC):
    """A rule by which answers come from votes.

    Attributes:
        sigma: Standard deviation of the noise on a count (σ), in votes.

    Raises:
        InvalidParametersError: An option is out of range.
    """

    sigma: float

    name: ClassVar[str]
    """Name on the command line, in results and in journals."""
    several: ClassVar[bool] = False
    """Whether any number of labels may win."""
    probabilities: ClassVar[bool] = False
    """Whether teachers may answer with probabilities."""
    takes_scores: ClassVar[bool] = False
    """Whether the rule uses a student's scores."""
    between_classes: ClassVar[bool] = True
    """Whether the difference of two counts decides, rather than one count and a threshold."""
    publishes: ClassVar[frozenset[VotesCost]] = frozenset()
    """Data-dependent costs that can be published."""
    exact: ClassVar[bool] = True
    """Whether the distribution of a curator's outcomes is known."""
    noise_name: ClassVar[str] = "sigma"
    """Name of `sigma` in error messages."""

    def __post_init__(self) -> None:
        hold_plain(self)
        checks.noise(self.noise_name, self.sigma)

    @property
    def check(self) -> ConfidentCheck | None:
        """Check of every query, or of each label; None for none."""
        return None

    @property
    def bar(self) -> float | None:
        """Noisy votes that one label must have, read from the counts of a secure sum; or None."""
        return None

    @property
    def needs_ballots(self) -> bool:
        """Whether each teacher's ballot is needed, rather than counts of labels."""
        return False

    def identity(self, classes: int) -> Plain:
        """Return all settings that determine answers and costs, by their names in journals."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        check = self.check
        plain: Plain = {"name": self.name, "classes": classes, "deviation": own.pop("sigma")}
        plain |= dict.fromkeys(("confidence", "tau"))
        plain |= {"norm": 2, "cut": None, "grid": None, "scale": None, "bar": self.bar}
        plain |= {"largest_weight": 1, "winners": None}
        for name in ("threshold", "check_sigma"):
            own.pop(name, None)
        plain |= own
        if check is not None:
            plain |= {"check threshold": check.threshold, "check deviation": check.deviation}
        return plain

    def times(self, factor: float) -> Self:
        """Return the rule for a multiple of the votes: noise and thresholds grow with them.

        Args:
            factor: Mean weight of a teacher, mean number of copies of a record, or mean share of
                the teachers that vote.

        Raises:
            InvalidParametersError: The factor is not positive, or the noise out of range.
        """
        checks.positive("factor", factor)
        grown = ("sigma", "threshold", "check_sigma", "cut")
        own = {each: getattr(self, each, None) for each in grown}
        return replace(
            self, **{each: factor * value for each, value in own.items() if value is not None}
        )

    def check_poll(self, poll: PollForm) -> None:
        """Refuse a form of queries that the rule cannot decide.

        Raises:
            InvalidParametersError: There are too few classes, or too many.
        """
        checks.whole("classes", poll.classes, 1 if self.several else 2)
        _ = self.ballot(poll)

    def check_curator(self, poll: PollForm, weighed: bool) -> None:
        """Refuse options that do not apply to a curator.

        Raises:
            InvalidParametersError: An option is for secure sums alone, or one is missing.
        """
        if self.several and weighed:
            raise InvalidParametersError(
                f"{self.name}: votes for several labels are weighed by a federated tally alone"
            )

    def check_sums(self, poll: PollForm) -> None:  # noqa: B027 - most rules have nothing to refuse
        """Refuse options that do not apply to secure sums.

        Raises:
            InvalidParametersError: An option is for a curator alone, or one does not fit.
        """

    @abstractmethod
    def ballot(self, poll: PollForm) -> Ballot:
        """Return the ballot that a teacher of weight 1 casts on one query."""

    @abstractmethod
    def check_ballot(self, poll: PollForm) -> Ballot:
        """Return the ballot that a teacher of weight 1 casts on one check."""

    @abstractmethod
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        """Return outcomes as a curator draws them, and the queries whose votes are paid for.

        Args:
            asked: Teachers' answers to the queries.
            weights: Weight of each teacher, int64 (teachers,).
            scores: Probability of each class by a student, (queries, classes).
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            Winners (queries,) or labels (queries, k), `NONE` for no answer; and bool (queries,).
        """

    @abstractmethod
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        """Return the answers from noisy sums of ballots, by post-processing alone.

        Args:
            poll: Form of the queries.
            totals: Noisy sums, (queries, entries).
            voters: Weight of all teachers whose ballots are in the sums (n).
            teachers: Weight of all teachers, including vanished ones; thresholds scale with it.

        Returns:
            The class of the largest count, int64 (queries,), the lower one of equal counts; or
            labels, zeros and ones (queries, k), `NONE` for a query without an answer.
        """

    def proposals(self, scores: Numbers) -> Whole:
        """Return the answers that a student's scores propose, `NONE` where it is not sure.

        Raises:
            InvalidParametersError: No student takes part.
        """
        raise InvalidParametersError(f"{self.name}: no student takes part")

    def proposed(self, totals: Whole, answers: Whole) -> Whole:
        """Return the proposals for the check after a sum of votes: the answers."""
        return answers

    def agreeing(self, poll: PollForm, answers: Whole, proposed: Whole) -> Whole:
        """Return whether each teacher agrees with what is proposed, for `check_ballot`.

        Args:
            poll: Form of the queries.
            answers: All teachers' answers, (teachers, queries, …).
            proposed: Proposed answers, (queries, …).
        """
        return np.asarray(answers == proposed)

    def curator_events(
        self, poll: PollForm, times: Times, unit: Unit, weight: int
    ) -> tuple[Event, ...]:
        """Return a curator's releases as events, for any votes; Gaussian noise is one event.

        Args:
            poll: Form of the queries.
            times: Charged queries by kind.
            unit: Unit in which neighbours differ.
            weight: Weight of the teacher in which they differ, at least 1.
        """
        ballot = self._counted(poll)
        rho = times[VoteKind.VOTES] * _rho(ballot.l2(unit) / ballot.vote, self.sigma)
        if self.check is not None:
            change = self.check_ballot(poll).l2(unit)
            rho += times[VoteKind.CHECK] * _rho(change, self.check.deviation)
        return (ZeroConcentrated(weight**2 * rho),) if rho else ()

    def _counted(self, poll: PollForm) -> Ballot:
        """Return the ballot that a curator counts."""
        return self.ballot(poll)

    def summed(
        self,
        poll: PollForm,
        kind: VoteKind,
        queries: int,
        weight: int,
        delta: float,
        survivors: int,
    ) -> BallotSum | VoteSum:
        """Return one secure sum, as a teacher of this weight accounts for it.

        Args:
            poll: Form of the queries.
            kind: Kind of the sum.
            queries: Queries of the sum.
            weight: Weight of the teacher, at least 1.
            delta: Value of δ for which costs are stated.
            survivors: Teachers that stay and add their noise (n').
        """
        ballot, deviation = self.ballot(poll), self.sigma
        if kind is VoteKind.CHECK and self.check is not None:
            ballot, deviation = self.check_ballot(poll), self.check.deviation
        ballot = Weighted(ballot, weight) if weight > 1 else ballot
        return VoteSum(ballot, queries, deviation, delta, survivors)

    def release(
        self, cost: VotesCost, asked: Electorate, outcomes: Whole, order: float, unit: Unit
    ) -> Costs:
        """Return the data-dependent cost of queries, and its local sensitivities.

        Args:
            cost: Kind of cost, one of `publishes`.
            asked: Teachers' answers to the queries, each of weight 1.
            outcomes: Outcomes of the queries.
            order: Order λ of the divergence that is to be published.
            unit: Unit in which neighbours differ.

        Raises:
            InvalidParametersError: The rule has no such cost, or its noise is too small.
        """
        raise InvalidParametersError(f"{self.name}: has no cost by votes that can be published")

    def check_release(  # noqa: B027 - nor here
        self, cost: VotesCost, poll: PollForm, order: float
    ) -> None:
        """Refuse noise that `release` could not account for, before any query.

        Raises:
            InvalidParametersError: The noise σ is too small.
        """

    @classmethod
    def least_noise(cls, epsilon: float, delta: float, queries: int, unit: Unit) -> float:
        """Return `sigma` with which this many answers are (ε, δ)-private, by a curator.

        Args:
            epsilon: Value of ε for all answers together.
            delta: Value of δ for all answers together.
            queries: Queries answered.
            unit: Unit in which neighbours differ.

        Raises:
            InvalidParametersError: A number is out of range, or no such noise is known.
        """
        raise InvalidParametersError(f"{cls.name}: its noise does not follow from a budget alone")

    def draws(self, poll: PollForm) -> int:
        """Return the draws of noise that can decide one query: of its check and of each count."""
        return 1 + poll.classes

    def claimed_epsilon(self, times: Times, delta: float) -> float | None:
        """Return an ε printed in a paper that does not hold; None if there is none."""
        return None

    def lead_in_doubt(self, confidence: float) -> float:
        """Return the votes below which a lead may be a curator's noise alone, at this confidence.

        It is a lead between two classes, or a distance from what decides a label.
        """
        from scipy import stats

        deviations = float(stats.norm.ppf((1 + confidence) / 2))
        return deviations * self.sigma * (math.sqrt(2.0) if self.between_classes else 1.0)

    @abstractmethod
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        """Return the smallest possible input of the check, where teachers agree least.

        Args:
            poll: Form of the queries.
            voters: Weight of all teachers.
        """

    def passes_by_chance(self, poll: PollForm, voters: float) -> float | None:
        """Return the probability that noise alone passes the check where teachers agree least.

        The result is None without a check. Arguments are those of `least_agreement`.
        """
        from scipy import stats

        if self.check is None:
            return None
        distance = (self.least_agreement(poll, voters) - self.check.threshold) / (
            self.check.deviation
        )
        return float(stats.norm.cdf(distance))


@dataclass(frozen=True, kw_only=True)
class CheckedRule(VotingRule):
    """A rule with an optional check whether enough teachers agree.

    Attributes:
        threshold: Votes that pass the check (T), noise included.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.

    Raises:
        InvalidParametersError: An option is out of range, or only one of a check's two is given.
    """

    threshold: float | None = None
    check_sigma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.check_sigma is None) != (self.threshold is None):
            raise InvalidParametersError(
                "--threshold and --check-sigma: a check needs both of them; leave out both for none"
            )
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck | None:
        if self.threshold is None or self.check_sigma is None:
            return None
        return ConfidentCheck(self.threshold, self.check_sigma)


def _rho(distance: float, deviation: float) -> float:
    """Return ρ of Gaussian noise for this L2 sensitivity.

    It is distance²/2σ² (Bun and Steinke 2016, Proposition 6).
    """
    return distance**2 / (2 * deviation**2)
