"""The federated tally: teachers' ballots go through secure sums, and nobody ever holds a vote.

The server sees noisy sums. What it makes of them, a winner or a threshold, costs nothing more, and
nothing that looks at votes makes them cheaper. The maximum of a noisy histogram is no check, for
noise has many counts to raise: teachers are asked a second time, whether they agree with one
proposed answer, and that number alone is compared with the threshold. Where noise is small beside
the threshold, votes against thresholds can do without that second sum (`Mechanism.bar`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism, Name
from earshot_models.votes.tally.interface import (
    Answers,
    Bought,
    Kind,
    Progress,
    Purchase,
    Sight,
    Whole,
    silent,
)
from earshot_models.votes.tally.reading import outcomes
from earshot_models.votes.tally.secure_sums import SecureSums, draw_vanishing
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Ballot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum


@dataclass(frozen=True)
class Federated:
    """A `Tally` by secure sums.

    Where a student proposes answers, teachers are asked about those first, and only what they do
    not agree on goes into a histogram, whose winner is the answer then.

    Attributes:
        mechanism: which, and with how much noise.
        predictions: of all teachers: classes (teachers, queries), or zeros and ones (teachers,
            queries, labels), or steps of a vote. A class may be `NONE`.
        sums: run with real cryptography, in this process.
        delta: for which costs are stated.
        random: random bytes by the names of a sum and of a teacher: the same for the same names, so
            that a sum that was cut short goes on with the noise that it had.
        weights: of each teacher, int64 (teachers,); one of weight 0 sends noise alone.
        vanishing: share of the teachers that vanish in the midst of each sum.
        proposals: a student's answers, (queries,), `NONE` where it has none; None without student.
        at_once: queries of one sum.
    """

    mechanism: Mechanism
    predictions: Whole
    sums: SecureSums
    delta: float
    random: Callable[..., RandomBytes]
    weights: Whole
    vanishing: float = 0.0
    proposals: Whole | None = None
    at_once: int = 200

    @property
    def queries(self) -> int:
        """See `Tally.queries`."""
        return int(self.predictions.shape[1])

    @property
    def adaptive(self) -> bool:
        """See `Tally.adaptive`: what teachers agree on needs no histogram."""
        return self.proposals is not None

    @property
    def pays_for_answers(self) -> bool:
        """See `Tally.pays_for_answers`: the counts of a sum are seen before any check."""
        return False

    def worst(self, queries: int) -> Bought:
        """See `Tally.worst`."""
        votes = Purchase(Kind.VOTES, queries)
        return (votes,) if self.mechanism.check is None else (votes, Purchase(Kind.CHECK, queries))

    def events(self, bought: Bought, unit: Unit, weight: int | None = None) -> tuple[Event, ...]:
        """See `Tally.events`: one event a sum."""
        heaviest = self.mechanism.largest_weight if weight is None else weight
        if heaviest == 0:
            return ()
        return tuple(self.mechanism_of(each, heaviest).event(unit) for each in bought)

    def mechanism_of(self, purchase: Purchase, weight: int) -> BallotSum | VoteSum:
        """The sum that was bought, as a teacher of this weight accounts for it."""
        own, survivors = self.mechanism, self.sums.crowd.honest_survivors
        if own.name is Name.LNMAX:
            votes = weight * purchase.queries
            return BallotSum(2 / own.deviation, votes, survivors, largest_entry=weight)
        ballot, deviation = own.ballot, own.deviation
        if purchase.kind is Kind.CHECK and own.check is not None:
            ballot, deviation = own.check_ballot, own.check.deviation
        ballot = Weighted(ballot, weight) if weight > 1 else ballot
        return VoteSum(ballot, purchase.queries, deviation, self.delta, survivors)

    def ask(self, queries: range, progress: Progress = silent) -> Answers:
        """See `Tally.ask`: in one sum of each kind at most."""
        numbers = np.array(queries)
        if self.proposals is not None:
            return self._ask_about(self.proposals[numbers], numbers, progress)
        seen = self._sum(Kind.VOTES, numbers, self._ballots(numbers), progress)
        found = self._read(seen)
        if self.mechanism.check is None:
            return Answers(found, (Purchase(Kind.VOTES, len(numbers)),), (seen,))
        proposed = seen.total.argmax(axis=1) if self.mechanism.name in THRESHOLDS else found
        checked = self._sum(Kind.CHECK, numbers, self._agreement(numbers, proposed), progress)
        return Answers(
            np.where(self._passed(checked), found, NONE),
            tuple(Purchase(each.kind, len(numbers)) for each in (seen, checked)),
            (seen, checked),
        )

    def _ask_about(self, proposed: Whole, numbers: Whole, progress: Progress) -> Answers:
        """Ask teachers about a student's answers, and for their own where they do not agree."""
        found, sights = np.full(len(numbers), NONE), []
        asked = np.flatnonzero(proposed != NONE)
        if len(asked):
            agreement = self._agreement(numbers[asked], proposed[asked])
            checked = self._sum(Kind.CHECK, numbers[asked], agreement, progress, numbers[0])
            found[asked] = np.where(self._passed(checked), proposed[asked], NONE)
            sights.append(checked)
        open_ones = np.flatnonzero(found == NONE)
        if len(open_ones):
            rest = numbers[open_ones]
            seen = self._sum(Kind.VOTES, rest, self._ballots(rest), progress, numbers[0])
            found[open_ones] = self._read(seen)
            sights.append(seen)
        bought = tuple(Purchase(each.kind, len(each.queries)) for each in sights)
        return Answers(found, bought, tuple(sights))

    def _ballots(self, numbers: Whole) -> Whole:
        """What all teachers put into a sum of votes, (teachers, queries, entries)."""
        return self._weighed(self.mechanism.ballot, self.predictions[:, numbers])

    def _agreement(self, numbers: Whole, proposed: Whole) -> Whole:
        """What all teachers put into a check of proposed answers, (teachers, queries, entries).

        Of thresholds the label with most votes is proposed, of all others the answer.
        """
        own = self.predictions[:, numbers]
        if self.mechanism.name in THRESHOLDS:
            own = self.mechanism.ballot.cast(own)  # a label that does not count is not agreed on
            agree = np.take_along_axis(own, proposed[None, :, None], axis=-1)[..., 0] == 1
        else:
            agree = own == proposed
        if self.mechanism.name is Name.POWERSET:
            agree = agree.all(axis=-1)
        return self._weighed(self.mechanism.check_ballot, agree)

    def _weighed(self, ballot: Ballot, answers: Whole) -> Whole:
        return self.weights[:, None, None] * ballot.cast(answers)

    def _sum(
        self,
        kind: Kind,
        numbers: Whole,
        inputs: Whole,
        progress: Progress,
        block: int | None = None,
    ) -> Sight:
        """Run one sum; it is known by its kind and by the first query of its block."""
        name = (kind, int(numbers[0] if block is None else block))
        crowd = self.sums.crowd
        opened = self.sums.run(
            self.mechanism_of(Purchase(kind, len(numbers)), self.mechanism.largest_weight),
            inputs,
            lambda teacher: self.random(*name, teacher),
            draw_vanishing(crowd, self.vanishing, self.random(*name, "vanishing")),
            progress,
        )
        total = opened.total.reshape(len(numbers), -1)
        voters = int(self.weights[list(opened.survivors)].sum())
        return Sight(kind, tuple(numbers.tolist()), total, voters)

    def _read(self, seen: Sight) -> Whole:
        return outcomes(self.mechanism, seen.total, seen.voters, int(self.weights.sum()))

    def _passed(self, checked: Sight) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether enough teachers agree: (queries,), or (queries, labels)."""
        enough = self.mechanism.check.threshold if self.mechanism.check else 0.0
        passed = checked.total >= enough
        # One number of a query speaks for all of its labels.
        return passed if self.mechanism.several else passed[:, 0]
