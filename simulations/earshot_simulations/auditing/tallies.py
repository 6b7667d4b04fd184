"""Federated tallies of teachers' votes: real sums, audited from their server's view.

The cost of a sum is computed exactly, from the teachers' noise shares and ballots. Real sums are
also run, with every query as one trial: the server's noisy counts must not distinguish neighbouring
votes better than is proven and must have the claimed noise; the noises of votes and checks must be
independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.rule import UNITS, VoteKind
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Purchase
from earshot_models.votes.tally.secure_sums import SecureSums, TeacherCrowd
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.keyed_randomness import keyed
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.crowds import least_shares, noise_check
from earshot_simulations.auditing.findings import SAMPLED, Check, Result, Technique, p_said
from earshot_simulations.auditing.laws import Law
from earshot_simulations.auditing.neighbours import Vector
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.sampling import CONFIDENCE, fit, sampled_epsilon

QUERIES = 200
_STEP = 2e-4
_AT_ONCE = 2**14
_FIT = 1e-6
"""P-value below which a fit is rejected: a test fails wrongly in one audit of a million."""
_DEVIATIONS = 5.0
"""Deviations of a correlation that independent noise exceeds once in two million audits."""

PUBLISHED = ConfidentRule(sigma=40.0, threshold=200, check_sigma=150.0)
"""The parameters of Papernot et al. (2018) for 250 teachers."""
Source = Callable[..., RandomBytes]
"""Source of random bytes by a key and names."""


def audit_tallies(draws: int, seed: int) -> Iterator[Result]:
    """Audit the published parameters by the law of shares, and smaller ones by real sums.

    Args:
        draws: Queries of real sums, on each of two neighbouring electorates.
        seed: Seed of their noise.
    """
    yield from _exactly(PUBLISHED)
    yield from _really(draws, seed)
    yield reused_noise(draws, seed)


def _exactly(rule: ConfidentRule) -> Iterator[Result]:
    """Audit a sum of votes and one of a check, where neighbours differ in every query."""
    made = _tally(rule, 10, np.full((250, 1), NONE), bytes(32))
    shares = _shares(made.sums.crowd)
    for bought in made.worst(QUERIES):
        summed = made.summed(bought, 1)
        yield noise_check(f"{rule.name}, {bought.kind}", {shares: summed})
        law = noise_law(summed, shares)
        for unit in UNITS:
            losses = difference_loss(law, np.tile(_worst(bought.kind, unit), QUERIES), _STEP)
            case = f"{rule.name}, {bought.kind} of {QUERIES} queries, 250 teachers"
            yield vote_finding(summed, case, unit, losses)


def _worst(kind: VoteKind, unit: Unit) -> Vector:
    """Return a teacher's effect on a sum for one query: its vote is removed, or moved."""
    if kind is VoteKind.CHECK:
        return np.array([1])
    return np.array([1, 0] if unit is Unit.PHONE else [1, -1])


class _RealSums:
    """Real sums of a few teachers, as their server and a corrupted teacher see them.

    Neighbours differ in the first teacher. The last one reveals its noise to the server, so only
    the guaranteed noise is left. The votes of all others are known.
    """

    rule, classes = ConfidentRule(sigma=3.0, threshold=3, check_sigma=2.0), 3
    crowd = TeacherCrowd(6, dropout=0.0, corrupted=0.17)
    others = (0, 1, 2, 0, 0)

    def __init__(
        self,
        vote: int,
        queries: int,
        key: bytes,
        noise: Source = keyed,
        at_once: int = _AT_ONCE,
    ) -> None:
        self.counts = np.zeros((queries, self.classes), dtype=np.int64)
        """Noisy counts without the known votes and the known noise."""
        self.agreeing = np.zeros(queries, dtype=np.int64)
        """Numbers of agreeing teachers, without the known ones and the known noise."""
        self.proposed = np.zeros(queries, dtype=np.int64)
        predictions = np.tile(np.array([[vote], *([each] for each in self.others)]), queries)
        made = _tally(self.rule, self.classes, predictions, key, self.crowd, noise)
        for first in range(0, queries, at_once):
            block = range(first, min(queries, first + at_once))
            votes, check = made.ask(block).sights
            known, own = np.array(self.others), slice(block.start, block.stop)
            proposed = votes.total.argmax(axis=1)
            told = {
                each.kind: made.summed(Purchase(each.kind, len(block)), 1).noise_share(
                    each.total.shape, made.random(each.kind, first, self.crowd.teachers - 1)
                )
                for each in (votes, check)
            }
            base = np.bincount(known, minlength=self.classes)
            self.counts[own] = votes.total - base - told[VoteKind.VOTES]
            agreed = (known == proposed[:, None]).sum(axis=1)
            self.agreeing[own] = check.total[:, 0] - agreed - told[VoteKind.CHECK][:, 0]
            self.proposed[own] = proposed

    def noise(self, vote: int) -> tuple[Whole, Whole]:
        """Return the noise of counts and of the check, if the first teacher cast this vote."""
        counts = self.counts - (np.arange(self.classes) == vote)
        return counts, self.agreeing - (self.proposed == vote)


