"""Fréchet distances against closed forms and mpmath, and the public embedding that they are of."""

from __future__ import annotations

import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae import frechet, public_embedding
from earshot_studies.pate_aae.frechet import TooFewSamplesError
from earshot_studies.pate_aae.generators import spectrogram
from earshot_studies.pate_aae.public_embedding import EmbeddingSettings

pytestmark = pytest.mark.slow

QUICK = EmbeddingSettings(dimensions=4, hidden=(16, 8), copies=2, passes=15)


def law(size: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A mean and a covariance."""
    generator = np.random.default_rng(seed)
    turned = generator.normal(size=(size, size + 2))
    return generator.normal(size=size), turned @ turned.T


# -------------------------------------------------------------------------------- the distance


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.floats(0, 30), st.floats(-9, 9)), min_size=1, max_size=6
    )
)
def test_diagonal_laws_have_a_closed_form(rows: list[tuple[float, float, float]]) -> None:
    expected = math.fsum(apart**2 + (one - two) ** 2 for one, two, apart in rows)
    found = frechet.of_laws(
        np.array([row[2] for row in rows]),
        np.diag([row[0] ** 2 for row in rows]),
        np.zeros(len(rows)),
        np.diag([row[1] ** 2 for row in rows]),
    )
    assert found == pytest.approx(expected, abs=1e-7, rel=1e-9)


@pytest.mark.parametrize("size", [2, 5])
def test_the_distance_is_the_textbooks_at_fifty_digits(size: int) -> None:
    (mean, one), (other_mean, other) = law(size, 1), law(size, 2)
    with mpmath.workdps(50):
        product = mpmath.sqrtm(mpmath.matrix(one.tolist()) * mpmath.matrix(other.tolist()))
        expected = sum(
            (mpmath.mpf(x) - mpmath.mpf(y)) ** 2 for x, y in zip(mean, other_mean, strict=True)
        )
        for place in range(size):
            expected += mpmath.mpf(one[place, place]) + mpmath.mpf(other[place, place])
            expected -= 2 * mpmath.re(product[place, place])
    assert frechet.of_laws(mean, one, other_mean, other) == pytest.approx(float(expected), rel=1e-9)
    assert frechet.of_laws(other_mean, other, mean, one) == pytest.approx(float(expected), rel=1e-9)


def test_the_distance_of_sets_is_that_of_their_laws() -> None:
    generator = np.random.default_rng(0)
    some, others = generator.normal(size=(50, 3)), 2 + 3 * generator.normal(size=(70, 3))
    expected = frechet.of_laws(
        some.mean(axis=0), np.cov(some.T), others.mean(axis=0), np.cov(others.T)
    )
    assert frechet.distance(some, others) == expected
    assert frechet.distance(some, some) == pytest.approx(0, abs=1e-12)
    assert frechet.distance(some, some + 5) == pytest.approx(75)
    single = frechet.distance(some[:, :1], others[:, :1])
    apart = some[:, 0].mean() - others[:, 0].mean()
    spread = some[:, 0].std(ddof=1) - others[:, 0].std(ddof=1)
    assert single == pytest.approx(apart**2 + spread**2)


def test_neither_turning_nor_moving_both_sets_changes_it() -> None:
    generator = np.random.default_rng(3)
    some, others = generator.normal(size=(60, 4)), 1.5 * generator.normal(size=(60, 4)) + 1
    turn = stats.ortho_group.rvs(4, random_state=5)
    expected = frechet.distance(some, others)
    assert frechet.distance(some @ turn + 7, others @ turn + 7) == pytest.approx(expected)


def test_fewer_than_ten_samples_a_dimension_are_refused_by_name() -> None:
    generator = np.random.default_rng(0)
    enough, short = generator.normal(size=(30, 3)), generator.normal(size=(29, 3))
    frechet.distance(enough, enough)
    with pytest.raises(TooFewSamplesError, match="10 per dimension, 30"):
        frechet.distance(enough, short)
    with pytest.raises(TooFewSamplesError, match="60, in two halves"):
        frechet.fidelity(np.concatenate([enough, short]), enough)
    with pytest.raises(TooFewSamplesError, match="generated: 29"):
        frechet.fidelity(np.concatenate([enough, enough]), short)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(40), np.zeros((40, 0)), np.full((40, 2), np.nan), np.zeros((40, 2), dtype=int)],
    ids=["flat", "empty", "nan", "whole numbers"],
)
def test_what_is_no_embedding_is_refused(wrong: NDArray[np.float64]) -> None:
    with pytest.raises(InvalidInputError):
        frechet.distance(np.random.default_rng(0).normal(size=(40, 2)), wrong)


def test_embeddings_of_other_dimensions_are_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match="3 and of 2 dimensions"):
        frechet.distance(generator.normal(size=(40, 3)), generator.normal(size=(40, 2)))
    with pytest.raises(InvalidInputError, match="3 and of 2 dimensions"):
        frechet.fidelity(generator.normal(size=(80, 3)), generator.normal(size=(40, 2)))


def test_real_against_real_is_what_samples_of_the_same_law_reach() -> None:
    generator = np.random.default_rng(1)
    real = generator.normal(size=(400, 3))
    same = frechet.fidelity(real, generator.normal(size=(500, 3)), splits=20)
    other = frechet.fidelity(real, 1 + generator.normal(size=(500, 3)), splits=20)
    assert same.size == 200
    assert same.dimensions == 3
    assert same.generated.seeds == 20
    assert same.real.mean > 0
    assert same.generated.mean < 3 * same.real.mean
    assert other.generated.mean == pytest.approx(3, rel=0.3)
    assert other.real == same.real, "the same halves"
    assert "not fitted to the sensitive clips" in other.note
    few = frechet.fidelity(real, generator.normal(size=(40, 3)), splits=5)
    assert few.size == 40
    with pytest.raises(InvalidParametersError, match="splits"):
        frechet.fidelity(real, real, splits=0)


# ------------------------------------------------------------------------------- the embedding


def public_sound(seed: int, each: int = 12) -> tuple[NDArray[np.float32], list[str]]:
    """Pictures of tones, chirps and noise, at places and levels of their own."""
    generator = np.random.default_rng(seed)
    seconds = np.arange(8000) / 8000
    sound, labels = [], []
    for _ in range(each):
        for name in ("tone", "chirp", "noise"):
            rise = {"tone": 0.0, "chirp": 700.0, "noise": 0.0}[name]
            phase = 2 * np.pi * (generator.uniform(500, 700) * seconds + rise * seconds**2)
            wave = generator.normal(size=8000) if name == "noise" else np.sin(phase)
            envelope = np.exp(-(((seconds - generator.uniform(0.4, 0.6)) / 0.15) ** 2))
            sound.append(generator.uniform(0.05, 0.3) * envelope * wave)
            labels.append(name)
    return spectrogram.log_mel(np.array(sound, dtype=np.float32)), labels


def test_public_sound_has_unit_covariance_and_its_kinds_lie_apart() -> None:
    pictures, labels = public_sound(0)
    settings_ = EmbeddingSettings(dimensions=4, hidden=(16, 8), copies=1, passes=30)
    embedding = public_embedding.fit(pictures, labels, settings_)
    own = embedding.embed(pictures)
    np.testing.assert_allclose(np.cov(own.T), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-9)
    # Sound that it never met, by the nearest that it did.
    others, truth = public_sound(1)
    gaps = np.square(embedding.embed(others)[:, None] - own).sum(axis=2)
    named = [labels[row] for row in gaps.argmin(axis=1)]
    assert np.mean([one == two for one, two in zip(named, truth, strict=True)]) > 0.9


def test_an_embedding_is_the_same_for_a_seed_and_has_no_part_of_other_pictures() -> None:
    pictures, labels = public_sound(0)
    first, second = (public_embedding.fit(pictures, labels, QUICK) for _ in range(2))
    other = public_embedding.fit(
        pictures, labels, EmbeddingSettings(4, (16, 8), copies=2, passes=15, seed=1)
    )
    whole = first.embed(pictures)
    assert np.array_equal(whole, second.embed(pictures))
    assert not np.allclose(whole, other.embed(pictures))
    np.testing.assert_allclose(first.embed(pictures[5:6])[0], whole[5], rtol=1e-9)
    assert first.embed(pictures[:0]).shape == (0, 4)


def test_what_was_fitted_is_kept_by_what_it_was_fitted_on(tmp_path: Path) -> None:
    pictures, labels = public_sound(0)
    first = public_embedding.kept(tmp_path, pictures, labels, QUICK)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = public_embedding.kept(tmp_path, pictures, labels, QUICK)
    assert file.stat().st_mtime_ns == written
    assert np.array_equal(first.embed(pictures), again.embed(pictures))
    public_embedding.kept(tmp_path, pictures[1:], labels[1:], QUICK)
    assert len(list(tmp_path.iterdir())) == 2
    file.write_bytes(file.read_bytes()[:100])
    assert np.array_equal(
        public_embedding.kept(tmp_path, pictures, labels, QUICK).embed(pictures),
        first.embed(pictures),
    )


def test_public_sound_that_teaches_nothing_is_refused() -> None:
    pictures, labels = public_sound(0, each=2)
    with pytest.raises(InvalidInputError, match="5 labels for 6 pictures"):
        public_embedding.fit(pictures, labels[1:], QUICK)
    with pytest.raises(InvalidInputError, match="two classes"):
        public_embedding.fit(pictures, ["tone"] * 6, QUICK)
    with pytest.raises(InvalidInputError, match="6 public pictures"):
        public_embedding.fit(pictures, labels)
    with pytest.raises(InvalidInputError, match="too similar"):
        public_embedding.fit(
            np.repeat(pictures[:1], 6, axis=0), labels, EmbeddingSettings(4, (16, 8), copies=1)
        )
    with pytest.raises(InvalidInputError, match="must be n × frames × bands"):
        public_embedding.fit(pictures[0], labels, QUICK)


def test_pictures_of_another_shape_are_refused() -> None:
    pictures, labels = public_sound(0)
    embedding = public_embedding.fit(pictures, labels, QUICK)
    with pytest.raises(InvalidInputError, match="must be n × 32 × 40"):
        embedding.embed(np.zeros((2, 40, 32), dtype=np.float32))
    with pytest.raises(InvalidInputError, match="finite"):
        embedding.embed(np.full((2, 32, 40), np.nan, dtype=np.float32))


@pytest.mark.parametrize(
    "wrong",
    [{"dimensions": 65}, {"dimensions": 0}, {"hidden": (8, 0)}, {"copies": 0}, {"gain": 1.5},
     {"shift": -1}, {"passes": 0}, {"seed": -1}],
    ids=str,
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(wrong))):
        EmbeddingSettings(**wrong)  # type: ignore[arg-type]
