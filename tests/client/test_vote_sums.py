from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parameters import learning_parameters
from support.phase_tasks import sum_of

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.learning import CENTROID_VOTE, LABEL_VOTE, Budget, PhaseParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.voting.sums import with_noise

PARAMETERS = learning_parameters(
    phones=300,
    top_global_centroids=6,
    centroid_votes=3,
    label_votes=2,
    dropout=0.1,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.8),
)


def mechanism(vote: str, parameters: PhaseParameters = PARAMETERS) -> BallotSum:
    ballots = parameters.plan().mechanisms[vote]
    assert isinstance(ballots, BallotSum)
    return ballots


def test_the_sum_takes_its_numbers_from_the_phase() -> None:
    chosen = sum_of(PARAMETERS, LABEL_VOTE, (6, 2))
    assert (chosen.phones, chosen.dropout, chosen.corrupted) == (300, 0.1, 0.05)
    assert (chosen.shape, chosen.length, chosen.precision) == ((6, 2), 12, 0)
    chosen.check()


def negative_binomial_tail(above: int, shares: int, scale: float) -> float:
    """P(X > above) for X ~ NB(1/shares, 1 − α), α = e^(−1/scale), term by term."""
    order, alpha = 1 / shares, math.exp(-1 / scale)
    term, terms = (1 - alpha) ** order, []
    for i in range(20_000):
        if i > above:
            terms.append(term)
        term *= alpha * (i + order) / (i + 1)
    return math.fsum(terms)


@pytest.mark.parametrize("vote", [CENTROID_VOTE, LABEL_VOTE])
@pytest.mark.parametrize("shape", [(1,), (40,), (6, 2)])
def test_a_share_beyond_the_bound_is_as_good_as_impossible(
    vote: str, shape: tuple[int, ...]
) -> None:
    noise = mechanism(vote)
    bound = sum_of(PARAMETERS, vote, shape).bound
    entries = PARAMETERS.phones * math.prod(shape)
    # |X − Y| > B needs X > B or Y > B.
    beyond = 2 * negative_binomial_tail(bound - noise.votes, noise.honest_survivors, noise.scale)
    assert 0 < entries * beyond <= 2.0**-80 * (1 + 1e-9)
    # And it is not wastefully far out, for every bit of it travels once per entry and phone.
    closer = 2 * negative_binomial_tail(
        bound - noise.votes - 1, noise.honest_survivors, noise.scale
    )
    assert entries * closer > 2.0**-80


@settings(max_examples=60)
@given(
    bound=st.integers(1, 40),
    epsilon=st.sampled_from([0.05, 0.5, 5.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_noisy_ballot_is_ballot_plus_share_within_the_bound(
    bound: int, epsilon: float, seed: int
) -> None:
    noise = BallotSum(epsilon, votes=2, honest_survivors=2)
    ballot = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.int64)
    noisy = with_noise(ballot, noise, bound, np.random.default_rng(seed).bytes)
    share = noise.noise_share((2, 3), np.random.default_rng(seed).bytes)
    assert noisy.dtype == np.int64
    assert np.abs(noisy).max() <= bound
    np.testing.assert_array_equal(noisy, np.minimum(np.maximum(ballot + share, -bound), bound))


def test_the_noise_of_all_honest_survivors_is_discrete_laplace_of_scale_two_over_epsilon() -> None:
    noise = mechanism(CENTROID_VOTE)
    assert noise.scale == 2 / 0.5
    random = np.random.default_rng(3).bytes
    bound = sum_of(PARAMETERS, CENTROID_VOTE, (2000,)).bound
    nothing = np.zeros(2000, dtype=np.int64)
    total = sum(
        with_noise(nothing, noise, bound, random) for _ in range(PARAMETERS.honest_survivors)
    )
    alpha = math.exp(-1 / noise.scale)
    variance = 2 * alpha / (1 - alpha) ** 2
    # The kurtosis of this law is about 6, so the variance of 2000 draws deviates by 5 per cent.
    assert np.var(total) == pytest.approx(variance, rel=0.2)
    assert abs(np.mean(total)) < 4 * math.sqrt(variance / 2000)
    assert np.mean(total == 0) == pytest.approx((1 - alpha) / (1 + alpha), abs=0.03)


@pytest.mark.parametrize("changed", [{"dropout": 0.6}, {"corrupted": 0.95}, {"phones": 2}])
def test_a_crowd_without_a_safe_graph_is_refused(changed: dict[str, float]) -> None:
    parameters = msgspec.structs.replace(PARAMETERS, **changed)
    part = PARAMETERS.plan().part(CENTROID_VOTE)
    assert isinstance(part, SecureSum)
    with pytest.raises(InvalidParametersError):
        parameters.sum_parameters(part, (5,))
