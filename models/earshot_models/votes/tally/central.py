"""The central tally: a trusted curator holds the votes and publishes only outcomes."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.rules.rule import VoteKind
from earshot_models.votes.tally.interface import (
    Answers,
    Bought,
    Purchase,
    Tally,
    times,
)
from earshot_protocol.overriding import override
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.progress import Progress, silent
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class Central(Tally):
    """A tally by a curator.

    Noise is independent for every query, and unpublished draws cost nothing: a run that was killed
    before an outcome was recorded draws it again.

    Attributes:
        scores: Probability of each class by a student, (queries, classes), if the rule takes them.
        random: Source of the noise; a seeded one belongs in simulations only.
    """

    scores: npt.NDArray[np.float64] | None = None
    random: RandomBytes = os.urandom

    @property
    @override
    def adaptive(self) -> bool:
        """Whether there is a check: only queries that pass pay for an answer."""
        return self.rule.check is not None

    @property
    @override
    def pays_for_answers(self) -> bool:
        return self.rule.check is not None

    @override
    def worst(self, queries: int) -> Bought:
        votes = Purchase(VoteKind.VOTES, queries)
        return (votes,) if self.rule.check is None else (Purchase(VoteKind.CHECK, queries), votes)

    @override
    def _events(self, bought: Bought, unit: Unit, weight: int) -> tuple[Event, ...]:
        return self.rule.curator_events(self.poll, times(bought), unit, weight)

    @override
    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        asked = self.voters.among(queries)
        scores = None if self.scores is None else self.scores[queries.start : queries.stop]
        found, voted = self.rule.decide(asked, self.weights, scores, self.random)
        answered = int(voted.sum())
        bought = [Purchase(VoteKind.VOTES, answered)] if answered else []
        if self.rule.check is not None:
            bought.insert(0, Purchase(VoteKind.CHECK, len(queries)))
        progress("queries", queries.stop, self.queries)
        return Answers(found, tuple(bought))
