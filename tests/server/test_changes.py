"""What changed since the phase before: told from noise, per phone, and only of what compares."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made

from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_server.dashboard import changes, histograms
from earshot_server.dashboard.histograms import CountInterval, Histogram

NOISE = DiscreteLaplaceNoise(4.0, 1.2)


def histogram(inputs: int = 100, asked: int = 20, at: float = 0.0, **counts: int) -> Histogram:
    noisy = {
        label: CountInterval.around(count, NOISE.radius(), 1.0) for label, count in counts.items()
    }
    return Histogram(b"", at, noisy, NOISE, inputs, (asked,), {}, "contacts")


def noise(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Of the law of `NOISE`, drawn by numpy."""
    success = 1 - np.exp(-1 / NOISE.scale)
    drawn = random.negative_binomial(NOISE.order, success, (2, *shape))
    difference: np.ndarray = drawn[0] - drawn[1]
    return difference


def test_noise_alone_seldom_changes_any_label() -> None:
    random = np.random.default_rng(10)
    tables, labels = 600, [f"label {number}" for number in range(11)]
    before, now = (noise(random, (tables, len(labels))) for _ in range(2))
    alarms = 0
    for first, second in zip(before.tolist(), now.tolist(), strict=True):
        compared = changes.compare(
            histogram(**dict(zip(labels, first, strict=True))),
            histogram(**dict(zip(labels, second, strict=True))),
        )
        alarms += any(change.clear for change in compared.changes)
    # At most 5 % by the bound; 600 tables of exactly 5 % exceed 50 with probability 10⁻⁴.
    assert alarms <= 50
    # The bound is not empty either: a change of twice the radius is seen.
    assert (
        NOISE.radius(0.99) < changes.compare(histogram(bus=0), histogram(bus=0)).changes[0].radius
    )


def test_a_change_is_seen_per_phone_and_not_by_the_size_of_the_crowd() -> None:
    before = histogram(inputs=100, bus=300, car=80)
    doubled = changes.compare(before, histogram(inputs=200, bus=600, car=160))
    assert not any(change.clear for change in doubled.changes)
    assert doubled.sentence == "no label changed by more than the noise"
    fewer = changes.compare(before, histogram(inputs=200, bus=300, car=160))
    assert [(change.label, change.clear) for change in fewer.changes] == [
        ("bus", True),
        ("car", False),
    ]
    assert (fewer.changes[0].before, fewer.changes[0].now) == (300, 150)
    assert fewer.sentence == "bus fell; 1 label changed by no more than the noise"


def test_labels_that_one_phase_alone_has_are_told_apart() -> None:
    compared = changes.compare(histogram(bus=3, tram=9), histogram(bus=400, home=1, park=2))
    assert compared.appeared == ("home", "park")
    assert compared.vanished == ("tram",)
    assert compared.sentence == (
        "bus rose; home and park counted for the first time; tram no longer counted"
    )


def test_only_what_was_asked_alike_is_compared() -> None:
    oldest, other = histogram(at=1, asked=20, bus=1), histogram(at=2, asked=50, bus=1)
    newest = histogram(at=3, asked=20, bus=1)
    compared = changes.since_before([oldest, other, newest])
    assert compared is not None
    assert (compared.before.finished, compared.now.finished) == (1, 3)
    assert changes.since_before([oldest, other]) is None
    assert changes.since_before([]) is None


@pytest.mark.parametrize("of", [histograms.private_histograms, histograms.global_histograms])
def test_histograms_of_records_say_how_many_phones_are_in_them(of: object) -> None:
    learned = made.published_learning(10, made.NOW)
    counted = made.published_statistics(30, made.NOW)
    (found,) = of([learned, counted])  # type: ignore[operator]
    masked = {"private_histograms": 186, "global_histograms": 183}
    assert found.inputs == masked[of.__name__]  # type: ignore[attr-defined]
    again = msgspec.structs.replace(
        counted, ending=msgspec.structs.replace(counted.ending, contacts=7)
    )
    assert histograms.private_histograms([again])[0].asked == (7, None, None)
