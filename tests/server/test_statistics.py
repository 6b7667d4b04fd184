"""Label histograms, and the intervals around them against independent laws of the noise."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import dashboard_records as made
from support.statistics_phase import places
from support.steps import Step

from earshot_protocol.phases.learning import LOCAL_CENTROIDS, Result
from earshot_protocol.phases.statistics import HISTOGRAM
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise, SkellamNoise
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.dashboard import histograms as statistics
from earshot_server.dashboard.histograms import CountInterval

DAY = made.DAY


def radius_of(scale: float, order: float) -> int:
    return DiscreteLaplaceNoise(scale, order).radius(0.95)


def skellam_radius(order: float) -> int:
    return SkellamNoise((made.COUNTING.noise * GRID) ** 2 * order).radius(0.95)


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**4))
def test_interval_holds_every_count_within_the_radius_that_can_be(value: int, radius: int) -> None:
    interval = CountInterval.around(value, radius, 1.0)
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
    noise = statistics.sum_noise(record, HISTOGRAM)
    assert noise.radius(0.95) == skellam_radius(186 / 143)
    assert statistics.sum_noise(record, HISTOGRAM, 5).radius(0.95) == skellam_radius(5 * 186 / 143)


def test_radius_without_a_history_supposes_that_all_answered() -> None:
    record = msgspec.structs.replace(made.published_statistics(30, made.NOW), steps=())
    assert statistics.sum_noise(record, HISTOGRAM).radius(0.95) == skellam_radius(200 / 150)


def test_steps_without_a_sum_have_no_radius() -> None:
    record = made.published_learning(10, made.NOW)
    assert statistics.sum_noise(record, LOCAL_CENTROIDS).radius(0.95) == 0


def test_private_histograms_are_the_published_counts_oldest_first() -> None:
    newer = made.published_statistics(31, made.NOW - DAY, shift=3)
    older = made.published_statistics(30, made.NOW - 9 * DAY)
    others = (made.running(), made.gathering(), made.too_few(), made.published_learning(10, 1.0))
    first, second = statistics.private_histograms([newer, *others, older])
    assert (first.phase, second.phase) == (older.phase, newer.phase)
    assert first.finished == made.NOW - 9 * DAY
    assert tuple(count.published for count in second.counts.values()) == newer.ending.assigned
    assert tuple(first.counts) == made.LABELS
    # Two numbers make a label's, and a contact is so many steps of each.
    step = unit_steps(2 * len(made.LABELS) + 1) / made.COUNTING.contacts
    radius = skellam_radius(2 * 186 / 150) / step
    assert first.radius == pytest.approx(radius)
    assert first.counts["car"][:3] == pytest.approx((233, 233 - radius, 233 + radius))
    assert first.counts["sport"][:3] == pytest.approx((-11, 0, max(0, radius - 11)))
    assert first.counts["car"].p_value < 0.05
    assert first.counts["sport"].p_value == 1.0
    assert first.environments == {}
    alone = skellam_radius(186 / 150) / step
    assert first.unknown is not None
    assert first.unknown[:3] == pytest.approx((150, 150 - alone, 150 + alone))


def test_contacts_that_other_places_named_do_not_compare() -> None:
    older = made.published_statistics(30, made.NOW - DAY)
    newer = made.published_statistics(31, made.NOW)
    first, second = statistics.private_histograms([older, newer])
    assert first.asked == second.asked
    agreed = msgspec.structs.replace(newer.parameters, places=places((0, 1)))
    (named,) = statistics.private_histograms([msgspec.structs.replace(newer, parameters=agreed)])
    assert named.asked != first.asked


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
        centroid_p_values=(0.0, 0.0, 0.0),
        name_p_values=(0.004, 1.0, 0.2),
        encoder="any",
        privacy=(),
    )
    record = msgspec.structs.replace(record, ending=ending)
    others = (made.gathering(), made.published_statistics(30, 1.0))
    (histogram,) = statistics.global_histograms([*others, record])
    radius = radius_of(2 / made.LEARNING.budget.label_vote, 3 * 183 / 150)
    assert histogram.radius == radius
    assert histogram.counts["bus"][:3] == (-1, 0, radius - 1)
    assert histogram.counts["park"][:3] == (49, 49 - radius, 49 + radius)
    assert histogram.counts["park"].p_value < 0.001 < histogram.counts["bus"].p_value
    assert histogram.environments == {"bus": 0, "park": 1}, "a name that may be noise is none"


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
        noisy = {label: CountInterval.around(count, 1, 1.0) for label, count in counts.items()}
        return statistics.Histogram(
            b"", 0.0, noisy, DiscreteLaplaceNoise(0.5, 1.0), 9, (), {}, "votes"
        )

    histograms = [histogram(bus=5, park=1, car=3), histogram(park=6, home=-2, car=2)]
    assert statistics.by_frequency(histograms) == ("park", "bus", "car", "home")
    assert statistics.by_frequency([]) == ()
