"""Votes of 250 teachers on 200 queries in one sum, with real cryptography, and their noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from support.goodness import ALPHA_LIMIT, fit_p_value
from support.vote_rules import rule, tallied

from earshot_models.votes.electorate import electorate
from earshot_models.votes.rules.rule import VoteKind
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.tallies import Counter
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE

TEACHERS, QUERIES, CLASSES, SUMS = 250, 200, 10, 6
MECHANISM = rule("confident", 40.0, (200, 150.0))


@pytest.mark.slow
def test_noise_and_answers_of_250_teachers_on_200_queries() -> None:
    """A curator who has as much noise answers as many queries, and as many of them rightly."""
    generator = np.random.default_rng(7)
    queries = SUMS * QUERIES
    agree = generator.beta(2, 0.7, queries)
    chances = np.full((queries, CLASSES), 1 / CLASSES) * (1 - agree[:, None])
    chances[np.arange(queries), generator.integers(0, CLASSES, queries)] += agree
    counts = np.array([generator.multinomial(TEACHERS, each) for each in chances])
    plurality = counts.argmax(axis=1)
    made = tallied(Counter.FEDERATED, MECHANISM, electorate(counts, False), at_once=QUERIES)
    found = [made.ask(range(at, at + QUERIES)) for at in range(0, queries, QUERIES)]
    survivors = 225
    for kind, exact, deviation, cell in (
        (VoteKind.VOTES, counts, 40.0, 1),
        (VoteKind.CHECK, None, 150.0, 30),
    ):
        noise = []
        for at, answers in enumerate(found):
            own = slice(at * QUERIES, (at + 1) * QUERIES)
            (seen,) = (each for each in answers.sights if each.kind is kind)
            assert seen.voters == TEACHERS
            if exact is None:
                proposed = next(
                    each for each in answers.sights if each.kind is VoteKind.VOTES
                ).total.argmax(axis=1)
                truth = np.take_along_axis(counts[own], proposed[:, None], axis=1)
            else:
                truth = exact[own]
            noise.append((seen.total - truth).ravel())
        drawn = np.concatenate(noise)
        rate = deviation**2 / 2 * TEACHERS / survivors
        reach = int(12 * deviation)
        law = stats.skellam.pmf(np.arange(-reach, reach), rate, rate).reshape(-1, cell).sum(axis=1)
        support = np.arange(-reach // cell, reach // cell)
        assert fit_p_value(drawn // cell, law, support) > ALPHA_LIMIT
    outcomes = np.concatenate([each.outcomes for each in found])
    more = (TEACHERS / survivors) ** 0.5
    alike = rule("confident", 40.0 * more, (200, 150.0 * more))
    weights = np.ones(TEACHERS, dtype=np.int64)
    random = np.random.default_rng(8).bytes
    central = Central(alike, electorate(counts, False), weights, random=random).ask(range(queries))
    answered, alone = outcomes != NONE, central.outcomes != NONE
    # A check of a proposal that is wrong for once looks at fewer votes: a little less passes.
    assert 0.85 * alone.sum() < answered.sum() < 1.1 * alone.sum()
    right = (outcomes == plurality)[answered].mean()
    assert right > (central.outcomes == plurality)[alone].mean() - 0.02
    for unit in (Unit.PHONE, Unit.REPLACED_PHONE):
        assert len(made.events(found[0].bought, unit)) == 2
