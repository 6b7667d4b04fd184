"""Mixtures of real sound: who may hear what, what is in them, and ensembles that name it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import stats
from support.tagging_folder import PITCHES, RATE, tone, write_tagging_folder

from earshot_client.encoder import default_encoder, rate_of
from earshot_models.datasets.dataset import DatasetError
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import NARROW, WIDE
from earshot_studies.dziedzic.scores import scores
from earshot_studies.kit.mixtures.embedding import Part, Size, dealt, prepare
from earshot_studies.kit.mixtures.ensembles import (
    Aim,
    ballots,
    thresholds,
    trained,
    trained_teachers,
)
from earshot_studies.kit.mixtures.mixing import MixingRecipe, drawn_labels, mix
from earshot_studies.kit.mixtures.sources import BACKGROUND, Side, Sources, open_sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two environments of which three recordings lie in each fold, and two digits."""
    return write_tagging_folder(tmp_path_factory.mktemp("data"), spoken=0.5)


@pytest.fixture(scope="module")
def sources(folder: Path) -> Sources:
    return open_sources(folder, RATE)


def test_no_recording_is_on_two_sides(sources: Sources) -> None:
    for recording in np.unique(sources.recording):
        assert len(set(sources.side[sources.recording == recording])) == 1
    assert sources.labels == ("hiss", "0", "whistle", "1")
    for side in Side:
        assert all(len(rows) for rows in sources.at(side))
        assert len(sources.of(side, BACKGROUND))


def test_sides_are_folds_and_takes(sources: Sources) -> None:
    # Two takes of two seconds each; a recording of each of two folds is held back together.
    hiss = {side: len(sources.of(side, 0)) for side in Side}
    assert hiss == {Side.TEACHERS: 20, Side.VALIDATION: 4, Side.QUERIES: 12, Side.TEST: 12}
    digit = {side: len(sources.of(side, 1)) for side in Side}
    assert digit == {Side.TEACHERS: 4, Side.VALIDATION: 5, Side.QUERIES: 10, Side.TEST: 5}


def test_a_folder_without_folds_says_what_is_wanted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "esc10" / "hiss").mkdir(parents=True)
    soundfile.write(tmp_path / "esc10" / "hiss" / "1-5-A.wav", tone(300, 2), RATE)
    (tmp_path / "fsdd").symlink_to(folder / "fsdd")
    lacking = open_sources(tmp_path, RATE)
    with pytest.raises(InvalidInputError, match="no sound of hiss is left for test"):
        lacking.at(Side.TEST)
    with pytest.raises(DatasetError):
        open_sources(tmp_path / "esc10", RATE)


def test_what_is_said_to_be_in_a_mixture_is(sources: Sources) -> None:
    recipe = MixingRecipe(counts=(0.3, 0.4, 0.3))
    generator = np.random.default_rng(1)
    held = sources.at(Side.QUERIES)
    sound, truth = mix(sources, Side.QUERIES, held, 400, recipe, generator)
    power = np.abs(np.fft.rfft(sound, axis=1)) ** 2
    # Labels are environments and digits by turns; a digit fills half of its second.
    heard = [
        power[:, PITCHES[place] - 2 : PITCHES[place] + 3].sum(axis=1) for place in (0, 2, 1, 3)
    ]
    share = np.stack(heard, axis=1) / power.sum(axis=1, keepdims=True)
    assert share[truth == 1].min() > 20 * share[truth == 0].max()
    noise = power[:, 1498:1503].sum(axis=1) / power.sum(axis=1)
    assert (noise > 0.5 * 10**-2).all()
    assert (noise < 0.12).all()


def test_numbers_of_labels_follow_the_recipe() -> None:
    recipe = MixingRecipe(counts=(0.5, 0.3, 0.2))
    drawn = drawn_labels(np.ones(8, bool), 6000, recipe, np.random.default_rng(2))
    sizes = np.bincount(drawn.sum(axis=1), minlength=4)
    assert sizes[0] == 0
    assert stats.chisquare(sizes[1:], 6000 * np.array(recipe.counts)).pvalue > 1e-3
    assert recipe.mean == pytest.approx(1.7)


