"""A statistics phase with a confusion matrix, from phones to what operators read."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
from datetime import date

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.dashboard_server import application
from support.operators import NOW, Operators
from support.played_phase import CENTRES, CLASSES, PHONES, POLICY, Play, again
from support.points import HeardPoints
from support.statistics_phase import FIRST, PARAMETERS, counts, places

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.statistics import HISTOGRAM, Statistics
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import HELPER, Summation, SummationName
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import encode
from earshot_server.dashboard import histograms
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.statistics import StatisticsPhase
from earshot_server.records import PhaseRecord
from earshot_server.store.memory import MemoryPhaseStore

ASKED = msgspec.structs.replace(
    PARAMETERS,
    places=places((0, 1)),
    confusion=True,
    since=FIRST,
    until=date(2026, 1, 8),
)
LABELLED = (("bus", 0), ("bus", 0), ("bus", 1), ("park", 1), (None, 0))
"""Label and place of each recording of a phone; those with a label have a length of √10."""
STEPS = 1e-6 * 4096
"""Noise multiplier in steps, so small that sums are exact, but for rounding."""
MATRIX = np.array([[2, 1], [0, 1]]) / math.sqrt(10)


def phones(policy: Policy = POLICY, summation: Summation = BELL) -> dict[int, Phone]:
    """Phones that all hold the same, of which only the first recording is of the week."""
    points = CENTRES[[place for _, place in LABELLED]].astype(np.float32)
    choices = [label for label, _ in LABELLED]
    days: list[date | None] = [FIRST, *[date(2025, 12, 1)] * 3, None]
    return {
        number: Phone(
            MemoryStore(points, choices, days),
            HeardPoints("points", 2),
            policy,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=np.random.default_rng([5, number]).bytes,
            summation=summation,
            clock=lambda: NOW,
            keep_days=None,
        )
        for number in range(PHONES)
    }


def check(game: Play, survivors: int, variance: float) -> None:
    """Check what a phase published whose noise is far below one step.

    Args:
        game: The phase.
        survivors: Phones that came.
        variance: Variance of the noise over that of the noise multiplier.
    """
    result = game.coordinator.result()
    assert isinstance(result, Statistics)
    assert counts(result) == (survivors, 0, 0, 0, 0)
    assert len(result.labelled_p_values) == len(result.named_p_values) == 2
    assert np.array(result.confusion).reshape(2, 2) == pytest.approx(MATRIX * survivors, abs=0.02)
    # A length of √2 is twelve contacts, or one recording of the matrix.
    steps = STEPS * math.sqrt(variance)
    assert result.deviation == pytest.approx(steps * 12 * math.sqrt(2) / unit_steps(9))
    assert result.privacy == game.coordinator.state.parameters.plan().releases()
    assert decode_task(encode(result)) == result
    # Nothing is marked by the matrix.
    assert [each.counted for each in game.phones[0].recordings()] == [True, *[False] * 4]


def test_the_matrix_is_the_sum_of_what_phones_that_came_hold() -> None:
    start = Coordinator.start(MemoryPhaseStore(), Optics(), ASKED, now=0.0)
    game = Play(start, phones(), disturb=again)
    game.until("histogram: masked input")
    game.present -= {4}
    game.until("published")
    # Eleven shares of which nine are counted on.
    check(game, PHONES - 1, 11 / 9)


def test_two_operators_add_the_same_matrix_up() -> None:
    operators = Operators(now=NOW, policy={"least_noise": 0.0})
    identity = operators.identity.public_key().public_bytes_raw()
    policy = dataclasses.replace(POLICY, leaders=(operators.keys.identity,), helpers=(identity,))
    asked = msgspec.structs.replace(ASKED, summation=SummationName.TWO_OPERATORS)
    start = Coordinator.start(MemoryPhaseStore(), Optics(), asked, NOW, leading=operators.keys)
    game = Play(start, phones(policy, TWO_OPERATORS), now=NOW)
    while (step := game.coordinator.step) != "published":
        if not asked.plan().asks_helper(step):
            game.step()
            operators.now = NOW + asked.step_seconds + 1
            continue
        task = game.coordinator.task_for(HELPER)
        game.coordinator.accept(HELPER, operators.helper.answer(task))
        game.now += 1
        assert game.coordinator.advance(game.now)
    # The noise of both, each a whole number of 2^-16 rounded up.
    assert math.ceil(2**16 * STEPS**2) == 2
    check(game, PHONES, 2 * 2 / 2**16 / STEPS**2)


@pytest.mark.parametrize("summation", [SummationName.BELL, SummationName.TWO_OPERATORS])
def test_the_noise_on_each_entry_has_the_deviation_that_is_published(
    summation: SummationName,
) -> None:
    asked = msgspec.structs.replace(ASKED, labels=tuple("abcdefghijklmnop"), noise=2.0)
    asked = msgspec.structs.replace(asked, summation=summation)
    phase = StatisticsPhase(
        phase=bytes(16), parameters=asked, step="", deadline=0.0, inputs={HISTOGRAM: PHONES}
    )
    # Noise of phones is Skellam's, twelve shares of which nine are counted on; that of operators
    # is Gauss's, twice.
    variance = (2.0 * 4096) ** 2 * (12 / 9 if summation is SummationName.BELL else 2)
    noise = np.random.default_rng(2).normal(0, math.sqrt(variance), asked.entries)
    phase.take_total(HISTOGRAM, np.rint(noise).astype(np.int64))
    published = phase.published()
    assert len(published.confusion) == 256
    entries = [*published.labelled, *published.named, published.unknown]
    assert np.std(entries) == pytest.approx(published.deviation, rel=0.3)
    assert np.std(published.confusion) == pytest.approx(published.deviation / 12, rel=0.1)
    assert published.deviation == pytest.approx(
        math.sqrt(2 * variance) * 12 / unit_steps(asked.entries)
    )


# ------------------------------------------------------------------------- what operators read


def recorded() -> tuple[PhaseRecord, Statistics]:
    """A published phase whose places name recordings of every label, most of them rightly."""
    record, labels = made.published_statistics(30, made.NOW), len(made.LABELS)
    parameters = msgspec.structs.replace(
        made.COUNTING, places=places(tuple(range(2))), confusion=True
    )
    assert isinstance(record.ending, Statistics)
    noise = parameters.plan().parts[0].mechanism.noise(record.ending.phones)  # type: ignore[union-attr]
    step = unit_steps(labels**2 + 2 * labels + 1) / math.sqrt(2) / parameters.contacts
    published = msgspec.structs.replace(
        record.ending,
        confusion=tuple((10.5 * np.eye(labels) - 0.5).ravel().tolist()),
        deviation=noise.deviation / step,
    )
    return msgspec.structs.replace(record, parameters=parameters, ending=published), published


def test_intervals_of_contacts_are_as_wide_as_the_noise_with_a_matrix() -> None:
    record, published = recorded()
    found = histograms.contacts(record, published)
    assert found.unknown is not None
    radius = found.unknown.most - found.unknown.published
    assert radius == pytest.approx(1.96 * published.deviation, rel=0.01)
    both = found.counts[made.LABELS[0]]
    assert both.most - both.published == pytest.approx(math.sqrt(2) * radius, rel=0.01)


def test_the_matrix_is_on_the_page_of_its_phase_and_in_a_file() -> None:
    record, published = recorded()
    client = application(made.HandMadeArchive([record])).test_client()
    address = f"/phases/{record.phase.hex()}"
    page = client.get(address).text
    assert f'href="{address}/confusion.csv"' in page
    assert "a standard deviation of" in page.partition('id="confusion-caption"')[2]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{address}/confusion.csv").text[1:])))
    assert [(row["label"], row["name"]) for row in rows] == list(
        itertools.product(made.LABELS, repeat=2)
    )
    assert [float(row["recordings"]) for row in rows] == list(published.confusion)
    deviation = float(rows[0]["standard deviation of the noise"])
    assert deviation == published.deviation / published.contacts
    # A phase without one has neither.
    plain = made.published_statistics(31, made.NOW)
    client = application(made.HandMadeArchive([plain])).test_client()
    assert "confusion" not in client.get(f"/phases/{plain.phase.hex()}").text
    assert client.get(f"/phases/{plain.phase.hex()}/confusion.csv").status_code == 404
