from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from support.simulated import essence, interrupted_after
from support.steps import STEPS

from earshot_protocol import checks
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.wire import Matrix
from earshot_simulations.engine.course import DISCOVER
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.phases.environments import score
from earshot_simulations.phases.run import Run, headline, result
from earshot_simulations.phases.settings import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.populations import Blobs, Recordings
from earshot_simulations.reporting.words import at_delta

SEED = 9
"""With this one, some phone vanishes in every step."""
CROWD = Settings(
    discovery=Discovery.LOCAL,
    phones=200,
    recordings=60,
    scenes=4,
    top_global_centroids=4,
    labelled=0.5,
    dropout=0.2,
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    budget=Budget(clustering=4.0, selection=2.0, centroid_vote=0.5, label_vote=0.5),
    jobs=1,
    seed=SEED,
)
SMALL = dataclasses.replace(
    CROWD, phones=24, dropout=0.0, recordings=10, summation=SummationChoice.IDEAL
)


@pytest.fixture(scope="module")
def real() -> Run:
    return simulate(CROWD)


@pytest.fixture(scope="module")
def ideal() -> Run:
    return simulate(dataclasses.replace(CROWD, summation=SummationChoice.IDEAL))


@pytest.mark.slow
def test_somebody_vanishes_in_every_step(real: Run) -> None:
    dropouts = draw_dropouts(CROWD.parameters(Blobs(200, 60, 4, 0.5, SEED)), SEED)
    assert all(dropouts.values())
    steps = [step for step in real.steps if step.step != DISCOVER]
    assert [step.step for step in steps] == [step.value for step in STEPS]
    here = 200
    for step, gone in zip(steps, dropouts.values(), strict=True):
        assert step.asked == here
        assert step.dropped == gone
        here -= len(gone)
        assert step.answered == here
    assert real.survivors == here == 160


@pytest.mark.slow
def test_the_ideal_sum_gives_what_the_real_one_gives_bit_for_bit(real: Run, ideal: Run) -> None:
    assert essence(real) == essence(ideal)
    assert ["No phone with the default policy" in note for note in real.notes] == [True]
    assert any("plain addition" in note for note in ideal.notes)


def test_the_report_tells_one_epsilon_of_a_phone(ideal: Run) -> None:
    (note,) = (each for each in ideal.notes if "ε of the phase" in each)
    assert "largest_phone_epsilon" not in note
    told = re.search(r"ε of the phase per phone=(\S+);", note)
    assert told is not None
    assert float(told[1]) == pytest.approx(ideal.together[Unit.PHONE].epsilon, rel=1e-9)
    assert f"ε = {at_delta(ideal.together[Unit.PHONE])} per phone" in headline(ideal)


@pytest.mark.slow
def test_real_cryptography_in_two_processes_gives_the_same_too(real: Run) -> None:
    again = simulate(dataclasses.replace(CROWD, jobs=2))
    assert essence(again) == essence(real)


def test_a_generous_budget_finds_and_names_the_scenes(real: Run) -> None:
    assert real.interrupted is None
    assert real.found.ari_train is not None
    assert real.found.ari_test is not None
    assert real.found.label_accuracy is not None
    assert min(real.found.ari_train, real.found.ari_test) > 0.98
    assert real.found.label_accuracy > 0.9
    assert real.found.global_centroids is not None
    centres = Blobs(200, 60, 4, 0.5, SEED).centres
    gaps = np.linalg.norm(real.found.global_centroids[real.found.top][:, None] - centres, axis=2)
    assert gaps.min(axis=0).max() < 0.1


def test_the_record_says_what_was_spent_and_sent(real: Run) -> None:
    assert real.privacy == CROWD.parameters(Blobs(200, 60, 4, 0.5, SEED)).plan().releases()
    by_step = {step.step: step for step in real.steps}
    assert set(by_step) == {DISCOVER, *(step.value for step in STEPS)}
    for step in STEPS:
        record = by_step[step.value]
        assert record.bytes_up > 0
        assert record.bytes_down > 0
        assert record.phone_cpu_seconds > 0
        assert record.seconds > 0
    # Two centroids of two float32 are 16 bytes; names of fields and phase come on top.
    assert 16 < by_step[STEPS[0].value].per_phone(by_step[STEPS[0].value].bytes_up) < 200
    assert by_step[DISCOVER].bytes_up == 0
    assert real.seconds >= sum(step.seconds for step in real.steps) * 0.99
    assert real.configuration["seed"] == SEED
    assert real.configuration["budget"] == {
        "clustering": 4.0,
        "selection": 2.0,
        "centroid_vote": 0.5,
        "label_vote": 0.5,
    }
    assert 20 < real.peak_memory_mb < 10_000
    assert result(real)["survivors"] == 160


