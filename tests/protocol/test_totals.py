"""What honest phones can add up to, against the exact law of their noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.voting.totals import IMPROBABLE, ImpossibleTotalError, check_total

PHONES = 100
VOTES = BallotSum(epsilon=0.5, votes=3, honest_survivors=85)
HISTOGRAM = BallotSum(epsilon=0.5, votes=20, honest_survivors=85, largest_entry=20)


def exact_tail(scale: float, order: float, size: int = 2**14) -> np.ndarray:
    """P(noise > T) for T = 0 … size − 1, by convolving two negative binomial laws term by term."""
    ratio = math.exp(-1 / scale)
    law = np.empty(size)
    law[0] = (1 - ratio) ** order
    for x in range(1, size):
        law[x] = law[x - 1] * ratio * (x - 1 + order) / x
    # P(X − Y > T) = Σ_y P(Y = y) P(X > T + y), summed without cancellation.
    beyond = np.cumsum(law[::-1])[::-1]
    return np.array([law[: size - t - 1] @ beyond[t + 1 :] for t in range(size // 8)])


@pytest.mark.parametrize("scale", [0.5, 4.0, 20.0])
@pytest.mark.parametrize("order", [1.0, 100 / 85, 12.0, 60.0])
def test_the_tail_is_never_too_short_and_hardly_too_long(scale: float, order: float) -> None:
    exact = exact_tail(scale, order)
    for probability in (2.0**-20, 2.0**-40, IMPROBABLE / 200):
        found = DiscreteLaplaceNoise(scale, order).tail_bound(probability)
        needed = int(np.argmax(exact <= probability))
        assert exact[found] <= probability
        assert needed <= found <= 1.1 * needed + 3 * scale + 2


def tails(mechanism: BallotSum, entries: int) -> tuple[int, int]:
    probability = IMPROBABLE / (2 * (entries + 1))
    return (
        mechanism.noise(PHONES).tail_bound(probability),
        mechanism.noise(entries * PHONES).tail_bound(probability),
    )


@pytest.mark.parametrize(("mechanism", "entry"), [(VOTES, 1), (HISTOGRAM, 20)])
def test_an_entry_beyond_what_honest_phones_add_up_to_is_refused(
    mechanism: BallotSum, entry: int
) -> None:
    tail, _ = tails(mechanism, 10)
    for value, possible in (
        (PHONES * entry + tail, True),
        (PHONES * entry + tail + 1, False),
        (-tail, True),
        (-tail - 1, False),
        (2**62, False),
        (-(2**62), False),
    ):
        total = np.zeros((5, 2), dtype=np.int64)
        total[3, 1] = value
        if possible:
            check_total(total, mechanism, PHONES)
        else:
            with pytest.raises(ImpossibleTotalError, match=f"an entry of the sum came to {value}"):
                check_total(total, mechanism, PHONES)


def test_more_votes_than_phones_have_are_refused_though_each_entry_could_be() -> None:
    _, tail = tails(VOTES, 10)
    most = PHONES * VOTES.votes + tail
    total = np.full(10, most // 10, dtype=np.int64)
    assert total.max() < PHONES
    total[0] += most - total.sum()
    check_total(total, VOTES, PHONES)
    total[0] += 1
    with pytest.raises(ImpossibleTotalError, match=f"all entries together .* came to {most + 1}"):
        check_total(total, VOTES, PHONES)


def test_sums_of_honest_phones_pass() -> None:
    random = np.random.default_rng(7).bytes
    for mechanism in (VOTES, HISTOGRAM):
        for most in (0, mechanism.largest_entry):
            ballot = np.zeros(12, dtype=np.int64)
            ballot[: mechanism.votes // max(1, most) if most else 0] = most
            total = np.sum(
                [ballot + mechanism.noise_share((12,), random) for _ in range(PHONES)], axis=0
            )
            check_total(total, mechanism, PHONES)
