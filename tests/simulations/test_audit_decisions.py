"""Reading a sampler word by word: what is found sound, and how small a fault is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.privacy.noise import discrete_gaussian, discrete_laplace
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeGaussian, WholeLaplace
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.auditing.decisions import Digits, decisions_check
from earshot_simulations.auditing.laws import Sampler
from earshot_simulations.auditing.streams import Noted, drawn_again, steered

Whole = npt.NDArray[np.int64]

NOISES = [
    *map(WholeLaplace.of, (0.1, 1.0, 4.0, 300.0)),
    *(WholeGaussian.of(sigma**2) for sigma in (0.3, 1.0, 6.5, 15.06, 16_896.0)),
]


def held(noise: NoiseOfOperators, sampler: Sampler | None = None) -> bool:
    return bool(decisions_check("", noise, sampler).held)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_samplers_of_operators_decide_as_their_law_is_defined(noise: NoiseOfOperators) -> None:
    check = decisions_check("a sum", noise)
    assert check.held, check.found
    assert check.power.startswith("exact: any beyond")


def of(sampler: Any, parameter: float) -> Sampler:
    return lambda size, random: sampler(parameter, size, random)


@pytest.mark.parametrize("beyond", [4.5, 6.0, 8.5])
def test_a_tail_that_is_cut_is_found_however_rare_it_is(beyond: float) -> None:
    """Beyond 8.5 deviations is one draw in 10^17: the sampler is led there."""
    sigma = 15.06
    most = math.floor(beyond * sigma)

    def clipped(size: Any, random: RandomBytes) -> Whole:
        return discrete_gaussian(sigma, size, random).clip(-most, most)

    assert not held(WholeGaussian.of(sigma**2), clipped)


@pytest.mark.parametrize("scales", [6, 25, 40])
def test_a_tail_of_laplace_noise_that_is_cut_is_found(scales: int) -> None:
    def clipped(size: Any, random: RandomBytes) -> Whole:
        return discrete_laplace(4.0, size, random).clip(-4 * scales, 4 * scales)

    assert not held(WholeLaplace.of(4.0), clipped)


def test_noise_of_a_scale_that_is_off_by_a_hundred_millionth_is_found() -> None:
    assert not held(WholeLaplace.of(4.0), of(discrete_laplace, 4.0 * (1 - 1e-8)))
    sigma = math.sqrt(WholeGaussian.of(6.5**2).variance)
    assert not held(WholeGaussian.of(6.5**2), of(discrete_gaussian, sigma * (1 - 1e-8)))


def last_in_clear(drawn: Whole) -> Whole:
    """Noise on all entries but the last of several."""
    return np.where((np.arange(len(drawn)) == len(drawn) - 1) & (len(drawn) > 1), 0, drawn)


@pytest.mark.parametrize("noise", [WholeLaplace.of(4.0), WholeGaussian.of(6.5**2)], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        lambda drawn: drawn // 2,
        np.abs,
        last_in_clear,
        lambda drawn: drawn[::-1],
        lambda drawn: drawn + 1,
        lambda drawn: np.where(drawn == 1, 0, drawn),
    ],
    ids=["half", "positive", "last in clear", "turned around", "moved", "never 1"],
)
def test_a_sampler_that_changes_what_is_drawn_is_found(
    noise: NoiseOfOperators, change: Any
) -> None:
    assert not held(noise, lambda size, random: change(noise.drawn(size, random)))


def test_noise_of_one_kind_does_not_pass_for_the_other() -> None:
    laplace, gaussian = WholeLaplace.of(4.0), WholeGaussian.of(16.0)
    assert not held(laplace, gaussian.drawn)
    assert not held(gaussian, laplace.drawn)


def test_digits_are_read_with_their_probabilities() -> None:
    scale = 3.0
    read = Digits.read(of(discrete_laplace, scale))
    half = len(read.weights) // 2
    assert read.weights[:half].tolist() == [2**each for each in range(half)]
    ratios = [math.exp(-(2**each) / scale) for each in range(half)]
    chances = read.limits[:half].astype(float) / 2.0**64
    np.testing.assert_allclose(chances, [r / (1 + r) for r in ratios], rtol=1e-12, atol=1e-18)
    values = np.arange(-40, 41)
    np.testing.assert_array_equal(read.drawn(read.words_of(values)), values)


def test_the_same_bytes_give_the_same_noise_and_no_others_do() -> None:
    draw = of(discrete_gaussian, 6.5)
    source = Noted(keyed(bytes(KEY_BYTES), "noise"))
    drawn, answers = draw(100, source), source.taken()
    again = drawn_again(lambda random: draw(100, random), answers)
    assert again is not None
    np.testing.assert_array_equal(again, drawn)
    assert source.taken() == []
    assert drawn_again(lambda random: draw(99, random), answers) is None
    assert drawn_again(lambda random: draw(100, random), answers[:-1]) is None
    assert drawn_again(lambda random: draw(100, random), [*answers, b"more"]) is None


def test_steered_words_lead_where_draws_do_not() -> None:
    random = steered(bytes(KEY_BYTES), "tails")
    drawn = discrete_laplace(4.0, 1000, random)
    assert np.mean(np.abs(drawn) > 4 * 25) > 0.2, "e^-25 of draws go there otherwise"
    assert drawn.min() < 0 < drawn.max()
    assert len(random(13)) == 13