# -------------------------------------------------------------------------------------- early ends


@pytest.mark.parametrize("stop", STEPS)
def test_an_interrupt_leaves_the_votes_that_were_finished(stop: str) -> None:
    run = simulate(SMALL, interrupted_after(stop))
    place = STEPS.index(stop)
    assert len(run.found.points) > 0
    assert (run.found.global_centroids is None) == (place == 0)
    assert (run.found.centroid_votes is None) == (place <= 4)
    assert run.found.label_votes is None
    assert run.found.ari_test is None
    # Masked inputs are in once the fourth and the eighth step are over: then a vote is spent.
    spent = 2 + (place >= 3) + (place >= 7)
    parameters = SMALL.parameters(Blobs(24, 10, 4, 0.5, SEED))
    assert run.privacy == parameters.plan().releases()[: 2 * spent]


def test_a_phase_that_fails_says_why_and_which_phones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if nobody knew beforehand that no sampler has such noise.
    monkeypatch.setattr(checks, "SMALLEST_EPSILON", 0.0)
    impossible = Budget(clustering=1e-17, selection=1.0, centroid_vote=1.0, label_vote=1.0)
    run = simulate(dataclasses.replace(SMALL, budget=impossible))
    assert run.interrupted is not None
    assert "0 of 24 phones" in run.interrupted
    refusals = [note for note in run.notes if note.startswith("phone ")]
    assert len(refusals) == 24
    assert all("scale" in note for note in refusals)
    assert run.steps[0].answered == 0
    assert run.survivors == 24


# ----------------------------------------------------------------------------------------- scores


def published(
    centroids: np.ndarray, labels: tuple[int, ...], p_values: tuple[float, ...] = (0.0, 0.0)
) -> Result:
    return Result(
        phase=bytes(16),
        geometry=Geometry.EUCLIDEAN,
        centroids=Matrix.of(centroids.astype(np.float32)),
        labels=labels,
        label_names=("bus", "park"),
        centroid_votes=(0,) * len(labels),
        label_votes=((0, 0),) * len(labels),
        centroid_p_values=(0.0,) * len(labels),
        name_p_values=p_values[: len(labels)],
        encoder="any",
        privacy=(),
    )


@pytest.fixture
def heard() -> Recordings:
    scenes = np.array([0, 0, 0, 1, 1, 1, 1, 1], dtype=np.int16)
    points = np.where(scenes[:, None] == 0, -0.5, 0.5) + np.zeros((1, 2))
    return Recordings(points.astype(np.float32), scenes, scenes)


def test_scores_of_a_perfect_result_are_one(heard: Recordings) -> None:
    centroids = np.array([[0.4, 0.4], [-0.4, -0.4]])
    scores = score(published(centroids, (1, 0)), heard, heard)
    assert (scores.ari_train, scores.ari_test, scores.label_accuracy) == (1.0, 1.0, 1.0)
    np.testing.assert_array_equal(scores.label_histogram, [3, 5])
    np.testing.assert_array_equal(scores.true_histogram, [3, 5])


def test_scores_of_wrong_and_missing_labels(heard: Recordings) -> None:
    centroids = np.array([[0.4, 0.4], [-0.4, -0.4]])
    swapped = score(published(centroids, (0, 1)), heard, heard)
    assert (swapped.ari_test, swapped.label_accuracy) == (1.0, 0.0)
    np.testing.assert_array_equal(swapped.label_histogram, [5, 3])
    nameless = score(published(centroids, (1, -1)), heard, heard)
    assert nameless.label_accuracy == 5 / 8
    np.testing.assert_array_equal(nameless.label_histogram, [0, 5])
    np.testing.assert_array_equal(nameless.true_histogram, [3, 5])
    doubtful = score(published(centroids, (1, 0), (0.01, 0.06)), heard, heard)
    assert doubtful.clear_label_accuracy == 5 / 8, "a name that may be noise names nothing"
    assert doubtful.label_accuracy == 1.0, "the label itself is right"


def test_one_centroid_for_everything_scores_nothing(heard: Recordings) -> None:
    scores = score(published(np.zeros((1, 2)), (1,)), heard, heard)
    assert scores.ari_test == 0.0
    assert math.isclose(scores.label_accuracy, 5 / 8)


def test_train_and_test_are_scored_on_their_own(heard: Recordings) -> None:
    mixed = Recordings(heard.points[::-1], heard.labels, heard.scenes)
    centroids = np.array([[0.4, 0.4], [-0.4, -0.4]])
    scores = score(published(centroids, (1, 0)), mixed, heard)
    assert scores.ari_test == 1.0 > scores.ari_train
