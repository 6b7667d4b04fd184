"""The federated tally: ballots go through secure sums, so that no party ever holds a vote.

The server sees noisy sums. Winners and thresholds computed from them cost nothing more, and no
data-dependent bound applies. The maximum of a noisy histogram is no check, as noise raises the
largest of many counts: in a second sum, teachers state whether they agree with one proposed answer,
and that number is compared with the threshold. Where noise is small relative to the threshold,
threshold rules can do without the second sum (`VotingRule.bar`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from earshot_models.votes.rules.rule import Passing, VoteKind
from earshot_models.votes.tally.interface import (
    Answers,
    Bought,
    Purchase,
    Sight,
    Tally,
)
from earshot_models.votes.tally.secure_sums import SecureSums, draw_vanishing
from earshot_protocol.arrays import Whole
from earshot_protocol.overriding import override
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.progress import Progress, silent
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Ballot
from earshot_protocol.voting.vote_sums import VoteSum


@dataclass(frozen=True)
class Federated(Tally):
    """A tally by secure sums; a teacher of weight 0 sends noise alone.

    Where a student proposes answers, teachers check those first; queries that fail go into a
    histogram, whose winner is the answer.

    Attributes:
        sums: Secure sums, with real cryptography, in this process.
        delta: Value of δ for which costs are stated.
        random: Random bytes by the names of a sum and of a teacher, deterministic, so that an
            interrupted sum continues with the same noise.
        vanishing: Share of the teachers that vanish during each sum.
        proposals: Answers of a student, (queries,), `NONE` where it has none; None without a
            student.
        at_once: Queries of one sum.
    """

    sums: SecureSums
    delta: float
    random: Callable[..., RandomBytes]
    vanishing: float = 0.0
    proposals: Whole | None = None
    at_once: int = field(default=200, kw_only=True)

    @property
    @override
    def adaptive(self) -> bool:
        """Whether a student proposes answers: those that pass the check need no histogram."""
        return self.proposals is not None

    @property
    @override
    def pays_for_answers(self) -> bool:
        """False: the counts of a sum are seen before any check."""
        return False

    @override
    def worst(self, queries: int) -> Bought:
        votes = Purchase(VoteKind.VOTES, queries)
        return (votes,) if self.rule.check is None else (votes, Purchase(VoteKind.CHECK, queries))

    @override
    def _events(self, bought: Bought, unit: Unit, weight: int) -> tuple[Event, ...]:
        """Return one event per sum."""
        return tuple(self.summed(each, weight).event(unit) for each in bought)

    def summed(self, purchase: Purchase, weight: int) -> BallotSum | VoteSum:
        """Return the sum that was bought, as a teacher of this weight accounts for it."""
        survivors = self.sums.crowd.honest_survivors
        return self.rule.summed(
            self.poll, purchase.kind, purchase.queries, weight, self.delta, survivors
        )

    @override
    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        """Answer some queries, with at most one sum of each kind."""
        numbers = np.array(queries)
        if self.proposals is not None:
            return self._ask_about(self.proposals[numbers], numbers, progress)
        seen = self._sum(VoteKind.VOTES, numbers, self._ballots(numbers), progress)
        found = self._read(seen)
        if self.rule.check is None:
            return Answers(found, (Purchase(VoteKind.VOTES, len(numbers)),), (seen,))
        proposed = self.rule.proposed(seen.total, found)
        checked = self._sum(VoteKind.CHECK, numbers, self._agreement(numbers, proposed), progress)
        return Answers(
            np.where(self._passed(checked), found, NONE),
            tuple(Purchase(each.kind, len(numbers)) for each in (seen, checked)),
            (seen, checked),
        )

    def _ask_about(self, proposed: Whole, numbers: Whole, progress: Progress) -> Answers:
        """Check a student's answers, and sum the votes on queries that fail."""
        found, sights = np.full(len(numbers), NONE), []
        asked = np.flatnonzero(proposed != NONE)
        if len(asked):
            agreement = self._agreement(numbers[asked], proposed[asked])
            checked = self._sum(VoteKind.CHECK, numbers[asked], agreement, progress, numbers[0])
            found[asked] = np.where(self._passed(checked), proposed[asked], NONE)
            sights.append(checked)
        open_ones = np.flatnonzero(found == NONE)
        if len(open_ones):
            rest = numbers[open_ones]
            seen = self._sum(VoteKind.VOTES, rest, self._ballots(rest), progress, numbers[0])
            found[open_ones] = self._read(seen)
            sights.append(seen)
        bought = tuple(Purchase(each.kind, len(each.queries)) for each in sights)
        return Answers(found, bought, tuple(sights))

    def _ballots(self, numbers: Whole) -> Whole:
        """Return all teachers' inputs to a sum of votes, (teachers, queries, entries)."""
        return self._weighed(self.rule.ballot(self.poll), self.voters.predictions[:, numbers])

    def _agreement(self, numbers: Whole, proposed: Whole) -> Whole:
        """Return all teachers' inputs to a check of proposals, (teachers, queries, entries)."""
        own = self.voters.predictions[:, numbers]
        agree = self.rule.agreeing(self.poll, own, proposed)
        return self._weighed(self.rule.check_ballot(self.poll), agree)

    def _weighed(self, ballot: Ballot, answers: Whole) -> Whole:
        return self.weights[:, None, None] * ballot.cast(answers)

    def _sum(
        self,
        kind: VoteKind,
        numbers: Whole,
        inputs: Whole,
        progress: Progress,
        block: int | None = None,
    ) -> Sight:
        """Run one sum, named by its kind and by the first query of its block."""
        name = (kind, int(numbers[0] if block is None else block))
        crowd = self.sums.crowd
        opened = self.sums.run(
            self.summed(Purchase(kind, len(numbers)), self.heaviest),
            inputs,
            lambda teacher: self.random(*name, teacher),
            draw_vanishing(crowd, self.vanishing, self.random(*name, "vanishing")),
            progress,
        )
        total = opened.total.reshape(len(numbers), -1)
        voters = int(self.weights[list(opened.survivors)].sum())
        return Sight(kind, tuple(numbers.tolist()), total, voters)

    def _read(self, seen: Sight) -> Whole:
        return self.rule.read(self.poll, seen.total, seen.voters, int(self.weights.sum()))

    def _passed(self, checked: Sight) -> Passing:
        """Return whether enough teachers agree: (queries,), or (queries, labels)."""
        enough = self.rule.check.threshold if self.rule.check else 0.0
        passed: Passing = checked.total >= enough
        # One number per query decides for all labels.
        return passed if self.rule.several else passed[:, 0]
