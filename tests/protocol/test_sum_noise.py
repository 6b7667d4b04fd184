"""Noise that two operators add whole: its laws, its cost, and how far it reaches."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from support.parameters import discovery_parameters, learning_parameters

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases import discovery_budget
from earshot_protocol.phases.discovery import LABELS, cells
from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.privacy.events import Pure, ZeroConcentrated
from earshot_protocol.privacy.laws import DiscreteGaussianNoise, DiscreteLaplaceNoise
from earshot_protocol.privacy.mechanisms import GRID, BallotSum, Cost, Unit, VectorSum
from earshot_protocol.privacy.sum_noise import (
    FINENESS,
    WholeGaussian,
    WholeLaplace,
    gaussian,
    laplace,
)
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.voting.sums import with_noise
from earshot_protocol.voting.teacher_ballots import OneHot
from earshot_protocol.voting.vote_sums import VoteSum

BOTH = SummationName.TWO_OPERATORS


def gaussian_law(variance: float, reach: int) -> npt.NDArray[np.float64]:
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values.astype(np.float64) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("variance", [1.0, 7.0, 300.0])
def test_the_law_of_both_operators_is_that_of_two_independent_draws(variance: float) -> None:
    reach = int(12 * math.sqrt(variance)) + 8
    one = gaussian_law(variance, reach)
    law, tail = DiscreteGaussianNoise(variance, 2), np.cumsum(np.convolve(one, one)[::-1])[::-1]
    values = np.arange(-2 * reach, 2 * reach + 1)
    np.testing.assert_allclose(law.at_least(values), tail, atol=1e-11)
    assert law.deviation == pytest.approx(math.sqrt(2 * variance))
    assert law == WholeGaussian.of(variance).law(1000)
    assert law.times(3) == DiscreteGaussianNoise(variance, 6)


@pytest.mark.parametrize("deviation", [1e5, 3e6])
def test_much_noise_of_both_operators_is_all_but_normal(deviation: float) -> None:
    law = DiscreteGaussianNoise(deviation**2 / 2, 2)
    values = (np.array([0.5, 1, 2, 4]) * deviation).astype(np.int64)
    assert law.at_least(values) == pytest.approx(stats.norm.sf(values / deviation), rel=0.005)


@pytest.mark.parametrize("deviation", [0.3, 0.5, 0.7, 1.0, 4.0])
def test_the_bound_on_little_noise_is_nearly_that_of_a_normal_law(deviation: float) -> None:
    """exp(−t² / 2σ²) at its best tilt, of which twentieths are tried, up to the next integer."""
    law = DiscreteGaussianNoise(deviation**2, 1)
    best = deviation * math.sqrt(2 * 40 * math.log(2))
    assert best * (1 - 1e-9) <= law.tail_bound(2.0**-40) <= math.ceil(1.01 * best) + 1


@pytest.mark.parametrize("probability", [1e-3, 1e-9, 2.0**-40])
def test_no_tail_is_heavier_than_its_bound(probability: float) -> None:
    reach = 500
    one = gaussian_law(50.0, reach)
    both = np.convolve(one, one)
    bound = DiscreteGaussianNoise(50.0, 2).tail_bound(probability)
    assert both[2 * reach + bound + 1 :].sum() <= probability
    assert bound < 10 * math.sqrt(2 * 50)


@pytest.mark.parametrize("length", [1, 640, 2**24])
@pytest.mark.parametrize("variance", [1, 400, 16_500**2])
def test_words_have_room_for_gaussian_noise(length: int, variance: int) -> None:
    reach = WholeGaussian.of(variance).reach(length)
    # P(N > t) ≤ exp(−t² / 4σ²), on both sides and for every entry.
    exponent = reach**2 / (4 * variance) / math.log(2)
    assert exponent >= 81 + math.log2(length)
    assert exponent < 1.05 * (84 + math.log2(length)) + 3 * 90 / math.sqrt(variance)


@pytest.mark.parametrize("length", [1, 640, 2**24])
@pytest.mark.parametrize("scale", [0.5, 4.0, 1000.0])
def test_words_have_room_for_laplace_noise(length: int, scale: float) -> None:
    noise = WholeLaplace.of(scale)
    # If both stay below half of it, so does their sum: each exceeds it with 2 e^(−t/b).
    assert noise.reach(length) / 2 / scale / math.log(2) >= 82 + math.log2(length)


def laplace_law(scale: float, reach: int) -> npt.NDArray[np.float64]:
    ratio = math.exp(-1 / scale)
    return np.asarray((1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1)))


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (WholeGaussian.of(9.0), gaussian_law(9.0, 12)),
        (WholeLaplace.of(2.0), laplace_law(2.0, 12)),
    ],
)
def test_an_operator_draws_its_whole_noise(
    noise: WholeGaussian | WholeLaplace, law: npt.NDArray[np.float64]
) -> None:
    drawn = noise.drawn((100, 200), np.random.default_rng(5).bytes)
    counts = np.bincount(np.clip(drawn.ravel(), -13, 13) + 13, minlength=27)
    observed = np.append(counts[1:-1], counts[0] + counts[-1])
    expected = np.append(law, max(1 - law.sum(), 1e-4)) * drawn.size
    assert drawn.shape == (100, 200)
    assert ((observed - expected) ** 2 / expected).sum() < 26 + 8 * math.sqrt(2 * 26)
    assert not np.array_equal(noise.drawn(50), noise.drawn(50)), "fresh every time"


@pytest.mark.parametrize("survivors", [1, 30])
def test_a_phones_share_is_drawn_from_the_source_it_is_given(survivors: int) -> None:
    for noise in (laplace(3.0, survivors), gaussian(900.0, survivors)):
        one, other = (noise.share(400, np.random.default_rng(s).bytes) for s in (1, 2))
        assert not np.array_equal(one, other)
        assert np.array_equal(one, noise.share(400, np.random.default_rng(1).bytes))
        assert not np.array_equal(noise.share(400), noise.share(400))


def test_stated_noise_is_whole_and_never_less_than_promised() -> None:
    assert WholeGaussian.of(1 / 3).fine_variance == math.ceil(FINENESS / 3)
    assert WholeGaussian.of(400).variance == 400
    assert WholeLaplace.of(1 / 3).fine_scale == math.ceil(FINENESS / 3)
    assert WholeLaplace.of(4.0).scale == 4.0
    assert WholeGaussian.of(5).protects_as(WholeGaussian.of(5))
    assert not WholeGaussian.of(4).protects_as(WholeGaussian.of(5))
    assert not WholeLaplace(4).protects_as(WholeLaplace(5))
    assert not WholeLaplace(2**60).protects_as(WholeGaussian.of(1))


def test_noise_beyond_the_samplers_range_is_refused() -> None:
    for most in (WholeLaplace(2**62), WholeGaussian(2**62)):
        most.check()
    for beyond in (WholeLaplace(2**62 + 1), WholeGaussian(2**62 + 1), WholeLaplace(0)):
        with pytest.raises(InvalidParametersError, match="must be"):
            beyond.check()


SUMS = (
    BallotSum(0.5, 3, None),
    VectorSum(4.0, 9, 1e-6, None),
    VoteSum(OneHot(3), 5, 4.0, 1e-6, None),
)


@pytest.mark.parametrize("mechanism", SUMS, ids=lambda each: each.name)
def test_phones_add_no_noise_of_their_own(mechanism: BallotSum | VectorSum | VoteSum) -> None:
    def never(count: int) -> bytes:
        raise AssertionError("a phone drew noise")

    given = np.arange(-2, 7).reshape(3, 3)
    np.testing.assert_array_equal(with_noise(given, mechanism, 10, never), given)
    assert mechanism.noise(1) == mechanism.noise(10**6)


def test_what_is_promised_is_one_operators_noise_and_what_is_read_is_both() -> None:
    ballots, vectors, votes = SUMS
    assert ballots.event(Unit.RECORDING) == Pure(0.5)
    assert ballots.cost(Unit.PHONE) == Cost(0.75, 0.0)
    assert ballots.noise(50) == DiscreteLaplaceNoise(4.0, 2)
    assert vectors.event(Unit.PHONE) == ZeroConcentrated(1 / (2 * 4.0**2))
    assert vectors.noise(50) == DiscreteGaussianNoise((4.0 * GRID) ** 2, 2)
    voted = votes.event(Unit.PHONE)
    assert isinstance(voted, ZeroConcentrated)
    assert voted.rho == pytest.approx(5 / (2 * 4.0**2))
    assert votes.noise(50).deviation == pytest.approx(4.0 * math.sqrt(2))


@pytest.mark.parametrize(
    ("epsilon", "moving", "naming"), [(0.5, 14.67, 15.84), (1, 7.66, 8.27), (2, 4.03, 4.35)]
)
def test_multipliers_are_those_of_the_design(epsilon: float, moving: float, naming: float) -> None:
    parameters = discovery_parameters(
        start=CentroidSet.of(np.ones((40, 64))), sums=2, labels=tuple("abcdefghij"), summation=BOTH
    )
    noise = discovery_budget.affordable(parameters, epsilon, 0.3)
    assert noise.cells_noise == pytest.approx(moving, abs=0.01)
    assert noise.labels_noise == pytest.approx(naming, abs=0.01)


def test_no_cost_and_no_noise_depends_on_the_crowd() -> None:
    for make in (discovery_parameters, learning_parameters):
        crowds = [
            make(phones=phones, dropout=dropout, summation=BOTH)
            for phones, dropout in ((200, 0.0), (200, 0.3), (10_000, 0.1))
        ]
        assert len({each.plan().releases() for each in crowds}) == 1
        assert {each.noise_survivors for each in crowds} == {None}


def test_a_phase_says_of_each_part_by_which_summation_it_runs() -> None:
    plan = learning_parameters(summation=BOTH).plan()
    assert [step.name for step in plan.steps if step.part == CENTROID_VOTE] == [
        "centroid vote: offer",
        "centroid vote: report",
        "centroid vote: total",
    ]
    plan = discovery_parameters(summation=BOTH).plan()
    assert {plan.part(name).summation for name in (cells(1), LABELS)} == {BOTH}  # type: ignore[union-attr]
    released = plan.released_in(LABELS)
    assert released is not None
    assert released.name == "labels: report"
