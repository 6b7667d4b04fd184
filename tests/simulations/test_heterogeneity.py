"""How phones differ follows the distributions that are named."""

from __future__ import annotations

import numpy as np
import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.populations import Blobs, Heterogeneity
from earshot_simulations.populations.population import PhoneCrowd


def crowd(**how: float) -> PhoneCrowd:
    return PhoneCrowd(2000, 20, 5, 0.3, seed=1, heterogeneity=Heterogeneity(**how))


def test_by_default_nothing_is_as_it_was_not() -> None:
    plain = PhoneCrowd(50, 20, 5, 0.3, seed=1)
    for phone in range(50):
        for one, other in zip(plain.heard(phone)[:2], crowd().heard(phone)[:2], strict=True):
            np.testing.assert_array_equal(one, other)


def test_quantity_is_log_normal_around_the_same_mean() -> None:
    even = np.array([crowd().count(phone) for phone in range(2000)])
    skewed = np.array([crowd(quantity_skew=1.0).count(phone) for phone in range(2000)])
    assert skewed.mean() == pytest.approx(even.mean(), rel=0.1)
    logs = np.log(skewed[skewed > 0])
    # Of the logarithm's variance 1 is the factor's, the rest that of the uniform number.
    assert logs.std() == pytest.approx(np.hypot(1, np.log(even[even > 0]).std()), rel=0.06)
    assert (skewed == 0).sum() == (even == 0).sum()
    assert skewed.max() <= 20 * 20


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_mixes_are_dirichlet(concentration: float) -> None:
    generator = np.random.default_rng(0)
    how = Heterogeneity(concentration=concentration)
    mixes = np.array([how.mix(5, generator) for _ in range(20_000)])
    expected = (1 / 5) * (4 / 5) / (5 * concentration + 1)
    assert mixes.var(axis=0) == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_labelling_is_correlated_within_a_phone(correlation: float) -> None:
    generator = np.random.default_rng(0)
    how = Heterogeneity(labelled_correlation=correlation)
    shares = np.array([how.labelled(0.3, generator) for _ in range(20_000)])
    assert shares.mean() == pytest.approx(0.3, abs=0.01)
    assert shares.var() == pytest.approx(correlation * 0.3 * 0.7, abs=0.005)
    assert how.labelled(1.0, generator) == 1.0
    assert how.labelled(0.0, generator) == 0.0


def test_phones_that_hear_one_scene_hear_one_scene() -> None:
    few = crowd(concentration=0.01)
    scenes = [len(np.unique(few.heard(phone)[0])) for phone in range(200)]
    assert np.mean(scenes) < 1.3
    many = crowd(concentration=1e6)
    assert np.mean([len(np.unique(many.heard(phone)[0])) for phone in range(200)]) > 4.5


def test_labels_are_wrong_as_often_as_is_said_and_never_by_chance_right() -> None:
    right, wrong = crowd(labelled_correlation=0.2), crowd(mislabelled=0.3, labelled_correlation=0.2)
    given, scenes_given = [], []
    for phone in range(2000):
        scenes, labels, generator = wrong.heard(phone)
        # What they hear and label stays the same, and so does all that is drawn after it.
        plain_scenes, plain, after = right.heard(phone)
        np.testing.assert_array_equal(scenes, plain_scenes)
        np.testing.assert_array_equal(labels >= 0, plain >= 0)
        assert generator.random() == after.random()
        given.append(labels[labels >= 0])
        scenes_given.append(scenes[labels >= 0])
    said, true = np.concatenate(given), np.concatenate(scenes_given)
    assert np.mean(said != true) == pytest.approx(0.3, abs=0.015)
    # Each of the four other scenes is as likely.
    others = (said - true)[said != true] % 5
    assert np.bincount(others, minlength=5)[1:] / len(others) == pytest.approx(0.25, abs=0.02)
    always = Heterogeneity(mislabelled=1.0)
    scenes = np.repeat(np.arange(3, dtype=np.int16), 500)
    named = always.mislabel(scenes, 3, np.random.default_rng(1))
    assert (named.dtype, set(named.tolist())) == (np.int16, {0, 1, 2})
    assert not (named == scenes).any()
    alone = np.zeros(9, dtype=np.int16)
    assert always.mislabel(alone, 1, np.random.default_rng(1)).tolist() == [0] * 9


def test_a_population_differs_as_it_is_told() -> None:
    blobs = Blobs(100, 20, 5, 0.3, 1, Heterogeneity(labelled_correlation=0.99))
    known = [(blobs.recordings(phone).labels >= 0).mean() for phone in range(100)
             if len(blobs.recordings(phone).labels)]  # fmt: skip
    assert np.mean([share < 0.1 or share > 0.9 for share in known]) > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("concentration", value) for value in (0.0, -1.0, float("nan"), 1e9, float("inf"))),
        *(("quantity_skew", value) for value in (-0.1, 2.1, float("nan"))),
        *(("labelled_correlation", value) for value in (-0.1, 1.0, float("nan"))),
        *(("mislabelled", value) for value in (-0.1, 1.1, float("nan"))),
    ],
)
def test_what_is_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(InvalidParametersError, match=name):
        Heterogeneity(**{name: value})
