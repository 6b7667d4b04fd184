"""The choice of tally: a trusted curator, or secure sums."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.counts import checked_scores
from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Tally
from earshot_models.votes.tally.secure_sums import SecureSums, TeacherCrowd
from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.plain_values import hold_plain
from earshot_protocol.randomness import RandomBytes


class Counter(enum.StrEnum):
    """Party that counts the votes."""

    CENTRAL = "central"
    FEDERATED = "federated"


@dataclass(frozen=True)
class SumSettings:
    """Settings of secure sums.

    Attributes:
        dropout: Largest share of the teachers that may vanish (ρ).
        corrupted: Largest share of the teachers that an adversary may control (γ).
        vanishing: Share of the teachers that do vanish in each sum.
        at_once: Queries of one sum, or of one journal entry of a curator.
    """

    dropout: float = 0.05
    corrupted: float = 0.05
    vanishing: float = 0.0
    at_once: int = 200

    def __post_init__(self) -> None:
        hold_plain(self)
        checks.whole("at-once", self.at_once, 1, 2**16)


def tally(
    counter: Counter,
    rule: VotingRule,
    voters: Electorate,
    weights: Whole | None = None,
    scores: npt.NDArray[np.float64] | None = None,
    *,
    sums: SumSettings | None = None,
    delta: float,
    random: Callable[..., RandomBytes],
) -> Tally:
    """Return a tally of these teachers' votes.

    Args:
        counter: Party that counts the votes.
        rule: Rule, with noise and thresholds in votes of the mean weight.
        voters: Teachers and their answers.
        weights: Whole weights of the teachers; all 1 by default.
        scores: Probability of each class by a student, (queries, classes), if the rule takes them.
        sums: Settings of secure sums.
        delta: Value of δ for which costs are stated.
        random: Random bytes by names, for the teachers' noise in secure sums.

    Raises:
        InvalidInputError: Votes, weights or scores do not fit.
        InvalidParametersError: The rule has options that do not apply to this counter, or cannot
            decide these queries.
    """
    poll = voters.poll
    if (voters.predictions.ndim == 3) != rule.several:
        raise InvalidInputError(f"{rule.name}: the votes are for other kinds of answers")
    if voters.dealt and rule.needs_ballots:
        raise InvalidInputError(
            f"{rule.name}: counts of labels do not say which stood in one ballot; give "
            "teachers × queries × labels"
        )
    if voters.steps > 1 and not rule.probabilities:
        raise InvalidParametersError(f"{rule.name} counts whole votes; probabilities are not votes")
    rule.check_poll(poll)
    if counter is Counter.CENTRAL:
        rule.check_curator(poll, weights is not None)
    else:
        rule.check_sums(poll)
    weighed = np.ones(voters.teachers, dtype=np.int64)
    if weights is not None:
        weighed = _checked_weights(weights, voters)
        rule = rule.times(float(weighed.mean()))
    if rule.takes_scores != (scores is not None):
        needs = "needs them" if rule.takes_scores else "takes none"
        raise InvalidInputError(f"{rule.name}: scores of a student (--scores): the rule {needs}")
    if scores is not None:
        scores = checked_scores(scores, (voters.queries, voters.classes))
    chosen = sums or SumSettings()
    if counter is Counter.CENTRAL:
        return Central(rule, voters, weighed, scores, at_once=chosen.at_once)
    return Federated(
        rule,
        voters,
        weighed,
        SecureSums(TeacherCrowd(voters.teachers, chosen.dropout, chosen.corrupted)),
        delta,
        random,
        chosen.vanishing,
        None if scores is None else rule.proposals(scores),
        at_once=chosen.at_once,
    )


def _checked_weights(weights: Whole, voters: Electorate) -> Whole:
    if voters.dealt:
        raise InvalidInputError(
            "weights: counts of votes do not say who cast which; give teachers × queries"
        )
    found = np.asarray(weights)
    whole = found.shape == (voters.teachers,) and np.issubdtype(found.dtype, np.integer)
    if not whole or found.min() < 0 or found.max() < 1:
        raise InvalidInputError(
            f"weights of shape {found.shape}: must be {voters.teachers} whole numbers, one for "
            "each teacher, none negative and not all zero"
        )
    return found.astype(np.int64)
