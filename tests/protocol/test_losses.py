"""Losses of purely private releases, against laws enumerated by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Pure,
    ZeroConcentrated,
)
from earshot_protocol.privacy.losses import Laplace, PureLosses, dominating

MARGIN = 1e-9


def enumerated(release: Laplace) -> list[tuple[float, float]]:
    """Loss and probability of every outcome of one time, from the law of the noise itself."""
    decay, shift = release.decay, release.shift
    ratio = math.exp(-decay)
    reach = shift + math.ceil(60 / decay)
    return [
        (decay * (abs(k - shift) - abs(k)), (1 - ratio) / (1 + ratio) * ratio ** abs(k))
        for k in range(-reach, reach + 1)
    ]


def exact_delta(releases: list[Laplace], epsilon: float) -> float:
    together = {0.0: 1.0}
    for release in (each for each in releases for _ in range(each.times)):
        grown: dict[float, float] = {}
        one: dict[float, float] = {}
        for loss, chance in enumerated(release):
            one[round(loss, 12)] = one.get(round(loss, 12), 0.0) + chance
        for (loss, chance), (more, other) in itertools.product(together.items(), one.items()):
            key = round(loss + more, 12)
            grown[key] = grown.get(key, 0.0) + chance * other
        together = grown
    return sum(chance * max(0.0, -math.expm1(epsilon - loss)) for loss, chance in together.items())


@given(
    st.lists(
        st.builds(Laplace, st.floats(0.05, 2), st.integers(1, 4), st.integers(1, 3)),
        min_size=1,
        max_size=3,
    ),
    st.floats(0, 1),
)
def test_epsilon_is_never_below_the_exact_one_and_close_to_it(
    releases: list[Laplace], part: float
) -> None:
    largest = sum(release.largest_loss for release in releases)
    epsilon = part * largest
    slightly_less = exact_delta(releases, max(0.0, epsilon - 1e-3 * largest))
    delta = slightly_less + 1e-3 * exact_delta(releases, epsilon) + MARGIN
    found = PureLosses(releases).epsilon(delta)
    assert exact_delta(releases, found) <= delta + 1e-11
    assert found <= epsilon * (1 + 1e-9)


@given(st.floats(0.1, 5), st.integers(1, 60), st.sampled_from([1e-9, 1e-6, 1e-2]))
def test_many_times_the_same_is_never_below_the_exact_one(
    epsilon: float, times: int, delta: float
) -> None:
    release = Laplace(epsilon, 1, times)
    found = PureLosses([release]).epsilon(delta)
    assert exact_delta([release], found) <= delta * (1 + 1e-6)
    assert found <= epsilon * times * 1.001


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-6])
def test_one_randomized_response_is_its_closed_form(delta: float) -> None:
    """Between no loss and ε, its δ is (1 − e^(x − ε)) / (1 + e^(−ε))."""
    expected = 1 + math.log1p(-delta * (1 + math.exp(-1)))
    assert PureLosses([Laplace(1.0, 1, 1)]).epsilon(delta) == pytest.approx(expected, rel=1e-6)


def test_what_loses_less_than_a_step_of_the_grid_loses_one() -> None:
    """Of a thousand losses of one step on either side, about √1000 steps are left."""
    losses = PureLosses([Laplace(400.0, 1, 1), Laplace(1e-4, 1, 1000)])
    step = 400.1 / 2**17
    found = losses.epsilon(1e-6) - 400
    assert 1e-4 * math.sqrt(1000) < found < 5 * step * math.sqrt(1000)


def test_what_dominates_an_event() -> None:
    assert dominating(Pure(0.5, 3)) == (0.5, 1, 3)
    assert dominating(BoundedRange(0.5, 3)) == (0.5, 1, 3)
    assert dominating(Approximate(0.5, 1e-9)) == (0.5, 1, 1)
    assert dominating(DiscreteLaplaceSum(4.0, 2.7)) == (0.25, 2, 1)
    with pytest.raises(TypeError, match="ZeroConcentrated"):
        dominating(ZeroConcentrated(0.1))


def test_nothing_lost_is_nothing_lost() -> None:
    for releases in ([], [Laplace(0.0, 1, 5)], [Laplace(1.0, 0, 5)]):
        losses = PureLosses(releases)
        assert losses.epsilon(1e-6) == 0.0


def test_releases_that_lose_nothing_change_nothing() -> None:
    releases = [Laplace(0.7, 1, 3), Laplace(0.2, 1, 5)]
    beside = PureLosses([*releases, Laplace(0.0, 1, 1000)])
    for delta in (1e-9, 1e-3):
        assert beside.epsilon(delta) == PureLosses(releases).epsilon(delta)


def test_many_small_losses_beside_a_large_one() -> None:
    losses = PureLosses([Laplace(50.0, 1, 2), Laplace(0.01, 1, 400)])
    assert 100 < losses.epsilon(1e-6) < 101.6
    assert np.all(np.diff([losses.epsilon(each) for each in np.geomspace(1e-9, 1, 200)]) <= 0)


@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-300])
def test_next_to_nothing_alone_costs_next_to_nothing(tiny: float) -> None:
    assert 0 <= PureLosses([Laplace(tiny, 1, 3)]).epsilon(1e-6) < 1e-290


@pytest.mark.parametrize("tiny", [1e-6, 1e-9, 1e-17, 5e-324])
def test_next_to_nothing_beside_a_large_loss_costs_next_to_nothing(tiny: float) -> None:
    """A server may name any ε; what is below a step of the grid counts as one."""
    alone = PureLosses([Laplace(3.0, 1, 1)]).epsilon(1e-6)
    together = PureLosses([Laplace(3.0, 1, 1), Laplace(tiny, 1, 1)]).epsilon(1e-6)
    assert alone * (1 - 1e-6) <= together <= alone + tiny + 0.01
