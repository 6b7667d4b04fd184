"""Label histograms, and the intervals around them against independent laws of the noise."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import dashboard_records as made
from support.steps import Step

from earshot_protocol.phases.learning import LOCAL_CENTROIDS, Result
from earshot_protocol.phases.statistics import HISTOGRAM
from earshot_protocol.privacy.noise import polya_share
from earshot_server.dashboard import histograms as statistics
from earshot_server.dashboard.histograms import Interval, SumNoise, noise_radius

DAY = made.DAY


def laplace_radius(scale: float) -> int:
    """Closed form: P(|x| ≤ r) = 1 − 2 α^(r+1) / (1 + α) of discrete Laplace noise."""
    ratio = math.exp(-1 / scale)
    radius = 0
    while 1 - 2 * ratio ** (radius + 1) / (1 + ratio) < 0.95:
        radius += 1
    return radius


def convolved_radius(scale: float, order: float) -> int:
    """From the probabilities of a negative binomial variable, by its recursion, and their sums."""
    ratio = math.exp(-1 / scale)
    law = [(1 - ratio) ** order]
    while len(law) < 60 * scale + 40 * order * scale:
        k = len(law)
        law.append(law[-1] * ratio * (k - 1 + order) / k)
    difference = np.convolve(law, law[::-1])
    middle = len(law) - 1
    radius = 0
    while difference[middle - radius : middle + radius + 1].sum() < 0.95:
        radius += 1
    return radius


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 4.0, 17.3, 200.0, 512.0])
def test_radius_of_discrete_laplace_noise_is_that_of_the_closed_form(scale: float) -> None:
    assert noise_radius(scale, 1.0) == laplace_radius(scale)


@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
@pytest.mark.parametrize("order", [1.07, 1.33, 2.0, 8.0, 31.5])
def test_radius_of_more_shares_is_that_of_the_convolution(scale: float, order: float) -> None:
    assert noise_radius(scale, order) == convolved_radius(scale, order)


@pytest.mark.parametrize("scale", [513.0, 2000.0, 2.0**14])
def test_radius_of_a_large_scale_is_near_the_closed_form(scale: float) -> None:
    # P(|x| ≤ r) = 0.95 at r = ln 20 · scale, but for less than one count.
    assert noise_radius(scale, 1.0) == pytest.approx(math.log(20) * scale, rel=0.005)


def test_radius_of_many_large_noises_is_that_of_the_normal_law() -> None:
    scale, order = 2.0**14, 4096.0
    assert noise_radius(scale, order) == pytest.approx(
        1.959964 * scale * math.sqrt(2 * order), rel=0.005
    )


def test_radius_holds_for_the_noise_that_phones_draw() -> None:
    honest, phones, scale = 6, 8, 4.0
    random = np.random.default_rng(51)
    draws = sum(polya_share(scale, honest, 60_000, random.bytes) for _ in range(phones))
    radius = noise_radius(scale, phones / honest)
    within = np.mean(np.abs(draws) <= radius)
    closer = np.mean(np.abs(draws) < radius)
    assert closer - 0.003 < 0.95 <= within + 0.003
    assert within - closer > 0.006, "the two bounds could not fail"


@given(st.floats(0.1, 300), st.floats(1, 50), st.floats(1, 4))
def test_radius_grows_with_scale_and_order(scale: float, order: float, factor: float) -> None:
    assert noise_radius(scale * factor, order) >= noise_radius(scale, order)
    assert noise_radius(scale, order * factor) >= noise_radius(scale, order)


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**4))
def test_interval_holds_every_count_within_the_radius_that_can_be(value: int, radius: int) -> None:
    interval = Interval.around(value, radius)
    possible = [count for count in (value - radius, value, value + radius) if count >= 0]
    assert all(interval.least <= count <= interval.most for count in possible)
    assert 0 <= interval.least <= interval.most
    assert interval.published == value


def test_agreed_parameters_count_the_phones_that_joined() -> None:
    record = msgspec.structs.replace(made.running(), joined=173)
    assert statistics.agreed_parameters(record).phones == 173
    assert statistics.agreed_parameters(made.gathering()) == made.COUNTING


def test_radius_of_a_sum_counts_the_shares_that_are_in_it() -> None:
    record = msgspec.structs.replace(made.published_statistics(30, made.NOW), joined=190)
    masked = next(step for step in record.steps if step.step == Step.HISTOGRAM_MASK)
    # 75 % of the 190 phones that joined are counted on; the noise of all who answered is in.
    assert masked.answered == 186
    assert statistics.sum_noise(record, HISTOGRAM).radius() == noise_radius(
        2 / made.COUNTING.epsilon, 186 / 143
    )
    assert statistics.sum_noise(record, HISTOGRAM, 5).radius() == noise_radius(
        2 / made.COUNTING.epsilon, 5 * 186 / 143
    )


def test_radius_without_a_history_supposes_that_all_answered() -> None:
    record = msgspec.structs.replace(made.published_statistics(30, made.NOW), steps=())
    assert statistics.sum_noise(record, HISTOGRAM).radius() == noise_radius(4.0, 200 / 150)


def test_steps_without_a_sum_have_no_radius() -> None:
    record = made.published_learning(10, made.NOW)
    assert statistics.sum_noise(record, LOCAL_CENTROIDS).radius() == 0


def test_private_histograms_are_the_published_counts_oldest_first() -> None:
    newer = made.published_statistics(31, made.NOW - DAY, shift=3)
    older = made.published_statistics(30, made.NOW - 9 * DAY)
    others = (made.running(), made.gathering(), made.too_few(), made.published_learning(10, 1.0))
    first, second = statistics.private_histograms([newer, *others, older])
    assert (first.phase, second.phase) == (older.phase, newer.phase)
    assert first.finished == made.NOW - 9 * DAY
    assert tuple(count.published for count in second.counts.values()) == newer.ending.contacts
    assert tuple(first.counts) == made.LABELS
    radius = noise_radius(4.0, 186 / 150)
    assert first.radius == radius
    assert first.counts["car"] == Interval(233, 233 - radius, 233 + radius)
    assert first.counts["sport"] == Interval(-11, 0, max(0, radius - 11))
    assert first.environments == {}


def test_global_histograms_add_votes_and_count_environments_by_label() -> None:
    record = made.published_learning(10, made.NOW, environments=3)
    ending = Result(
        phase=record.phase,
        geometry=record.ending.geometry,
        centroids=record.ending.centroids,
        labels=(1, -1, 1),
        label_names=("bus", "park"),
        centroid_votes=(9, 8, 7),
        label_votes=((2, 30), (-4, -1), (1, 20)),
        privacy=(),
    )
    record = msgspec.structs.replace(record, ending=ending)
    others = (made.gathering(), made.published_statistics(30, 1.0))
    (histogram,) = statistics.global_histograms([*others, record])
    radius = noise_radius(2 / made.LEARNING.budget.label_vote, 3 * 183 / 150)
    assert histogram.radius == radius
    assert histogram.counts["bus"] == Interval(-1, 0, radius - 1)
    assert histogram.counts["park"] == Interval(49, 49 - radius, 49 + radius)
    assert histogram.environments == {"bus": 0, "park": 2}


def test_a_result_without_environments_is_a_histogram_of_zeros() -> None:
    record = made.published_learning(10, made.NOW, environments=1)
    ending = msgspec.structs.replace(
        record.ending,
        centroids=msgspec.structs.replace(record.ending.centroids, rows=0, data=b""),
        labels=(),
        centroid_votes=(),
        label_votes=(),
    )
    (histogram,) = statistics.global_histograms([msgspec.structs.replace(record, ending=ending)])
    assert {count.published for count in histogram.counts.values()} == {0}


def test_labels_are_ordered_by_their_sum_over_all_phases_then_by_name() -> None:
    def histogram(**counts: int) -> statistics.Histogram:
        noisy = {label: Interval.around(count, 1) for label, count in counts.items()}
        return statistics.Histogram(b"", 0.0, noisy, SumNoise(0.5, 1.0), 9, (), {})

    histograms = [histogram(bus=5, park=1, car=3), histogram(park=6, home=-2, car=2)]
    assert statistics.by_frequency(histograms) == ("park", "bus", "car", "home")
    assert statistics.by_frequency([]) == ()
