"""One parameter chooses who counts: a curator whom all trust, or secure sums."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from earshot_models.votes.counts import checked_scores
from earshot_models.votes.rules.mechanisms import Mechanism, Name
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Tally, Whole
from earshot_models.votes.tally.secure_sums import Crowd, SecureSums
from earshot_models.votes.tally.votes import Electorate
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE


class Counter(enum.StrEnum):
    """Who counts the votes."""

    CENTRAL = "central"
    FEDERATED = "federated"


@dataclass(frozen=True)
class Sums:
    """How secure sums are run.

    Attributes:
        dropout: ρ, the largest share of teachers that may vanish.
        corrupted: γ, the largest share that an adversary may control.
        vanishing: share of the teachers that do vanish in each sum.
        at_once: queries of one sum, or whose outcomes a curator writes down together.
    """

    dropout: float = 0.05
    corrupted: float = 0.05
    vanishing: float = 0.0
    at_once: int = 200

    def __post_init__(self) -> None:
        checks.whole("at-once", self.at_once, 1, 2**16)


def tally(
    counter: Counter,
    mechanism: Mechanism,
    voters: Electorate,
    weights: Whole | None = None,
    scores: npt.NDArray[np.float64] | None = None,
    *,
    sums: Sums | None = None,
    delta: float,
    random: Callable[..., RandomBytes],
) -> Tally:
    """A tally of these teachers' votes.

    Args:
        counter: who counts.
        mechanism: which, with noise and thresholds in votes of the mean weight.
        voters: the teachers.
        weights: of the teachers, whole; all 1 by default.
        scores: what a student finds probable, (queries, classes), for `Name.INTERACTIVE`.
        sums: how secure sums are run.
        delta: for which costs are stated.
        random: random bytes by names, for the noise of teachers in secure sums.

    Raises:
        InvalidInputError: weights or scores that do not fit.
        InvalidParametersError: a mechanism that this counter does not have, or whose classes are
            not those of the votes.
    """
    if mechanism.classes != voters.classes:
        raise InvalidParametersError(
            f"classes={mechanism.classes}: the votes are for {voters.classes}"
        )
    if (voters.predictions.ndim == 3) != mechanism.several:
        raise InvalidInputError(f"{mechanism.name}: the votes are for other kinds of answers")
    by_ballot = mechanism.name in (Name.TAU, Name.POWERSET) or mechanism.most is not None
    if voters.dealt and by_ballot:
        raise InvalidInputError(
            f"{mechanism.name}: counts of labels do not say which stood in one ballot; give "
            "teachers × queries × labels"
        )
    _check_thresholds(counter, mechanism, voters)
    mechanism = replace(mechanism, steps=voters.steps)
    weighed = np.ones(voters.teachers, dtype=np.int64)
    if weights is not None:
        weighed = _checked_weights(weights, voters)
        mechanism = mechanism.weighing(int(weighed.max()), float(weighed.mean()))
    if (mechanism.name is Name.INTERACTIVE) != (scores is not None):
        raise InvalidInputError(
            f"{mechanism.name}: scores of a student (--scores) are for {Name.INTERACTIVE}, which "
            "needs them"
        )
    if scores is not None:
        scores = checked_scores(scores, (voters.queries, voters.classes))
    chosen = sums or Sums()
    if counter is Counter.CENTRAL:
        if mechanism.several and weights is not None:
            raise InvalidParametersError(
                f"{mechanism.name}: votes for several labels are weighed by a federated tally alone"
            )
        if mechanism.name is Name.POWERSET and mechanism.most is not None:
            raise InvalidParametersError(
                "winners: a curator counts all sets of labels; leave it out, or take a federated "
                "tally"
            )
        return Central(mechanism, voters, weighed, scores, at_once=chosen.at_once)
    return Federated(
        mechanism,
        voters.predictions,
        SecureSums(Crowd(voters.teachers, chosen.dropout, chosen.corrupted)),
        delta,
        random,
        weighed,
        chosen.vanishing,
        None if scores is None else _proposals(scores, mechanism),
        chosen.at_once,
    )


def _check_thresholds(counter: Counter, mechanism: Mechanism, voters: Electorate) -> None:
    """Refuse what one counter does with thresholds and the other does not.

    Raises:
        InvalidParametersError: a threshold beyond all votes, noise that is missing, or that buys
            nothing.
    """
    central = counter is Counter.CENTRAL
    if mechanism.grid is not None and max(mechanism.grid) >= voters.teachers:
        raise InvalidParametersError(
            f"grid={mechanism.grid}: must be below the {voters.teachers} teachers"
        )
    if mechanism.name is Name.GRID_THRESHOLD and central != (mechanism.scale is not None):
        raise InvalidParametersError(
            "scale: a curator chooses a threshold from a grid with noise of its own and needs it; "
            "the server of a secure sum chooses by noisy counts: leave it out"
        )
    if mechanism.bar is not None and central:
        raise InvalidParametersError(
            f"{mechanism.name}: the check of a curator needs noise of its own, --check-sigma"
        )
    if voters.steps > 1 and mechanism.check is not None and not central:
        raise InvalidParametersError(
            "check-sigma: teachers' probabilities say neither yes nor no to a proposed label; "
            "leave it out, and --threshold is read from their noisy counts for free"
        )


def _proposals(scores: npt.NDArray[np.float64], mechanism: Mechanism) -> Whole:
    """The class of which a student is sure, for every query, or `NONE`."""
    sure = scores.max(axis=1) > (mechanism.confidence or 0.0)
    return np.where(sure, scores.argmax(axis=1), NONE)


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
