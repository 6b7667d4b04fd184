"""The numbers that phones keep of what a network says: principal, and evened out within places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot_models.components import public_components, rarity, within_class_normalization
from earshot_models.training import retrieval
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

FEATURES = 150


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def public(count: int = 400, features: int = FEATURES, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    scale = np.geomspace(1, 0.05, features)
    return unit(generator.normal(0.3, 1, (count, features)) * scale).astype(np.float32)


def test_components_are_principal() -> None:
    embeddings = public()
    heard = embeddings.astype(np.float64)
    components = public_components(embeddings, 0.25)
    assert components.turn.shape == (FEATURES, DIMENSIONS)
    np.testing.assert_allclose(components.turn.T @ components.turn, np.eye(DIMENSIONS), atol=1e-9)
    turned = heard @ components.turn
    # No other 128 directions carry more.
    most = np.linalg.svd(heard - heard.mean(axis=0), compute_uv=False)[:DIMENSIONS] ** 2
    assert np.trace(np.cov(turned, rowvar=False)) == pytest.approx(most.sum() / (len(heard) - 1))
    # Among them, those in which rare sounds vary come first.
    covariance = np.cov(turned, rowvar=False, aweights=rarity(embeddings))
    variances = np.diag(covariance)
    assert np.abs(covariance - np.diag(variances)).max() < 1e-9
    assert (np.diff(variances) <= 1e-12).all()
    rows = unit(turned)
    np.testing.assert_allclose(components.turned(embeddings), rows, atol=1e-6)
    np.testing.assert_allclose(rows.mean(axis=0), components.mean, atol=1e-6)
    whitened = rows.var(axis=0) * components.scale**2
    # A quarter of the exponent taken from the variance leaves its square root.
    np.testing.assert_allclose(
        whitened / whitened[0], np.sqrt(rows.var(axis=0) / rows.var(axis=0)[0]), rtol=1e-3
    )


def test_the_most_frequent_sounds_do_not_come_first() -> None:
    """Nineteen in twenty sounds vary in one direction, the others farther in three others."""
    generator = np.random.default_rng(0)
    rows = generator.normal(0, 0.001, (2000, FEATURES))
    rows[:, 0] += 1
    rows[:1900, 1] += generator.normal(0, 0.5, 1900)
    rows[1900:, 2:5] += generator.normal(0, 1, (100, 3))
    rows = unit(rows)
    most = np.linalg.eigh(np.cov(rows, rowvar=False))[1][:, -1]
    assert abs(most[1]) > 0.9
    leading = public_components(rows, 0.25).turn[:, :3]
    assert np.abs(leading[1]).max() < 0.3


@pytest.mark.parametrize("count", [11, 60])
def test_rarity(count: int) -> None:
    rows = public(count)
    rows[1] = rows[0]
    apart = np.linalg.norm(rows[:, np.newaxis] - rows, axis=-1)
    nearest = np.sort(apart, axis=1)[:, 1:11].mean(axis=1)
    np.testing.assert_allclose(rarity(rows), nearest**2, rtol=1e-3)
    np.testing.assert_allclose(rarity(np.tile(rows[0], (20, 1))), 1e-4)


@pytest.mark.parametrize(
    "embeddings",
    [np.zeros((128, 128)), np.zeros((500, 64)), np.full((500, 128), np.nan)],
    ids=["too few", "too short", "not finite"],
)
def test_no_components_of_bad_embeddings(embeddings: np.ndarray) -> None:
    with pytest.raises(InvalidInputError):
        public_components(embeddings, 0.25)


def test_bad_settings_are_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(200, DIMENSIONS))
    with pytest.raises(InvalidParametersError, match="whitening"):
        public_components(rows, 0.6)
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(InvalidParametersError, match="share"):
            within_class_normalization(rows, np.arange(200) // 2, [], share, 1.0)
    for weight in (-0.1, float("nan")):
        with pytest.raises(InvalidParametersError, match="weight"):
            within_class_normalization(rows, np.arange(200) // 2, [], 0.5, weight)


# ----------------------------------------------------------------------------- within recordings


def textbook(
    rows: np.ndarray,
    recordings: np.ndarray,
    views: list[np.ndarray],
    share: float,
    weight: float,
) -> np.ndarray:
    """The covariance that is evened out, one recording and one pair after the other."""
    features = rows.shape[1]
    scatter, again = np.zeros((2, features, features))
    for recording in set(recordings.tolist()):
        own = rows[recordings == recording].astype(np.float64)
        for row in own:
            scatter += np.outer(row - own.mean(axis=0), row - own.mean(axis=0))
    for view in views:
        for first, second in zip(rows.astype(np.float64), view, strict=True):
            middle = (first + second) / 2
            again += sum(np.outer(each - middle, each - middle) for each in (first, second))
    total = sum(
        part * each / np.trace(each)
        for part, each in ((1, scatter), (weight, again))
        if np.trace(each)
    )
    total *= features / np.trace(total)
    return share * total + (1 - share) * np.eye(features)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0, 0.95),
    seconds=st.integers(3, 60),
    views=st.integers(0, 2),
    weight=st.floats(0.01, 2),
)
def test_it_evens_out_what_a_textbook_calls_within_class(
    seed: int, share: float, seconds: int, views: int, weight: float
) -> None:
    generator = np.random.default_rng(seed)
    rows = unit(generator.normal(size=(seconds, 12)))
    recordings = generator.integers(0, max(1, seconds // 3), seconds)
    heard_again = [unit(rows + generator.normal(0, 0.2, rows.shape)) for _ in range(views)]
    found = within_class_normalization(rows, recordings, heard_again, share, weight)
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    evened = found @ textbook(rows, recordings, heard_again, share, weight) @ found
    np.testing.assert_allclose(evened, np.eye(12), atol=1e-6)
    order = generator.permutation(seconds)
    shuffled = within_class_normalization(
        rows[order], recordings[order], [view[order] for view in heard_again], share, weight
    )
    np.testing.assert_allclose(shuffled, found, atol=1e-9)


def test_none_of_it_changes_nothing() -> None:
    rows = public()
    nothing = within_class_normalization(rows, np.arange(400) // 4, [public(seed=1)], 0.0, 1.0)
    np.testing.assert_allclose(nothing, np.eye(FEATURES), atol=1e-12)


def test_a_place_is_found_again_in_spite_of_what_changes_within_it() -> None:
    generator = np.random.default_rng(3)
    places = generator.normal(size=(300, FEATURES))
    # What changes from second to second lies in ten directions, and is larger than all else.
    changing = np.linalg.qr(generator.normal(size=(FEATURES, FEATURES)))[0][:, :10]

    def heard(which: np.ndarray) -> np.ndarray:
        return unit(places[which] + generator.normal(0, 12, (len(which), 10)) @ changing.T)

    known, unheard = np.repeat(np.arange(200), 3), np.repeat(np.arange(200, 300), 2)
    embeddings, fresh = heard(known), heard(unheard)
    evening = within_class_normalization(embeddings, known, [], 0.9, 1.0)
    plain = public_components(embeddings, 0.0)
    evened = public_components(embeddings, 0.0, evening)
    assert retrieval(plain.turned(fresh), unheard) < 0.5
    assert retrieval(evened.turned(fresh), unheard) > 0.95
    np.testing.assert_allclose(evened.turned(fresh), unit(fresh @ evened.turn), atol=1e-6)


def test_views_alone_or_recordings_alone_are_enough_and_neither_is_not() -> None:
    rows, alone = public(), np.arange(400)
    again = [unit(rows + 0.1 * public(seed=2))]
    for found in (
        within_class_normalization(rows, alone, again, 0.5, 0.1),
        within_class_normalization(rows, alone // 2, [], 0.5, 0.1),
    ):
        assert np.isfinite(found).all()
        assert np.abs(found - np.eye(FEATURES)).max() > 0.01
    with pytest.raises(InvalidInputError, match="no recording has two seconds that differ"):
        within_class_normalization(rows, alone, [rows], 0.5, 0.1)
    for recordings, views in ((alone[1:], []), (alone, [rows[1:]]), (alone, [rows[:, 1:]])):
        with pytest.raises(InvalidInputError, match="one shape"):
            within_class_normalization(rows, recordings, views, 0.5, 0.1)