def test_a_long_tail_is_a_power_of_the_rank() -> None:
    there = np.array([True, True, False, True, True])
    recipe = MixingRecipe(counts=(1.0,), tail=0.8)
    drawn = drawn_labels(there, 20_000, recipe, np.random.default_rng(3)).sum(axis=0)
    assert drawn[2] == 0
    expected = np.array([1, 2, 4, 5]) ** -0.8
    observed = drawn[there]
    assert stats.chisquare(observed, 20_000 * expected / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("counts", [(), (0.5, 0.6), (1.5, -0.5)])
def test_chances_add_up_to_one(counts: tuple[float, ...]) -> None:
    with pytest.raises(InvalidParametersError, match="counts"):
        MixingRecipe(counts=counts)


def test_a_mixture_has_no_more_labels_than_there_are(sources: Sources) -> None:
    held = sources.at(Side.TEST)[:2]
    with pytest.raises(InvalidParametersError, match="up to 3"):
        mix(sources, Side.TEST, held, 1, MixingRecipe(), np.random.default_rng(0))


def test_teachers_hold_whole_recordings_dealt_out_evenly(sources: Sources) -> None:
    held, served = dealt(sources, 5, 2, np.random.default_rng(4))
    for label in range(4):
        rows = sources.of(Side.TEACHERS, label)
        recordings = np.unique(sources.recording[rows])
        counts = dict.fromkeys(recordings.tolist(), 0)
        for teacher in held:
            own = sources.recording[teacher[label]]
            assert len(set(own)) == 2
            for recording in set(own):
                counts[recording] += 1
                assert (own == recording).sum() == (sources.recording == recording).sum()
        assert max(counts.values()) == served[label] == -(-5 * 2 // len(recordings))
        assert min(counts.values()) >= 5 * 2 // len(recordings)


SMALL = Size(teachers=3, mixtures=20, recordings=2, validation=30, queries=20, test=20)


def test_what_was_embedded_is_kept(folder: Path, tmp_path: Path) -> None:
    encoder = default_encoder()
    of = WIDE if rate_of(encoder) == WIDE.rate else NARROW
    opened = []

    def opening() -> Sources:
        opened.append(1)
        return open_sources(folder, of.rate)

    first = prepare(opening, encoder, of, SMALL, MixingRecipe(), 1, tmp_path)
    again = prepare(opening, encoder, of, SMALL, MixingRecipe(), 1, tmp_path)
    other = prepare(opening, encoder, of, SMALL, MixingRecipe(), 2, tmp_path)
    assert len(opened) == 2
    assert first.teachers.features.shape == (3, 20, encoder.dimensions + 64)
    assert np.array_equal(first.teachers.features, again.teachers.features)
    assert np.array_equal(first.queries.truth, again.queries.truth)
    assert not np.array_equal(first.queries.features, other.queries.features)
    # The scale is that of public mixtures, not of what teachers hold.
    assert np.allclose(first.validation.features.mean(axis=0), 0, atol=1e-4)
    assert not np.allclose(first.teachers.features.mean(axis=(0, 1)), 0, atol=1e-2)


def blobs(rows: int, generator: np.random.Generator, labels: int = 3) -> Part:
    """Each label moves a coordinate of its own."""
    truth = (generator.random((rows, labels)) < 0.3).astype(np.int8)
    features = 3.0 * truth + generator.normal(size=truth.shape)
    return Part(features.astype(np.float32), truth)


def test_teachers_learn_from_their_own_mixtures_alone() -> None:
    generator = np.random.default_rng(5)
    taught, tested = [blobs(150, generator) for _ in range(4)], blobs(400, generator)
    stacked = Part(
        *(np.stack([getattr(each, name) for each in taught]) for name in ("features", "truth"))
    )
    heads = trained_teachers(stacked)
    found = heads.probabilities(tested.features)
    assert found.shape == (4, 400, 3)
    assert np.allclose(found[2], trained(taught[2]).probabilities(tested.features))
    chosen = thresholds(found, tested.truth, Aim.BALANCED)
    assert scores(tested.truth, ballots(found[0], chosen)).balanced > 0.85


def test_a_label_that_was_never_met_is_never_named() -> None:
    part = blobs(60, np.random.default_rng(6))
    part.truth[:, 1] = 0
    found = trained(part).probabilities(part.features)
    assert (found[:, 1] == 0).all()
    assert (found[:, 0] > 0).all()


def test_unknown_labels_teach_nothing() -> None:
    part = blobs(80, np.random.default_rng(7))
    weights = np.ones((80, 3))
    weights[40:, 2] = 0
    turned = Part(part.features, part.truth.copy())
    turned.truth[40:, 2] ^= 1
    assert np.array_equal(
        trained(part, 1.0, weights).weights, trained(turned, 1.0, weights).weights
    )
    assert not np.array_equal(trained(part).weights, trained(turned).weights)


@pytest.mark.parametrize("aim", Aim)
def test_thresholds_are_the_best_of_a_grid(aim: Aim) -> None:
    generator = np.random.default_rng(8)
    truth = (generator.random((60, 2)) < 0.4).astype(np.int8)
    likely = np.clip(0.3 * truth + generator.random((3, 60, 2)) * 0.6, 0, 1)
    found = thresholds(likely, truth, aim)

    def score(level: float, label: int) -> float:
        hits = false = 0
        for teacher, row in itertools.product(range(3), range(60)):
            if likely[teacher, row, label] > level:
                hits += int(truth[row, label])
                false += 1 - int(truth[row, label])
        positives = 3 * int(truth[:, label].sum())
        if aim is Aim.F1:
            return 2 * hits / (hits + false + positives)
        return hits / positives - false / (180 - positives)

    for label in range(2):
        best = max(score(level, label) for level in np.linspace(0.02, 0.9, 45))
        assert score(found[label], label) == pytest.approx(best)
    with pytest.raises(InvalidParametersError, match="truth"):
        thresholds(likely, np.zeros_like(truth), aim)


def test_scores_are_the_textbooks() -> None:
    truth = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]])
    named = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
    found = scores(truth, named)
    # Label 0: recall 1/2, specificity 1/2; label 1: both 1; label 2 has no positives.
    assert found.measured == 2
    assert found.balanced == pytest.approx((0.5 + 1) / 2)
    assert np.isnan(found.labels[2])
    assert found.accuracy == pytest.approx(9 / 12)
    # Of hard names the area is the balanced accuracy, a point on a curve of two pieces.
    assert found.area == pytest.approx(found.balanced)
    ranked = scores(truth, named, np.array([[0.9, 0, 0], [0.6, 1, 0], [0.7, 1, 1], [0.1, 0, 0]]))
    assert ranked.area == pytest.approx(1)
    assert ranked.precision == pytest.approx(1)
    with pytest.raises(InvalidInputError, match="no label is in some"):
        scores(np.zeros((3, 2)), np.zeros((3, 2)))