def _really(draws: int, seed: int) -> Iterator[Result]:
    key = np.random.default_rng(seed).bytes(32)
    one = _RealSums(0, draws, key)
    sums = _tally(
        _RealSums.rule, _RealSums.classes, np.zeros((6, 1), np.int64), key, _RealSums.crowd
    )
    parts = [sums.summed(Purchase(kind, 1), 1) for kind in (VoteKind.VOTES, VoteKind.CHECK)]
    laws = [noise_law(each, _shares(_RealSums.crowd)) for each in parts]
    for kind, part, law, noise in zip(
        (VoteKind.VOTES, VoteKind.CHECK), parts, laws, one.noise(0), strict=True
    ):
        yield noise_check(f"{kind} of real sums", {_shares(_RealSums.crowd): part})
        yield _fits(f"{kind}: the noise of real sums", law, noise.ravel())
    for unit, other in ((Unit.PHONE, NONE), (Unit.REPLACED_PHONE, 1)):
        two = _RealSums(other, draws, keyed(key, "neighbour")(32))
        losses = [
            sum(
                _log(law, here).reshape(draws, -1).sum(axis=1)
                - _log(law, there).reshape(draws, -1).sum(axis=1)
                for law, here, there in zip(laws, seen.noise(0), seen.noise(other), strict=True)
            )
            for seen in (one, two)
        ]
        yield composed_finding(
            "confident, votes and check of one query: 6 teachers, of which one is corrupted",
            unit,
            sum(each.cost(unit).epsilon for each in parts),
            tuple(each.event(unit) for each in parts),
            sampled_epsilon(np.asarray(losses[0]), np.asarray(losses[1]), DELTA),
            Technique(SAMPLED, "likelihood ratios of what real sums showed", draws, CONFIDENCE),
        )


def _shares(crowd: TeacherCrowd) -> int:
    return least_shares(crowd.teachers, crowd.dropout, crowd.corrupted)


def _log(law: Law, values: Whole) -> Numbers:
    """Return ln of the probability of each value; beyond the law's ends, that of its end."""
    places = np.clip(values - law.first, 0, len(law.masses) - 1)
    return np.asarray(np.log(law.masses)[places])


def _fits(case: str, law: Law, noise: Whole) -> Check:
    found, cells = fit(law, noise)
    return Check(
        case,
        f"the law of {_shares(_RealSums.crowd)} shares, p ≥ {_FIT:g}",
        p_said(found),
        found >= _FIT,
        f"χ² test of {len(noise)} entries",
        power.of_fit(cells, len(noise), _FIT),
    )


def reused_noise(
    draws: int, seed: int, noise: Source = keyed, whose: str = "their own noise"
) -> Check:
    """Check that no sum repeats the noise of another, since all sums are published.

    Args:
        draws: Queries, in two sums of votes and two of a check.
        seed: Seed of the noise.
        noise: Source of random bytes by a key and the names of kind, sum and teacher.
        whose: Description of the noise.
    """
    queries = min(draws, _AT_ONCE) // 2
    key = np.random.default_rng(seed).bytes(32)
    seen = _RealSums(0, 2 * queries, key, noise, queries)
    # Teachers draw in the order of entries, so repeated draws are in the first entries.
    first, second, third, fourth = (
        each.reshape(2, -1)[block, :queries] for block in (0, 1) for each in seen.noise(0)
    )
    pairs = ((first, second), (first, third), (second, fourth), (third, fourth))
    found = max(abs(float(np.corrcoef(*pair)[0, 1])) for pair in pairs) * math.sqrt(queries)
    return Check(
        f"sums with {whose}, real sums",
        f"no correlation with the noise of another beyond {_DEVIATIONS:g} deviations",
        f"{found:.1f} deviations",
        found <= _DEVIATIONS,
        f"{queries} queries in each of four real sums",
        power.of_correlation(queries, _DEVIATIONS),
    )


def _tally(
    rule: ConfidentRule,
    classes: int,
    predictions: Whole,
    key: bytes,
    crowd: TeacherCrowd | None = None,
    noise: Source = keyed,
) -> Federated:
    return Federated(
        rule,
        Electorate(predictions, classes),
        np.ones(len(predictions), dtype=np.int64),
        SecureSums(TeacherCrowd(len(predictions)) if crowd is None else crowd),
        DELTA,
        lambda *names: noise(key, *names),
    )
