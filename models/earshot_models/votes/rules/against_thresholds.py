"""Rules that answer with labels above a threshold.

After Muschiol (2021), whose adaptive threshold is computed from votes without noise, so that one
vote can move it by half of the teachers. Two private variants replace it. A server that sees noisy
counts derives thresholds and checks from them at no further cost. A curator publishes labels alone:
it pays for a check and for the choice of a threshold from a grid, and for labels against a fixed
threshold less than for noisy counts, as only bits are published.
"""

from __future__ import annotations

import functools
import math
import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs import muschiol, thresholds
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Divergences, Method
from earshot_models.votes.costs.dependent import log_other_answer
from earshot_models.votes.costs.multi_winner import number_divergences
from earshot_models.votes.costs.outcomes import checked_orders
from earshot_models.votes.costs.releases import Costs, VotesCost
from earshot_models.votes.costs.thresholds import MonotoneBound, release_costs
from earshot_models.votes.counts import checked_label_votes
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.output_ballots import Outputs
from earshot_models.votes.rules.label_votes import Outcomes, Votes
from earshot_models.votes.rules.laws import answers_of
from earshot_models.votes.rules.powerset import check_winners
from earshot_models.votes.rules.rule import Passing, Times, VoteKind, VotingRule
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.events import Event, RenyiCurve
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Agreement


