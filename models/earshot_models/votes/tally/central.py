"""The central tally: a curator whom all trust holds the votes and publishes outcomes alone."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism, Name
from earshot_models.votes.rules.multi_winner import BinaryVoting, ClippedVoting, PowersetVoting
from earshot_models.votes.rules.winners import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from earshot_models.votes.tally import threshold_rules
from earshot_models.votes.tally.interface import (
    Answers,
    Bought,
    Kind,
    Progress,
    Purchase,
    Whole,
    silent,
)
from earshot_models.votes.tally.votes import Electorate
from earshot_protocol.privacy.events import Event, Pure, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.noisy_counts import ODDS
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, OneHot

Passing = npt.NDArray[np.bool_]
SeveralWinners = BinaryVoting | ClippedVoting | PowersetVoting


@dataclass(frozen=True)
class Central:
    """A `Tally` by a curator.

    Noise is fresh for every query, and what was drawn and not published costs nothing: a run that
    was killed before an outcome was written down draws it anew.

    Attributes:
        mechanism: which, and with how much noise.
        voters: the teachers.
        weights: of each, int64 (teachers,); all 1 where several labels may win.
        scores: what a student finds probable, (queries, classes), for `Name.INTERACTIVE`.
        random: source of the noise; a seeded one belongs in simulations only.
        at_once: queries whose outcomes are written down together.
    """

    mechanism: Mechanism
    voters: Electorate
    weights: Whole
    scores: npt.NDArray[np.float64] | None = None
    random: RandomBytes = os.urandom
    at_once: int = 256

    @property
    def queries(self) -> int:
        """See `Tally.queries`."""
        return self.voters.queries

    @property
    def adaptive(self) -> bool:
        """See `Tally.adaptive`: an answer is paid for where the check passes."""
        return self.mechanism.check is not None

    @property
    def pays_for_answers(self) -> bool:
        """See `Tally.pays_for_answers`."""
        return self.mechanism.check is not None

    def worst(self, queries: int) -> Bought:
        """See `Tally.worst`."""
        votes = Purchase(Kind.VOTES, queries)
        return (votes,) if self.mechanism.check is None else (Purchase(Kind.CHECK, queries), votes)

    def events(self, bought: Bought, unit: Unit, weight: int | None = None) -> tuple[Event, ...]:
        """See `Tally.events`: all Gaussian noise is one event, whatever the votes are.

        A winner by Laplace noise costs γ for each vote by which a count may differ, which may go
        from one class to another; where a teacher is left out all counts change in one direction,
        which costs γ once.
        """
        own = self.mechanism
        heaviest = own.largest_weight if weight is None else weight
        if own.name in THRESHOLDS:
            return threshold_rules.events(own, bought, unit) if heaviest else ()
        # Sets of labels are not listed here: a vote for one of them is one, however many there are.
        ballot = OneHot(2) if own.name is Name.POWERSET else own.ballot
        times = {kind: sum(each.queries for each in bought if each.kind is kind) for kind in Kind}
        if own.name is Name.LNMAX:
            cost = heaviest * ballot.l1(unit) / own.deviation
            return (Pure(cost, times[Kind.VOTES]),) if cost and times[Kind.VOTES] else ()
        rho = times[Kind.VOTES] * _rho(ballot.l2(unit) / ballot.vote, own.deviation)
        if own.check is not None:
            rho += times[Kind.CHECK] * _rho(own.check_ballot.l2(unit), own.check.deviation)
        events: tuple[Event, ...] = (ZeroConcentrated(heaviest**2 * rho),) if rho else ()
        if own.name is Name.POWERSET and times[Kind.VOTES]:  # the coin of sets that nobody casts
            events += (Pure(2 * ODDS, times[Kind.VOTES]),)
        return events if heaviest else ()

    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        """See `Tally.ask`."""
        asked = self.voters.among(queries)
        found, voted = self._several(asked) if self.mechanism.several else self._one(asked, queries)
        answered = int(voted.sum())
        bought = [Purchase(Kind.VOTES, answered)] if answered else []
        if self.mechanism.check is not None:
            bought.insert(0, Purchase(Kind.CHECK, len(queries)))
        progress("queries", queries.stop, self.queries)
        return Answers(found, tuple(bought))

    def _one(self, asked: Electorate, queries: range) -> tuple[Whole, Passing]:
        """Winners, and of which queries votes were paid for."""
        own, check, votes = self.mechanism, self.mechanism.check, asked.counts(self.weights)
        if own.name is Name.LNMAX:
            found = LNMax(1 / own.deviation).winners(votes, self.random)
        elif check is None:
            found = GNMax(own.deviation).winners(votes, self.random)
        elif own.name is Name.INTERACTIVE and self.scores is not None:
            sure = own.confidence or 0.0
            interactive = InteractiveGNMax(check.threshold, check.deviation, own.deviation, sure)
            scores = self.scores[queries.start : queries.stop]
            answers = interactive.answers(votes, scores, self.random)
            return answers.winners, answers.voted
        else:
            confident = ConfidentGNMax(check.threshold, check.deviation, own.deviation)
            found = confident.winners(votes, self.random)
        return found, found != NONE

    def _several(self, asked: Electorate) -> tuple[Whole, Passing]:
        """Labels, and of which queries votes were paid for: of all labels, if one passes."""
        if self.mechanism.name in THRESHOLDS:
            against = threshold_rules.voting(self.mechanism, self.voters.teachers)
            outputs = asked.predictions / self.voters.steps
            found = against.winners(against.votes(outputs), self.random)
            return found, (found != NONE).any(axis=1)
        voting = self.voting
        if isinstance(voting, PowersetVoting):
            found = voting.winners(voting.votes(asked.predictions), self.random)
        else:
            found = voting.winners(voting.votes(asked.predictions), self.random)
        return found, (found != NONE).any(axis=1)

    @property
    def voting(self) -> SeveralWinners:
        """What draws noise and says which labels win."""
        own, check, teachers = self.mechanism, self.mechanism.check, self.voters.teachers
        match own.name:
            case Name.BINARY:
                return BinaryVoting(teachers, own.deviation, check)
            case Name.TAU:
                return ClippedVoting(teachers, own.tau or 0.0, own.norm, own.deviation, check)
        return PowersetVoting(own.classes, own.deviation, check)


def _rho(distance: float, deviation: float) -> float:
    """ρ of Gaussian noise on what neighbours change by so much (Bun and Steinke 2016, Prop. 6)."""
    return distance**2 / (2 * deviation**2)
