"""The audit of noisy gradients: laws by quadrature and by a library, faults beside sound code."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from earshot_protocol.progress import silent
from earshot_studies.kit import dp_sgd
from earshot_studies.pate_aae import audited_training, noisy_gradients, trainings
from earshot_studies.pate_aae.generators.private_training import PrivateTraining
from earshot_studies.pate_aae.noisy_gradients import TriedTraining
from earshot_studies.pate_aae.subsampled_gaussian import (
    accumulated,
    realized,
    step_loss,
    training_epsilon,
)

TRIALS = 20_000
OF = ("training", "planted")


def divergence(epsilon: float, sigma: float, rate: float, more: bool) -> float:
    """Of one step, by quadrature at thirty digits: ∫ (p − e^ε q)₊."""
    with mpmath.workdps(30):

        def densities(x: Any) -> tuple[Any, Any]:
            empty = mpmath.npdf(x, 0, sigma)
            mixed = (1 - rate) * empty + rate * mpmath.npdf(x, 1, sigma)
            return (mixed, empty) if more else (empty, mixed)

        def above(x: Any) -> Any:
            one, other = densities(x)
            return max(mpmath.mpf(0), one - mpmath.exp(epsilon) * other)

        ratio = (mpmath.exp(epsilon if more else -epsilon) - 1 + rate) / rate
        places = [-14 * sigma, 0, 1, 1 + 14 * sigma]
        if ratio > 0:
            places.append(sigma**2 * mpmath.log(ratio) + mpmath.mpf("0.5"))
        return float(mpmath.quad(above, sorted(places)))


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize(("sigma", "rate"), [(0.7, 0.1), (1.5, 0.5), (4.0, 0.02)])
def test_one_step_has_the_divergence_of_its_densities(
    sigma: float, rate: float, more: bool
) -> None:
    losses = step_loss(sigma, rate, 1e-5, more=more)
    for epsilon in (0.0, 0.05, 0.5, 1.5):
        exact = divergence(epsilon, sigma, rate, more)
        assert losses.least_delta(epsilon) <= exact + 1e-14
        assert losses.sufficient_delta(epsilon) >= exact - 1e-14
        assert losses.sufficient_delta(epsilon) - losses.least_delta(epsilon) < 2e-5


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1.0, 1.0, 9),
        (0.8, 0.2, 8),
        pytest.param(2.0, 0.1, 600, marks=pytest.mark.slow),
        (0.5, 0.03, 50),
    ],
)
def test_many_steps_have_the_epsilon_of_the_library(noise: float, rate: float, steps: int) -> None:
    found = training_epsilon(noise, rate, steps, 1e-6)
    theirs = dp_sgd.training_epsilon(noise, rate, steps, 1e-6)
    assert found.low <= theirs <= found.high + 2e-3
    assert found.high - found.low < 0.02 * found.low


def test_all_clips_in_every_batch_are_gaussian_noise() -> None:
    """Balle and Wang (ICML 2018), Theorem 8, for nine steps: their losses are those of one."""
    length = 3 / 2.0
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        below = stats.norm.cdf(length / 2 - middle / length)
        above = math.exp(middle) * stats.norm.cdf(-length / 2 - middle / length)
        low, high = (middle, high) if below - above > 1e-6 else (low, middle)
    found = training_epsilon(2.0, 1.0, 9, 1e-6)
    assert found.low <= low <= found.high
    assert found.high - found.low < 0.01


def test_what_is_rounded_away_from_many_losses_is_put_back() -> None:
    one = step_loss(1.0, 0.1, accumulated(1.0, 0.1, 200, more=True).step, more=True)
    total = accumulated(1.0, 0.1, 200, more=True)
    assert total.first > one.times(200).first
    assert total.rounded < 200 * one.step
    assert total.masses.sum() == pytest.approx(1, abs=1e-9)


def test_a_loss_is_the_ratio_of_densities() -> None:
    values = np.linspace(-5, 6, 23)
    mixed = 0.8 * stats.norm.pdf(values, 0, 0.9) + 0.2 * stats.norm.pdf(values, 1, 0.9)
    expected = np.log(mixed / stats.norm.pdf(values, 0, 0.9))
    assert np.allclose(realized(values, 0.9, 0.2), expected, rtol=1e-10)


def test_real_steps_leave_of_a_clip_what_is_said() -> None:
    """Mean and variance of Poisson sampling, of the clipped norm, and of noise in its multiples."""
    seen = trainings.steps(PrivateTraining(0.5, 0.3, 2.0, 2), 200, 100, 3000, seed=1)
    assert seen.there.shape == seen.missing.shape == (3000, 2)
    for column in range(2):
        assert seen.there[:, column].mean() == pytest.approx(0.3, abs=0.06)
        assert seen.there[:, column].var() == pytest.approx(0.25 + 0.21, rel=0.1)
        assert seen.missing[:, column].mean() == pytest.approx(0, abs=0.05)
        assert seen.missing[:, column].var() == pytest.approx(0.25, rel=0.1)
    assert abs(np.corrcoef(seen.there.T)[0, 1]) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", noisy_gradients.SETTINGS, ids=lambda each: f"ε={each.epsilon:g}"
)
def test_budgets_are_kept_and_not_wasted(setting: noisy_gradients.RequestedTraining) -> None:
    found = noisy_gradients.budget_finding(setting)
    assert found.verdict == "holds"
    assert found.proven is not None
    assert 0.96 * found.claimed < found.measured.low <= found.proven <= found.claimed


@pytest.mark.slow
@pytest.mark.parametrize("tried", noisy_gradients.TRIED, ids=lambda each: f"{each.steps}-steps")
def test_real_steps_show_less_than_is_proven_and_not_much_less(tried: TriedTraining) -> None:
    found = noisy_gradients.sampled_training("", tried, TRIALS, 0)
    assert found.verdict == "holds"
    assert found.proven is not None
    assert found.measured.low > 0.2 * found.proven


@pytest.mark.parametrize("place", range(5))
def test_faults_in_gradients_and_noise_are_measured(place: int) -> None:
    words, tried, parts, times = list(audited_training.gradient_faults())[place]
    found = noisy_gradients.sampled_training(words, tried, times * TRIALS, 0, parts, tried.rate)
    assert found.proven is not None
    assert found.measured.low > 1.05 * found.proven


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_sound_steps_are_not_called_a_fault(noise: float) -> None:
    assert not noisy_gradients.sampled_training(
        "", TriedTraining(noise, 0.5, 1.0, 1), TRIALS, 0
    ).exceeds


def test_faults_in_batches_and_keys_are_caught_and_sound_ones_are_not() -> None:
    assert [each.held for each in audited_training.broken_laws(0)] == [False] * 4
    assert [each.held for each in noisy_gradients.step_law_checks(0)] == [True] * 4


@pytest.mark.slow
@pytest.mark.parametrize("system", trainings.SYSTEMS, ids=lambda each: each.name)
def test_generators_follow_from_noisy_gradients_alone_and_no_gradient_is_longer(
    system: trainings.PrivateSystem,
) -> None:
    longest = trainings.longest_gradient(system, 3)
    norm = trainings.TRAINING.norm
    assert 0.999 * norm < longest <= norm * (1 + 1e-5)  # as long as it may, so that it is clipped
    assert trainings.depends_on_noisy_gradients_alone(system, 3)


@pytest.mark.slow
def test_clips_that_get_past_gradients_are_caught() -> None:
    assert not audited_training.shown_clips(0).held


def test_clips_sampled_too_often_are_seen() -> None:
    assert noisy_gradients.rate_check(0).held
    often = trainings.Parts(training=lambda own: replace(own, rate=1.02 * own.rate))
    assert not noisy_gradients.rate_check(0, often).held


@pytest.mark.slow
def test_the_study_shows_what_holds_and_catches_every_planted_fault() -> None:
    outcome = audited_training.reproduce(5 * TRIALS, 0, silent)
    verdicts = {of: [row["verdict"] for row in outcome.rows if row["of"] == of] for of in OF}
    assert verdicts == {"training": ["holds"] * 14, "planted": ["caught"] * 10}
    for row in outcome.rows:
        assert str(row["case"]) in outcome.note