@dataclass(frozen=True, kw_only=True)
class ThresholdRule(VotingRule):
    """A rule by which labels with more votes than a threshold win.

    Attributes:
        winners: Number of a teacher's largest outputs, which alone count (v); all by default.
        threshold: Votes that pass the check (T), noise included; with secure sums and without
            --check-sigma, noisy votes that a label must have.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.
    """

    winners: int | None = None
    threshold: float | None = None
    check_sigma: float | None = None

    several: ClassVar[bool] = True
    probabilities: ClassVar[bool] = True
    between_classes: ClassVar[bool] = False
    publishes: ClassVar[frozenset[VotesCost]] = frozenset({VotesCost.DEPENDENT})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.check_sigma is not None and self.threshold is None:
            raise InvalidParametersError(
                "--check-sigma: a check needs a --threshold, too; with secure sums, noisy counts "
                "are compared with --threshold alone"
            )
        if self.bar is not None:
            check_votes(self.bar)
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck | None:
        if self.threshold is None or self.check_sigma is None:
            return None
        return ConfidentCheck(self.threshold, self.check_sigma)

    @property
    @override
    def bar(self) -> float | None:
        return self.threshold if self.check_sigma is None else None

    @property
    @override
    def needs_ballots(self) -> bool:
        return self.winners is not None

    @override
    def check_poll(self, poll: PollForm) -> None:
        check_winners(self.winners, poll.classes)
        super().check_poll(poll)

    @override
    def check_curator(self, poll: PollForm, weighed: bool) -> None:
        super().check_curator(poll, weighed)
        if self.bar is not None:
            raise InvalidParametersError(
                f"{self.name}: the check of a curator needs noise of its own, --check-sigma"
            )

    @override
    def check_sums(self, poll: PollForm) -> None:
        if poll.steps > 1 and self.check is not None:
            raise InvalidParametersError(
                "check-sigma: teachers' probabilities say neither yes nor no to a proposed label; "
                "leave it out, and --threshold is read from their noisy counts for free"
            )

    @override
    def ballot(self, poll: PollForm) -> Outputs:
        return Outputs(poll.classes, self.winners, poll.steps)

    @override
    def check_ballot(self, poll: PollForm) -> Agreement:
        return Agreement()

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        votes = self.votes(asked.predictions / asked.steps)
        found = self.outcomes(votes, asked.teachers, random)
        return found, (found != NONE).any(axis=1)

    def votes(self, outputs: npt.NDArray[np.number]) -> Votes:
        """Return the votes of each label, or parts of votes: s, float64 (queries, labels).

        Args:
            outputs: Outputs of the teachers, from 0 to 1, (teachers, queries, labels).

        Raises:
            InvalidInputError: Outputs are not numbers, out of range, or of another shape.
            InvalidParametersError: A teacher may name more labels than there are.
        """
        table = np.asarray(outputs)
        if table.ndim != 3 or 0 in table.shape:
            raise InvalidInputError(
                f"outputs of shape {table.shape}: must be teachers × queries × labels, at least "
                "one of each"
            )
        if not np.can_cast(table.dtype, np.float64) or not ((table >= 0) & (table <= 1)).all():
            raise InvalidInputError("outputs: must be numbers from 0 to 1")
        total = np.zeros(table.shape[1:])
        for each in table:
            own = each.astype(np.float64)
            total += own if self.winners is None else largest_outputs(own, self.winners)
        # Rounding must not raise votes above the number of teachers.
        return np.minimum(total, len(table))

    def outcomes(
        self, votes: npt.NDArray[np.number], teachers: int, random: RandomBytes = os.urandom
    ) -> Outcomes:
        """Return which labels win.

        Args:
            votes: Votes s, (queries, labels), each from 0 to the number of teachers.
            teachers: Number of teachers, M.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a query that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, teachers)
        found = self.drawn(table, teachers, random).astype(np.int64)
        if self.check is not None:
            found[~self.check.passing(table.max(axis=1), random)] = NONE
        return found

    def drawn(self, votes: Votes, teachers: int, random: RandomBytes) -> Passing:
        """Return which labels win by a curator's noise, without the check, (queries, labels)."""
        return self.winning(noisy_counts.with_normal(votes, self.sigma, random), teachers)

    @abstractmethod
    def winning(self, votes: Votes, teachers: float) -> Passing:
        """Return which labels win by noisy votes, (queries, labels).

        Args:
            votes: Noisy votes, (queries, labels), as if all teachers had voted.
            teachers: Number of teachers, M, or their weight.
        """

    @override
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        votes = totals.astype(np.float64) / self.ballot(poll).vote * (teachers / voters)
        found = self.winning(votes, teachers).astype(np.int64)
        if self.bar is not None:
            found[votes.max(axis=1) < self.bar] = NONE
        return found

    @override
    def proposed(self, totals: Whole, answers: Whole) -> Whole:
        """Return the label with most votes of each query."""
        return np.asarray(totals.argmax(axis=1))

    @override
    def agreeing(self, poll: PollForm, answers: Whole, proposed: Whole) -> Whole:
        own = self.ballot(poll).cast(answers)  # labels beyond the v largest outputs do not count
        return np.asarray(np.take_along_axis(own, proposed[None, :, None], axis=-1)[..., 0] == 1)

    @property
    def choice_rho(self) -> float:
        """Usual concentration ρ of a curator's choice of a threshold."""
        return 0.0

    @abstractmethod
    def law(self, votes: Numbers, teachers: int) -> Numbers:
        """Return the probability of each of `answers`, for votes (labels,), without the check."""

    def answers(self, labels: int) -> list[tuple[int, ...]]:
        """Return the answers on this many labels, in the order of `law`."""
        return answers_of(labels)

    @abstractmethod
    def answer_divergences(
        self, votes: Numbers, teachers: int, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        """Return the cost of answers if a teacher changes this many labels, (queries, orders)."""

    def usual_divergence(self, order: float, changed: int) -> float:
        """Return the cost of an answer by the noise on votes alone, at an order: that of bits."""
        return changed * float(bit_divergence(self.sigma, [order])[0])

    @abstractmethod
    def log_other_answer(self, votes: Numbers, teachers: int, moved: float) -> Numbers:
        """Bound the log-probability that noise changes an answer, labels `moved` votes nearer."""

    def choice_divergence(self, order: float) -> float:
        """Return the cost of choosing a threshold for each answer, at an order.

        It is 0 where the threshold is public, or computed from noisy votes.
        """
        return 0.0

    def divergences(
        self,
        votes: npt.NDArray[np.number],
        teachers: int,
        orders: npt.ArrayLike,
        method: Method,
        unit: Unit = Unit.REPLACED_PHONE,
    ) -> Divergences:
        """Return the cost of each query: of its check, and of its answer if there is one.

        Independent of votes, it is λΔ²/2σ² (`thresholds.gaussian_divergence`), or less where a
        threshold is fixed and only bits are published (`bits.bit_divergence`). Dependent on votes,
        it is Theorem 6 of Papernot et al. (ICLR 2018) with the probability that noise changes any
        label, as in Muschiol (2021), Theorems 11, 13 and 14. For an adaptive threshold, the exact
        method returns the independent cost. A threshold from a grid costs
        `thresholds.grid_divergence` on top of the worst threshold of that grid.

        Args:
            votes: Votes s, (queries, labels).
            teachers: Number of teachers, M.
            orders: Orders λ, each above 1.
            method: Method of working out the divergences.
            unit: Unit in which neighbours differ.

        Returns:
            Divergences `asked` and `answered`, each (queries, orders); zeros asked without a check.

        Raises:
            InvalidInputError: Votes are out of range.
            InvalidParametersError: An order is 1 or less, or there are more winners than labels.
        """
        table, chosen = checked_label_votes(votes, teachers), checked_orders(orders)
        asked = np.zeros((len(table), len(chosen)))
        if self.check is not None:
            limit, deviation = self.check.threshold, self.check.deviation
            asked = number_divergences(table.max(axis=1), limit, deviation, chosen, method)
        changed = thresholds.changed_labels(self.winners, table.shape[1], unit)
        return Divergences(asked, self.answer_divergences(table, teachers, chosen, method, changed))

    @override
    def curator_events(
        self, poll: PollForm, times: Times, unit: Unit, weight: int
    ) -> tuple[Event, ...]:
        asked, answered = _curves(self, poll.classes, unit)
        total = times[VoteKind.CHECK] * asked + times[VoteKind.VOTES] * answered
        return (RenyiCurve(tuple(ORDERS.tolist()), tuple(total.tolist())),) if total.any() else ()

    @override
    def release(
        self, cost: VotesCost, asked: Electorate, outcomes: Whole, order: float, unit: Unit
    ) -> Costs:
        votes = self.votes(asked.predictions / asked.steps)
        answered = (outcomes != NONE).any(axis=1)
        return self.released(votes, asked.teachers, answered, order, unit)

    def released(
        self,
        votes: npt.NDArray[np.number],
        teachers: int,
        answered: npt.NDArray[np.bool_],
        order: float,
        unit: Unit = Unit.REPLACED_PHONE,
    ) -> Costs:
        """Return the cost of queries by Theorem 6, and its local sensitivities.

        Args:
            votes: Votes s of every query that was asked, (queries, labels).
            teachers: Number of teachers, M.
            answered: Queries that were answered, bool (queries,); public, so the same for
                neighbours.
            order: Order λ of the divergence that is to be published.
            unit: Unit in which neighbours differ.

        Raises:
            InvalidInputError: Votes are out of range.
            InvalidParametersError: The order is 1 or less, or there are more winners than labels.
        """
        table = checked_label_votes(votes, teachers)
        checked_orders([order])
        passed = table[np.asarray(answered, dtype=np.bool_)]
        changed = thresholds.changed_labels(self.winners, table.shape[1], unit)
        ratio = thresholds.threshold_ratio(self.sigma, changed)
        answer = MonotoneBound(ratio, order, self.usual_divergence(order, changed))
        parts: list[Callable[[float], Numbers]] = [
            lambda moved: answer.cost(self.log_other_answer(passed, teachers, moved))
        ]
        if self.check is not None:
            deviation = self.check.deviation
            bit = float(bit_divergence(deviation, [order])[0])
            check = MonotoneBound(np.sqrt(2.0) * deviation, order, bit)
            apart = np.abs(table.max(axis=1) - self.check.threshold)
            parts.append(
                lambda moved: check.cost(
                    log_other_answer(np.maximum(apart - moved, 0.0), 0.0, deviation)
                )
            )
        return release_costs(parts, self.choice_divergence(order) * len(passed), teachers)

    @override
    def claimed_epsilon(self, times: Times, delta: float) -> float | None:
        """Return the ε claimed by Muschiol (2021), which does not hold."""
        check = None if self.check is None else self.check.deviation
        return muschiol.claimed_epsilon(
            self.sigma, times[VoteKind.VOTES], check, times[VoteKind.CHECK], delta
        )

    @override
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        return 0.0  # no teacher names any label

    @override
    def passes_by_chance(self, poll: PollForm, voters: float) -> float | None:
        from scipy import stats

        if self.bar is None:
            return super().passes_by_chance(poll, voters)
        silent = stats.norm.logcdf(self.bar / self.sigma)  # one of all noisy counts is enough
        return float(-math.expm1(poll.classes * silent))


@functools.lru_cache(maxsize=64)
def _curves(rule: ThresholdRule, classes: int, unit: Unit) -> tuple[Numbers, Numbers]:
    """Return the divergences of a check and of an answer, each (orders,)."""
    any_votes, anybody = np.zeros((1, classes)), 2**30  # the independent cost depends on neither
    each = rule.divergences(any_votes, anybody, ORDERS, Method.INDEPENDENT, unit)
    return each.asked[0], each.answered[0]


def check_votes(votes: float) -> None:
    """Check that a number of votes is positive and finite.

    Raises:
        InvalidParametersError: It is not.
    """
    if not (math.isfinite(votes) and votes > 0):
        raise InvalidParametersError(f"{votes}: must be a number of votes above 0")


def largest_outputs(scores: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """Keep the largest numbers of each row, of equal ones the first; set others to zero.

    Args:
        scores: Scores (…, labels).
        most: Number of scores that stay.

    Raises:
        InvalidParametersError: `most` exceeds the number of labels.
    """
    labels = scores.shape[-1]
    if most > labels:
        raise InvalidParametersError(f"most={most}: must be at most {labels}, the number of labels")
    if most == labels:
        return scores
    order = np.argsort(-scores, axis=-1, kind="stable")
    cut = scores.copy()
    np.put_along_axis(cut, order[..., most:], 0.0, axis=-1)
    return cut
