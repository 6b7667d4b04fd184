"""Interactive-GNMax: teachers answer where they disagree with a student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.counts import checked_scores
from earshot_models.votes.rules.gnmax import GaussianRule
from earshot_models.votes.rules.one_winner import Winners
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.voting.teacher_ballots import NONE


@dataclass(frozen=True, kw_only=True)
class InteractiveRule(GaussianRule):
    """Answer with the student's class, or with the teachers' where they disagree.

    Where max_j (n_j − n·p_j) + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ²); else the class of which the
    student is sure, p_j > γ, which costs nothing more; else no answer (Papernot et al. 2018,
    Algorithm 2). The student's scores p must be public: it learned from published answers. One vote
    that moves or is withheld changes the checked number by one at most; n is the number of votes
    cast.

    Attributes:
        threshold: Votes that pass the check (T), noise included.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.
        confidence: Confidence above which the student's own answer is used.
    """

    threshold: float
    check_sigma: float
    confidence: float

    name: ClassVar[str] = "interactive"
    takes_scores: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.share("confidence", self.confidence)
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck:
        return ConfidentCheck(self.threshold, self.check_sigma)

    @override
    def agreement(self, votes: Numbers, scores: npt.NDArray[np.number] | None = None) -> Numbers:
        """Return the most votes that the student did not expect, for the check, (queries,)."""
        expected = votes.sum(axis=1, keepdims=True) * _given(scores, votes)
        most: Numbers = (votes - expected).max(axis=1)
        return most

    @override
    def unasked(self, votes: Numbers, scores: npt.NDArray[np.number] | None) -> Winners:
        return self.proposals(_given(scores, votes))

    @override
    def proposals(self, scores: Numbers) -> Whole:
        """Return the class of which a student is sure, for every query, or `NONE`."""
        sure = scores.max(axis=1) > self.confidence
        return np.where(sure, scores.argmax(axis=1), NONE)


def _given(scores: npt.NDArray[np.number] | None, votes: Numbers) -> Numbers:
    """Return a student's scores on these votes, (queries, classes)."""
    if scores is None:
        raise InvalidInputError("scores: a student's are needed")
    return checked_scores(scores, (votes.shape[0], votes.shape[1]))
